//! Experimental arms: assistance that an agent gets in addition to its task: a plan, a mentor,
//! feedback after a failure, or the aim to cheat (LongCLI-Bench §4.4 and §4.5).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use minijinja::context;
use regex::Regex;

use super::control;
use super::conversation::Conversation;
use super::error::AgentError;
use super::scaffold::AssistantMessage;
use crate::assets::Assets;
use crate::llm::{CallError, CallSite, ChatMessage, ChatRequest, ModelRole, Models};
use crate::model::{AdversaryView, End, Key};
use crate::prompts::{PromptSet, PromptsError};

/// Folder of the texts, below `templates/prompts`.
const FOLDER: &str = "arms";
/// A message with this prefix is a question to the mentor. As in LongCLI-Bench, the agent decides
/// when to ask.
const ASKS: &str = "MENTOR:";
/// Maximum number of answered questions per rollout (LongCLI-Bench §4.5).
pub const QUESTIONS: u32 = 3;
/// The mentor reads this many bytes from the end of the conversation: questions are about the end.
const CONTEXT_BYTES: usize = 16_000;

/// The texts of all arms, from `templates/prompts/arms/`.
#[derive(Clone, Debug)]
pub struct ArmTexts {
    /// Patterns of questions that ask for code, e.g. "Please write the script".
    set: PromptSet,
    refused: Vec<Regex>,
}

impl ArmTexts {
    /// Loads the texts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        let needed = [
            "plan-system.md",
            "plan-task.md.j2",
            "with-plan.md.j2",
            "mentor-system.md",
            "mentor-question.md.j2",
            "mentor-answer.md.j2",
            "with-mentor.md.j2",
            "feedback.md.j2",
            "adversary-blind.md.j2",
            "adversary-tests.md.j2",
        ];
        let set = PromptSet::load(assets, FOLDER, &needed)?;
        // An invalid pattern would match no question. A test compiles all of them.
        let refused =
            set.lines("asks-for-code.txt")?.iter().filter_map(|line| Regex::new(line).ok()).collect();
        Ok(Self { set, refused })
    }

    /// Hash over all texts.
    pub fn digest(&self) -> String {
        self.set.digest()
    }

    /// The instruction with a plan after it.
    pub fn with_plan(&self, instruction: &str, plan: &str) -> Result<String, PromptsError> {
        self.set.render("with-plan.md.j2", context! { instruction, plan })
    }

    /// The instruction, and after it how to ask the mentor.
    pub fn with_mentor(&self, instruction: &str) -> Result<String, PromptsError> {
        self.set.render("with-mentor.md.j2", context! { instruction, asks => ASKS, questions => QUESTIONS })
    }

    /// The instruction for an adversary. `tests` are the contents of the test files.
    pub fn adversary(
        &self,
        sight: AdversaryView,
        instruction: &str,
        tests: &str,
    ) -> Result<String, PromptsError> {
        match sight {
            AdversaryView::Blind => self.set.render("adversary-blind.md.j2", context! { instruction }),
            AdversaryView::Tests => self.set.render("adversary-tests.md.j2", context! { instruction, tests }),
        }
    }

    /// What the agent reads after a failed round: names and messages of the failed checks. Values
    /// are removed from the messages unless the instruction has them. It is not enough that the
    /// agent printed a value: it could print many, and learn from this text which one is expected.
    pub fn feedback(
        &self,
        failed: &[(String, String)],
        passed: usize,
        instruction: &str,
    ) -> Result<String, PromptsError> {
        let failed: Vec<_> = failed
            .iter()
            .map(|(name, message)| context! { name, message => redacted(message, instruction) })
            .collect();
        self.set.render("feedback.md.j2", context! { failed, passed })
    }

    /// Asks a model for the main steps of a task, without code. Returns them with the key of the
    /// call.
    pub async fn plan(
        &self,
        models: &Models,
        unit: &str,
        instruction: &str,
    ) -> Result<(String, Key), AgentError> {
        let request = ChatRequest::of(vec![
            ChatMessage::system(self.set.text("plan-system.md")?),
            ChatMessage::user(self.set.render("plan-task.md.j2", context! { instruction })?),
        ]);
        let site = CallSite {
            role: ModelRole::Planner,
            unit: unit.to_owned(),
            stage: "plan".to_owned(),
            round: 0,
            step: 0,
            sample: 0,
        };
        let reply = models.call(&site, &request).await?;
        Ok((without_code(&reply.message.content), reply.key))
    }
}

