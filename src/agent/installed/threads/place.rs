//! Where a request belongs among the conversations so far.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::canonical::{Unit, UnitKind, common, own_ids, tools_hash, units};
use super::{
    FewShot, ForeignMessage, Keys, Link, Origin, Strand, Superseded, Threads, Ticket, said_in, shown, spoken,
};
use crate::llm::{ChatMessage, ChatRequest, ChatRole};
use crate::model::{Shown, ToolDefinition};

/// Characters of a message that an error quotes.
const EXCERPT: usize = 120;
/// Fewest characters of an argument that shows which call began a thread. Shorter ones may be in
/// any prompt by chance.
const TELLING: usize = 16;

/// How a request relates to a strand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// It continues from this open reply.
    Extends { reply: usize },
    /// It is the last request again.
    Repeats,
    /// It has the history without the last reply, and more after it.
    Discards,
    /// None of these.
    None,
}

/// Whether a request begins a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    Thread,
    Nothing,
}

/// A request with its canonical form.
struct Asked<'a> {
    key: Option<&'a str>,
    request: &'a ChatRequest,
    units: Vec<Unit>,
    tools: blake3::Hash,
}

impl Threads {
    /// Places a request, before its reply is known.
    pub(in crate::agent::installed) fn place(
        &mut self,
        key: Option<&str>,
        request: &ChatRequest,
    ) -> Result<Ticket, ForeignMessage> {
        let (units, tools) = (units(&request.messages), tools_hash(&request.tools));
        let asked = Asked { key, request, units, tools };
        self.requests += 1;
        let related = self.strands.iter().enumerate().filter_map(|(number, strand)| {
            let relation = relation(strand, &asked);
            (relation != Relation::None).then_some((number, relation))
        });
        // The longest history tells most; of equal ones, the latest.
        let longest = related.max_by_key(|(number, _)| {
            let strand = &self.strands[*number];
            (strand.units.len(), strand.touched)
        });
        let (strand, relation, matched) = match longest {
            Some((number, relation)) => {
                let said = usize::from(matches!(relation, Relation::Extends { .. }));
                (Some(number), relation, self.strands[number].units.len() + said)
            }
            None => (None, Relation::None, 0),
        };
        let origin = if strand.is_none() { self.origin(&asked) } else { None };
        let begins = match (&strand, &origin) {
            (None, None | Some(Origin { link: Link::Beside, .. })) => Begins::Thread,
            (None, Some(Origin { link: Link::Continues, .. })) | (Some(_), _) => Begins::Nothing,
        };
        self.check(&asked, begins, matched)?;
        let requests = self.requests;
        let number = strand.unwrap_or_else(|| {
            self.strands.push(Strand::begun(&asked, origin, requests));
            self.strands.len() - 1
        });
        let strand = &mut self.strands[number];
        match relation {
            Relation::Extends { reply } => strand.settle(reply, &asked, requests),
            Relation::Discards => strand.discard(&asked, requests),
            Relation::Repeats | Relation::None => {}
        }
        strand.in_flight += 1;
        strand.touched = requests;
        Ok(Ticket { strand: number, position: strand.settled.len(), revision: strand.revision })
    }

    /// Refuses assistant messages from unit `matched` on that no model wrote.
    fn check(&mut self, asked: &Asked<'_>, begins: Begins, matched: usize) -> Result<(), ForeignMessage> {
        let assistants = || {
            let new = asked.units.iter().enumerate().skip(matched);
            new.filter(|(_, unit)| unit.kind == UnitKind::Assistant)
        };
        let Some((first, _)) = assistants().find(|(_, unit)| !self.knows(unit)) else { return Ok(()) };
        let has_replies = assistants().any(|(_, unit)| self.knows(unit));
        let allowed = match self.rules.few_shot {
            FewShot::Never => false,
            FewShot::FirstRequest => self.replies == 0,
            FewShot::EachThread => begins == Begins::Thread && !has_replies,
        };
        if allowed {
            let examples: Vec<_> = assistants().map(|(_, unit)| (unit.hash, unit.reasoning)).collect();
            for (hash, reasoning) in examples {
                self.known.entry(hash).or_default().push(reasoning);
            }
            return Ok(());
        }
        let at = asked.units.get(first).map_or(1, |unit| unit.end);
        let message = at.checked_sub(1).and_then(|at| asked.request.messages.get(at));
        let excerpt = message.map(excerpt).unwrap_or_default();
        Err(ForeignMessage { agent: self.rules.agent.clone(), number: at, excerpt })
    }

