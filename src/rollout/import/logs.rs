//! Reads the logs of a terminus trial that wrote no ATIF: `agent/episode-<n>/{prompt.txt,
//! response.txt}`, one folder for each turn.

use std::path::Path;

use super::atif::{TERMINUS, stem, terminus_turn};
use super::outcome::{self, TrialResult};
use super::{ImportError, Imported, Problem, read_text, refused};
use crate::agent::terminus::Format;
use crate::agent::{TERMINUS_JSON, TERMINUS_XML};
use crate::model::{
    Actor, End, IdError, Origin, Shown, TaskDigest, TaskMetadata, TaskName, TrajectoryRecord, Turn, TurnKind,
};

/// The `format` of such a source.
const FORMAT: &str = "terminus";

/// The rollout of the trial in `folder`. `None` if it has no episode.
pub(super) fn read(folder: &Path, result: Option<&TrialResult>) -> Result<Option<Imported>, ImportError> {
    let agent = folder.join("agent");
    let mut hash = blake3::Hasher::new();
    let mut prompts = Vec::new();
    let mut turns = Vec::new();
    // The first episode without an answer ends the rollout.
    loop {
        let episode = agent.join(format!("episode-{}", turns.len()));
        let prompt = read_text(&episode.join("prompt.txt"))?;
        let response = read_text(&episode.join("response.txt"))?;
        let (Some(prompt), Some(content)) = (prompt, response) else { break };
        for text in [&prompt, &content] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        prompts.push(prompt);
        turns.push(Turn { content, ..Turn::default() });
    }
    let reads = |format: Format| turns.iter().any(|turn: &Turn| format.parse(&turn.content).error.is_none());
    let (format, scaffold) = if !reads(Format::Json) && reads(Format::Xml) {
        (Format::Xml, TERMINUS_XML)
    } else {
        (Format::Json, TERMINUS_JSON)
    };
    for turn in &mut turns {
        (turn.kind, turn.acts) = terminus_turn(format, &turn.content);
    }
    let Some(last) = turns.last_mut() else { return Ok(None) };
    if last.kind == TurnKind::Claimed {
        last.kind = TurnKind::Submitted;
    }
    let mut prompts = prompts.into_iter();
    let prompt = prompts.next().unwrap_or_default();
    if prompt.trim().is_empty() {
        return Err(refused(&agent, Problem::NoPrompt));
    }
    let shown = prompts.map(|prompt| vec![Shown::text(prompt)]).chain([Vec::new()]).collect();
    let named = |error: IdError| refused(&agent, error.into());
    let info = result.and_then(|result| result.agent_info.as_ref());
    let verdict = result.map_or_else(outcome::unknown, TrialResult::verdict);
    let record = TrajectoryRecord {
        task: TaskName::parse(
            result.and_then(|result| result.task_name.clone()).unwrap_or_else(|| stem(folder)),
        )
        .map_err(named)?,
        task_digest: result
            .and_then(|result| result.task_checksum.clone())
            .map(TaskDigest::parse)
            .transpose()
            .map_err(named)?,
        environment_digest: None,
        attempt: 0,
        actor: Actor::Imported(Origin {
            agent: info.map_or_else(|| TERMINUS.to_owned(), |info| info.name.clone()),
            agent_version: info.and_then(|info| info.version.clone()),
            model: info.and_then(|info| Some(info.model_info.as_ref()?.name.clone())),
            format: FORMAT.to_owned(),
            source: hash.finalize().to_hex().to_string(),
        }),
        scaffold: scaffold.to_owned(),
        system: String::new(),
        prompt,
        opening: Vec::new(),
        tools: Vec::new(),
        turns,
        threads: Vec::new(),
        end: End::Imported,
        verdict,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: Vec::new(),
        fork: None,
        exploits: Vec::new(),
    };
    Ok(Some(Imported {
        path: agent,
        reward: result.and_then(TrialResult::reward),
        started: result.and_then(|result| result.started_at.clone()),
        metadata: TaskMetadata::default(),
        shown,
        handoffs: Vec::new(),
        parts: Vec::new(),
        notes: Vec::new(),
        record,
    }))
}
