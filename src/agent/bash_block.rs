//! The `bash-block` scaffold: free text with one fenced block of bash in each message.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::heredoc;
use super::scaffold::{
    AssistantMessage, Driver, EpisodeContext, OpenSession, Protocol, Scaffold, ScaffoldEntry, ScaffoldError,
    Session, Step,
};
use super::shell_command::{malformed, opening, run_only_command};
use crate::assets::Assets;
use crate::prompts::{PromptSet, PromptsError};

/// The scaffold's registry entry.
pub(super) const ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: NAME,
    description: "One fenced block of bash per message",
    load: |assets, _| Ok(Arc::new(BashBlock::load(assets)?)),
};

/// The name in records, and the folder of the texts.
const NAME: &str = "bash-block";
/// A block with this text ends the episode.
const SUBMIT: &str = "submit";

/// The scaffold, with its texts from `templates/prompts/bash-block/`.
#[derive(Clone, Debug)]
pub struct BashBlock {
    prompts: PromptSet,
}

impl BashBlock {
    /// Loads the texts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = ["system.md.j2", "task.md.j2", "observation.md.j2", "malformed.md.j2"];
        Ok(Self { prompts: PromptSet::load(assets, NAME, &needed)? })
    }

    async fn execute(
        &self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        let command = match read_block(&assistant.content) {
            Ok(command) => command,
            Err(fault) => return Ok(malformed(&self.prompts, &fault.to_string(), assistant)?),
        };
        if command.trim() == SUBMIT {
            return Ok(Step::submitted());
        }
        run_only_command(command, assistant, &self.prompts, episode).await
    }
}

impl Scaffold for BashBlock {
    fn name(&self) -> &'static str {
        NAME
    }

    fn digest(&self) -> String {
        self.prompts.digest()
    }

    fn driver(&self) -> Driver<'_> {
        Driver::TurnByTurn(self)
    }
}

impl Protocol for BashBlock {
    fn open<'a>(
        &'a self,
        episode: &'a EpisodeContext<'_>,
        instruction: &'a str,
    ) -> BoxFuture<'a, Result<OpenSession<'a>, ScaffoldError>> {
        async move {
            let opening = opening(&self.prompts, episode, instruction, Vec::new()).await?;
            Ok((Box::new(self) as Box<dyn Session>, opening))
        }
        .boxed()
    }
}

impl Session for &BashBlock {
    fn execute<'a>(
        &'a mut self,
        assistant: &'a AssistantMessage,
        episode: &'a EpisodeContext<'_>,
    ) -> BoxFuture<'a, Result<Step, ScaffoldError>> {
        BashBlock::execute(self, assistant, episode).boxed()
    }
}

/// Writes a message with `reasoning` and a block that runs `command`. `None` submits.
pub fn write_block(reasoning: &str, command: Option<&str>) -> String {
    let command = command.unwrap_or(SUBMIT);
    let fence = fence(command);
    let block = format!("{fence}bash\n{command}\n{fence}");
    if reasoning.is_empty() { block } else { format!("{reasoning}\n\n{block}") }
}

