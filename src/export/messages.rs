//! Rollouts as chat messages, in the protocol of their scaffold.
//!
//! The order is: one optional system message, then user and assistant in turn, with the assistant
//! last. Every chat template accepts this order. Trainers check it: e.g. LLaMA-Factory skips other
//! rows without an error. Here another order is an error, so that no trainer drops a row silently.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::json_text::{ObjectText, as_python_writes, quoted};
use crate::model::{Message, Role, Rollout, Shown, Turn};

/// The messages of a rollout, divided before the first assistant message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The system message, if there is one, and the task. All rollouts of a task have the same
    /// prompt.
    pub prompt: Vec<Message>,
    /// The messages from the first assistant message to the last.
    pub answer: Vec<Message>,
}

/// A conversation as its model saw it: a whole rollout, the part between two summaries, or one step
/// of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Index of the segment in the rollout, from 0. Segments without an answer have no branch.
    pub segment: usize,
    /// The turns of the rollout that make up the answer.
    pub turns: Range<usize>,
    pub conversation: Conversation,
}

/// The error for a rollout whose messages are not a well-formed conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "trajectory `{id}` is not a well-formed conversation: {problem}\n\
     hint: its record or its observations are damaged. Remove both from the store, and run it again"
)]
pub struct MessageError {
    pub id: String,
    pub problem: Problem,
}

/// What is wrong with a conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("it has {turns} turns, but observations for {observations}")]
    Observations { turns: usize, observations: usize },
    #[error("turn {0} has no observation, and is not the last turn")]
    EndsEarly(usize),
    #[error("it has {handoffs} handoffs, but messages for {shown} of them")]
    Handoffs { handoffs: usize, shown: usize },
    #[error("turns {start} to {end} are missing")]
    Segment { start: usize, end: usize },
    #[error("it consists of several conversations")]
    Several,
    #[error("message {at} has role {found:?} instead of {expected:?}")]
    Order { at: usize, expected: Role, found: Role },
    #[error("message {0} is empty")]
    Empty(usize),
    #[error("it does not end with the assistant")]
    Ending,
}

impl Conversation {
    /// All messages, prompt first.
    pub fn into_messages(self) -> Vec<Message> {
        let mut messages = self.prompt;
        messages.extend(self.answer);
        messages
    }
}

