//! How a scripted expert writes its turns in a scaffold's protocol, and reads the observations.

use serde::Serialize;
use serde_json::json;

use super::super::bash;
use super::super::bash_block::write_block;
use super::super::scaffold::AssistantMessage;
use crate::model::ToolCall;

/// Longest wait for the output of a turn, in seconds. The wait ends early, once the shell is idle.
const WAIT_SECONDS: f64 = 30.0;
/// Wait after a command that changes a setting of the shell, in seconds.
const SETTING_SECONDS: f64 = 0.5;
/// Typed before the first command. Otherwise an interactive shell would expand `!` from its
/// history.
const NO_HISTORY: &str = "set +H\n";
/// Typed before a tab, so that the line editor inserts it. (Ctrl-V)
const LITERAL_NEXT: &str = "\u{16}";
/// Answers when a scaffold asks whether the work is done. They claim nothing new.
const CONFIRMED: [&str; 7] = [
    "The work stands as described in the last message.",
    "Yes, I submit this state.",
    "Nothing has changed since the summary; it can be graded.",
    "I confirm: this is what I hand in.",
    "No further changes from my side.",
    "The summary above still holds, so I mark the task as complete.",
    "Yes. There is nothing that I want to add.",
];
/// The echo of a line is found by this many of its last characters: the terminal wraps longer
/// lines.
const ECHO_LENGTH: usize = 40;

/// The echo of the line that closes a group.
const GROUP_END: &str = "> }";

/// The protocol of a scripted expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    BashBlock,
    BashTool,
    /// terminus-2, JSON.
    Terminus,
}

#[derive(Serialize)]
struct TerminusMessage<'a> {
    analysis: &'a str,
    plan: &'a str,
    commands: Vec<TerminusCommand>,
    task_complete: bool,
}

#[derive(Serialize)]
struct TerminusCommand {
    keystrokes: String,
    duration: f64,
}

impl MessageFormat {
    /// The message of turn `turn` (counted from 0): it says `say` and runs `command`.
    pub fn act(self, turn: usize, say: &str, command: &str) -> AssistantMessage {
        match self {
            Self::BashBlock => text(write_block(say, Some(command))),
            Self::BashTool => {
                let call = ToolCall {
                    id: format!("call_{turn}"),
                    name: bash::TOOL.to_owned(),
                    arguments: json!({ "command": command }).to_string(),
                };
                AssistantMessage { tool_calls: vec![call], ..text(say.to_owned()) }
            }
            Self::Terminus => {
                let mut commands = Vec::new();
                if turn == 0 {
                    let keystrokes = NO_HISTORY.to_owned();
                    commands.push(TerminusCommand { keystrokes, duration: SETTING_SECONDS });
                }
                commands.push(TerminusCommand { keystrokes: keystrokes(command), duration: WAIT_SECONDS });
                let (analysis, plan) = last_sentence(say);
                text(terminus(&TerminusMessage { analysis, plan, commands, task_complete: false }))
            }
        }
    }

    /// The message that submits.
    pub fn submit(self, say: &str) -> AssistantMessage {
        text(match self {
            Self::BashBlock => write_block(say, None),
            Self::BashTool => say.to_owned(),
            Self::Terminus => terminus(&TerminusMessage {
                analysis: say,
                plan: "",
                commands: Vec::new(),
                task_complete: true,
            }),
        })
    }

    /// The answer when a scaffold asks, in turn `turn`, whether the work is done.
    pub fn confirm(self, turn: usize) -> AssistantMessage {
        self.submit(CONFIRMED.get(turn % CONFIRMED.len()).unwrap_or(&CONFIRMED[0]))
    }

    /// The output of `command` in an observation, without the scaffold's additions. A terminal adds
    /// the echo of the input and a prompt. The other scaffolds add the exit status.
    pub fn output(self, observation: &str, command: &str) -> String {
        let (output, is_frame): (&str, fn(&str) -> bool) = match self {
            Self::BashBlock | Self::BashTool => (observation, |line| line.starts_with("[exit status ")),
            Self::Terminus => (after_echo(observation, command), is_prompt),
        };
        let output = output.trim_end();
        let (before, last) = output.rsplit_once('\n').unwrap_or(("", output));
        let output = if is_frame(last) { before.trim_end() } else { output };
        if output.is_empty() { String::new() } else { format!("{output}\n") }
    }
}