/// The fence for a block with `text`. It is longer than all fences in the text, as CommonMark
/// demands.
fn fence(text: &str) -> String {
    let longest = text.lines().map(backticks).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// The number of backticks at the start of a line.
fn backticks(line: &str) -> usize {
    line.trim_start().chars().take_while(|&c| c == '`').count()
}

/// The number of backticks at the start of a line, and the text after them.
fn fence_of(line: &str) -> (usize, &str) {
    let ticks = backticks(line);
    (ticks, line.trim_start().get(ticks..).unwrap_or_default().trim())
}

/// Whether the fences in `text` are balanced: each opens a block or closes one.
fn has_whole_blocks(text: &str) -> bool {
    let mut open = None;
    for (ticks, rest) in text.lines().map(fence_of).filter(|(ticks, _)| *ticks >= 3) {
        open = match open {
            None => Some(ticks),
            Some(fence) if ticks >= fence && rest.is_empty() => None,
            Some(_) => return false,
        };
    }
    open.is_none()
}

/// Why a message has no command. It must have exactly one block.
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

/// The command in a message: the content of its only block of bash. Blocks of other languages are
/// text.
pub fn read_block(message: &str) -> Result<&str, BlockError> {
    let mut blocks = Vec::new();
    // Where the open block starts, the length of its fence, and whether its language is bash.
    let mut open: Option<(usize, usize, bool)> = None;
    let (mut at, mut text_until) = (0, 0);
    for line in message.split_inclusive('\n') {
        let (ticks, rest) = fence_of(line);
        match open {
            _ if at < text_until => {}
            None if ticks >= 3 && !rest.contains('`') => {
                open = Some((at + line.len(), ticks, ["", "bash", "sh", "shell"].contains(&rest)));
            }
            // A here document can hold fences. Its text is skipped if the fences are balanced, so
            // that none of them can close this block.
            Some((.., true)) if ticks < 3 => {
                let after = message.get(at + line.len()..).unwrap_or_default();
                let length =
                    heredoc::length(line, after).filter(|&length| has_whole_blocks(&after[..length]));
                text_until = at + line.len() + length.unwrap_or(0);
            }
            Some((from, fence, bash)) if ticks >= fence && rest.is_empty() => {
                if bash {
                    blocks.push(message.get(from..at).unwrap_or_default());
                }
                open = None;
            }
            None | Some(_) => {}
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
    fn blocks_are_formatted() {
        let check = |reasoning: &str, command: Option<&str>, expect: &str| {
            assert_eq!(write_block(reasoning, command), expect);
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
    fn blocks_are_parsed() {
        let check = |message: &str, expect: Result<&str, BlockError>| {
            assert_eq!(read_block(message), expect, "{message}");
        };
        check("Look.\n\n```bash\nls\n```", Ok("ls"));
        check("```\nls\n```\nand then we see", Ok("ls"));
        check("```sh\na\nb\n```\n", Ok("a\nb"));
        check("  ```bash\nls\n  ```", Ok("ls"));
        check("````bash\ncat <<E\n```\nE\n````", Ok("cat <<E\n```\nE"));
        check("Output was\n```text\nbash\n```\nso\n```bash\nls\n```", Ok("ls"));
        let readme = "cat > R.md <<'EOF'\n# title\n\n```sh\nls\n```\n\nmore\nEOF\nwc -l R.md";
        check(&format!("go\n\n```bash\n{readme}\n```"), Ok(readme));
        check(
            "```bash\ncat <<E\n```\na\n```\n```sh\nb\n```\nE\n```\n",
            Ok("cat <<E\n```\na\n```\n```sh\nb\n```\nE"),
        );
        check("```bash\ncat <<A; cat <<B\n```\nA\n```\nB\n```", Ok("cat <<A; cat <<B\n```\nA\n```\nB"));
        check("```bash\ncat <<E\na\nE\n```\nand\n```\nE\n```", Err(BlockError::Several(2)));
        // Block 2 has a line that looks like the end of a here document in block 1.
        check("```bash\ngrep '<<E' a\n```\n```bash\ncat <<E\nE\n```", Err(BlockError::Several(2)));
        check("```bash\ncat <<E\na\n```", Ok("cat <<E\na"));
        check("```bash\ncat <<<E\n```\nE\n", Ok("cat <<<E"));
        check("```python\nprint('<<E')\n```\nE\n```bash\nls\n```", Ok("ls"));
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
        fn a_written_block_is_read_back(command in "[a-z`\n ]{0,40}[a-z]") {
            let message = write_block("So.", Some(&command));
            prop_assert_eq!(read_block(&message), Ok(command.as_str()));
        }

        #[test]
        fn reading_never_panics(message in "[`a\nbash ]{0,60}") {
            let _ = read_block(&message);
        }
    }
}