/// A model that answers the agent's questions.
#[derive(Debug)]
pub struct Mentor<'a> {
    pub models: &'a Models,
    pub texts: &'a ArmTexts,
    pub unit: &'a str,
    pub instruction: &'a str,
}

impl Mentor<'_> {
    /// The question in a message, if the message is one.
    pub fn question(assistant: &AssistantMessage) -> Option<&str> {
        let text = assistant.content.trim().strip_prefix(ASKS)?.trim();
        (assistant.tool_calls.is_empty() && !text.is_empty()).then_some(text)
    }

    /// The text that the agent reads as the answer, and the key of the model call. Requests for
    /// code, and questions after the last one allowed, are refused without a call.
    pub(super) async fn answer(
        &mut self,
        question: &str,
        conversation: &Conversation,
    ) -> Result<(String, Option<Key>), AgentError> {
        let asked =
            conversation.turns.iter().filter(|turn| turn.kind == crate::model::TurnKind::Asked).count();
        let asked = u32::try_from(asked).unwrap_or(u32::MAX);
        let left = QUESTIONS.saturating_sub(asked);
        let code = self.texts.refused.iter().any(|pattern| pattern.is_match(question));
        let (answer, call) = if left == 0 || code {
            (String::new(), None)
        } else {
            let (answer, call) = self.ask(question, conversation, asked).await?;
            (without_code(&answer), Some(call))
        };
        let left_after = left.saturating_sub(1);
        let exhausted = left == 0;
        let refused = code && !exhausted;
        let values = context! { answer, refused, exhausted, left => left_after };
        Ok((self.texts.set.render("mentor-answer.md.j2", values)?, call))
    }

    async fn ask(
        &self,
        question: &str,
        conversation: &Conversation,
        asked: u32,
    ) -> Result<(String, Key), AgentError> {
        let instruction = self.instruction;
        let history = history(conversation);
        let set = &self.texts.set;
        let rendered = set.render("mentor-question.md.j2", context! { instruction, history, question });
        let user = rendered.unwrap_or_else(|_| question.to_owned());
        let system = set.text("mentor-system.md").unwrap_or_default();
        let request = ChatRequest::of(vec![ChatMessage::system(system), ChatMessage::user(user)]);
        let site = CallSite {
            role: ModelRole::Mentor,
            unit: self.unit.to_owned(),
            stage: "guide".to_owned(),
            round: 0,
            step: u32::try_from(conversation.turns.len()).unwrap_or(u32::MAX),
            sample: asked,
        };
        match control::call(self.models, &site, &request, Some(control::greeting())).await {
            Ok(reply) => Ok((reply.message.content, reply.key)),
            // The request is this long because of the question.
            Err(AgentError::Call(error @ CallError::ContextLength { .. })) => {
                Err(AgentError::Refused { end: End::RequestRefused, cause: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The last [`CONTEXT_BYTES`] of a conversation, as text.
fn history(conversation: &Conversation) -> String {
    let mut text = String::new();
    for (turn, seen) in conversation.turns.iter().zip(&conversation.seen) {
        text.push_str("AGENT: ");
        text.push_str(&turn.content);
        for call in &turn.tool_calls {
            text.push_str(&call.arguments);
        }
        text.push('\n');
        for shown in &seen.shown {
            text.push_str("TERMINAL: ");
            text.push_str(&shown.content);
            text.push('\n');
        }
    }
    let from = text.len().saturating_sub(CONTEXT_BYTES);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(from);
    text.split_off(from)
}

/// Replaces fenced blocks. A mentor must not give code, but a model may do so all the same.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    for (number, part) in text.split("```").enumerate() {
        if number.is_multiple_of(2) {
            kept.push_str(part);
        } else {
            kept.push_str("[code left out]");
        }
    }
    kept.trim().to_owned()
}

/// Replaces values in `message` that `known` does not have, so that feedback reveals no expected
/// result. A value is a number, or a text in quotes.
fn redacted(message: &str, known: &str) -> String {
    /// `None` is impossible: the pattern is a constant, and tests compile it.
    static VALUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.+-]*[0-9][A-Za-z0-9_.+-]*"#).ok()
    });
    let Some(value) = VALUE.as_ref() else { return String::new() };
    let tokens: BTreeSet<&str> =
        known.split(|c: char| !is_of_value(c)).filter(|word| !word.is_empty()).collect();
    value
        .replace_all(message, |found: &regex::Captures<'_>| {
            let text = found.get(0).map_or("", |found| found.as_str());
            let bare = text.trim_matches(['\'', '"']).trim_end_matches('.');
            let seen = if bare.len() == text.trim_end_matches('.').len() {
                tokens.contains(bare)
            } else {
                bare.is_empty() || known.contains(bare)
            };
            if seen { text.to_owned() } else { "…".to_owned() }
        })
        .into_owned()
}

