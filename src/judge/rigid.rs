//! Rigid strategy: the error stays, the command changes a little, and the approach never.

use std::collections::BTreeSet;

use super::attempt::Attempt;
use super::repetition::brief;
use super::shell::{difference, source_program};
use super::{Finding, Label};

/// Minimum number of failing commands in a row. It is one more than for a mechanical loop: a change
/// may be an idea.
pub const RIGID_LENGTH: usize = 4;

/// Minimum number of different commands among them. Fewer are a mechanical loop.
pub const RIGID_COMMANDS: usize = 3;

/// Maximum difference of a small edit (see `difference` of `shell`), e.g. an option more in a short
/// command, or another argument. Another command differs more.
pub const SMALL_EDIT: f64 = 0.4;

/// Maximum digits of a number that has a meaning. Longer ones are e.g. times, addresses or process
/// ids.
const MOST_DIGITS: usize = 4;

/// With more than this share of new words, an output has news. A new number always is news.
pub const NEW_WORDS: f64 = 0.25;

/// The first sequence of failing small edits without news. Another program is another strategy.
/// Another kind of failure, or another number, is news.
pub(super) fn rigid_strategy(attempts: &[Attempt<'_>]) -> Option<Finding> {
    let run = attempts.chunk_by(is_small_edit).find_map(without_news)?;
    let first = run.first()?;
    Some(Finding {
        label: Label::RigidStrategy,
        turns: run.iter().map(|attempt| attempt.turn).collect(),
        note: format!("{} small edits of `{}` failed in the same way", run.len(), brief(&first.command)),
    })
}

fn is_small_edit(one: &Attempt<'_>, next: &Attempt<'_>) -> bool {
    one.visibly_failed()
        && next.visibly_failed()
        && one.ended == next.ended
        && source_program(&one.last_typed()) == source_program(&next.last_typed())
        && difference(&one.command, &next.command) <= SMALL_EDIT
}

/// The longest part of `run` without news that begins as early as possible.
fn without_news<'r, 'a>(run: &'r [Attempt<'a>]) -> Option<&'r [Attempt<'a>]> {
    let mut from = 0;
    while run.len() - from >= RIGID_LENGTH {
        let rest = run.get(from..).unwrap_or_default();
        let mut known = Known::default();
        let length = rest.iter().take_while(|attempt| known.learn(attempt)).count();
        let stale = rest.get(..length).unwrap_or_default();
        let commands: BTreeSet<&str> = stale.iter().map(|attempt| attempt.command.as_str()).collect();
        if length >= RIGID_LENGTH && commands.len() >= RIGID_COMMANDS {
            return Some(stale);
        }
        from += 1;
    }
    None
}

/// All words and numbers of the outputs so far.
#[derive(Default)]
struct Known {
    words: BTreeSet<String>,
    numbers: BTreeSet<String>,
    started: bool,
}

impl Known {
    /// Adds an output. `false` if it has news. The first output never has.
    fn learn(&mut self, attempt: &Attempt<'_>) -> bool {
        // Messages repeat words of their command.
        let own: BTreeSet<String> = words(&attempt.command).collect();
        let new_words: BTreeSet<String> = words(&attempt.output).filter(|word| !own.contains(word)).collect();
        let own: BTreeSet<String> = numbers(&attempt.command).collect();
        let numbers: BTreeSet<String> =
            numbers(&attempt.output).filter(|number| !own.contains(number)).collect();
        let new = new_words.difference(&self.words).count();
        let news = new as f64 > NEW_WORDS * new_words.len() as f64 || !numbers.is_subset(&self.numbers);
        self.words.extend(new_words);
        self.numbers.extend(numbers);
        !news || !std::mem::replace(&mut self.started, true)
    }
}

/// The words of a text. All long numbers and fractions count as one word, `#`.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).filter_map(|word| {
        let word = word.trim_matches('.').to_lowercase();
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let number =
            digits > 0 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '.' || c == 'x' || c == 's');
        let fleeting = number && (digits > MOST_DIGITS || word.contains(['.', 's']));
        (!word.is_empty()).then(|| if fleeting { "#".to_owned() } else { word })
    })
}