/// The only conversation of `rollout`. It ends with the last assistant message; a later observation
/// is left out. Several conversations are an error.
pub fn conversation(rollout: &Rollout) -> Result<Conversation, MessageError> {
    let built = match checked(rollout) {
        Ok(branches) => match <[Branch; 1]>::try_from(branches) {
            Ok([only]) if rollout.record.handoffs.is_empty() => Ok(only.conversation),
            _ => Err(Problem::Several),
        },
        Err(problem) => Err(problem),
    };
    built.map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

/// The conversations of `rollout`, in order.
pub fn branches(rollout: &Rollout) -> Result<Vec<Branch>, MessageError> {
    checked(rollout).map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

fn checked(rollout: &Rollout) -> Result<Vec<Branch>, Problem> {
    let branch = |Segment { number, turns }| {
        let conversation = text(rollout, number, turns.clone())?;
        Ok(Branch { segment: number, turns, conversation })
    };
    let branches = divided(rollout)?.into_iter().map(branch).collect::<Result<Vec<_>, _>>()?;
    for branch in &branches {
        check_alternation(branch.conversation.prompt.iter().chain(&branch.conversation.answer))?;
    }
    Ok(branches)
}

/// A part of a rollout between handoffs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Index in the rollout, from 0.
    pub(super) number: usize,
    /// Its turns, of the rollout's.
    pub(super) turns: Range<usize>,
}

/// The parts of `rollout` that have turns, or its only one.
pub(super) fn segments(rollout: &Rollout) -> Result<Vec<Segment>, MessageError> {
    divided(rollout).map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

/// The messages of a segment as text, in the order that all chat templates accept.
pub(super) fn conversation_of(rollout: &Rollout, segment: &Segment) -> Result<Conversation, MessageError> {
    let built = text(rollout, segment.number, segment.turns.clone()).and_then(|built| {
        check_alternation(built.prompt.iter().chain(&built.answer))?;
        Ok(built)
    });
    built.map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

/// Whether roles do not alternate in `rollout`. Messages with function calls need not, e.g. if an
/// agent program sends two messages in a row.
pub(super) fn has_odd_order(rollout: &Rollout) -> bool {
    matches!(checked(rollout), Err(Problem::Order { .. } | Problem::EndsEarly(_) | Problem::Ending))
}

/// The assistant message of `turn` as one text. Reasoning and function calls are in the tags of
/// Hermes' and Qwen's chat templates, as in Harbor's `traces export`. Keys have the model's order.
pub fn assistant_text(turn: &Turn) -> String {
    spoken_text(&Message::of(turn))
}

fn spoken_text(said: &Message) -> String {
    let mut text = String::new();
    if let Some(reasoning) = said.reasoning.as_deref().filter(|reasoning| !reasoning.trim().is_empty()) {
        text.push_str(&format!("<think>\n{}\n</think>\n\n", reasoning.trim_matches('\n')));
    }
    text.push_str(&said.content);
    for call in &said.tool_calls {
        let arguments = match serde_json::from_str::<IgnoredAny>(&call.arguments) {
            Ok(_) => as_python_writes(&call.arguments),
            // Arguments that are no JSON stay text.
            Err(_) => quoted(&call.arguments),
        };
        let call = ObjectText::new().text("name", &call.name).json("arguments", &arguments).end();
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}<tool_call>\n{call}\n</tool_call>"));
    }
    text
}

/// The user message after a turn. Results of function calls are in tags, other observations are
/// verbatim.
pub fn user_text(shown: &[Shown]) -> String {
    let texts: Vec<_> = shown
        .iter()
        .map(|shown| match &shown.tool_call {
            Some(_) => result_text(&shown.content),
            None => shown.content.clone(),
        })
        .collect();
    texts.join("\n")
}

fn result_text(result: &str) -> String {
    format!("<tool_response>\n{result}\n</tool_response>")
}

/// Whether a message of `rollout` is empty, as replies of models sometimes are. Chat templates
/// refuse empty messages, so every config leaves such a rollout out.
pub fn has_empty_message(rollout: &Rollout) -> bool {
    matches!(checked(rollout), Err(Problem::Empty(_)))
}

/// Checks the order: at most one system message, first; then user and assistant in turn; the
/// assistant last; no empty message.
pub fn check_alternation<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<(), Problem> {
    let mut last = Role::System;
    for (at, message) in messages.into_iter().enumerate() {
        if message.content.trim().is_empty() {
            return Err(Problem::Empty(at));
        }
        let expected = match last {
            Role::System | Role::Assistant => Role::User,
            Role::User | Role::Tool => Role::Assistant,
        };
        let opening = at == 0 && message.role == Role::System;
        if message.role != expected && !opening {
            return Err(Problem::Order { at, expected, found: message.role });
        }
        last = message.role;
    }
    if last == Role::Assistant { Ok(()) } else { Err(Problem::Ending) }
}

fn divided(rollout: &Rollout) -> Result<Vec<Segment>, Problem> {
    let record = &rollout.record;
    count_observations(rollout)?;
    let (handoffs, shown) = (record.handoffs.len(), rollout.handoffs.len());
    if handoffs != shown {
        return Err(Problem::Handoffs { handoffs, shown });
    }
    let mut segments = Vec::with_capacity(handoffs + 1);
    for (number, turns) in record.segments().into_iter().enumerate() {
        // A limit can end a rollout right after a summary. A rollout without any turns is reported
        // by `check_alternation`.
        if turns.is_empty() && handoffs > 0 {
            continue;
        }
        if record.turns.get(turns.clone()).is_none() {
            return Err(Problem::Segment { start: turns.start, end: turns.end });
        }
        segments.push(Segment { number, turns });
    }
    Ok(segments)
}

fn text(rollout: &Rollout, segment: usize, turns: Range<usize>) -> Result<Conversation, Problem> {
    Ok(Conversation { prompt: prompt(rollout, segment), answer: answer(rollout, turns)? })
}

/// The messages that a model read before its first answer in a segment.
fn prompt(rollout: &Rollout, segment: usize) -> Vec<Message> {
    let mut prompt = Vec::new();
    for said in rollout.opening(segment) {
        let text = match said.role {
            Role::System if prompt.is_empty() => message(Role::System, said.content),
            Role::System | Role::User => message(Role::User, said.content),
            Role::Assistant => message(Role::Assistant, spoken_text(&said)),
            Role::Tool => message(Role::User, result_text(&said.content)),
        };
        add(&mut prompt, text);
    }
    prompt
}

/// Adds a message. Consecutive messages of one role are joined, because roles must alternate. E.g.
/// terminus-2's handoff has two user messages in a row.
fn add(messages: &mut Vec<Message>, message: Message) {
    match messages.last_mut() {
        Some(last) if last.role == message.role => {
            last.content.push_str("\n\n");
            last.content.push_str(&message.content);
        }
        Some(_) | None => messages.push(message),
    }
}

/// The messages of `turns`, with the observations between them.
fn answer(rollout: &Rollout, turns: Range<usize>) -> Result<Vec<Message>, Problem> {
    let recorded = rollout.record.turns.get(turns.clone()).zip(rollout.shown.get(turns.clone()));
    let Some((recorded, shown)) = recorded else {
        return Err(Problem::Segment { start: turns.start, end: turns.end });
    };
    let mut answer = Vec::with_capacity(recorded.len() * 2);
    for (number, (turn, shown)) in turns.clone().zip(recorded.iter().zip(shown)) {
        answer.push(message(Role::Assistant, assistant_text(turn)));
        if number + 1 == turns.end {
            break;
        }
        if shown.is_empty() {
            return Err(Problem::EndsEarly(number));
        }
        answer.push(message(Role::User, user_text(shown)));
    }
    Ok(answer)
}

/// Checks that every turn has an entry of observations.
pub fn check_observations(rollout: &Rollout) -> Result<(), MessageError> {
    count_observations(rollout).map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

fn count_observations(rollout: &Rollout) -> Result<(), Problem> {
    let (turns, observations) = (rollout.record.turns.len(), rollout.shown.len());
    if turns == observations { Ok(()) } else { Err(Problem::Observations { turns, observations }) }
}

fn message(role: Role, content: String) -> Message {
    Message::text(role, content)
}

#[cfg(test)]
mod tests {
    use crate::export::fixture;
    use crate::model::{Handoff, HandoffShown, ToolCall};

    use super::*;

    fn rows(spec: &[(Role, &str)]) -> Vec<Message> {
        spec.iter().map(|(role, content)| message(*role, (*content).to_owned())).collect()
    }

    #[test]
    fn the_scripted_protocol() {
        let conversation = conversation(&fixture::rollout("games", 0, 0, 1, 8)).unwrap();
        assert_eq!(conversation.prompt.len(), 2);
        let text: String = conversation
            .into_messages()
            .iter()
            .map(|message| format!("<{:?}>\n{}\n", message.role, message.content))
            .collect();
        insta::assert_snapshot!(text, @r"
        <System>
        You work in a terminal.
        <User>
        Roll up /app/access.log, task 0.
        <Assistant>
        Attempt 0: I look at part 0.

        ```bash
        sed -n '0p' /app/access.log
        ```
        <User>
        GET /a 0
        [exit status 0]
        <Assistant>
        The report is complete.

        ```bash
        submit
        ```
        ");
    }

    #[test]
    fn text_of_a_turn() {
        let call = |arguments: &str| ToolCall {
            id: "c1".to_owned(),
            name: "bash".to_owned(),
            arguments: arguments.to_owned(),
        };
        let check = |content: &str, reasoning: Option<&str>, calls: &[ToolCall], expect: &str| {
            let turn = Turn {
                content: content.to_owned(),
                reasoning: reasoning.map(str::to_owned),
                tool_calls: calls.to_vec(),
                ..Turn::default()
            };
            assert_eq!(assistant_text(&turn), expect);
        };
        check("Look.", None, &[], "Look.");
        check("Look.", Some("I think"), &[], "<think>\nI think\n</think>\n\nLook.");
        check("Look.", Some(" "), &[], "Look.");
        let ls = r#"<tool_call>
{"name": "bash", "arguments": {"command": "ls"}}
</tool_call>"#;
        check("", None, &[call(r#"{"command": "ls"}"#)], ls);
        check("", None, &[call(r#"{ "command":"ls" }"#)], ls);
        check("Look.", None, &[call(r#"{"command": "ls"}"#)], &format!("Look.\n{ls}"));
        check(
            "",
            None,
            &[call("{bad")],
            "<tool_call>\n{\"name\": \"bash\", \"arguments\": \"{bad\"}\n</tool_call>",
        );
        let result = |call: Option<&str>| Shown { tool_call: call.map(str::to_owned), ..Shown::text("a b") };
        assert_eq!(user_text(&[result(None)]), "a b");
        assert_eq!(
            user_text(&[result(Some("c1")), result(Some("c2"))]),
            "<tool_response>\na b\n</tool_response>\n<tool_response>\na b\n</tool_response>"
        );
    }

    #[test]
    fn alternation() {
        use Role::{Assistant, System, User};
        let check = |spec: &[(Role, &str)], expect: Result<(), Problem>| {
            assert_eq!(check_alternation(&rows(spec)), expect, "{spec:?}");
        };
        let order = |at, expected, found| Err(Problem::Order { at, expected, found });
        check(&[(User, "t"), (Assistant, "a")], Ok(()));
        check(&[(System, "s"), (User, "t"), (Assistant, "a"), (User, "o"), (Assistant, "a")], Ok(()));
        check(&[], Err(Problem::Ending));
        check(&[(System, "s")], Err(Problem::Ending));
        check(&[(User, "t")], Err(Problem::Ending));
        check(&[(Assistant, "a")], order(0, User, Assistant));
        check(&[(System, "s"), (Assistant, "a")], order(1, User, Assistant));
        check(&[(System, "s"), (System, "s")], order(1, User, System));
        check(&[(User, "t"), (System, "s")], order(1, Assistant, System));
        check(&[(User, "t"), (User, "t")], order(1, Assistant, User));
        check(&[(User, "t"), (Assistant, "a"), (Assistant, "a")], order(2, User, Assistant));
        check(&[(User, "t"), (Assistant, " \n")], Err(Problem::Empty(1)));
    }

    fn handoff(turns: usize) -> Handoff {
        Handoff { turns, ..Handoff::default() }
    }

    fn summary() -> HandoffShown {
        let context = vec![message(Role::User, "A summary.".to_owned())];
        HandoffShown { prompts: Vec::new(), context }
    }

    #[test]
    fn damaged_rollouts() {
        let check = |damage: fn(&mut Rollout), expect: Option<Problem>| {
            let mut rollout = fixture::rollout("games", 0, 0, 2, 8);
            damage(&mut rollout);
            let problem = conversation(&rollout).err().map(|error| {
                assert!(error.to_string().contains("trajectory `0000000000000000`"), "{error}");
                error.problem
            });
            assert_eq!(problem, expect);
        };
        check(|_| {}, None);
        check(|rollout| rollout.record.system.clear(), None);
        check(|rollout| drop(rollout.shown.pop()), Some(Problem::Observations { turns: 3, observations: 2 }));
        check(|rollout| rollout.shown[1][0].content.clear(), Some(Problem::Empty(5)));
        check(|rollout| rollout.record.turns[1].content.clear(), Some(Problem::Empty(4)));
        check(|rollout| rollout.record.prompt = "\n".to_owned(), Some(Problem::Empty(1)));
        check(|rollout| rollout.shown.swap(1, 2), Some(Problem::EndsEarly(1)));
        check(
            |rollout| rollout.record.handoffs = vec![handoff(1)],
            Some(Problem::Handoffs { handoffs: 1, shown: 0 }),
        );
        check(
            |rollout| {
                rollout.record.handoffs = vec![handoff(7)];
                rollout.handoffs = vec![HandoffShown::default()];
            },
            Some(Problem::Segment { start: 0, end: 7 }),
        );
        check(
            |rollout| {
                rollout.record.handoffs = vec![handoff(1)];
                rollout.handoffs = vec![summary()];
            },
            Some(Problem::Several),
        );
        check(
            |rollout| {
                rollout.record.turns.clear();
                rollout.shown.clear();
            },
            Some(Problem::Ending),
        );
        // The step limit ended the rollout. No message follows the last observation, so it is left
        // out.
        check(
            |rollout| {
                rollout.record.turns.pop();
                rollout.shown.pop();
            },
            None,
        );
    }
}
