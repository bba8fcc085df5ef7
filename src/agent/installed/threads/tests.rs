//! Tables of what agents send, and a property over generated histories.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agent::conversation::{Conversation, TurnSeen};
use crate::llm::Tool;
use crate::model::{ThreadKind, Turn};

fn rules(keys: Keys, few_shot: FewShot) -> Rules {
    Rules { agent: "toy".to_owned(), instruction: "Mend it.".to_owned(), keys, few_shot }
}

fn tool(name: &str) -> Tool {
    Tool { name: name.to_owned(), description: "runs".to_owned(), parameters: json!({ "type": "object" }) }
}

fn request(messages: &[ChatMessage], tools: &[Tool]) -> ChatRequest {
    ChatRequest { tools: tools.to_vec(), ..ChatRequest::of(messages.to_vec()) }
}

/// A turn with the content `r<number>`.
fn turn(number: u32, calls: &[(&str, &str)]) -> Turn {
    let tool_calls = calls.iter().enumerate().map(|(index, (name, arguments))| ToolCall {
        id: format!("c{number}.{index}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    });
    Turn {
        content: format!("r{number}"),
        tool_calls: tool_calls.collect(),
        call: Key::parse(format!("{number:064x}")).ok(),
        ..Turn::default()
    }
}

/// A conversation in one line for each thread: the roles of openings and observations, the replies,
/// and `/` before a new segment.
fn described(conversation: &Conversation) -> Vec<String> {
    let main = line("main", None, conversation);
    let sides = conversation.threads.iter().map(|side| {
        let parent = side.parent.as_ref().map(|parent| {
            let call = parent.tool_call.as_deref().map(|call| format!(" {call}")).unwrap_or_default();
            format!("<{}.{}{call}>", parent.thread, parent.turn)
        });
        line(side.kind.as_str(), parent, &side.conversation)
    });
    [main].into_iter().chain(sides).collect()
}

fn line(kind: &str, parent: Option<String>, conversation: &Conversation) -> String {
    let letters = |messages: &mut dyn Iterator<Item = Message>| -> String {
        let letter = |message: Message| match message.role {
            Role::System => 's',
            Role::User => 'u',
            Role::Assistant => 'a',
            Role::Tool => 't',
        };
        messages.map(letter).collect()
    };
    let opening = letters(&mut conversation.opening.all().into_iter());
    let mut line = format!("{kind}{} [{opening}]", parent.unwrap_or_default());
    for (number, (turn, seen)) in conversation.turns.iter().zip(&conversation.seen).enumerate() {
        for handed in conversation.handoffs.iter().filter(|handed| handed.handoff.turns == number) {
            let asides = handed.handoff.asides.iter().map(|aside| format!(" ({})", aside.content));
            let context = letters(&mut handed.seen.shown.context.iter().cloned());
            line.push_str(&format!("{} / [{context}]", asides.collect::<String>()));
        }
        line.push_str(&format!(" {}", turn.content));
        if !seen.shown.is_empty() {
            line.push_str(&format!(" [{}]", letters(&mut seen.shown.iter().map(Shown::message))));
        }
    }
    line
}

/// An agent that is played by hand.
struct Played {
    threads: Threads,
    said: u32,
}

impl Played {
    fn new(keys: Keys, few_shot: FewShot) -> Self {
        Self { threads: Threads::new(rules(keys, few_shot)), said: 0 }
    }

    /// Sends a request. The reply calls these functions.
    fn ask(&mut self, key: Option<&str>, messages: &[ChatMessage], tools: &[Tool], calls: &[(&str, &str)]) {
        let request = request(messages, tools);
        let ticket = self.threads.place(key, &request).unwrap();
        self.said += 1;
        self.threads.replied(&ticket, &request, turn(self.said, calls), TurnSeen::default());
    }

    /// The reply as an agent sends it back: other ids, arguments printed anew.
    fn back(number: u32, calls: &[(&str, &str, &str)]) -> ChatMessage {
        let tool_calls = calls.iter().map(|(id, name, arguments)| crate::llm::ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        });
        ChatMessage { tool_calls: tool_calls.collect(), ..ChatMessage::assistant(format!("r{number}")) }
    }

    fn found(self) -> Vec<String> {
        described(&self.threads.finish())
    }
}

const PROMPT: &str = "Look for all places that call it.";
const SPAWN: &str = r#"{"description": "look", "prompt": "Look for all places that call it."}"#;

fn system(text: &str) -> ChatMessage {
    ChatMessage::system(text)
}

fn user(text: &str) -> ChatMessage {
    ChatMessage::user(text)
}

/// F1: opencode and qwen-code print the arguments of calls anew.
#[test]
fn arguments_that_are_printed_anew() {
    let mut agent = Played::new(Keys::None, FewShot::FirstRequest);
    let tools = [tool("bash")];
    let mut messages = vec![system("You work."), user("Mend it.")];
    for number in 1..=3 {
        agent.ask(None, &messages, &tools, &[("bash", r#"{"command": "ls", "timeout": 1.0}"#)]);
        messages.push(Played::back(number, &[("x", "bash", r#"{"timeout":1,"command":"ls"}"#)]));
        messages.push(ChatMessage::tool("x", "a.txt"));
    }
    agent.ask(None, &messages, &tools, &[]);
    assert_eq!(agent.threads.steps(), 4);
    let conversation = agent.threads.finish();
    assert_eq!(described(&conversation), ["main [su] r1 [t] r2 [t] r3 [t] r4"]);
    // The model's own bytes are stored, and plain openings have no second form.
    let first = conversation.turns.first().and_then(|turn| turn.tool_calls.first()).unwrap();
    assert_eq!(
        (first.id.as_str(), first.arguments.as_str()),
        ("c1.0", r#"{"command": "ls", "timeout": 1.0}"#)
    );
    assert_eq!(conversation.seen[0].shown[0].tool_call.as_deref(), Some("c1.0"));
    assert_eq!(conversation.opening.messages, []);
}

/// F2: opencode asks for a title first, and its sub-agent works between two turns of the main
/// thread.
#[test]
fn titles_and_subagents_are_threads_of_their_own() {
    let check = |keys: Keys, title_at: usize| {
        let mut agent = Played::new(keys, FewShot::FirstRequest);
        let (main, sub) = match keys {
            Keys::Header => (Some("ses_1"), Some("ses_2")),
            Keys::None => (None, None),
        };
        let title = |agent: &mut Played, at: usize| {
            if at == title_at {
                agent.ask(main, &[system("You write titles."), user("Title for: Mend it.")], &[], &[]);
            }
        };
        let (tools, less) = ([tool("bash"), tool("task")], [tool("bash")]);
        let mut messages = vec![system("You work."), user("Mend it.")];
        title(&mut agent, 0);
        agent.ask(main, &messages, &tools, &[("task", SPAWN)]);
        let spawned = agent.said;
        title(&mut agent, 1);
        let mut below = vec![system("You search."), user(PROMPT)];
        agent.ask(sub, &below, &less, &[("bash", r#"{"command": "grep it"}"#)]);
        below.push(Played::back(agent.said, &[("y", "bash", r#"{"command":"grep it"}"#)]));
        below.push(ChatMessage::tool("y", "a.c"));
        title(&mut agent, 2);
        agent.ask(sub, &below, &less, &[]);
        let compact = SPAWN.replace("\": ", "\":").replace("\", ", "\",");
        messages.push(Played::back(spawned, &[("x", "task", &compact)]));
        messages.push(ChatMessage::tool("x", "In a.c."));
        agent.ask(main, &messages, &tools, &[]);
        title(&mut agent, 3);
        let steps = agent.threads.steps();
        assert_eq!(steps, 4, "a title is no step");
        agent.found()
    };
    for keys in [Keys::Header, Keys::None] {
        assert_eq!(
            check(keys, 0),
            ["main [su] r2 [t] r5", "auxiliary [su] r1", "subagent<0.0 c2.0> [su] r3 [t] r4"]
        );
        assert_eq!(
            check(keys, 1),
            ["main [su] r1 [t] r5", "auxiliary [su] r2", "subagent<0.0 c1.0> [su] r3 [t] r4"]
        );
        assert_eq!(
            check(keys, 2),
            ["main [su] r1 [t] r5", "subagent<0.0 c1.0> [su] r2 [t] r4", "auxiliary [su] r3"]
        );
        assert_eq!(
            check(keys, 3),
            ["main [su] r1 [t] r4", "subagent<0.0 c1.0> [su] r2 [t] r3", "auxiliary [su] r5"]
        );
    }
}

/// F10: Claude Code sends system messages in the middle, and results in the order in which they
/// came. Its two sub-agents ask at the same time.
#[test]
fn system_messages_keep_their_place() {
    let mut agent = Played::new(Keys::Header, FewShot::Never);
    let tools = [tool("Bash"), tool("Agent")];
    let other = r#"{"prompt": "Look for all places that free it."}"#;
    let mut messages = vec![system("You are an agent."), user("Remember. Mend it."), system("It is 2026.")];
    agent.ask(None, &messages, &tools, &[("Agent", SPAWN), ("Agent", other)]);
    let requests: Vec<_> = [PROMPT, "Look for all places that free it."]
        .iter()
        .map(|prompt| request(&[system("You search."), user(prompt)], &tools[..1]))
        .collect();
    let tickets = ["a1", "a2"].map(|key| {
        let request = if key == "a1" { &requests[0] } else { &requests[1] };
        agent.threads.place(Some(key), request).unwrap()
    });
    agent.threads.replied(&tickets[1], &requests[1], turn(3, &[]), TurnSeen::default());
    agent.threads.replied(&tickets[0], &requests[0], turn(2, &[]), TurnSeen::default());
    agent.said = 3;
    messages.push(Played::back(1, &[("t1", "Agent", SPAWN), ("t2", "Agent", other)]));
    messages.extend([
        ChatMessage::tool("t2", "none"),
        ChatMessage::tool("t1", "a.c"),
        system("<task-notification>"),
    ]);
    agent.ask(None, &messages, &tools, &[("Bash", r#"{"command": "make"}"#)]);
    // The same results, in another order.
    messages.swap(4, 5);
    messages
        .extend([Played::back(4, &[("t3", "Bash", r#"{"command":"make"}"#)]), ChatMessage::tool("t3", "ok")]);
    agent.ask(None, &messages, &tools, &[]);
    assert_eq!(
        agent.found(),
        ["main [sus] r1 [tts] r4 [t] r5", "subagent<0.0 c1.0> [su] r2", "subagent<0.0 c1.1> [su] r3"]
    );
}

/// aider has no tools, begins with examples of its own, and asks for a commit message that quotes
/// the task.
#[test]
fn examples_are_no_replies() {
    let mut agent = Played::new(Keys::None, FewShot::FirstRequest);
    let examples = [
        user("Change x."),
        ChatMessage::assistant("Here: x"),
        user("I switched."),
        ChatMessage::assistant("Ok."),
    ];
    let mut messages = vec![system("You edit.")];
    messages.extend(examples);
    messages.push(user("Mend it."));
    agent.ask(None, &messages, &[], &[]);
    agent.ask(None, &[system("You write commit messages."), user("USER: Mend it.\n+x")], &[], &[]);
    // It has failed checks mended, with another map of the files.
    messages.insert(1, user("Files: a.py"));
    messages.insert(2, ChatMessage::assistant("Ok."));
    messages.extend([Played::back(1, &[]), user("A check failed.")]);
    agent.ask(None, &messages, &[], &[]);
    assert_eq!(agent.threads.steps(), 2);
    assert_eq!(agent.found(), ["main [suauau] r1 / [suauauauau] r3", "auxiliary [su] r2"]);
}

/// A history can end with a request for a summary, or a prompt of its own can ask for it.
#[test]
fn a_summary_begins_a_segment() {
    let summary = "r3";
    let long = "The summary says in many words what was done so far.";
    let check = |beside: bool, expect: &[&str]| {
        let mut agent = Played::new(Keys::Header, FewShot::Never);
        let tools = [tool("Bash")];
        let mut messages = vec![system("You work."), user("Mend it.")];
        for number in 1..=2 {
            agent.ask(None, &messages, &tools, &[("Bash", r#"{"command": "ls"}"#)]);
            messages.push(Played::back(number, &[("x", "Bash", r#"{"command":"ls"}"#)]));
            messages.push(ChatMessage::tool("x", "a.c"));
        }
        messages.push(user("Sum up."));
        let asked = request(&messages, if beside { &[] } else { &tools });
        let ticket = agent.threads.place(None, &asked).unwrap();
        let said = Turn { content: long.to_owned(), ..turn(3, &[]) };
        agent.threads.replied(&ticket, &asked, said, TurnSeen::default());
        agent.said = 3;
        let told = format!("Mend it. You continue: {long}");
        let messages = [system("You work."), user(&told)];
        agent.ask(None, &messages, &tools, &[]);
        let found: Vec<String> = agent.found().iter().map(|line| line.replace(long, summary)).collect();
        assert_eq!(found, expect);
    };
    check(false, &["main [su] r1 [t] r2 [t] (r3) / [su] r4"]);
    check(true, &["main [su] r1 [t] r2 / [su] r4", "auxiliary<0.1> [suatatu] r3"]);
}

/// Other definitions of tools begin a segment, which has its own definitions.
#[test]
fn other_tools_begin_a_segment() {
    let mut agent = Played::new(Keys::None, FewShot::Never);
    let mut messages = vec![system("You work."), user("Mend it.")];
    agent.ask(None, &messages, &[tool("a"), tool("b")], &[("a", "{}")]);
    messages.extend([Played::back(1, &[("x", "a", "{}")]), ChatMessage::tool("x", "ok")]);
    agent.ask(None, &messages, &[tool("b"), tool("a")], &[("a", "{")]);
    messages.extend([Played::back(2, &[("y", "a", "{}")]), ChatMessage::tool("y", "ok")]);
    agent.ask(None, &messages, &[tool("a")], &[]);
    let conversation = agent.threads.finish();
    assert_eq!(described(&conversation), ["main [su] r1 [t] r2 / [suatat] r3"]);
    let tools = conversation.handoffs[0].handoff.tools.as_ref().unwrap();
    assert_eq!((conversation.opening.tools.len(), tools.len()), (2, 1));
    assert_eq!(conversation.opening.messages.len(), 2, "a handoff's messages are exact");
}

/// Agents ask again after an error, a lost connection or a reply that they cannot use.
#[test]
fn discarded_replies_are_kept() {
    let tools = [tool("a")];
    let first = || vec![system("You work."), user("Mend it.")];
    // The same request again; the second reply goes on.
    let mut agent = Played::new(Keys::None, FewShot::Never);
    agent.ask(None, &first(), &tools, &[("a", "{}")]);
    agent.ask(None, &first(), &tools, &[("a", "{}")]);
    let mut messages = first();
    messages.extend([Played::back(2, &[("x", "a", "{}")]), ChatMessage::tool("x", "ok")]);
    agent.ask(None, &messages, &tools, &[]);
    assert_eq!(agent.threads.steps(), 3);
    assert_eq!(agent.found(), ["main [su] r2 [t] r3", "superseded<0.0> [su] r1"]);
    // The same again, and the first reply goes on.
    let mut agent = Played::new(Keys::None, FewShot::Never);
    agent.ask(None, &first(), &tools, &[("a", "{}")]);
    agent.ask(None, &first(), &tools, &[("a", "{}")]);
    let mut messages = first();
    messages.extend([Played::back(1, &[("x", "a", "{}")]), ChatMessage::tool("x", "ok")]);
    agent.ask(None, &messages, &tools, &[]);
    assert_eq!(agent.found(), ["main [su] r1 [t] r3", "superseded<0.0> [su] r2"]);
    // A reply in no valid format is left out, and the model is told.
    let mut agent = Played::new(Keys::None, FewShot::Never);
    agent.ask(None, &first(), &tools, &[("a", "{}")]);
    messages = first();
    messages.extend([Played::back(1, &[("x", "a", "{}")]), ChatMessage::tool("x", "ok")]);
    agent.ask(None, &messages, &tools, &[]);
    messages.push(user("Call a function."));
    agent.ask(None, &messages, &tools, &[]);
    assert_eq!(agent.found(), ["main [su] r1 [tu] r3", "superseded<0.1> [suat] r2"]);
    // A request that failed is completed by the next.
    let mut agent = Played::new(Keys::None, FewShot::Never);
    agent.ask(None, &first(), &tools, &[("a", "{}")]);
    let mut messages = first();
    messages.extend([Played::back(1, &[("x", "a", "{}")]), ChatMessage::tool("x", "ok")]);
    let ticket = agent.threads.place(None, &request(&messages, &tools)).unwrap();
    agent.threads.abandoned(&ticket);
    messages.push(user("Go on."));
    agent.ask(None, &messages, &tools, &[]);
    assert_eq!(agent.found(), ["main [su] r1 [tu] r2"]);
}

#[test]
fn messages_that_no_model_wrote_are_an_error() {
    let check = |few_shot: FewShot, messages: &[ChatMessage], tools: &[Tool], expect: bool| {
        let mut agent = Played::new(Keys::None, few_shot);
        agent.ask(None, &[system("You work."), user("Mend it.")], &[tool("a")], &[("a", "{}")]);
        let placed = agent.threads.place(None, &request(messages, tools));
        assert_eq!(placed.is_ok(), expect, "{few_shot:?} {messages:?}");
        if let Err(error) = placed {
            let message = error.to_string();
            assert!(message.contains("`toy`") && message.contains("message 3"), "{message}");
        }
    };
    let history =
        |reply: ChatMessage| vec![system("You work."), user("Mend it."), reply, ChatMessage::tool("x", "ok")];
    let tools = [tool("a")];
    for few_shot in [FewShot::Never, FewShot::FirstRequest, FewShot::EachThread] {
        check(few_shot, &history(Played::back(1, &[("x", "a", "{}")])), &tools, true);
        check(few_shot, &history(Played::back(2, &[("x", "a", "{}")])), &tools, false);
        check(few_shot, &history(Played::back(1, &[("x", "b", "{}")])), &tools, false);
        check(few_shot, &history(Played::back(1, &[("x", "a", r#"{"b":1}"#)])), &tools, false);
        check(few_shot, &history(Played::back(1, &[])), &tools, false);
        check(few_shot, &history(ChatMessage::assistant("Never said.")), &[tool("b")], false);
        let mut added = history(Played::back(1, &[("x", "a", "{}")]));
        added.insert(2, ChatMessage::assistant("Never said."));
        check(few_shot, &added, &tools, false);
    }
    let example = [system("You judge."), user("An example."), ChatMessage::assistant("Yes."), user("Judge.")];
    check(FewShot::Never, &example, &[], false);
    check(FewShot::FirstRequest, &example, &[], false);
    check(FewShot::EachThread, &example, &[], true);
    let mut agent = Played::new(Keys::None, FewShot::FirstRequest);
    agent.ask(None, &example, &[], &[]);
    assert_eq!(agent.found(), ["main [suau] r1"]);
}

#[test]
fn sites_depend_on_the_request_alone() {
    let of = |messages: &[ChatMessage], tools: &[Tool]| Threads::site(&request(messages, tools));
    let first = of(&[user("a")], &[]);
    assert_eq!(first.depth, 0);
    assert_eq!(first, of(&[user("a ")], &[]));
    assert_ne!(first, of(&[user("b")], &[]));
    assert_ne!(first, of(&[user("a")], &[tool("a")]));
    assert_eq!(of(&[user("a"), Played::back(1, &[]), user("b")], &[]).depth, 1);
}

/// One step of a simulated agent. Numbers choose among its conversations.
#[derive(Clone, Debug)]
enum Op {
    /// A conversation goes on. Its reply calls so many functions.
    Work {
        conversation: usize,
        calls: usize,
    },
    /// Two conversations ask at once, and the second is answered first.
    Both {
        one: usize,
        other: usize,
    },
    /// A call begins a sub-agent.
    Spawn,
    Title,
    /// A request is sent again, since its reply was lost.
    Retry {
        conversation: usize,
    },
    /// The history is replaced by a summary.
    Compact {
        conversation: usize,
    },
    /// A system message.
    Notice {
        conversation: usize,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let any = 0..8_usize;
    let op = prop_oneof![
        6 => (any.clone(), 0..4_usize).prop_map(|(conversation, calls)| Op::Work { conversation, calls }),
        2 => (any.clone(), any.clone()).prop_map(|(one, other)| Op::Both { one, other }),
        2 => Just(Op::Spawn),
        1 => Just(Op::Title),
        1 => any.clone().prop_map(|conversation| Op::Retry { conversation }),
        1 => any.clone().prop_map(|conversation| Op::Compact { conversation }),
        1 => any.prop_map(|conversation| Op::Notice { conversation }),
    ];
    proptest::collection::vec(op, 1..24)
}

/// A conversation as a simulated agent holds it.
struct Held {
    key: Option<String>,
    messages: Vec<ChatMessage>,
    tools: Vec<Tool>,
    /// Number of the messages that a summary keeps.
    kept: usize,
}

struct Simulated {
    threads: Threads,
    keys: Keys,
    held: Vec<Held>,
    said: u32,
    /// The messages of each reply's request.
    asked: Vec<Vec<ChatMessage>>,
}

impl Simulated {
    fn new(keys: Keys, few_shot: FewShot) -> Self {
        let mut agent = Self {
            threads: Threads::new(rules(keys, few_shot)),
            keys,
            held: Vec::new(),
            said: 0,
            asked: Vec::new(),
        };
        agent.begin("You work.", "Mend it.");
        agent
    }

    fn begin(&mut self, system: &str, prompt: &str) -> usize {
        let number = self.held.len();
        let key = (self.keys == Keys::Header && number > 0).then(|| format!("agent-{number}"));
        let messages = vec![ChatMessage::system(system), ChatMessage::user(prompt)];
        self.held.push(Held { key, messages, tools: vec![tool("run"), tool("task")], kept: 2 });
        number
    }

    fn request(&self, conversation: usize) -> ChatRequest {
        let held = &self.held[conversation];
        request(&held.messages, &held.tools)
    }

    fn placed(&mut self, conversation: usize) -> (ChatRequest, Ticket) {
        let request = self.request(conversation);
        let ticket = self.threads.place(self.held[conversation].key.as_deref(), &request).unwrap();
        (request, ticket)
    }

    /// A reply, and the message with which the agent repeats it.
    fn answered(&mut self, request: &ChatRequest, ticket: &Ticket, calls: &[(&str, String)]) -> ChatMessage {
        let number = self.said;
        self.said += 1;
        self.asked.push(request.messages.clone());
        let calls: Vec<(&str, &str)> = calls.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let turn = Turn { reasoning: Some(format!("why {number}")), ..turn(number, &calls) };
        self.threads.replied(ticket, request, turn, TurnSeen::default());
        let mut tool_calls: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(index, (name, arguments))| crate::llm::ToolCall {
                id: format!("own-{number}-{index}"),
                name: (*name).to_owned(),
                arguments: serde_json::from_str::<serde_json::Value>(arguments)
                    .unwrap_or(json!({}))
                    .to_string(),
            })
            .collect();
        if number.is_multiple_of(2) {
            tool_calls.reverse();
        }
        let reasoning = number.is_multiple_of(3).then(|| format!("why {number}\n"));
        ChatMessage { reasoning, tool_calls, ..ChatMessage::assistant(format!("r{number}\n")) }
    }

    /// The agent takes a reply, and has results or a message of its user.
    fn take(&mut self, conversation: usize, reply: ChatMessage) {
        let said = self.said;
        let mut results: Vec<_> = reply
            .tool_calls
            .iter()
            .map(|call| ChatMessage::tool(call.id.clone(), format!("result of {}", call.arguments)))
            .collect();
        if said % 2 == 1 {
            results.reverse();
        }
        let next = results.is_empty().then(|| ChatMessage::user(format!("next {said}")));
        let held = &mut self.held[conversation];
        held.messages.push(reply);
        held.messages.extend(results);
        held.messages.extend(next);
    }

    fn calls(&self, count: usize) -> Vec<(&'static str, String)> {
        let call = |index: usize| match index {
            1 => ("run", "{\"command\": \"cut off".to_owned()),
            _ => ("run", format!(r#"{{"timeout": 1.0, "command": "run {} of {}"}}"#, index, self.said)),
        };
        (0..count).map(call).collect()
    }

    fn step(&mut self, op: &Op) {
        let any = |number: usize| number % self.held.len();
        match *op {
            Op::Work { conversation, calls } => {
                let conversation = any(conversation);
                let (request, ticket) = self.placed(conversation);
                let calls = self.calls(calls);
                let reply = self.answered(&request, &ticket, &calls);
                self.take(conversation, reply);
            }
            Op::Both { one, other } => {
                let (one, other) = (any(one), any(other));
                if one == other {
                    return;
                }
                let (first, second) = (self.placed(one), self.placed(other));
                let calls = self.calls(1);
                let later = self.answered(&second.0, &second.1, &calls);
                self.take(other, later);
                let calls = self.calls(2);
                let sooner = self.answered(&first.0, &first.1, &calls);
                self.take(one, sooner);
            }
            Op::Spawn => {
                let (request, ticket) = self.placed(0);
                let prompt = format!("Look into part {} of all.", self.said);
                let calls = [("task", json!({ "prompt": &prompt }).to_string())];
                let reply = self.answered(&request, &ticket, &calls);
                let below = self.begin("You search.", &prompt);
                let (request, ticket) = self.placed(below);
                let calls = self.calls(1);
                let said = self.answered(&request, &ticket, &calls);
                self.take(below, said);
                self.take(0, reply);
            }
            Op::Title => {
                let prompt = format!("Title {} for: Mend it.", self.said);
                let titled =
                    request(&[ChatMessage::system("You write titles."), ChatMessage::user(prompt)], &[]);
                let ticket = self.threads.place(None, &titled).unwrap();
                self.answered(&titled, &ticket, &[]);
            }
            Op::Retry { conversation } => {
                let conversation = any(conversation);
                let (request, ticket) = self.placed(conversation);
                self.answered(&request, &ticket, &[]);
                let (request, ticket) = self.placed(conversation);
                let calls = self.calls(1);
                let reply = self.answered(&request, &ticket, &calls);
                self.take(conversation, reply);
            }
            Op::Compact { conversation } => {
                let conversation = any(conversation);
                let summary = format!("You continue. Summary {}.", self.said);
                let held = &mut self.held[conversation];
                held.messages.truncate(held.kept);
                held.messages.push(ChatMessage::user(summary));
            }
            Op::Notice { conversation } => {
                let conversation = any(conversation);
                let notice = ChatMessage::system(format!("notice {}", self.said));
                self.held[conversation].messages.push(notice);
            }
        }
    }
}

/// The number of each reply in a conversation, with the messages before it.
fn histories(conversation: &Conversation) -> Vec<(u32, Vec<Message>)> {
    let number = |content: &str| content.trim_start_matches('r').parse().unwrap();
    let mut found = Vec::new();
    let mut messages = conversation.opening.all();
    for (at, (turn, seen)) in conversation.turns.iter().zip(&conversation.seen).enumerate() {
        for handed in conversation.handoffs.iter().filter(|handed| handed.handoff.turns == at) {
            assert_eq!(handed.handoff.asides, []);
            messages.clone_from(&handed.seen.shown.context);
        }
        found.push((number(&turn.content), messages.clone()));
        messages.push(Message::of(turn));
        messages.extend(seen.shown.iter().map(Shown::message));
    }
    found
}

fn sent(message: &Message) -> ChatMessage {
    let role = match message.role {
        Role::System => ChatRole::System,
        Role::User => ChatRole::User,
        Role::Assistant => ChatRole::Assistant,
        Role::Tool => ChatRole::Tool,
    };
    let tool_calls = message.tool_calls.iter().map(|call| crate::llm::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    ChatMessage {
        reasoning: message.reasoning.clone(),
        tool_calls: tool_calls.collect(),
        tool_call_id: message.tool_call.clone(),
        ..ChatMessage::text(role, message.content.clone())
    }
}

fn keys() -> impl Strategy<Value = Keys> {
    prop_oneof![Just(Keys::Header), Just(Keys::None)]
}

fn few_shot() -> impl Strategy<Value = FewShot> {
    prop_oneof![Just(FewShot::Never), Just(FewShot::FirstRequest), Just(FewShot::EachThread)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every reply is in one thread, once, in order, after exactly the messages of its request.
    #[test]
    fn every_reply_is_recorded_with_its_history(ops in ops(), keys in keys(), few_shot in few_shot()) {
        let mut agent = Simulated::new(keys, few_shot);
        ops.iter().for_each(|op| agent.step(op));
        let Simulated { threads, said, asked, .. } = agent;
        let conversation = threads.finish();
        let sides = conversation.threads.iter().map(|side| &side.conversation);
        let mut all = Vec::new();
        for thread in [&conversation].into_iter().chain(sides) {
            let histories = histories(thread);
            let numbers: Vec<u32> = histories.iter().map(|(number, _)| *number).collect();
            prop_assert!(numbers.is_sorted(), "{numbers:?}");
            for (number, messages) in histories {
                let recorded: Vec<_> = messages.iter().map(sent).collect();
                let (one, other) = (units(&recorded), units(&asked[number as usize]));
                prop_assert_eq!(canonical::common(&one, &other), one.len().max(other.len()), "reply {}", number);
                all.push(number);
            }
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..said).collect::<Vec<_>>());
        if said > 0 && ops.iter().all(|op| matches!(op, Op::Work { .. } | Op::Spawn | Op::Title | Op::Notice { .. })) {
            let kinds: Vec<_> = conversation.threads.iter().map(|side| side.kind).collect();
            let count = |kind: ThreadKind| kinds.iter().filter(|found| **found == kind).count();
            let made = |is: fn(&Op) -> bool| ops.iter().filter(|op| is(op)).count();
            prop_assert_eq!(count(ThreadKind::Superseded), 0);
            prop_assert!(count(ThreadKind::Subagent) <= made(|op| matches!(op, Op::Spawn)));
            if ops.iter().any(|op| matches!(op, Op::Work { .. } | Op::Spawn)) {
                prop_assert_eq!(count(ThreadKind::Auxiliary), made(|op| matches!(op, Op::Title)));
            }
        }
    }

    /// A changed reply in a history is always found.
    #[test]
    fn tampering_is_found(ops in ops(), keys in keys(), few_shot in few_shot(), at in 0..1_000_usize, how in 0..4) {
        let mut agent = Simulated::new(keys, few_shot);
        ops.iter().for_each(|op| agent.step(op));
        let replies: Vec<(usize, usize)> = agent.held.iter().enumerate().flat_map(|(conversation, held)| {
            let messages = held.messages.iter().enumerate();
            let assistants = messages.filter(|(_, message)| message.role == ChatRole::Assistant);
            assistants.map(move |(at, _)| (conversation, at)).collect::<Vec<_>>()
        }).collect();
        prop_assume!(!replies.is_empty());
        let (conversation, at) = replies[at % replies.len()];
        let mut request = agent.request(conversation);
        let message = &mut request.messages[at];
        match how {
            0 => message.content = "I have never said this.".to_owned(),
            1 => message.tool_calls.push(crate::llm::ToolCall {
                id: "new".to_owned(),
                name: "run".to_owned(),
                arguments: "{\"command\":\"never called\"}".to_owned(),
            }),
            2 => message.reasoning = Some("I have never thought this.".to_owned()),
            _ => request.messages.insert(at + 1, ChatMessage::assistant("I have never said this.")),
        }
        prop_assert!(agent.threads.place(agent.held[conversation].key.as_deref(), &request).is_err());
    }
}
