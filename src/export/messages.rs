//! Rollouts as the chat messages of the scaffold that they were played in.
//!
//! One optional system message, then user and assistant in strict alternation, ending with the assistant: what every chat
//! template accepts and what trainers check (LLaMA-Factory skips rows that violate it without an error). So a rollout that
//! does not fit is an error here, never a row that is dropped later.

use std::ops::Range;

use serde_json::json;

use crate::model::{Message, Role, Rollout, Shown, Turn};

/// What was said in a rollout, split where the first answer begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The system message, if there is one, and the task: the same for all rollouts of a task.
    pub prompt: Vec<Message>,
    /// From the first assistant message to the last one.
    pub answer: Vec<Message>,
}

/// A conversation that a model saw as one: a whole rollout, what lies between two summaries of it, or a step of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Which of the rollout's, from 0. Those without an answer are passed over.
    pub segment: usize,
    /// The rollout's turns that it answers with.
    pub turns: Range<usize>,
    pub conversation: Conversation,
}

/// A rollout that is no well-formed conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "trajectory `{id}` is not a well-formed conversation: {problem}\n\
     hint: its record or its observations are damaged; remove both from the store and run it again"
)]
pub struct MessageError {
    pub id: String,
    pub problem: Problem,
}

/// What is wrong with a conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("it has {turns} turns but what was shown after {observations}")]
    Observations { turns: usize, observations: usize },
    #[error("turn {0} shows nothing but is not the last one")]
    EndsEarly(usize),
    #[error("its conversation began anew {handoffs} times but what was read then is known {shown} times")]
    Handoffs { handoffs: usize, shown: usize },
    #[error("turns {start} to {end} are no part of it")]
    Segment { start: usize, end: usize },
    #[error("it is several conversations")]
    Several,
    #[error("message {at} comes from the {found:?} where the {expected:?} should speak")]
    Order { at: usize, expected: Role, found: Role },
    #[error("message {0} is empty")]
    Empty(usize),
    #[error("it does not end with the assistant")]
    Ending,
}

impl Conversation {
    /// The whole conversation, prompt first.
    pub fn into_messages(self) -> Vec<Message> {
        let mut messages = self.prompt;
        messages.extend(self.answer);
        messages
    }
}

/// The conversation of `rollout`, which is one. What the last command printed is not part of it if nothing was said after
/// that.
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
    let branches = build(rollout)?;
    for branch in &branches {
        check_alternation(branch.conversation.prompt.iter().chain(&branch.conversation.answer))?;
    }
    Ok(branches)
}

/// What the assistant said in `turn`, as one text: reasoning and function calls in the marks of Hermes' and Qwen's chat templates, as
/// Harbor's `traces export` writes them too.
pub fn assistant_text(turn: &Turn) -> String {
    let mut text = String::new();
    if let Some(reasoning) = turn.reasoning.as_deref().filter(|reasoning| !reasoning.trim().is_empty()) {
        text.push_str(&format!("<think>\n{}\n</think>\n\n", reasoning.trim_matches('\n')));
    }
    text.push_str(&turn.content);
    for call in &turn.tool_calls {
        // What is no JSON stays the text that it is.
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        let call = json!({ "name": call.name, "arguments": arguments });
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}<tool_call>\n{call}\n</tool_call>"));
    }
    text
}

/// What the user answered: the results of function calls in marks, all else as it was shown.
pub fn user_text(shown: &[Shown]) -> String {
    let texts: Vec<_> = shown
        .iter()
        .map(|shown| match &shown.tool_call {
            Some(_) => format!("<tool_response>\n{}\n</tool_response>", shown.content),
            None => shown.content.clone(),
        })
        .collect();
    texts.join("\n")
}

/// Whether some message of `rollout` is empty, as models' sometimes are. No chat template takes it, so it is no row of any config.
pub fn has_empty_message(rollout: &Rollout) -> bool {
    matches!(checked(rollout), Err(Problem::Empty(_)))
}