/// Whether a line is the prompt of a waiting shell, e.g. `root@host:/app#`.
fn is_prompt(line: &str) -> bool {
    line.ends_with(['#', '$'])
        && line.split_once(':').is_some_and(|(user, _)| user.contains('@') && !user.contains(' '))
}

fn text(content: String) -> AssistantMessage {
    AssistantMessage { content, ..AssistantMessage::default() }
}

fn terminus(message: &TerminusMessage<'_>) -> String {
    // A struct of strings and numbers can always be serialised.
    serde_json::to_string_pretty(message).unwrap_or_default()
}

/// A text without its last sentence, and that sentence. A single sentence is the first part.
fn last_sentence(say: &str) -> (&str, &str) {
    match say.rsplit_once(". ") {
        Some((before, last)) => (say.get(..=before.len()).unwrap_or(before), last),
        None => (say, ""),
    }
}

/// The keystrokes that run `command`. Several lines are typed as a group (`{ … }`), which the shell
/// runs when it has read all of it. Otherwise outputs and echoes would mix.
fn keystrokes(command: &str) -> String {
    let typed = command.replace('\t', &format!("{LITERAL_NEXT}\t"));
    if command.contains('\n') { format!("{{\n{typed}\n}}\n") } else { format!("{typed}\n") }
}

/// The part of an observation after the echo of the last typed line.
fn after_echo<'a>(observation: &'a str, command: &str) -> &'a str {
    let last = if command.contains('\n') { GROUP_END } else { command };
    let start = last.char_indices().rev().nth(ECHO_LENGTH - 1).map_or(0, |(index, _)| index);
    let echoed = last.get(start..).unwrap_or(last);
    // Number of lines of the command that look like the end of the group.
    let looks_like_end = |line: &&str| format!("> {line}").trim_end().ends_with(GROUP_END);
    let mut earlier = command.lines().filter(looks_like_end).count();
    let mut at = 0;
    let mut after = observation;
    for line in observation.split_inclusive('\n') {
        at += line.len();
        if line.trim_end().ends_with(echoed.trim_end()) {
            after = observation.get(at..).unwrap_or_default();
            // Only one line closes the group. Later lines like it are output.
            if command.contains('\n') {
                match earlier.checked_sub(1) {
                    Some(fewer) => earlier = fewer,
                    None => break,
                }
            }
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_follows_the_echo() {
        let check = |format: MessageFormat, observation: &str, command: &str, expect: &str| {
            assert_eq!(format.output(observation, command), expect, "{observation}");
        };
        let terminus = |observation: &str, command: &str, expect: &str| {
            check(MessageFormat::Terminus, observation, command, expect);
        };
        terminus("root@box:/app# ls\na b\nroot@box:/app# \n\n", "ls", "a b\n");
        let typed = "root@box:/app# {\n> cat > f <<'E'\n> x\n> E\n> cat f\n> }\nx\nroot@box:/app# ";
        terminus(typed, "cat > f <<'E'\nx\nE\ncat f", "x\n");
        terminus("# {\n> f() {\n> x\n> }\n> f\n> }\nout\n", "f() {\nx\n}\nf", "out\n");
        terminus("nothing typed", "ls", "nothing typed\n");
        let long = format!("echo {}", "x".repeat(200));
        let screen = format!("# {}\n{}\nout: a #\n", &long[..158], &long[158..]);
        terminus(&screen, &long, "out: a #\n");
        check(MessageFormat::BashBlock, "a\n\n[exit status 1]\n", "ls", "a\n");
        check(MessageFormat::BashTool, "[exit status 0]", "true", "");
    }

    #[test]
    fn each_protocol_is_written_as_its_scaffold_reads_it() {
        let act = |format: MessageFormat| format.act(0, "First. Then.", "a\tb\nc");
        assert_eq!(act(MessageFormat::BashBlock).content, "First. Then.\n\n```bash\na\tb\nc\n```");
        let call = act(MessageFormat::BashTool);
        assert_eq!((call.content.as_str(), call.tool_calls.len()), ("First. Then.", 1));
        let typed: serde_json::Value = serde_json::from_str(&act(MessageFormat::Terminus).content).unwrap();
        assert_eq!((&typed["analysis"], &typed["plan"]), (&json!("First."), &json!("Then.")));
        assert_eq!(typed["commands"][1]["keystrokes"], json!("{\na\u{16}\tb\nc\n}\n"));
        assert_eq!(typed["task_complete"], json!(false));
    }
}
