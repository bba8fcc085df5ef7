//! The width of characters in columns.

use std::sync::LazyLock;

/// Lines `first last width`: every character beyond ASCII that does not take one column. The widths
/// are from `wcwidth` of Debian 12's glibc, which tmux uses there. `-` means unprintable or
/// unassigned. `tests/readers/tmux_golden.py widths` wrote the file.
const TABLE: &str = include_str!("widths.txt");

static RANGES: LazyLock<Vec<(u32, u32, Width)>> = LazyLock::new(|| TABLE.lines().filter_map(range).collect());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// tmux drops it.
    Unprintable,
    Zero,
    One,
    Two,
}

/// Whether tmux accepts a character beyond ASCII, as a key and on the screen.
pub(in crate::agent) fn is_printable(character: char) -> bool {
    width(character) != Width::Unprintable
}

/// The width of a character beyond ASCII.
pub(super) fn width(character: char) -> Width {
    let code = u32::from(character);
    let after = RANGES.partition_point(|(first, ..)| *first <= code);
    match after.checked_sub(1).map(|index| RANGES[index]) {
        Some((_, last, width)) if code <= last => width,
        _ => Width::One,
    }
}

fn range(line: &str) -> Option<(u32, u32, Width)> {
    let mut fields = line.split(' ');
    let mut code = || u32::from_str_radix(fields.next()?, 16).ok();
    let (first, last) = (code()?, code()?);
    let width = match fields.next()? {
        "-" => Width::Unprintable,
        "0" => Width::Zero,
        "2" => Width::Two,
        _ => return None,
    };
    Some((first, last, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole_and_in_order() {
        assert_eq!(RANGES.len(), TABLE.lines().count());
        assert!(RANGES.windows(2).all(|pair| pair[0].1 < pair[1].0), "overlapping or unsorted");
        assert!(RANGES.iter().all(|(first, last, _)| first <= last));
    }

    #[test]
    fn characters_have_widths() {
        let check = |character, expected| assert_eq!(width(character), expected, "{character:?}");
        check('é', Width::One);
        check('─', Width::One);
        check('漢', Width::Two);
        check('😀', Width::Two);
        check('\u{301}', Width::Zero);
        check('\u{200d}', Width::Zero);
        check('\u{85}', Width::Unprintable);
        check('\u{10ffff}', Width::Unprintable);
    }
}
