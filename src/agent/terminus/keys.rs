//! Keystrokes → bytes, as `tmux send-keys -t … -- KEYSTROKES` (3.3a) types them.
//!
//! The text is one argument. If it is the name of a key, that key is pressed, else the text is
//! typed. tmux has two special cases. A text that begins with `0x` and a hexadecimal number is one
//! character. A `;` at the end is tmux's command separator, so it is not typed; `\;` types it.

use super::names::{self, Base, Key, Modifiers};
use crate::agent::terminal::KeyModes;

/// tmux's limit for a message to its server, in bytes. Harbor pastes longer text.
const MAX_COMMAND: usize = 16_000;
/// Length of `tmux send-keys -t terminus-2 -- `. It counts towards the limit.
const COMMAND_START: usize = 32;

/// The bytes that the keystrokes of one command type.
pub fn to_bytes(keystrokes: &str, modes: KeyModes) -> Vec<u8> {
    if quoted_length(keystrokes) + COMMAND_START > MAX_COMMAND {
        // A paste turns newlines into carriage returns. Typed newlines stay.
        return keystrokes.replace('\n', "\r").into_bytes();
    }
    // An argument cannot hold NUL. Harbor would fail here.
    let text = keystrokes.replace('\0', "");
    let argument = match text.strip_suffix(';') {
        Some(rest) => match rest.strip_suffix('\\') {
            Some(rest) => format!("{rest};"),
            None => rest.to_owned(),
        },
        None => text,
    };
    match names::look_up(&argument).map(|key| press(key, modes)) {
        Some(Pressed::Bytes(bytes)) => bytes,
        Some(Pressed::Nothing) => Vec::new(),
        Some(Pressed::Unknown) | None => argument.into_bytes(),
    }
}

/// Length in bytes of `shlex.quote(text)`.
fn quoted_length(text: &str) -> usize {
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        return text.len();
    }
    // `shlex.quote` writes a single quote as `'"'"'`.
    text.len() + 2 + 4 * text.matches('\'').count()
}

/// The bytes that tmux sends for a key.
enum Pressed {
    Bytes(Vec<u8>),
    /// The key is known, but types nothing.
    Nothing,
    /// tmux has no bytes for the key, and types its name instead.
    Unknown,
}

fn press(key: Key, modes: KeyModes) -> Pressed {
    let Key { base, modifiers } = key;
    let escaped = |bytes: &[u8]| {
        let escape: &[u8] = if modifiers.meta { b"\x1b" } else { b"" };
        Pressed::Bytes([escape, bytes].concat())
    };
    match base {
        Base::Silent => Pressed::Nothing,
        Base::Character(character) => escaped(character.encode_utf8(&mut [0; 4]).as_bytes()),
        Base::Ascii(byte) if modifiers.ctrl || modifiers.shift => {
            press_with_modifiers(byte, modifiers, modes)
        }
        Base::Ascii(byte) => escaped(&[byte]),
        Base::Arrow(last) if modifiers.is_none() => {
            let middle = if modes.application_cursor { b'O' } else { b'[' };
            Pressed::Bytes(vec![0x1b, middle, last])
        }
        Base::Keypad(plain, application) if !modifiers.ctrl && !modifiers.shift => {
            if modes.application_keypad { escaped(&[0x1b, b'O', application]) } else { escaped(&[plain]) }
        }
        Base::BackTab if !modifiers.ctrl && !modifiers.shift => escaped(b"\x1b[Z"),
        Base::Arrow(last) | Base::HomeEnd { last, .. } | Base::Function { last } if !modifiers.is_none() => {
            Pressed::Bytes(format!("\x1b[1;{}{}", modifiers.number(), char::from(last)).into_bytes())
        }
        Base::Tilde(number) if !modifiers.is_none() => {
            Pressed::Bytes(format!("\x1b[{number};{}~", modifiers.number()).into_bytes())
        }
        Base::HomeEnd { number, .. } | Base::Tilde(number) => {
            Pressed::Bytes(format!("\x1b[{number}~").into_bytes())
        }
        Base::Function { last } => Pressed::Bytes(vec![0x1b, b'O', last]),
        Base::Keypad(..) | Base::BackTab if modes.extended => {
            Pressed::Bytes(format!("\x1b[{};{}u", internal_number(base), modifiers.number()).into_bytes())
        }
        // With Control alone tmux ignores these keys. With other modifiers it types their names.
        Base::Keypad(..) | Base::BackTab | Base::Other | Base::Arrow(_) => {
            if modifiers.is_ctrl_alone() {
                Pressed::Nothing
            } else {
                Pressed::Unknown
            }
        }
    }
}

/// tmux's internal number of a key. Programs in extended mode get it.
fn internal_number(base: Base) -> usize {
    const BACK_TAB: usize = 1_106_343;
    const FIRST_OF_KEYPAD: usize = BACK_TAB + 5;
    const KEYPAD: &[u8] = b"/*-789+456123\n0.";
    match base {
        Base::Keypad(plain, _) => {
            FIRST_OF_KEYPAD + KEYPAD.iter().position(|key| *key == plain).unwrap_or_default()
        }
        _ => BACK_TAB,
    }
}

/// An ASCII key with Control or Shift for which no control character exists.
fn press_with_modifiers(byte: u8, modifiers: Modifiers, modes: KeyModes) -> Pressed {
    if modes.extended {
        let (code, modifiers) = match byte {
            9 | 13 | 27 | 32.. => (byte, modifiers),
            _ => (byte + 64, Modifiers { ctrl: true, ..modifiers }),
        };
        return Pressed::Bytes(format!("\x1b[{code};{}u", modifiers.number()).into_bytes());
    }
    if !modifiers.is_ctrl_alone() {
        return Pressed::Unknown;
    }
    match byte {
        b' ' | b'2' => Pressed::Bytes(vec![0]),
        b'|' => Pressed::Bytes(vec![28]),
        b'6' => Pressed::Bytes(vec![30]),
        b'-' | b'/' => Pressed::Bytes(vec![31]),
        b'?' => Pressed::Bytes(vec![127]),
        _ => Pressed::Nothing,
    }
}
