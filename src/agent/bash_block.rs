//! The `bash-block` scaffold: free text and one fenced block of bash a message.

use minijinja::context;

use super::scaffold::{ActSeen, AssistantMessage, EpisodeContext, Opening, Scaffold, ScaffoldError, Step};
use crate::assets::Assets;
use crate::model::{Act, ShellOutcome, Shown, TurnKind};
use crate::prompts::{PromptSet, PromptsError};
use crate::sandbox::ExecLimit;

/// Name of the scaffold in every record and row.
pub const BASH_BLOCK: &str = "bash-block";
/// The block that ends an episode.
const SUBMIT: &str = "submit";

/// The scaffold's texts, from `templates/prompts/bash-block/`.
#[derive(Clone, Debug)]
pub struct Prompts {
    set: PromptSet,
    pub(super) gives_up: Vec<String>,
    pub(super) tries_again: Vec<String>,
}

impl Prompts {
    /// Reads the texts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = ["system.md", "task.md.j2", "observation.md.j2", "malformed.md.j2"];
        let set = PromptSet::load(assets, BASH_BLOCK, &needed)?;
        let (gives_up, tries_again) = (set.lines("gives_up.txt")?, set.lines("tries_again.txt")?);
        Ok(Self { set, gives_up, tries_again })
    }

    /// Hash over all texts, for the address of a rollout.
    pub fn digest(&self) -> String {
        self.set.digest()
    }

    /// The system message.
    pub fn system(&self) -> Result<&str, PromptsError> {
        self.set.text("system.md")
    }

    /// The first user message.
    pub fn task(&self, instruction: &str, workdir: &str) -> Result<String, PromptsError> {
        self.set.render("task.md.j2", context! { instruction, workdir })
    }

    /// The user message after a command. `seconds` is the command's time limit.
    pub fn observation(
        &self,
        output: &str,
        outcome: ShellOutcome,
        seconds: u64,
    ) -> Result<String, PromptsError> {
        observation(&self.set, output, outcome, seconds)
    }
}

/// What a shell's command showed, by a scaffold's `observation.md.j2`.
pub(super) fn observation(
    set: &PromptSet,
    output: &str,
    outcome: ShellOutcome,
    seconds: u64,
) -> Result<String, PromptsError> {
    let (status, timed_out, died) = match outcome {
        ShellOutcome::Exited(status) => (status, false, false),
        ShellOutcome::TimedOut => (124, true, false),
        ShellOutcome::ShellDied(status) => (status, false, true),
    };
    let output = output.strip_suffix('\n').unwrap_or(output);
    let context = context! { output, status, timed_out, seconds, shell_restarted => died };
    set.render("observation.md.j2", context)
}

/// One command in the long-lived shell: the act, what it showed, and that as text.
pub(super) async fn run(
    command: &str,
    most: std::time::Duration,
    set: &PromptSet,
    episode: &EpisodeContext<'_>,
) -> Result<(Act, ActSeen, String), ScaffoldError> {
    let limit = ExecLimit { timeout: most.min(episode.left()), keep: episode.limits.output_bytes };
    let result = match episode.sandbox.shell(command, &limit).await {
        Ok(result) => result,
        Err(error) => {
            let act = Act::Command { command: command.to_owned(), outcome: None };
            return Err(ScaffoldError::of(error, vec![act]));
        }
    };
    let output = String::from_utf8_lossy(&result.output);
    let text = observation(set, &output, result.outcome, most.as_secs())?;
    let act = Act::Command { command: command.to_owned(), outcome: Some(result.outcome) };
    let seen = ActSeen { bytes: result.bytes, milliseconds: result.took.as_secs_f64() * 1e3 };
    Ok((act, seen, text))
}

/// The scaffold.
#[derive(Clone, Debug)]
pub struct BashBlock<'a> {
    prompts: &'a Prompts,
}

impl<'a> BashBlock<'a> {
    pub fn new(prompts: &'a Prompts) -> Self {
        Self { prompts }
    }
}

impl Scaffold for BashBlock<'_> {
    async fn open(
        &mut self,
        episode: &EpisodeContext<'_>,
        instruction: &str,
    ) -> Result<Opening, ScaffoldError> {
        Ok(Opening {
            system: self.prompts.system()?.to_owned(),
            prompt: self.prompts.task(instruction, episode.sandbox.workdir())?,
            tools: Vec::new(),
        })
    }

    async fn take(
        &mut self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        let command = match read_block(&assistant.content) {
            Ok(command) => command,
            Err(fault) => {
                let cut_off = assistant.cut_off;
                let fault = fault.to_string();
                let message = self.prompts.set.render("malformed.md.j2", context! { fault, cut_off })?;
                return Ok(Step::malformed(message));
            }
        };
        if command.trim() == SUBMIT {
            return Ok(Step::submitted());
        }
        let (act, seen, text) = run(command, episode.limits.command, &self.prompts.set, episode).await?;
        Ok(Step {
            kind: TurnKind::Acted,
            acts: vec![act],
            seen: vec![seen],
            shown: vec![Shown::text(text)],
            ..Step::default()
        })
    }
}

