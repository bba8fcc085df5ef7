//! The `terminus` scaffolds: Harbor's terminus-2 on an emulated terminal. The image needs no tmux.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::scaffold::{
    ActSeen, AssistantMessage, Driver, EpisodeContext, OpenSession, Opening, Protocol, Scaffold,
    ScaffoldEntry, ScaffoldError, Session, Step,
};
use super::summary_texts::{PlainSummary, SummaryTexts};
use super::terminal::{SIZE, Terminal, WaitOutcome, Wake};
use super::terminus::{Format, Next, Pane, Parsed, Reading, Texts, Turns, to_bytes};
use crate::assets::Assets;
use crate::model::{Act, Shown, TurnKind};
use crate::prompts::PromptsError;
use crate::sandbox::SandboxTime as _;

/// Names of the scaffolds in records and rows.
pub const TERMINUS_JSON: &str = "terminus-json";
pub const TERMINUS_XML: &str = "terminus-xml";

/// Registry entry of the JSON format.
pub(super) const JSON_ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: "terminus",
    description: "Harbor's terminus-2, JSON",
    load: |assets, options| Ok(Arc::new(Terminus::load(assets, Format::Json, options.wake)?)),
};

/// Registry entry of the XML format.
pub(super) const XML_ENTRY: ScaffoldEntry = ScaffoldEntry {
    option: TERMINUS_XML,
    description: "Harbor's terminus-2, XML",
    load: |assets, options| Ok(Arc::new(Terminus::load(assets, Format::Xml, options.wake)?)),
};

/// Time for a login shell to print its first prompt. After it, the screen is shown as it is.
const FIRST_PROMPT: Duration = Duration::from_secs(2);

/// The scaffold in one of its formats.
#[derive(Clone, Debug)]
pub struct Terminus {
    texts: Texts,
    wake: Wake,
}

/// Whether all commands of a message were typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    /// Yes, each with its whole wait. Or the shell ended before.
    Whole,
    /// No: the episode's time was up.
    Cut,
}

/// An open terminal and the state of the protocol.
struct TerminusSession<'a> {
    scaffold: &'a Terminus,
    turns: Turns,
    pane: Pane,
    /// Lines that had left the screen when it was last shown.
    pushed: u64,
    /// Bytes that the terminal had got at the end of the last command.
    bytes: u64,
    terminal: Terminal,
}

impl Terminus {
    /// Reads the texts of `format`.
    pub fn load(assets: &Assets, format: Format, wake: Wake) -> Result<Self, PromptsError> {
        let texts = Texts::load(assets, format).map_err(|error| PromptsError::Missing {
            folder: "terminus".to_owned(),
            name: error.name().to_owned(),
        })?;
        Ok(Self { texts, wake })
    }
}

impl Scaffold for Terminus {
    fn name(&self) -> &'static str {
        match self.texts.format() {
            Format::Json => TERMINUS_JSON,
            Format::Xml => TERMINUS_XML,
        }
    }

    fn digest(&self) -> String {
        let texts = self.texts.digest();
        match self.wake {
            Wake::Never => texts,
            Wake::WhenDone => format!("{texts} early-wake"),
        }
    }

    fn summary_texts<'a>(&'a self, _: &'a PlainSummary) -> SummaryTexts<'a> {
        SummaryTexts::Terminus(&self.texts)
    }

    fn driver(&self) -> Driver<'_> {
        Driver::TurnByTurn(self)
    }
}

impl Protocol for Terminus {
    fn open<'a>(
        &'a self,
        episode: &'a EpisodeContext<'_>,
        instruction: &'a str,
    ) -> BoxFuture<'a, Result<OpenSession<'a>, ScaffoldError>> {
        async move {
            let opened = Terminal::open(episode.sandbox, episode.env, SIZE).await;
            let mut terminal = opened.map_err(|error| ScaffoldError::of(error, Vec::new()))?;
            // Harbor starts tmux before it reads the first screen, so that screen shows the prompt.
            terminal.wait_quiet(FIRST_PROMPT, Wake::WhenDone).await;
            let (turns, pane) = (Turns::new(self.texts.clone()), Pane::default());
            let bytes = terminal.written().bytes;
            let mut session = TerminusSession { scaffold: self, turns, pane, pushed: 0, bytes, terminal };
            let output = session.show();
            let opening = Opening { prompt: self.texts.task(instruction, &output), ..Opening::default() };
            Ok((Box::new(session) as Box<dyn Session>, opening))
        }
        .boxed()
    }
}