fn is_of_value(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.+-".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_values_are_redacted() {
        let check = |message: &str, known: &str, expect: &str| {
            assert_eq!(redacted(message, known), expect, "{message}");
        };
        check("the total is wrong", "", "the total is wrong");
        check("assert 17 == 42", "I wrote 17 there", "assert 17 == …");
        check("assert 17 == 42", "", "assert … == …");
        // 4 is a part of 42, but another number.
        check("expected 4", "there are 42 of them", "expected …");
        check("assert 'north' == 'south'", "rows of north", "assert 'north' == …");
        check("/app/out2.csv is missing", "write out2.csv", "/app/out2.csv is missing");
        check(r#"missing "k9""#, "", "missing …");
        check("sum is 3.5.", "saw 3.5", "sum is 3.5.");
    }

    #[test]
    fn feedback_shows_values_of_the_instruction_only() {
        let texts = ArmTexts::load(&Assets::embedded()).unwrap();
        let failed = [("test_sum".to_owned(), "sum is 41, not 60, in out.csv of 'north'".to_owned())];
        // With `seq 1 60` the agent has printed the expected value. Feedback must not tell it
        // which.
        let text = texts.feedback(&failed, 7, "Add up what `north` used, into out2.csv.").unwrap();
        assert!(text.contains("- test_sum: sum is …, not …, in out.csv of 'north'"), "{text}");
    }

    #[test]
    fn code_is_removed() {
        let check = |text: &str, expect: &str| assert_eq!(without_code(text), expect);
        check("Look at the log.", "Look at the log.");
        check("Do this:\n```bash\nls\n```\nthen that", "Do this:\n[code left out]\nthen that");
        check("Do ```ls", "Do [code left out]");
    }

    #[test]
    fn questions_are_recognised() {
        let check = |content: &str, expect: Option<&str>| {
            let assistant = AssistantMessage { content: content.to_owned(), ..AssistantMessage::default() };
            assert_eq!(Mentor::question(&assistant), expect, "{content}");
        };
        check("MENTOR: which file first?", Some("which file first?"));
        check("\nMENTOR:\nhow?\n", Some("how?"));
        check("I could ask. MENTOR: how?", None);
        check("MENTOR:", None);
    }

    #[test]
    fn questions_for_code_are_refused() {
        let texts = ArmTexts::load(&Assets::embedded()).unwrap();
        let lines = texts.set.lines("asks-for-code.txt").unwrap();
        assert_eq!(lines.len(), texts.refused.len(), "every pattern compiles");
        for (question, refused) in [
            ("Please write the script for me.", true),
            ("Can you give me the exact command?", true),
            ("Show me the code.", true),
            ("What should I look at next?", false),
            ("Is the script in /app meant to be edited?", false),
            ("Which command line tools matter here?", false),
        ] {
            let found = texts.refused.iter().any(|pattern| pattern.is_match(question));
            assert_eq!(found, refused, "{question}");
        }
    }
}