/// A message that runs `command` after `thought`, or submits.
pub fn write_block(thought: &str, command: Option<&str>) -> String {
    let command = command.unwrap_or(SUBMIT);
    let fence = fence(command);
    let block = format!("{fence}bash\n{command}\n{fence}");
    if thought.is_empty() { block } else { format!("{thought}\n\n{block}") }
}

/// The fence of a block that holds `text`: longer than any that `text` has, as CommonMark asks for.
fn fence(text: &str) -> String {
    let longest = text.lines().map(backticks).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Backticks that a line begins with.
fn backticks(line: &str) -> usize {
    line.trim_start().chars().take_while(|&c| c == '`').count()
}

/// A message that does not hold exactly one block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    #[error("it has no fenced block of bash")]
    None,
    #[error("it has {0} fenced blocks of bash, where exactly one is run")]
    Several(usize),
    #[error("its fenced block is never closed")]
    Open,
    #[error("its fenced block is empty")]
    Empty,
}

/// The command in a message: what stands in its only block of bash. Blocks of other languages are text.
pub fn read_block(message: &str) -> Result<&str, BlockError> {
    let mut blocks = Vec::new();
    // Where the block that is open begins, its fence, and whether it is bash.
    let mut open: Option<(usize, usize, bool)> = None;
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        let ticks = backticks(line);
        let rest = line.trim_start().get(ticks..).unwrap_or_default().trim();
        match open {
            None if ticks >= 3 && !rest.contains('`') => {
                open = Some((at + line.len(), ticks, ["", "bash", "sh", "shell"].contains(&rest)));
            }
            Some((from, fence, bash)) if ticks >= fence && rest.is_empty() => {
                if bash {
                    blocks.push(message.get(from..at).unwrap_or_default());
                }
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    match blocks.as_slice() {
        _ if open.is_some() => Err(BlockError::Open),
        [] => Err(BlockError::None),
        [block] if block.trim().is_empty() => Err(BlockError::Empty),
        [block] => Ok(block.strip_suffix('\n').unwrap_or(block)),
        several => Err(BlockError::Several(several.len())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_are_written() {
        let check = |thought: &str, command: Option<&str>, expect: &str| {
            assert_eq!(write_block(thought, command), expect);
        };
        check("Look.", Some("ls"), "Look.\n\n```bash\nls\n```");
        check("Done.", None, "Done.\n\n```bash\nsubmit\n```");
        check("", Some("ls"), "```bash\nls\n```");
        check(
            "Doc.",
            Some("cat > a.md <<'E'\n```\nls\n```\nE"),
            "Doc.\n\n````bash\ncat > a.md <<'E'\n```\nls\n```\nE\n````",
        );
        check("Write.", Some("cat > a <<'E'\n1\nE"), "Write.\n\n```bash\ncat > a <<'E'\n1\nE\n```");
    }

    #[test]
    fn blocks_are_read() {
        let check = |message: &str, expect: Result<&str, BlockError>| {
            assert_eq!(read_block(message), expect, "{message}");
        };
        check("Look.\n\n```bash\nls\n```", Ok("ls"));
        check("```\nls\n```\nand then we see", Ok("ls"));
        check("```sh\na\nb\n```\n", Ok("a\nb"));
        check("  ```bash\nls\n  ```", Ok("ls"));
        check("````bash\ncat <<E\n```\nE\n````", Ok("cat <<E\n```\nE"));
        check("Output was\n```text\nbash\n```\nso\n```bash\nls\n```", Ok("ls"));
        check("no block", Err(BlockError::None));
        check("only `ls` inline", Err(BlockError::None));
        check("```ls```", Err(BlockError::None));
        check("```python\nprint()\n```", Err(BlockError::None));
        check("```bash\nls\n```\n```bash\npwd\n```", Err(BlockError::Several(2)));
        check("```bash\nls", Err(BlockError::Open));
        check("```bash\n\n```", Err(BlockError::Empty));
        check("", Err(BlockError::None));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(command in "[a-z`\n ]{0,40}[a-z]") {
            let message = write_block("So.", Some(&command));
            prop_assert_eq!(read_block(&message), Ok(command.as_str()));
        }

        #[test]
        fn any_message_can_be_read(message in "[`a\nbash ]{0,60}") {
            let _ = read_block(&message);
        }
    }
}
