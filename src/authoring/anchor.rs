//! Something real to begin from: what a command of the machine says about itself, and which other commands are there.
//!
//! A sampler without anchors repeats itself: a few topics per domain make up most of its requests.

use serde::Serialize;

use super::working::{Working, rel};
use super::{StageContext, StageError};
use crate::model::{Difficulty, File, FileTree};
use crate::verify::{Act, Condition};

/// Bytes of a help text that are shown: its synopsis and the first options.
const HELP: usize = 1_200;
/// Commands that are shown besides.
const COMMANDS: usize = 24;
/// Line between the help text and the list of commands.
const LINE: &str = "=== commands ===";

/// What the machine says.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Anchor {
    pub(super) tool: String,
    pub(super) help: String,
    pub(super) commands: Vec<String>,
}

/// The anchor of a blueprint: one of the domain's tools, drawn by the blueprint's seed, in a container of the domain's base.
pub(super) async fn anchor(context: &StageContext<'_>) -> Result<Anchor, StageError> {
    let seed = context.blueprint.seed.derive(&["anchor"]);
    let tools = &context.spec.tools;
    let Some(tool) = tools.get((seed.0 % tools.len().max(1) as u64) as usize) else {
        return Ok(Anchor::default());
    };
    let mut machine = Working::begun(String::new(), "Look around".to_owned(), Difficulty::Easy);
    machine.machine = FileTree::from_iter([(rel("app/.keep")?, File::text(String::new()))]);
    let task = machine.task(context)?;
    let hashed = context.hashed(&task)?;
    let script = format!(
        "{{ timeout 5 {tool} --help || timeout 5 {tool} -h; }} </dev/null 2>&1 | head -c {HELP}\necho\necho '{LINE}'\nls /usr/bin\n"
    );
    let files =
        FileTree::from_iter([(rel("solve.sh")?, File { bytes: script.into_bytes(), executable: true })]);
    if context.runner.build(&hashed).await?.is_err() {
        return Ok(Anchor::default());
    }
    let (_, log) =
        Box::pin(context.runner.trial(&hashed, Act::Solve(&files), Condition::Ordinary, 0)).await?;
    let (help, commands) = log.output.split_once(LINE).unwrap_or((&log.output, ""));
    let mut commands: Vec<_> = commands.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    // An order of its own for each blueprint.
    commands.sort_by_key(|name| (seed.derive(&[name]).0, name.to_owned()));
    commands.truncate(COMMANDS);
    commands.sort_unstable();
    Ok(Anchor {
        tool: tool.clone(),
        help: help.trim().to_owned(),
        commands: commands.into_iter().map(str::to_owned).collect(),
    })
}