/// The numbers of an output that have a meaning, e.g. counts or lines. Positions in the command,
/// durations, ports and process ids do not.
fn numbers(text: &str) -> impl Iterator<Item = String> {
    const ASIDE: [&str; 6] = ["char", "column", "col", "position", "port", "pid"];
    const UNITS: [&str; 5] = ["ms", "s", "sec", "secs", "seconds"];
    // The shell counts its own lines, and a program on the command line is part of the command.
    const OWN: [&str; 4] = ["bash: line ", "sh: line ", "\"<string>\"", "\"<stdin>\""];
    let lines = text.lines().filter(|line| !OWN.iter().any(|own| line.contains(own)));
    lines.flat_map(|line| {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let telling = |place: usize, word: &str| {
            let before =
                place.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
            let after = words.get(place + 1).copied().unwrap_or_default();
            word.len() <= MOST_DIGITS
                && word.chars().all(|c| c.is_ascii_digit())
                && !ASIDE.contains(&before)
                && !UNITS.contains(&after)
        };
        let numbers = words.iter().enumerate().filter(|(place, word)| telling(*place, word));
        numbers.map(|(_, word)| (*word).to_owned()).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::script::{ScriptedCommand, with};
    use crate::model::ShellOutcome::{Exited, TimedOut};

    #[track_caller]
    fn check(commands: &[ScriptedCommand<'_>], expect: &[usize]) {
        let found = with(commands, |_, attempts| rigid_strategy(attempts));
        assert_eq!(found.map(|found| found.turns).unwrap_or_default(), expect, "{commands:?}");
    }

    #[test]
    fn small_edits() {
        let error = "ld: cannot find -lpq: No such file\ncollect2: error: ld returned 1 exit status";
        let bad = |command| (command, Exited(1), error);
        let edits = [
            bad("gcc a.c -lpq"),
            bad("gcc a.c -L. -lpq"),
            bad("gcc a.c -L/lib -lpq"),
            bad("gcc -O2 a.c -L/lib -lpq"),
        ];
        check(&edits, &[0, 1, 2, 3]);
        check(&edits[..3], &[]);
        // Equal commands are part of the sequence, but three must differ.
        check(&[edits[0], edits[1], edits[1], edits[2]], &[0, 1, 2, 3]);
        check(&[edits[0], edits[1], edits[0], edits[1]], &[]);
        // A success, another program, another status, and another error end it.
        check(&[edits[0], edits[1], ("ls", Exited(0), ""), edits[2], edits[3]], &[]);
        check(&[edits[0], bad("cc a.c -lpq"), bad("tcc a.c -lpq"), bad("clang a.c -lpq")], &[]);
        check(&[edits[0], edits[1], ("gcc a.c -L/l -lpq", TimedOut, error), edits[2]], &[]);
        let news = ("gcc a.c -Lx -lpq", Exited(1), "a.c: In function main: undefined reference to pq_open");
        check(&[edits[0], edits[1], news, edits[2], edits[3]], &[]);
        // An output before the sequence may have news.
        check(&[news, edits[0], edits[1], edits[2], edits[3]], &[1, 2, 3, 4]);
        // Status 1 without output is a result.
        check(
            &[
                ("grep -q alpha x", Exited(1), ""),
                ("grep -q beta x", Exited(1), ""),
                ("grep -q gamma x", Exited(1), ""),
                ("grep -q delta x", Exited(1), ""),
            ],
            &[],
        );
    }

    #[test]
    fn an_error_at_another_line_is_new_information() {
        let at = |command, error| (command, Exited(1), error);
        check(
            &[
                at("sed -i '10s/$/;/' a.c && make", "a.c:31: error: expected ';' before return"),
                at("sed -i '31s/$/;/' a.c && make", "a.c:44: error: expected ';' before return"),
                at("sed -i '44s/$/;/' a.c && make", "a.c:52: error: expected ';' before return"),
                at("sed -i '52s/$/;/' a.c && make", "a.c:60: error: expected ';' before return"),
            ],
            &[],
        );
        // Line numbers of the shell do not count.
        check(
            &[
                at("frob -a", "bash: line 3: error in frob"),
                at("frob -b", "bash: line 4: error in frob"),
                at("frob -c", "bash: line 5: error in frob"),
                at("frob -d", "bash: line 6: error in frob"),
            ],
            &[0, 1, 2, 3],
        );
    }

    #[test]
    fn meaningful_numbers() {
        let check =
            |text: &str, expect: &[&str]| assert_eq!(numbers(text).collect::<Vec<_>>(), expect, "{text}");
        check("a.c:31:9: error", &["31", "9"]);
        check("9 failed, 1 passed in 3 s", &["9", "1"]);
        check("sed: -e expression #1, char 7: unknown", &["1"]);
        check("port 5432 of pid 77, 48211 tries", &[]);
        check("bash: line 3: x", &[]);
        check("File \"<string>\", line 1", &[]);
    }

    #[test]
    fn fleeting_numbers_are_one_word() {
        let check =
            |text: &str, expect: &[&str]| assert_eq!(words(text).collect::<Vec<_>>(), expect, "{text}");
        check("took 0.31s", &["took", "#"]);
        check("pid 48211, at 0x7ffd1200", &["pid", "#", "at", "#"]);
        check("status 2", &["status", "2"]);
        check("a.c: 'x_y'.", &["a.c", "x_y"]);
    }
}
