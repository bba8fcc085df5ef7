//! Bytes → characters, controls and sequences: the state machine of tmux's `input.c`.
//!
//! It differs from the usual parser (Paul Williams'). There are no C1 controls. Invalid UTF-8 is
//! dropped. `ESC k … ESC \` is a window title. `ESC` ends every string but a device control string.

/// Maximum bytes of a sequence's parameters. A longer sequence is ignored.
const MAX_PARAMETER_BYTES: usize = 63;
/// Maximum number of intermediate and private-marker bytes of a sequence. A sequence with more is
/// ignored.
const MAX_INTERMEDIATES: usize = 3;
/// Maximum number of parameters of a sequence. A sequence with more is ignored.
const MAX_PARAMETERS: usize = 23;
/// Largest number in a sequence. A sequence with a larger one is ignored.
const MAX_NUMBER: u64 = i32::MAX as u64;

/// Receives the events of the parser.
pub(super) trait Act {
    /// A printable ASCII character.
    fn print(&mut self, byte: u8);
    /// Any other character.
    fn print_wide(&mut self, character: char);
    fn control(&mut self, byte: u8);
    fn escape(&mut self, intermediates: &[u8], last: u8);
    fn sequence(&mut self, intermediates: &[u8], parameters: &[Parameter], last: u8);
    /// A byte of a character beyond ASCII, which may turn out invalid.
    fn top_bit(&mut self);
}

