//! Shows a sampler something real of the machine: the help text of one command, and the names of
//! other commands.
//!
//! A sampler without an anchor repeats itself: most of its requests are about a few topics per
//! domain.

use serde::Serialize;

use super::working::{Working, rel};
use super::{StageContext, StageError};
use crate::model::{Difficulty, File, FileTree};
use crate::verify::{Act, Condition};

/// Bytes of a help text that are shown. They hold its synopsis and the first options.
const HELP: usize = 1_200;
/// Number of other commands that are named.
const COMMANDS: usize = 24;
/// The line between the help text and the list of commands.
const LINE: &str = "=== commands ===";

/// What a sampler is shown of the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Anchor {
    pub(super) tool: String,
    pub(super) help: String,
    pub(super) commands: Vec<String>,
}

/// The anchor of a blueprint. The blueprint's seed draws one of the domain's tools. A container of
/// the domain's base prints its help text.
pub(super) async fn anchor(context: &StageContext<'_>) -> Result<Anchor, StageError> {
    let seed = context.blueprint.seed.derive(&["anchor"]);
    let tools = &context.spec.tools;
    let Some(tool) = tools.get((seed.0 % tools.len().max(1) as u64) as usize) else {
        return Ok(Anchor::default());
    };
    let mut machine = Working::new(String::new(), "Look around".to_owned(), Difficulty::Easy);
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
    // Each blueprint has its own order, so samplers see different commands.
    commands.sort_by_key(|name| (seed.derive(&[name]).0, name.to_owned()));
    commands.truncate(COMMANDS);
    commands.sort_unstable();
    Ok(Anchor {
        tool: tool.clone(),
        help: help.trim().to_owned(),
        commands: commands.into_iter().map(str::to_owned).collect(),
    })
}