    fn knows(&self, unit: &Unit) -> bool {
        let Some(reasonings) = self.known.get(&unit.hash) else { return false };
        unit.reasoning.is_none() || reasonings.iter().any(|known| known.is_none() || *known == unit.reasoning)
    }

    /// Where a request comes from that continues no strand.
    fn origin(&self, asked: &Asked<'_>) -> Option<Origin> {
        let with_tools = !asked.request.tools.is_empty();
        let shared = |strand: &Strand| common(&strand.units, &asked.units);
        let all = || self.strands.iter().enumerate();
        let alike = || {
            all().filter(|(_, strand)| strand.key.as_deref() == asked.key && strand.has_tools() == with_tools)
        };
        let latest = |(_, strand): &(usize, &Strand)| (shared(strand), strand.touched);
        let continues = |(number, strand): (usize, &Strand)| {
            let link = if strand.in_flight == 0 { Link::Continues } else { Link::Beside };
            Origin { link, strand: number, position: strand.settled.len(), tool_call: None }
        };
        // The same task and another history, e.g. a summary.
        let whole = alike().filter(|(_, strand)| shared(strand) >= strand.opening_units());
        if let Some(found) = whole.max_by_key(latest) {
            return Some(continues(found));
        }
        if with_tools
            && self.rules.keys == Keys::Header
            && let Some(found) = alike().max_by_key(latest)
        {
            return Some(continues(found));
        }
        if with_tools && let Some(called) = self.called(asked) {
            return Some(called);
        }
        let partly = alike().filter(|(_, strand)| {
            let least = if strand.tools_hash == asked.tools && with_tools { 1 } else { 2 };
            strand.is_repeated(asked) || strand.is_unfinished(asked) && shared(strand) >= least
        });
        if let Some(found) = partly.max_by_key(latest) {
            return Some(continues(found));
        }
        // A sub-agent whose call cannot be told, or a request without tools that has the history of
        // the work, e.g. for a summary of it.
        let beside = all().filter(|(_, strand)| match with_tools {
            true => strand.calls(),
            false => strand.has_tools() && (shared(strand) >= 2 || strand.is_repeated(asked)),
        });
        beside.max_by_key(latest).map(|found| Origin { link: Link::Beside, ..continues(found) })
    }

    /// The call of a function whose arguments hold the prompt of a request.
    fn called(&self, asked: &Asked<'_>) -> Option<Origin> {
        let opening = asked.request.messages.iter();
        let opening = opening.take_while(|message| message.role != ChatRole::Assistant);
        let prompts: Vec<&str> = opening
            .filter(|message| message.role == ChatRole::User)
            .map(|message| message.content.as_str())
            .collect();
        // Without a header, the request could also be a summary that quotes an argument.
        let least = |prompt: &str| if self.rules.keys == Keys::Header { 0 } else { prompt.len() / 2 };
        let holds = |text: &String| {
            prompts.iter().any(|prompt| prompt.contains(text.as_str()) && text.len() >= least(prompt))
        };
        self.strands.iter().enumerate().rev().find_map(|(number, strand)| {
            let mut calls = strand.open.iter().flat_map(|said| &said.turn.tool_calls);
            let call = calls.find(|call| {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
                let mut texts = Vec::new();
                strings(&arguments, &mut texts);
                texts.iter().any(holds)
            })?;
            let (link, tool_call) = (Link::Beside, Some(call.id.clone()));
            Some(Origin { link, strand: number, position: strand.settled.len(), tool_call })
        })
    }
}

