//! Reads an ATIF document as a rollout.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::document::{Call, Content, Count, Document, Source, Step};
use super::outcome::{self, TrialResult};
use super::{ImportError, Imported, Problem, malformed, read_text, refused};
use crate::agent::terminus::Format;
use crate::agent::{TERMINUS_JSON, TERMINUS_XML};
use crate::folder::replace_lone_surrogates;
use crate::model::{
    Act, Actor, CheckResult, End, EnvironmentDigest, ForkPoint, Handoff, HandoffShown, MOST_ATTEMPTS,
    Message, Origin, Outcome, Role, ShellOutcome, Shown, TaskDigest, TaskMetadata, TaskName, Tokens,
    ToolCall, ToolDefinition, TrajectoryRecord, Turn, TurnKind, Verdict,
};

/// Name of Harbor's terminus-2 agent. It is also the scaffold name of its trajectories that contain
/// rendered messages instead of raw ones.
pub(super) const TERMINUS: &str = "terminus-2";
const TERMINUS_RENDERED: &str = "terminus-2-rendered";
/// Prefix of the names of termsmith's own agents.
pub(super) const OURS: &str = "termsmith-";

/// The rollout in `text`, which is the content of the file at `path`. `result` is the result of its
/// trial.
pub(super) fn read(path: &Path, text: &str, result: Option<&TrialResult>) -> Result<Imported, ImportError> {
    let document = parse(path, text)?;
    not_a_rollout(&document).map_or(Ok(()), |problem| Err(refused(path, problem)))?;
    let (parts, paths) = continuations(path, &document)?;
    let converted =
        convert(&document, &parts, text, path, result).map_err(|problem| refused(path, problem))?;
    Ok(Imported { parts: paths, ..converted })
}

/// Why a document is not a rollout of its own, e.g. because it continues another file.
fn not_a_rollout(document: &Document) -> Option<Problem> {
    let of_agent = |name: &str| document.agent.extra.as_ref().is_some_and(|extra| extra.contains_key(name));
    let segment = document.extra.as_ref().and_then(|extra| extra.get("segment")?.as_u64());
    if of_agent("summarization_index") {
        Some(Problem::Aside)
    } else if document.agent.name.starts_with(OURS) && segment.is_some_and(|segment| segment > 0) {
        Some(Problem::Part)
    } else {
        None
    }
}

fn parse(path: &Path, text: &str) -> Result<Document, ImportError> {
    let text = replace_lone_surrogates(text);
    let document: Document = serde_json::from_str(&text).map_err(malformed(path))?;
    check_version(&document.schema_version).map_err(|problem| refused(path, problem))?;
    Ok(document)
}

/// The continuations of `first`, in order. They must be in the same folder. A name with a folder in
/// it is refused.
fn continuations(path: &Path, first: &Document) -> Result<(Vec<Document>, Vec<PathBuf>), ImportError> {
    /// Largest number of summaries of one rollout. A day of work produces fewer.
    const MOST: usize = 256;
    let (mut parts, mut paths) = (Vec::new(), Vec::new());
    let mut next = first.continued_trajectory_ref.clone();
    while let Some(name) = next {
        let unreadable = || refused(path, Problem::Continuation(name.clone()));
        let plain = Path::new(&name).file_name().is_some_and(|only| only == name.as_str());
        let beside = path.with_file_name(&name);
        if !plain || beside == path || paths.contains(&beside) || parts.len() == MOST {
            return Err(unreadable());
        }
        let text = read_text(&beside)?.ok_or_else(unreadable)?;
        let part = parse(&beside, &text)?;
        next = part.continued_trajectory_ref.clone();
        parts.push(part);
        paths.push(beside);
    }
    Ok((parts, paths))
}

fn check_version(version: &str) -> Result<(), Problem> {
    let minor = version.strip_prefix("ATIF-v1.").and_then(|minor| minor.parse::<u32>().ok());
    if minor.is_some_and(|minor| minor <= 8) { Ok(()) } else { Err(Problem::Version(version.to_owned())) }
}

