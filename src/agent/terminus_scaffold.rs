//! The `terminus` scaffold: Harbor's terminus-2 on an emulated pane, with no tmux in the image.

use super::scaffold::{ActSeen, AssistantMessage, EpisodeContext, Opening, Scaffold, ScaffoldError, Step};
use super::terminal::{SIZE, Terminal, WaitOutcome, Wake};
use super::terminus::{Format, Next, Pane, Parsed, Reading, Texts, Turns, to_bytes};
use crate::model::{Act, Shown, TurnKind};
use crate::prompts::PromptsError;

/// Names of the scaffold in every record and row.
pub const TERMINUS_JSON: &str = "terminus-json";
pub const TERMINUS_XML: &str = "terminus-xml";

/// The scaffold. A sandbox has one pane, which `open` starts.
#[derive(Debug)]
pub struct Terminus {
    texts: Texts,
    turns: Turns,
    pane: Pane,
    terminal: Option<Terminal>,
    wake: Wake,
}

impl Terminus {
    pub fn new(texts: Texts, wake: Wake) -> Self {
        Self { turns: Turns::new(texts.clone()), texts, pane: Pane::default(), terminal: None, wake }
    }

    /// Types the commands, each with its wait. `Err` inside is the shell's end.
    async fn type_in(&mut self, parsed: &Parsed, step: &mut Step) -> Result<(), String> {
        for command in &parsed.commands {
            let Some(terminal) = &mut self.terminal else { return Err("there is no terminal".to_owned()) };
            let started = std::time::Instant::now();
            let keys = to_bytes(&command.keystrokes, terminal.key_modes());
            terminal.press(&keys).await;
            step.acts.push(Act::Keys { keys: command.keystrokes.clone() });
            let waited = terminal.wait_quiet(command.wait(), self.wake).await;
            step.seen.push(ActSeen { bytes: 0, milliseconds: started.elapsed().as_secs_f64() * 1e3 });
            match waited {
                WaitOutcome::Elapsed | WaitOutcome::Early => {}
                WaitOutcome::Ended(_) => {
                    step.shell_ended = true;
                    return Ok(());
                }
                WaitOutcome::Lost(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// What of the pane the agent has not seen.
    fn show(&mut self) -> String {
        let (full, screen) = self.terminal.as_ref().map(Terminal::panes).unwrap_or_default();
        self.pane.show(full, &screen)
    }
}

impl Scaffold for Terminus {
    async fn open(
        &mut self,
        episode: &EpisodeContext<'_>,
        instruction: &str,
    ) -> Result<Opening, ScaffoldError> {
        let opened = Terminal::open(episode.sandbox, episode.env, SIZE).await;
        let mut terminal = opened.map_err(|error| ScaffoldError::of(error, Vec::new()))?;
        // The shell's first prompt. Harbor's tmux has it long before anybody looks.
        terminal.wait_quiet(FIRST_PROMPT, Wake::WhenDone).await;
        self.terminal = Some(terminal);
        self.turns = Turns::new(self.texts.clone());
        self.pane = Pane::default();
        let output = self.show();
        Ok(Opening { prompt: self.texts.task(instruction, &output), ..Opening::default() })
    }

    async fn take(
        &mut self,
        assistant: &AssistantMessage,
        episode: &EpisodeContext<'_>,
    ) -> Result<Step, ScaffoldError> {
        let format = self.texts.format();
        let content = match (assistant.cut_off, format.salvage(&assistant.content)) {
            (false, _) => assistant.content.as_str(),
            (true, Some(whole)) => whole,
            (true, None) => {
                let tokens = assistant.usage.map(|usage| usage.completion);
                return Ok(Step::malformed(self.texts.too_long(&assistant.content, tokens)));
            }
        };
        let parsed = match self.turns.read(content) {
            Reading::Rejected { message, .. } => return Ok(Step::malformed(message)),
            Reading::Accepted(parsed) => parsed,
        };
        let mut step = Step::default();
        if let Err(wire) = self.type_in(&parsed, &mut step).await {
            return Err(ScaffoldError::of(episode.sandbox.diagnose(wire).await, step.acts));
        }
        let output = self.show();
        (step.kind, step.shown) = match self.turns.observe(&parsed, &output) {
            Next::Done(_) => (TurnKind::Submitted, Vec::new()),
            Next::Message(message) if parsed.task_complete => (TurnKind::Claimed, vec![Shown::text(message)]),
            Next::Message(message) => (TurnKind::Acted, vec![Shown::text(message)]),
        };
        Ok(step)
    }

    fn screen(&self) -> Option<String> {
        self.terminal.as_ref().map(|terminal| terminal.panes().1)
    }
}

/// A login shell reads its start-up files within this time, or is shown as it is.
const FIRST_PROMPT: std::time::Duration = std::time::Duration::from_secs(2);

/// Reads the texts of a format.
pub fn terminus_texts(assets: &crate::assets::Assets, format: Format) -> Result<Texts, PromptsError> {
    Texts::load(assets, format).map_err(|error| PromptsError::Missing {
        folder: "terminus".to_owned(),
        name: error.name().to_owned(),
    })
}