impl TerminusSession<'_> {
    /// Types the commands, each with its wait, until the episode's time is up. The error text says
    /// how the stream to the terminal ended.
    async fn type_commands(
        &mut self,
        parsed: &Parsed,
        episode: &EpisodeContext<'_>,
        step: &mut Step,
    ) -> Result<Typed, String> {
        for command in &parsed.commands {
            if episode.left().is_zero() {
                return Ok(Typed::Cut);
            }
            let started = episode.sandbox.clock().elapsed();
            let keys = to_bytes(&command.keystrokes, self.terminal.key_modes());
            self.terminal.press(&keys).await;
            step.acts.push(Act::Keys { keys: command.keystrokes.clone() });
            let (wait, left) = (command.wait(), episode.left());
            let waited = self.terminal.wait_quiet(wait.min(left), self.scaffold.wake).await;
            let took = episode.sandbox.clock().elapsed().saturating_sub(started);
            // Includes the output that came while the agent was thinking.
            let written = self.terminal.written().bytes;
            let bytes = written - std::mem::replace(&mut self.bytes, written);
            step.seen.push(ActSeen { bytes, milliseconds: took.as_secs_f64() * 1e3 });
            match waited {
                WaitOutcome::Elapsed if left < wait => return Ok(Typed::Cut),
                WaitOutcome::Elapsed | WaitOutcome::Early => {}
                WaitOutcome::Ended(_) => {
                    step.shell_ended = true;
                    return Ok(Typed::Whole);
                }
                WaitOutcome::Lost(why) => return Err(why),
            }
        }
        Ok(Typed::Whole)
    }

    /// The text of the terminal that the agent has not seen yet.
    fn show(&mut self) -> String {
        let pushed = self.terminal.written().pushed_lines;
        let (full, screen) = self.terminal.panes();
        let shown = self.pane.show(full, &screen, pushed - self.pushed);
        self.pushed = pushed;
        shown
    }

    async fn execute(
        &mut self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        let texts = &self.scaffold.texts;
        let content = match (assistant.cut_off, texts.format().salvage(&assistant.content)) {
            (false, _) => assistant.content.as_str(),
            (true, Some(whole)) => whole,
            (true, None) => {
                let tokens = assistant.usage.map(|usage| usage.completion);
                return Ok(Step::malformed(texts.too_long(&assistant.content, tokens)));
            }
        };
        let parsed = match self.turns.read(content) {
            Reading::Rejected { message, .. } => return Ok(Step::malformed(message)),
            Reading::Accepted(parsed) => parsed,
        };
        let mut step = Step::default();
        let typed = match self.type_commands(&parsed, episode, &mut step).await {
            Ok(typed) => typed,
            Err(wire) => return Err(ScaffoldError::of(episode.sandbox.diagnose(wire).await, step.acts)),
        };
        let output = self.show();
        (step.kind, step.shown) = match self.turns.observe(&parsed, &output) {
            // The commands before the submission were not done in time, so it does not count.
            Next::Done(output) if typed == Typed::Cut => (TurnKind::Acted, vec![Shown::text(output)]),
            Next::Done(_) => (TurnKind::Submitted, Vec::new()),
            Next::Message(message) if parsed.task_complete => (TurnKind::Claimed, vec![Shown::text(message)]),
            Next::Message(message) => (TurnKind::Acted, vec![Shown::text(message)]),
        };
        Ok(step)
    }
}

impl Session for TerminusSession<'_> {
    fn execute<'a>(
        &'a mut self,
        assistant: &'a AssistantMessage,
        episode: &'a EpisodeContext<'_>,
    ) -> BoxFuture<'a, Result<Step, ScaffoldError>> {
        TerminusSession::execute(self, assistant, episode).boxed()
    }

    fn screen(&self) -> Option<String> {
        Some(self.terminal.panes().1)
    }
}