fn convert(
    document: &Document,
    parts: &[Document],
    text: &str,
    path: &Path,
    result: Option<&TrialResult>,
) -> Result<Imported, Problem> {
    let extra = document.extra.as_ref();
    let ours = document.agent.name.starts_with(OURS);
    let fork = extra.filter(|_| ours).and_then(|extra| parsed::<ForkPoint>(extra, "fork"));
    let mut conversation = Conversation::read(document, parts, fork.as_ref())?;
    let scaffold = scaffold(document, &conversation.turns);
    conversation.parse_messages(&scaffold);

    let theirs = result.map(TrialResult::verdict);
    let stated = extra.filter(|_| ours).and_then(our_verdict);
    // The trial's result decides. If a document of termsmith agrees with it, its checks are added.
    let verdict = match (theirs, stated) {
        (Some(theirs), Some(stated)) if theirs.outcome == stated.outcome => stated,
        (Some(verdict), _) | (None, Some(verdict)) => verdict,
        (None, None) => outcome::unknown(),
    };
    let string = |name: &str| Some(extra?.get(name)?.as_str()?.to_owned());
    let info = result.and_then(|result| result.agent_info.as_ref());
    let model = document.agent.model_name.clone();
    let record = TrajectoryRecord {
        task: TaskName::parse(
            result
                .and_then(|result| result.task_name.clone())
                .or_else(|| string("task"))
                .unwrap_or_else(|| stem(path)),
        )?,
        task_digest: string("task_digest")
            .or_else(|| result?.task_checksum.clone())
            .map(TaskDigest::parse)
            .transpose()?,
        environment_digest: string("environment_digest").map(EnvironmentDigest::parse).transpose()?,
        attempt: extra
            .and_then(|extra| parsed(extra, "attempt"))
            .filter(|attempt| *attempt <= MOST_ATTEMPTS)
            .unwrap_or_default(),
        actor: Actor::Imported(Origin {
            agent: document.agent.name.clone(),
            agent_version: document.agent.version.clone(),
            model: model.or_else(|| Some(info?.model_info.as_ref()?.name.clone())),
            format: document.schema_version.clone(),
            source: blake3::hash(text.as_bytes()).to_hex().to_string(),
        }),
        scaffold,
        system: conversation.system,
        prompt: conversation.prompt,
        opening: Vec::new(),
        tools: tools(document),
        turns: conversation.turns,
        threads: Vec::new(),
        end: End::Imported,
        rounds: Vec::new(),
        plans: Vec::new(),
        handoffs: conversation.handoffs,
        fork,
        exploits: Vec::new(),
        verdict,
    };
    Ok(Imported {
        path: path.to_owned(),
        reward: result.map_or_else(|| extra?.get("reward")?.as_f64(), TrialResult::reward),
        started: result
            .and_then(|result| result.started_at.clone())
            .or_else(|| document.steps.first()?.timestamp.clone()),
        metadata: extra.filter(|_| ours).map(task_metadata).unwrap_or_default(),
        shown: conversation.shown,
        handoffs: conversation.handed,
        parts: Vec::new(),
        notes: conversation.notes,
        record,
    })
}

/// A conversation that is being read.
#[derive(Default)]
struct Conversation {
    system: String,
    prompt: String,
    turns: Vec<Turn>,
    shown: Vec<Vec<Shown>>,
    handoffs: Vec<Handoff>,
    handed: Vec<HandoffShown>,
    /// Whether an observation followed the last turn.
    answered: bool,
    /// Notes about what was left out.
    notes: Vec<String>,
}

impl Conversation {
    /// Reads a conversation. Copied steps are no turns, except in a fork that termsmith made. They
    /// give the prompt and the system message if no other step has these.
    fn read(document: &Document, parts: &[Document], fork: Option<&ForkPoint>) -> Result<Self, Problem> {
        let mut conversation = Self::default();
        let mut copied = Self::default();
        let mut odd = Odd::default();
        for (number, step) in numbered(document)? {
            let target = if step.is_copied() && fork.is_none() { &mut copied } else { &mut conversation };
            target.add_step(step, document.agent.without_message()).map_err(|fault| fault.at(number))?;
            odd.look(step, number);
        }
        for part in parts {
            conversation.add_part(part, &mut odd)?;
        }
        conversation.notes.extend(odd.note());
        match copied.turns.len() {
            0 => {}
            count => conversation.notes.push(format!(
                "{count} messages of the agent are copied from another file, and are no part of this rollout"
            )),
        }
        if conversation.turns.is_empty() {
            return Err(Problem::NoTurns);
        }
        if conversation.prompt.is_empty() {
            conversation.prompt = copied.prompt;
        }
        if conversation.system.is_empty() {
            conversation.system = copied.system;
        }
        if conversation.prompt.is_empty() { Err(Problem::NoPrompt) } else { Ok(conversation) }
    }