/// The strings in a JSON value that are long enough to tell something.
fn strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if text.trim().chars().count() >= TELLING => texts.push(text.trim().to_owned()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Value::Object(map) => map.values().for_each(|value| strings(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn relation(strand: &Strand, asked: &Asked<'_>) -> Relation {
    let length = strand.units.len();
    if strand.key.as_deref() != asked.key
        || strand.tools_hash != asked.tools
        || common(&strand.units, &asked.units) < length
    {
        return Relation::None;
    }
    let Some(next) = asked.units.get(length) else { return Relation::Repeats };
    // The last one: it came last, so the agent has it.
    if let Some(reply) = strand.open.iter().rposition(|said| said.unit.is(next)) {
        let more = asked.units.iter().skip(length + 1);
        let is_given = more.into_iter().all(|unit| unit.kind != UnitKind::Assistant);
        return if is_given { Relation::Extends { reply } } else { Relation::None };
    }
    let after = asked.units.iter().skip(strand.said);
    let is_given = after.into_iter().all(|unit| unit.kind != UnitKind::Assistant);
    if strand.in_flight == 0 && is_given { Relation::Discards } else { Relation::None }
}

impl Strand {
    fn begun(asked: &Asked<'_>, origin: Option<Origin>, requests: u32) -> Self {
        let tools = asked.request.tools.iter().map(|tool| ToolDefinition {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        });
        Self {
            key: asked.key.map(str::to_owned),
            origin,
            tools: tools.collect(),
            tools_hash: asked.tools,
            opening: asked.request.messages.iter().map(said_in).collect(),
            units: asked.units.clone(),
            said: 0,
            settled: Vec::new(),
            ids: HashMap::new(),
            open: Vec::new(),
            superseded: Vec::new(),
            in_flight: 0,
            revision: 0,
            began: requests,
            touched: requests,
        }
    }

    /// Number of units before the first reply.
    fn opening_units(&self) -> usize {
        let length = self.opening.len();
        self.units.iter().take_while(|unit| unit.end <= length).count()
    }

    /// Whether the last reply calls functions.
    fn calls(&self) -> bool {
        self.open.last().is_some_and(|said| !said.turn.tool_calls.is_empty())
    }

    /// Whether a request holds the last reply.
    fn is_repeated(&self, asked: &Asked<'_>) -> bool {
        self.open.last().is_some_and(|last| asked.units.iter().any(|unit| unit.is(&last.unit)))
    }

    /// Whether the work goes on after the last reply: it calls functions, or a request quotes it,
    /// as a summary.
    fn is_unfinished(&self, asked: &Asked<'_>) -> bool {
        let Some(last) = self.open.last() else { return true };
        let text = last.turn.content.trim();
        let mut given = asked.request.messages.iter().filter(|message| message.role != ChatRole::Assistant);
        !last.turn.tool_calls.is_empty() || given.any(|message| message.content.contains(text))
    }

    /// The agent continues from an open reply.
    fn settle(&mut self, reply: usize, asked: &Asked<'_>, requests: u32) {
        let mut said = self.open.remove(reply);
        self.supersede(requests);
        let length = self.units.len();
        self.units.push(said.unit.clone());
        self.said = length + 1;
        let after = asked.units.get(length).map_or(0, |unit| unit.end);
        let sent = after.checked_sub(1).and_then(|at| asked.request.messages.get(at));
        self.ids = sent.map(|sent| own_ids(sent, &spoken(&said.turn))).unwrap_or_default();
        said.seen.shown = self.shown(asked, after);
        self.settled.push(said);
        self.revise(asked);
    }

    /// The messages of a request from `after` on. Results get the ids of the calls in our own
    /// reply.
    fn shown(&self, asked: &Asked<'_>, after: usize) -> Vec<Shown> {
        let mut ids = self.ids.clone();
        let mut shown: Vec<Shown> = asked.request.messages.iter().skip(after).map(shown).collect();
        for id in shown.iter_mut().filter_map(|shown| shown.tool_call.as_mut()) {
            if let Some(own) = ids.get_mut(id).and_then(VecDeque::pop_front) {
                *id = own;
            }
        }
        shown
    }

    /// The agent goes on without the open replies.
    fn discard(&mut self, asked: &Asked<'_>, requests: u32) {
        self.supersede(requests);
        let after =
            self.said.checked_sub(1).and_then(|last| asked.units.get(last)).map_or(0, |unit| unit.end);
        let shown = self.shown(asked, after);
        match self.settled.last_mut() {
            Some(last) => last.seen.shown = shown,
            None => self.opening = asked.request.messages.iter().map(said_in).collect(),
        }
        self.revise(asked);
    }

    pub(super) fn supersede(&mut self, at: u32) {
        if self.open.is_empty() {
            return;
        }
        let (position, opening) = (self.settled.len(), self.history());
        let open = std::mem::take(&mut self.open).into_iter();
        self.superseded.extend(open.map(|said| Superseded { position, opening: opening.clone(), said, at }));
    }

    /// The units are those of a request, with the reasoning of our own replies.
    fn revise(&mut self, asked: &Asked<'_>) {
        let own = std::mem::take(&mut self.units);
        self.units = asked.units.clone();
        for (unit, own) in self.units.iter_mut().zip(own).take(self.said) {
            unit.reasoning = own.reasoning;
        }
        self.revision += 1;
    }
}

/// The beginning of a message, for an error.
fn excerpt(message: &ChatMessage) -> String {
    let calls = message.tool_calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    let parts: Vec<String> = [message.content.trim().to_owned()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .chain(calls)
        .collect();
    let whole = parts.join(" ");
    match whole.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}
