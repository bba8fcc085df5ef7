//! The text of the terminal that a model reads.

use super::python::strip;

/// Longest output, in bytes of UTF-8. Half of it is the start of the output, half its end.
pub const MAX_OUTPUT_BYTES: usize = 10_000;

/// Harbor's `_limit_output_length`: omits the middle of a long output. Characters that would be cut
/// in two are omitted too.
pub fn limit(output: &str) -> String {
    if output.len() <= MAX_OUTPUT_BYTES {
        return output.to_owned();
    }
    let half = MAX_OUTPUT_BYTES / 2;
    let boundary = |offset: &usize| output.is_char_boundary(*offset);
    let first = &output[..(0..=half).rev().find(boundary).unwrap_or(0)];
    let last = &output[(output.len() - half..output.len()).find(boundary).unwrap_or(output.len())..];
    let omitted = output.len() - first.len() - last.len();
    format!(
        "{first}\n[... output limited to {MAX_OUTPUT_BYTES} bytes; {omitted} interior bytes omitted ...]\n{last}"
    )
}

/// The pane as it was last shown, so that new output can be found.
#[derive(Clone, Debug, Default)]
pub struct Pane {
    previous: Option<String>,
}

impl Pane {
    /// Harbor's `get_incremental_output`: the output since the last call. If that cannot be found
    /// or is empty, it is the screen.
    ///
    /// `full` is the pane with its history, `screen` its visible part. `pushed` is the number of
    /// lines that left the screen since the last call. The history holds 2,000 lines. Harbor does
    /// not mark longer output as cut. Here a line above the screen does.
    pub fn show(&mut self, full: String, screen: &str, pushed: u64) -> String {
        let fresh = self.previous.as_deref().and_then(|previous| new_content(previous, &full));
        let is_whole = fresh.as_ref().is_some_and(|fresh| fresh.is_whole);
        let shown = match fresh {
            _ if pushed > 0 && !is_whole => format!(
                "Current Terminal Screen:\n[... lines above are omitted: {pushed} lines have left the screen ...]\n{screen}"
            ),
            Some(Fresh { text, .. }) if !strip(text).is_empty() => format!("New Terminal Output:\n{text}"),
            _ => format!("Current Terminal Screen:\n{screen}"),
        };
        self.previous = Some(full);
        shown
    }
}

/// The new part of a pane.
struct Fresh<'a> {
    text: &'a str,
    /// No new text stands before it.
    is_whole: bool,
}

/// The text from the last line of `previous` on. Like Harbor, this counts characters in `previous`
/// and skips as many in `current`. So it is wrong by the text that stands before `previous` in
/// `current`.
fn new_content<'a>(previous: &str, current: &'a str) -> Option<Fresh<'a>> {
    let previous = strip(previous);
    let found = current.find(previous)?;
    let is_whole = strip(&current[..found]).is_empty();
    let Some(line) = previous.rfind('\n') else { return Some(Fresh { text: &current[found..], is_whole }) };
    let skipped = previous[..line].chars().count();
    let from = current.char_indices().nth(skipped).map_or(current.len(), |(offset, _)| offset);
    Some(Fresh { text: &current[from..], is_whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Harbor has this fault too: text before the place where the earlier screen is found again is
    /// not shown.
    #[test]
    fn only_what_follows_the_earlier_screen_is_new() {
        let check_pushed = |previous: &str, full: &str, pushed: u64, expected: &str| {
            let mut pane = Pane { previous: Some(previous.to_owned()) };
            let shown = pane.show(full.to_owned(), "the screen", pushed);
            assert_eq!(shown, expected, "{previous:?}, then {full:?}");
        };
        let check = |previous: &str, full: &str, expected: &str| check_pushed(previous, full, 0, expected);
        check("$ ", "$ echo 42\n42\n$ ", "New Terminal Output:\n$ echo 42\n42\n$ ");
        check("$ ls\na\n$ ", "$ ls\na\n$ pwd\n/\n$ ", "New Terminal Output:\n\n$ pwd\n/\n$ ");
        // `clear; echo 42` on a pane with only a prompt: the prompt is found again below the
        // output.
        check("$ ", "42\n$ ", "New Terminal Output:\n$ ");
        check("$ ls\na\n$ ", "42\n$ ", "Current Terminal Screen:\nthe screen");
        check_pushed(
            "$ ls\na\n$ ",
            "42\n$ ",
            7,
            "Current Terminal Screen:\n[... lines above are omitted: 7 lines have left the screen ...]\nthe screen",
        );
        // The prompt is found again below thousands of lines.
        check_pushed(
            "$ ",
            "4999\n5000\n$ ",
            4961,
            "Current Terminal Screen:\n[... lines above are omitted: 4961 lines have left the screen ...]\nthe screen",
        );
        // The history has all lines.
        check_pushed("$ ", "$ seq 9\n8\n9\n$ ", 7, "New Terminal Output:\n$ seq 9\n8\n9\n$ ");
    }

    #[test]
    fn too_much_output_loses_its_middle() {
        let check = |output: String, expected: String| assert_eq!(limit(&output), expected);
        let marker =
            |bytes| format!("\n[... output limited to 10000 bytes; {bytes} interior bytes omitted ...]\n");
        check("a".repeat(10_000), "a".repeat(10_000));
        check("a".repeat(10_001), format!("{0}{1}{0}", "a".repeat(5_000), marker(1)));
        // Byte 5000 lies within the 1667th character of three bytes, from either end.
        check("漢".repeat(4_000), format!("{0}{1}{0}", "漢".repeat(1_666), marker(2_004)));
    }
}