/// A parameter of a sequence, between `;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Missing,
    Number(u32),
    /// A parameter with `:`, e.g. `48:5:1`, as its numbers.
    Group(Vec<Option<u32>>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    CsiParameter,
    CsiIntermediate,
    CsiIgnore,
    Dcs,
    DcsParameter,
    DcsIntermediate,
    DcsBody,
    DcsEscape,
    DcsIgnore,
    /// An operating system command. BEL ends it too.
    Osc,
    /// A title, an APC, a PM or an SOS.
    Text,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Parser {
    state: State,
    intermediates: Vec<u8>,
    parameters: Vec<u8>,
    /// The sequence is too long, so it is ignored.
    discard: bool,
    /// The bytes of an unfinished character, and how many it will have.
    partial: Vec<u8>,
    expected: usize,
    /// Number of strings that have begun.
    strings: u64,
}

impl Parser {
    /// The number of the unfinished string that the parser is in.
    pub(super) fn open_string(&self) -> Option<u64> {
        let inside = !matches!(
            self.state,
            State::Ground
                | State::Escape
                | State::EscapeIntermediate
                | State::Csi
                | State::CsiParameter
                | State::CsiIntermediate
                | State::CsiIgnore
        );
        inside.then_some(self.strings)
    }

    /// Aborts a string.
    pub(super) fn abandon_string(&mut self) {
        self.clear();
        self.state = State::Ground;
    }

    pub(super) fn feed(&mut self, bytes: &[u8], to: &mut impl Act) {
        for &byte in bytes {
            self.take(byte, to);
        }
    }

    fn take(&mut self, byte: u8, to: &mut impl Act) {
        if self.state == State::DcsBody || self.state == State::DcsEscape {
            self.state = match (self.state, byte) {
                (State::DcsBody, 0x1b) => State::DcsEscape,
                (State::DcsEscape, b'\\') => State::Ground,
                _ => State::DcsBody,
            };
            return;
        }
        match byte {
            0x18 | 0x1a => {
                self.control(byte, to);
                self.state = State::Ground;
            }
            0x1b => {
                self.clear();
                self.state = State::Escape;
            }
            0x00..=0x1f => match self.state {
                State::Osc if byte == 0x07 => self.state = State::Ground,
                State::Dcs
                | State::DcsParameter
                | State::DcsIntermediate
                | State::DcsIgnore
                | State::Osc
                | State::Text => {}
                _ => self.control(byte, to),
            },
            _ => self.graphic(byte, to),
        }
    }

    fn control(&mut self, byte: u8, to: &mut impl Act) {
        self.partial.clear();
        to.control(byte);
    }

    /// A byte other than a control character, outside the body of a device control string.
    fn graphic(&mut self, byte: u8, to: &mut impl Act) {
        match (self.state, byte) {
            (State::Ground, 0x20..=0x7e) => {
                self.partial.clear();
                to.print(byte);
            }
            (State::Ground, 0x80..) => self.character(byte, to),
            (State::Escape | State::EscapeIntermediate, 0x20..=0x2f) => {
                self.collect(byte, State::EscapeIntermediate);
            }
            (State::Escape, b'[') => self.enter(State::Csi),
            (State::Escape, b'P') => self.enter_string(State::Dcs),
            (State::Escape, b']') => self.enter_string(State::Osc),
            (State::Escape, b'X' | b'^' | b'_' | b'k') => self.enter_string(State::Text),
            (State::Escape | State::EscapeIntermediate, 0x30..=0x7e) => {
                if !self.discard {
                    to.escape(&self.intermediates, byte);
                }
                self.state = State::Ground;
            }
            (State::Csi | State::CsiParameter, 0x30..=0x3b) => self.parameter(byte, State::CsiParameter),
            (State::Csi, 0x3c..=0x3f) => self.collect(byte, State::CsiParameter),
            (State::Csi | State::CsiParameter | State::CsiIntermediate, 0x20..=0x2f) => {
                self.collect(byte, State::CsiIntermediate);
            }
            (State::Csi | State::CsiParameter | State::CsiIntermediate, 0x40..=0x7e) => {
                if !self.discard
                    && let Some(parameters) = split(&self.parameters)
                {
                    to.sequence(&self.intermediates, &parameters, byte);
                }
                self.state = State::Ground;
            }
            (State::CsiParameter | State::CsiIntermediate, 0x30..=0x3f) => self.state = State::CsiIgnore,
            (State::CsiIgnore, 0x40..=0x7e) => self.state = State::Ground,
            (State::Dcs | State::DcsParameter, 0x30..=0x39 | 0x3b) => {
                self.parameter(byte, State::DcsParameter);
            }
            (State::Dcs, 0x3c..=0x3f) => self.collect(byte, State::DcsParameter),
            (State::Dcs | State::DcsParameter | State::DcsIntermediate, 0x20..=0x2f) => {
                self.collect(byte, State::DcsIntermediate);
            }
            (State::Dcs | State::DcsParameter | State::DcsIntermediate, 0x30..=0x3f) => {
                self.state = State::DcsIgnore;
            }
            (State::Dcs | State::DcsParameter | State::DcsIntermediate, 0x40..=0x7e) => {
                self.state = State::DcsBody;
            }
            // DEL, bytes beyond ASCII inside sequences, and the contents of strings.
            _ => {}
        }
    }

    fn enter(&mut self, state: State) {
        self.clear();
        self.state = state;
    }

    fn enter_string(&mut self, state: State) {
        self.strings += 1;
        self.enter(state);
    }

    fn clear(&mut self) {
        self.intermediates.clear();
        self.parameters.clear();
        self.discard = false;
    }

    fn collect(&mut self, byte: u8, next: State) {
        if self.intermediates.len() == MAX_INTERMEDIATES {
            self.discard = true;
        } else {
            self.intermediates.push(byte);
        }
        self.state = next;
    }

    fn parameter(&mut self, byte: u8, next: State) {
        if self.parameters.len() == MAX_PARAMETER_BYTES {
            self.discard = true;
        } else {
            self.parameters.push(byte);
        }
        self.state = next;
    }

    /// A byte beyond ASCII. The first byte of a character decides its length, even if a later one
    /// is invalid.
    fn character(&mut self, byte: u8, to: &mut impl Act) {
        to.top_bit();
        if self.partial.is_empty() {
            self.expected = match byte {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return,
            };
        }
        self.partial.push(byte);
        if self.partial.len() < self.expected {
            return;
        }
        let character = std::str::from_utf8(&self.partial).ok().and_then(|text| text.chars().next());
        self.partial.clear();
        if let Some(character) = character {
            to.print_wide(character);
        }
    }
}

/// Splits the parameters. `None` if tmux ignores the sequence.
fn split(bytes: &[u8]) -> Option<Vec<Parameter>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let mut found = Vec::new();
    for piece in bytes.split(|byte| *byte == b';') {
        found.push(match piece {
            [] => Parameter::Missing,
            _ if piece.contains(&b':') => {
                let numbers = piece.split(|byte| *byte == b':');
                Parameter::Group(numbers.map(number).collect())
            }
            _ => Parameter::Number(number(piece)?),
        });
        if found.len() > MAX_PARAMETERS {
            return None;
        }
    }
    Some(found)
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().try_fold(0u64, |value, digit| {
        let value = value * 10 + u64::from(digit.checked_sub(b'0')?);
        (value <= MAX_NUMBER).then_some(value)
    })?;
    u32::try_from(value).ok()
}