    /// Adds a part that follows a summary. The steps before its first own agent step replace all
    /// earlier context.
    fn add_part(&mut self, part: &Document, odd: &mut Odd) -> Result<(), Problem> {
        self.handoffs.push(Handoff { turns: self.turns.len(), ..Handoff::default() });
        // The next agent step starts a new turn, although no observation was recorded before it.
        self.answered = true;
        let mut context = Vec::new();
        let before = self.turns.len();
        for (number, step) in numbered(part)? {
            if self.turns.len() > before || (step.source == Source::Agent && !step.is_copied()) {
                self.add_step(step, part.agent.without_message()).map_err(|fault| fault.at(number))?;
                odd.look(step, number);
                continue;
            }
            let role = match step.source {
                // The system message is the same in all parts.
                Source::System => continue,
                Source::User => Role::User,
                Source::Agent => Role::Assistant,
            };
            let content = step.message.as_ref().map_or(Some(String::new()), Content::text);
            context.push(Message::text(role, content.ok_or(Problem::Media(number))?));
        }
        self.handed.push(HandoffShown { prompts: Vec::new(), context });
        Ok(())
    }

    fn add_step(&mut self, step: &Step, empty: Empty) -> Result<(), Fault> {
        let text = match &step.message {
            Some(message) => message.text().ok_or(Fault::Media)?,
            None => String::new(),
        };
        match step.source {
            // Some agents write the result of a call as a step of its own.
            Source::Agent if empty == Empty::IsNoMessage && step.only_observes(&text) => self.observe(step),
            Source::Agent => self.turn(step, text),
            // The context was replaced, so the later steps belong to another conversation.
            Source::System if step.extra("context_management").is_some() => Err(Fault::Summarised),
            Source::System if self.turns.is_empty() => {
                join(&mut self.system, &text);
                self.observe(step)
            }
            Source::User if self.turns.is_empty() => {
                join(&mut self.prompt, &text);
                self.observe(step)
            }
            Source::System | Source::User => {
                if !text.is_empty() {
                    self.show(Shown::text(text));
                }
                self.observe(step)
            }
        }
    }

    fn turn(&mut self, step: &Step, content: String) -> Result<(), Fault> {
        let calls = step.tool_calls.as_deref().unwrap_or_default();
        let by_model = |call: &Call| !call.is("parsed") && !is_terminus(call);
        let turn = Turn {
            content,
            reasoning: step.reasoning_content.clone().filter(|reasoning| !reasoning.is_empty()),
            tool_calls: calls.iter().filter(|call| by_model(call)).map(tool_call).collect(),
            kind: kind(step, calls),
            acts: acts(step, calls),
            call: None,
            guide: None,
            usage: step.metrics.as_ref().and_then(|metrics| {
                let number = |count: &Count| count.number().ok().flatten();
                let (prompt, completion) =
                    (number(&metrics.prompt_tokens)?, number(&metrics.completion_tokens)?);
                Some(Tokens { prompt, completion })
            }),
            cut_off: step.extra("cut_off") == Some(&Value::Bool(true)),
        };
        // Some agents write a step for each part of a message. Steps without an observation between
        // them are one turn.
        match self.turns.last_mut() {
            Some(last) if !self.answered => merge(last, turn),
            _ => {
                self.turns.push(turn);
                self.shown.push(Vec::new());
            }
        }
        self.answered = false;
        self.observe(step)
    }

    /// Adds what a step observed to the last turn. If there is no turn yet, it is added to the
    /// prompt.
    fn observe(&mut self, step: &Step) -> Result<(), Fault> {
        for result in step.observation.iter().flat_map(|observation| &observation.results) {
            let Some(content) = &result.content else { continue };
            let content = content.text().ok_or(Fault::Media)?;
            let Some(last) = self.turns.last() else {
                join(&mut self.prompt, &content);
                continue;
            };
            let called = |id: &String| last.tool_calls.iter().any(|call| call.id == *id);
            let tool_call = result.source_call_id.clone().filter(called);
            self.show(Shown { tool_call, ..Shown::text(content) });
        }
        Ok(())
    }

    fn show(&mut self, shown: Shown) {
        if let Some(last) = self.shown.last_mut() {
            last.push(shown);
            self.answered = true;
        }
    }

    /// Parses the messages as their scaffold did.
    fn parse_messages(&mut self, scaffold: &str) {
        let format = match scaffold {
            TERMINUS_JSON => Some(Format::Json),
            TERMINUS_XML => Some(Format::Xml),
            _ => None,
        };
        let last = self.turns.len().saturating_sub(1);
        for (at, (turn, shown)) in self.turns.iter_mut().zip(&mut self.shown).enumerate() {
            if let Some(format) = format {
                (turn.kind, turn.acts) = terminus_turn(format, &turn.content);
            }
            // The agent never read the observation after its last message.
            if at == last && turn.kind == TurnKind::Claimed {
                turn.kind = TurnKind::Submitted;
                shown.clear();
            }
            if at == last && turn.kind == TurnKind::Acted && shown.is_empty() && turn.tool_calls.is_empty() {
                turn.kind = TurnKind::Submitted;
            }
        }
    }
}

