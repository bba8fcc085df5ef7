//! Rollouts as the chat messages of the scaffold that they were played in.
//!
//! One optional system message, then user and assistant in strict alternation, ending with the assistant: what every chat
//! template accepts and what trainers check (LLaMA-Factory skips rows that violate it without an error). So a rollout that
//! does not fit is an error here, never a row that is dropped later.

use crate::model::{Message, Role, Rollout, Turn};

/// Who speaks in every rollout that this version can play.
pub const TEACHER: &str = "scripted";

/// What was said in a rollout, split where the first answer begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The system message, if there is one, and the task: the same for all rollouts of a task.
    pub prompt: Vec<Message>,
    /// From the first assistant message to the last one.
    pub answer: Vec<Message>,
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
    #[error("{ended} of its commands ended but it has {observations} observations")]
    Observations { ended: usize, observations: usize },
    #[error("turn {0} shows nothing but is not the last one")]
    EndsEarly(usize),
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

/// The conversation of `rollout`. What the last command printed is not part of it if nothing was said after that.
pub fn conversation(rollout: &Rollout) -> Result<Conversation, MessageError> {
    let built = build(rollout).and_then(|conversation| {
        let all = conversation.prompt.iter().chain(&conversation.answer);
        check_alternation(all)?;
        Ok(conversation)
    });
    built.map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

/// What the assistant said in `turn`, as the scaffold writes it.
pub fn assistant_text(turn: &Turn) -> String {
    let command = turn.command.as_deref().unwrap_or("submit");
    let fence = fence(command);
    let block = format!("{fence}bash\n{command}\n{fence}");
    if turn.thought.is_empty() { block } else { format!("{}\n\n{block}", turn.thought) }
}

/// The fence of a block that holds `text`: longer than any that `text` has, as CommonMark asks for.
fn fence(text: &str) -> String {
    let backticks = |line: &str| line.trim_start().chars().take_while(|&c| c == '`').count();
    let longest = text.lines().map(backticks).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
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

fn build(rollout: &Rollout) -> Result<Conversation, Problem> {
    let record = &rollout.record;
    let system = (!record.system.is_empty()).then(|| message(Role::System, record.system.clone()));
    let task = message(Role::User, record.prompt.clone());

    count_observations(rollout)?;
    let mut observations = rollout.observations.iter();
    let mut answer = Vec::with_capacity(record.turns.len() * 2);
    for (number, turn) in record.turns.iter().enumerate() {
        let last = number + 1 == record.turns.len();
        answer.push(message(Role::Assistant, assistant_text(turn)));
        if last {
            break;
        }
        if !is_observed(turn) {
            return Err(Problem::EndsEarly(number));
        }
        answer.extend(observations.next().map(|shown| message(Role::User, shown.clone())));
    }
    Ok(Conversation { prompt: system.into_iter().chain([task]).collect(), answer })
}

/// Whether something was shown after `turn`: not after a submission, nor after a command under which the sandbox was lost.
pub(super) fn is_observed(turn: &Turn) -> bool {
    turn.command.is_some() && turn.outcome.is_some()
}

/// Enforces one observation for each command that ended.
pub fn check_observations(rollout: &Rollout) -> Result<(), MessageError> {
    count_observations(rollout).map_err(|problem| MessageError { id: rollout.id.clone(), problem })
}

fn count_observations(rollout: &Rollout) -> Result<(), Problem> {
    let ended = rollout.record.turns.iter().filter(|turn| is_observed(turn)).count();
    let observations = rollout.observations.len();
    if ended == observations { Ok(()) } else { Err(Problem::Observations { ended, observations }) }
}

fn message(role: Role, content: String) -> Message {
    Message { role, content }
}

#[cfg(test)]
mod tests {
    use crate::export::fixture;

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
        let check = |thought: &str, command: Option<&str>, expect: &str| {
            let turn =
                Turn { thought: thought.to_owned(), command: command.map(str::to_owned), outcome: None };
            assert_eq!(assistant_text(&turn), expect);
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
        check(
            |rollout| drop(rollout.observations.pop()),
            Some(Problem::Observations { ended: 2, observations: 1 }),
        );
        check(|rollout| rollout.observations[1].clear(), Some(Problem::Empty(5)));
        check(|rollout| rollout.record.prompt = "\n".to_owned(), Some(Problem::Empty(1)));
        check(|rollout| rollout.record.turns.swap(1, 2), Some(Problem::EndsEarly(1)));
        check(
            |rollout| {
                rollout.record.turns.clear();
                rollout.observations.clear();
            },
            Some(Problem::Ending),
        );
        // The sandbox was lost under the last command.
        check(
            |rollout| {
                rollout.record.turns.pop();
                rollout.record.turns[1].outcome = None;
                rollout.observations.pop();
            },
            None,
        );
        check(
            |rollout| rollout.record.turns[0].outcome = None,
            Some(Problem::Observations { ended: 1, observations: 2 }),
        );
        // Stopped at the step limit: the last observation was never answered, so it is left out.
        check(|rollout| drop(rollout.record.turns.pop()), None);
    }
}
