//! Names of keys, parsed as in tmux 3.3a.

use crate::agent::terminal::is_printable;

/// A key and its modifiers. Control is already applied if the key has a control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) base: Base,
    pub(super) modifiers: Modifiers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Modifiers {
    pub(super) ctrl: bool,
    pub(super) meta: bool,
    pub(super) shift: bool,
}

impl Modifiers {
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }

    pub(super) fn is_ctrl_alone(self) -> bool {
        self == Self { ctrl: true, ..Self::default() }
    }

    /// The modifier parameter of xterm's escape sequences.
    pub(super) fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.ctrl)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Ascii(u8),
    Character(char),
    /// The last byte of the escape sequence.
    Arrow(u8),
    /// `ESC [ 1 ~` and `ESC [ 4 ~`; with modifiers `ESC [ 1 ; m H` and `ESC [ 1 ; m F`.
    HomeEnd {
        number: u8,
        last: u8,
    },
    /// `ESC [ number ~`.
    Tilde(u8),
    /// F1 to F4.
    Function {
        last: u8,
    },
    /// The byte that it types, and the last byte of its sequence in application mode.
    Keypad(u8, u8),
    BackTab,
    /// A known key that types nothing.
    Silent,
    /// A known name without a physical key (`any`).
    Other,
}

/// The key with the name `text`.
pub(super) fn look_up(text: &str) -> Option<Key> {
    let plain = |base| Some(Key { base, modifiers: Modifiers::default() });
    if text.eq_ignore_ascii_case("any") {
        return plain(Base::Other);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return plain(hexadecimal(digits)?);
    }
    let mut modifiers = Modifiers::default();
    let mut rest = text;
    if let Some(after) = text.strip_prefix('^').filter(|after| !after.is_empty()) {
        modifiers.ctrl = true;
        rest = after;
    }
    while let [name, b'-', ..] = rest.as_bytes() {
        match name {
            b'C' | b'c' => modifiers.ctrl = true,
            b'M' | b'm' => modifiers.meta = true,
            b'S' | b's' => modifiers.shift = true,
            _ => return None,
        }
        rest = &rest[2..];
    }
    let base = match *rest.as_bytes() {
        [] => return None,
        [byte @ 32..=127] => Base::Ascii(byte),
        [first, ..] if first >= 0xc2 => {
            let mut characters = rest.chars();
            let character = characters.next().filter(|_| characters.next().is_none())?;
            // tmux drops Control and Shift here.
            let modifiers = Modifiers { meta: modifiers.meta, ..Modifiers::default() };
            let base = Base::Character(printable(character)?);
            return Some(Key { base, modifiers });
        }
        _ => named(rest)?,
    };
    control(base, modifiers)
}

/// Applies Control to the ASCII keys that have a control character.
fn control(base: Base, modifiers: Modifiers) -> Option<Key> {
    /// ASCII characters that keep the modifier Control.
    const UNCHANGED: &[u8] = b"!#()+,-.0123456789:;<=>'\r\t\x7f`/\x1b";
    let Base::Ascii(byte) = base else { return Some(Key { base, modifiers }) };
    if !modifiers.ctrl || UNCHANGED.contains(&byte) {
        return Some(Key { base, modifiers });
    }
    let byte = match byte {
        b'a'..=b'z' => byte - 96,
        64..=95 => byte - 64,
        b' ' => 0,
        b'?' => 127,
        _ => return None,
    };
    Some(Key { base: Base::Ascii(byte), modifiers: Modifiers { ctrl: false, ..modifiers } })
}

/// `sscanf("%x")` of the text after `0x`. It accepts leading blanks, a sign and a second `0x`, and
/// ignores trailing text.
fn hexadecimal(text: &str) -> Option<Base> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let text = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(after) if after.starts_with(|c: char| c.is_ascii_hexdigit()) => after,
        _ => text,
    };
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    if end == 0 {
        return None;
    }
    // `strtoul` saturates at 64 bits, and tmux keeps the lower 32.
    let wide = u64::from_str_radix(&text[..end], 16).unwrap_or(u64::MAX);
    let signed = if negative { wide.wrapping_neg() } else { wide };
    let code = u32::try_from(signed & u64::from(u32::MAX)).ok()?;
    match code {
        0..=31 => Some(Base::Ascii(u8::try_from(code).ok()?)),
        _ => char::from_u32(code).and_then(printable).map(Base::Character),
    }
}

fn printable(character: char) -> Option<char> {
    (character.is_ascii() || is_printable(character)).then_some(character)
}

fn named(name: &str) -> Option<Base> {
    let lower = name.to_ascii_lowercase();
    Some(match lower.as_str() {
        "f1" => Base::Function { last: b'P' },
        "f2" => Base::Function { last: b'Q' },
        "f3" => Base::Function { last: b'R' },
        "f4" => Base::Function { last: b'S' },
        "f5" => Base::Tilde(15),
        "f6" => Base::Tilde(17),
        "f7" => Base::Tilde(18),
        "f8" => Base::Tilde(19),
        "f9" => Base::Tilde(20),
        "f10" => Base::Tilde(21),
        "f11" => Base::Tilde(23),
        "f12" => Base::Tilde(24),
        "ic" | "insert" => Base::Tilde(2),
        "dc" | "delete" => Base::Tilde(3),
        "home" => Base::HomeEnd { number: 1, last: b'H' },
        "end" => Base::HomeEnd { number: 4, last: b'F' },
        "npage" | "pagedown" | "pgdn" => Base::Tilde(6),
        "ppage" | "pageup" | "pgup" => Base::Tilde(5),
        "tab" => Base::Ascii(b'\t'),
        "btab" => Base::BackTab,
        "space" => Base::Ascii(b' '),
        "bspace" => Base::Ascii(0x7f),
        "enter" => Base::Ascii(b'\r'),
        "escape" => Base::Ascii(0x1b),
        "up" => Base::Arrow(b'A'),
        "down" => Base::Arrow(b'B'),
        "right" => Base::Arrow(b'C'),
        "left" => Base::Arrow(b'D'),
        "kp/" => Base::Keypad(b'/', b'o'),
        "kp*" => Base::Keypad(b'*', b'j'),
        "kp-" => Base::Keypad(b'-', b'm'),
        "kp+" => Base::Keypad(b'+', b'k'),
        "kp." => Base::Keypad(b'.', b'n'),
        "kpenter" => Base::Keypad(b'\n', b'M'),
        _ => return keypad_digit(&lower).or_else(|| user(name)),
    })
}

fn keypad_digit(lower: &str) -> Option<Base> {
    match lower.strip_prefix("kp")?.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(Base::Keypad(*digit, digit - b'0' + b'p')),
        _ => None,
    }
}

/// `sscanf("User%u")`. It ignores text after the number.
fn user(name: &str) -> Option<Base> {
    /// tmux's number of user keys.
    const KEYS: u32 = 1000;
    let digits = name.strip_prefix("User")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().is_ok_and(|number: u32| number < KEYS).then_some(Base::Silent)
}