/// The meaning of an agent's step without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    /// The model's reply was empty. terminus-2 shows it an error then.
    IsMessage,
    IsNoMessage,
}

/// Counts of tokens that are no numbers.
#[derive(Debug, Default)]
struct Odd {
    count: usize,
    /// The first of them: its step, and its text.
    first: Option<(usize, String)>,
}

impl Odd {
    fn look(&mut self, step: &Step, number: usize) {
        let counts =
            step.metrics.iter().flat_map(|metrics| [&metrics.prompt_tokens, &metrics.completion_tokens]);
        for found in counts.filter_map(|count| count.number().err()) {
            self.count += 1;
            self.first.get_or_insert((number, found));
        }
    }

    fn note(self) -> Option<String> {
        let (step, found) = self.first?;
        Some(format!(
            "{} numbers of tokens are left out, the first in step {step}: it is {found}",
            self.count
        ))
    }
}

enum Fault {
    Media,
    Summarised,
}

impl Fault {
    fn at(&self, step: usize) -> Problem {
        match self {
            Self::Media => Problem::Media(step),
            Self::Summarised => Problem::Summarised(step),
        }
    }
}

/// The steps with their numbers. The numbers must be consecutive from 1. The summary marker at the
/// end is dropped if another part follows.
fn numbered(document: &Document) -> Result<Vec<(usize, &Step)>, Problem> {
    let mut steps = Vec::with_capacity(document.steps.len());
    for (at, step) in document.steps.iter().enumerate() {
        let number = at + 1;
        if let Some(found) = step.step_id.filter(|found| *found != number as u64) {
            return Err(Problem::StepNumber { at: number, found });
        }
        steps.push((number, step));
    }
    let marks = |step: &Step| step.source == Source::System && step.extra("context_management").is_some();
    if document.continued_trajectory_ref.is_some() {
        steps.pop_if(|(_, step)| marks(step));
    }
    Ok(steps)
}

/// The kind and the acts of a raw terminus-2 message.
pub(super) fn terminus_turn(format: Format, content: &str) -> (TurnKind, Vec<Act>) {
    let parsed = format.parse(content);
    let kind = match parsed {
        _ if parsed.error.is_some() => TurnKind::Malformed,
        _ if parsed.task_complete => TurnKind::Claimed,
        _ => TurnKind::Acted,
    };
    (kind, parsed.commands.into_iter().map(|command| Act::Keys { keys: command.keystrokes }).collect())
}

fn merge(last: &mut Turn, more: Turn) {
    join(&mut last.content, &more.content);
    if let Some(more) = &more.reasoning {
        join(last.reasoning.get_or_insert_default(), more);
    }
    last.tool_calls.extend(more.tool_calls);
    last.acts.extend(more.acts);
    last.kind = more.kind;
    last.cut_off |= more.cut_off;
    last.usage = match (last.usage, more.usage) {
        (Some(one), Some(other)) => {
            Some(Tokens { prompt: one.prompt, completion: one.completion.saturating_add(other.completion) })
        }
        (one, other) => one.or(other),
    };
}

/// Appends a part of a text. A single part is kept byte for byte.
fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// Whether terminus-2 parsed the call from a message.
fn is_terminus(call: &Call) -> bool {
    matches!(call.function_name.as_str(), "bash_command" if call.text("keystrokes").is_some())
        || call.function_name == "mark_task_complete"
}

fn tool_call(call: &Call) -> ToolCall {
    let arguments = match (call.text("arguments"), &call.arguments.value) {
        (Some(text), _) if call.is("malformed") => text.to_owned(),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Null) => "{}".to_owned(),
        (_, _) => call.arguments.text.clone(),
    };
    ToolCall { id: call.tool_call_id.clone(), name: call.function_name.clone(), arguments }
}

fn kind(step: &Step, calls: &[Call]) -> TurnKind {
    let stated = step.extra("kind").and_then(|kind| serde_json::from_value(kind.clone()).ok());
    stated.unwrap_or_else(|| {
        let called = |name: &str| calls.iter().any(|call| call.function_name == name);
        match calls {
            calls if calls.iter().any(|call| call.is("parsed") && call.function_name == "submit") => {
                TurnKind::Submitted
            }
            _ if called("mark_task_complete") => TurnKind::Claimed,
            _ => TurnKind::Acted,
        }
    })
}