/// Enforces: system at most once and first, then user and assistant in turn, the assistant last, nothing empty.
pub fn check_alternation<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<(), Problem> {
    let mut last = Role::System;
    for (at, message) in messages.into_iter().enumerate() {
        if message.content.trim().is_empty() {
            return Err(Problem::Empty(at));
        }
        let expected = match last {
            Role::System | Role::Assistant => Role::User,
            Role::User => Role::Assistant,
        };
        let opening = at == 0 && message.role == Role::System;
        if message.role != expected && !opening {
            return Err(Problem::Order { at, expected, found: message.role });
        }
        last = message.role;
    }
    if last == Role::Assistant { Ok(()) } else { Err(Problem::Ending) }
}

fn build(rollout: &Rollout) -> Result<Vec<Branch>, Problem> {
    let record = &rollout.record;
    count_observations(rollout)?;
    let (handoffs, shown) = (record.handoffs.len(), rollout.handoffs.len());
    if handoffs != shown {
        return Err(Problem::Handoffs { handoffs, shown });
    }
    let mut branches = Vec::with_capacity(handoffs + 1);
    for (segment, turns) in record.segments().into_iter().enumerate() {
        // A limit can end a rollout right after a summary. One in which nothing was ever said is told by its alternation.
        if turns.is_empty() && handoffs > 0 {
            continue;
        }
        let prompt = prompt(rollout, segment);
        let answer = answer(rollout, turns.clone())?;
        branches.push(Branch { segment, turns, conversation: Conversation { prompt, answer } });
    }
    Ok(branches)
}

/// What a model read before the first answer of a segment.
fn prompt(rollout: &Rollout, segment: usize) -> Vec<Message> {
    let record = &rollout.record;
    let mut prompt = Vec::new();
    if !record.system.is_empty() {
        prompt.push(message(Role::System, record.system.clone()));
    }
    match segment.checked_sub(1).and_then(|before| rollout.handoffs.get(before)) {
        None => prompt.push(message(Role::User, record.prompt.clone())),
        Some(handoff) => handoff.context.iter().for_each(|said| add(&mut prompt, said)),
    }
    prompt
}

/// Adds a message. Two of one side in a row, as terminus-2's handoff has them, become one: no other row would be taken.
fn add(messages: &mut Vec<Message>, said: &Message) {
    match messages.last_mut() {
        Some(last) if last.role == said.role => {
            last.content.push_str("\n\n");
            last.content.push_str(&said.content);
        }
        Some(_) | None => messages.push(said.clone()),
    }
}

/// From the first of `turns` to the last.
fn answer(rollout: &Rollout, turns: Range<usize>) -> Result<Vec<Message>, Problem> {
    let said = rollout.record.turns.get(turns.clone()).zip(rollout.shown.get(turns.clone()));
    let Some((said, shown)) = said else {
        return Err(Problem::Segment { start: turns.start, end: turns.end });
    };
    let mut answer = Vec::with_capacity(said.len() * 2);
    for (number, (turn, shown)) in turns.clone().zip(said.iter().zip(shown)) {
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

/// Enforces that what was shown is known of each turn.
pub fn check_observations(rollout: &Rollout) -> Result<(), MessageError> {
    count_observations(rollout).map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

fn count_observations(rollout: &Rollout) -> Result<(), Problem> {
    let (turns, observations) = (rollout.record.turns.len(), rollout.shown.len());
    if turns == observations { Ok(()) } else { Err(Problem::Observations { turns, observations }) }
}

fn message(role: Role, content: String) -> Message {
    Message { role, content }
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
{"arguments":{"command":"ls"},"name":"bash"}
</tool_call>"#;
        check("", None, &[call(r#"{"command": "ls"}"#)], ls);
        check("Look.", None, &[call(r#"{"command": "ls"}"#)], &format!("Look.\n{ls}"));
        check(
            "",
            None,
            &[call("{bad")],
            "<tool_call>\n{\"arguments\":\"{bad\",\"name\":\"bash\"}\n</tool_call>",
        );
        let result =
            |call: Option<&str>| Shown { tool_call: call.map(str::to_owned), content: "a b".to_owned() };
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
        Handoff { turns, unread: 0, step: None, asides: Vec::new() }
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
        // Stopped at the step limit: the last observation was never answered, so it is left out.
        check(
            |rollout| {
                rollout.record.turns.pop();
                rollout.shown.pop();
            },
            None,
        );
    }
}