/// The acts of a step: termsmith's own record of them, or the step's calls. Only termsmith records
/// exit statuses, so commands of other agents become typed keys.
fn acts(step: &Step, calls: &[Call]) -> Vec<Act> {
    let stated = step.extra("acts").and_then(|acts| serde_json::from_value(acts.clone()).ok());
    stated.unwrap_or_else(|| {
        let ending = step
            .observation
            .as_ref()
            .and_then(|observation| ending(observation.results.first()?.extra.as_ref()?));
        let done = calls.iter().filter_map(|call| {
            let text = ["keystrokes", "command", "cmd", "script"]
                .iter()
                .find_map(|name| call.text(name))?
                .to_owned();
            Some(match ending {
                Some(_) if call.is("parsed") && call.function_name == "bash" => {
                    Act::Command { command: text, outcome: ending }
                }
                _ => Act::Keys { keys: text },
            })
        });
        done.collect()
    })
}

fn ending(extra: &Map<String, Value>) -> Option<ShellOutcome> {
    let status = |name: &str| extra.get(name)?.as_i64().and_then(|status| i32::try_from(status).ok());
    if extra.get("timed_out") == Some(&Value::Bool(true)) {
        return Some(ShellOutcome::TimedOut);
    }
    status("exit_status")
        .map(ShellOutcome::Exited)
        .or_else(|| status("shell_died").map(ShellOutcome::ShellDied))
}

/// The scaffold of a document. For terminus-2 the messages show which format it used, or that they
/// were rendered.
fn scaffold(document: &Document, turns: &[Turn]) -> String {
    let name = document.agent.name.as_str();
    if let Some(ours) = name.strip_prefix(OURS) {
        let stated = document.agent.extra.as_ref().and_then(|extra| extra.get("scaffold")?.as_str());
        return stated.unwrap_or(ours).to_owned();
    }
    if name != TERMINUS {
        return name.to_owned();
    }
    let reads = |format: Format| turns.iter().any(|turn| format.parse(&turn.content).error.is_none());
    match () {
        () if reads(Format::Json) => TERMINUS_JSON,
        () if reads(Format::Xml) => TERMINUS_XML,
        () => TERMINUS_RENDERED,
    }
    .to_owned()
}

fn tools(document: &Document) -> Vec<ToolDefinition> {
    let definitions = document.agent.tool_definitions.as_deref().unwrap_or_default();
    let tool = |definition: &Value| {
        let function = definition.get("function").unwrap_or(definition);
        Some(ToolDefinition {
            name: function.get("name")?.as_str()?.to_owned(),
            description: function.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
            parameters: function.get("parameters").cloned().unwrap_or_default(),
        })
    };
    definitions.iter().filter_map(tool).collect()
}

/// The verdict in a document of termsmith.
fn our_verdict(extra: &Map<String, Value>) -> Option<Verdict> {
    let outcome: Outcome = parsed(extra, "outcome")?;
    let checks: Vec<CheckResult> = parsed(extra, "checks").unwrap_or_default();
    let verdict = Verdict::from_checks(checks);
    // A document that contradicts itself has no verdict.
    if verdict.checks.is_empty() || !matches!(outcome, Outcome::Pass | Outcome::Fail) {
        let cause: String = parsed(extra, "cause").unwrap_or_default();
        return (outcome != Outcome::Pass).then(|| Verdict::without_checks(outcome, cause));
    }
    (verdict.outcome == outcome).then_some(verdict)
}

fn task_metadata(extra: &Map<String, Value>) -> TaskMetadata {
    TaskMetadata {
        domain: parsed(extra, "domain").unwrap_or_default(),
        skills: parsed(extra, "skills").unwrap_or_default(),
        operations: parsed(extra, "operations").unwrap_or_default(),
        kind: parsed(extra, "kind"),
        difficulty: parsed(extra, "difficulty"),
        recipe: parsed(extra, "recipe"),
        seed: parsed(extra, "seed").filter(|seed| *seed <= i64::MAX.cast_unsigned()),
        ..TaskMetadata::default()
    }
}

fn parsed<T: serde::de::DeserializeOwned>(extra: &Map<String, Value>, name: &str) -> Option<T> {
    serde_json::from_value(extra.get(name)?.clone()).ok()
}

/// The file's name without extension. It is used if no task is named.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
