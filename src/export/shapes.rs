//! Rollouts of every form, for tests of file formats. `tests/fast` includes this file too.

use serde_json::json;

use super::fixture::{CHECKS, rollout, unmeasured};
use crate::model::{
    Act, Actor, Arm, Aside, AsideKind, CallDetail, End, ForkPoint, Handoff, HandoffShown, Key, Message,
    ModelActor, Origin, Role, Rollout, Round, Sender, ShellOutcome, Shown, Thread, ThreadKind, ThreadParent,
    ThreadShown, Tokens, ToolCall, ToolDefinition, Turn, TurnKind,
};

/// Characters that have broken a reader or a quoting rule before.
const AWKWARD: &str =
    "quote \" backslash \\ newline\ntab\tescape \u{1b}[31m emoji 🦀 line separator \u{2028} </think> ]]> end";

/// One rollout of each form, with a name.
pub(crate) fn shapes() -> Vec<(&'static str, Rollout)> {
    vec![
        ("scripted", rollout("games", 0, 0, 2, CHECKS)),
        ("text", by_model(rollout("games", 1, 0, 2, 6))),
        ("calls", calls()),
        ("terminus", terminus()),
        ("rounds", rounds()),
        ("asked", asked()),
        ("fork", fork()),
        ("step-limit", step_limit()),
        ("awkward", awkward()),
        ("unmeasured", unmeasured(by_model(rollout("games", 8, 0, 1, 0)))),
        ("empty", empty()),
        ("imported", imported()),
        ("summarised", summarised()),
        ("summarised-terminus", summarised_terminus()),
        ("two-steps", two_steps()),
        ("sub-agents", sub_agents()),
    ]
}

/// Invented details for each model call in [`shapes`].
pub(crate) fn detail(call: &Key) -> Option<CallDetail> {
    let number = u32::from(*call.as_str().as_bytes().last()?);
    Some(CallDetail {
        prompt_token_ids: Some(vec![1, 2, number]),
        completion_token_ids: Some(vec![number, 0]),
        logprobs: Some(vec![-0.25, -1.5]),
        usd: Some(0.0125),
    })
}

/// The rollout, as if a reasoning model had acted in it.
fn by_model(mut rollout: Rollout) -> Rollout {
    let record = &mut rollout.record;
    record.actor = Actor::Model(ModelActor {
        model: "small-model".to_owned(),
        endpoint: "local".to_owned(),
        arm: Arm::Base,
        adversary: None,
        program: None,
    });
    for (number, turn) in record.turns.iter_mut().enumerate() {
        turn.reasoning = Some(format!("I think of step {number}."));
        turn.usage = Some(Tokens { prompt: 100 + number as u64, completion: 10 });
        turn.call = Some(Key::parse(format!("{number:064x}")).unwrap());
    }
    rollout
}

fn with_turns(mut rollout: Rollout, scaffold: &str, turns: Vec<(Turn, Vec<Shown>)>) -> Rollout {
    rollout.record.scaffold = scaffold.to_owned();
    (rollout.record.turns, rollout.shown) = turns.into_iter().unzip();
    by_model(rollout)
}

fn calls() -> Rollout {
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let answer = |id: &str, text: &str| Shown::result(id, text);
    let ran =
        |command: &str| Act::Command { command: command.to_owned(), outcome: Some(ShellOutcome::Exited(0)) };
    let two = Turn {
        content: "Two at once.".to_owned(),
        tool_calls: vec![
            call("a1", "bash", r#"{"command": "ls", "timeout": 5}"#),
            call("a2", "bash", r#"{"command":"pwd"}"#),
        ],
        acts: vec![ran("ls"), ran("pwd")],
        ..Turn::default()
    };
    let bad = Turn {
        tool_calls: vec![call("b1", "bash", "{\"command\": ")],
        kind: TurnKind::Malformed,
        ..Turn::default()
    };
    let nothing = Turn { content: " ".to_owned(), kind: TurnKind::Malformed, ..Turn::default() };
    let done = Turn { content: "Done.".to_owned(), kind: TurnKind::Submitted, ..Turn::default() };
    let turns = vec![
        (two, vec![answer("a1", "src\n[exit status 0]"), answer("a2", "/app\n[exit status 0]")]),
        (bad, vec![answer("b1", "the arguments are not what `bash` takes")]),
        (nothing, vec![Shown::text("the message was not used: it is empty")]),
        (done, Vec::new()),
    ];
    let mut rollout = with_turns(rollout("games", 2, 0, 0, CHECKS), "bash", turns);
    rollout.record.tools = vec![ToolDefinition {
        name: "bash".to_owned(),
        description: "Runs a command.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "command": { "type": "string" } } }),
    }];
    rollout
}

fn terminus() -> Rollout {
    let keys = |keys: &str| Act::Keys { keys: keys.to_owned() };
    let acted = Turn {
        content: r#"{"analysis":"A","plan":"B","commands":[{"keystrokes":"ls\n","duration":0.1},{"keystrokes":"C-c"}]}"#
            .to_owned(),
        acts: vec![keys("ls\n"), keys("C-c")],
        ..Turn::default()
    };
    let malformed = Turn { content: "no JSON".to_owned(), kind: TurnKind::Malformed, ..Turn::default() };
    let complete = r#"{"analysis":"A","plan":"B","commands":[],"task_complete":true}"#.to_owned();
    let claimed = Turn { content: complete.clone(), kind: TurnKind::Claimed, ..Turn::default() };
    let submitted = Turn { content: complete, kind: TurnKind::Submitted, ..Turn::default() };
    let turns = vec![
        (acted, vec![Shown::text("New Terminal Output:\nroot@box:/app# ls\nsrc")]),
        (malformed, vec![Shown::text("Previous response had parsing errors:\nERROR: No valid JSON found")]),
        (claimed, vec![Shown::text("Are you sure you want to mark the task as complete?")]),
        (submitted, Vec::new()),
    ];
    let mut rollout = with_turns(rollout("games", 3, 0, 0, CHECKS), "terminus-json", turns);
    rollout.record.system.clear();
    rollout
}

fn rounds() -> Rollout {
    let mut rollout = by_model(rollout("games", 4, 0, 3, 7));
    let failed = rollout.record.verdict.clone();
    let record = &mut rollout.record;
    record.turns[1].kind = TurnKind::Submitted;
    record.turns[1].acts.clear();
    rollout.shown[1] = vec![Shown::text("`test_7` failed: the total is wrong. Go on.")];
    record.rounds = vec![Round { turns: 2, verdict: failed }];
    rollout
}

fn asked() -> Rollout {
    let mut rollout = by_model(rollout("games", 5, 0, 2, CHECKS));
    rollout.record.turns[0].kind = TurnKind::Asked;
    rollout.record.turns[0].acts.clear();
    rollout.shown[0] = vec![Shown::text("Look at the third column.")];
    rollout
}

fn fork() -> Rollout {
    let mut rollout = by_model(rollout("games", 6, 1, 3, 2));
    rollout.record.fork = Some(ForkPoint { parent: "0000000600000000".to_owned(), turns: 2 });
    rollout
}

fn step_limit() -> Rollout {
    let mut rollout = by_model(rollout("games", 7, 0, 3, 0));
    rollout.record.turns.pop();
    rollout.shown.pop();
    rollout.record.end = End::StepLimit;
    rollout.record.turns[2].acts = vec![Act::Command { command: "boom".to_owned(), outcome: None }];
    rollout.record.turns[2].cut_off = true;
    rollout
}

fn awkward() -> Rollout {
    let mut rollout = by_model(rollout("games", 9, 0, 1, CHECKS));
    rollout.record.turns[0].content = AWKWARD.to_owned();
    rollout.record.turns[0].acts =
        vec![Act::Command { command: AWKWARD.to_owned(), outcome: Some(ShellOutcome::ShellDied(9)) }];
    rollout.shown[0][0].content = AWKWARD.to_owned();
    rollout
}

fn empty() -> Rollout {
    let mut rollout = unmeasured(rollout("games", 10, 0, 0, 0));
    rollout.record.turns.clear();
    rollout.shown.clear();
    rollout
}

fn imported() -> Rollout {
    let mut rollout = by_model(rollout("games", 11, 0, 1, CHECKS));
    rollout.record.actor = Actor::Imported(Origin {
        agent: "terminus-2".to_owned(),
        agent_version: None,
        model: Some("far-model".to_owned()),
        format: "ATIF-v1.6".to_owned(),
        source: "00".repeat(32),
    });
    rollout.record.end = End::Imported;
    rollout
}

/// An agent program that gave two parts of its work to sub-agents, one of which began another one.
/// It also asked for a title, and discarded a reply.
fn sub_agents() -> Rollout {
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let said = |content: &str, tool_calls: Vec<ToolCall>| Turn {
        content: content.to_owned(),
        tool_calls,
        usage: Some(Tokens { prompt: 7, completion: 3 }),
        ..Turn::default()
    };
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("The function {name}."),
        parameters: json!({ "type": "object" }),
    };
    let done = Turn { kind: TurnKind::Submitted, ..said("All is done.", Vec::new()) };
    let event = Shown { sender: Sender::System, ..Shown::text("The second agent has ended.") };
    let two = vec![
        call("t1", "agent", r#"{"kind":"explore","prompt":"count"}"#),
        call("t2", "agent", r#"{"prompt":"sum"}"#),
    ];
    let turns = vec![
        (said("", two), vec![Shown::result("t2", "begun"), Shown::result("t1", "There are 3."), event]),
        (done, Vec::new()),
    ];
    let mut rollout = with_turns(rollout("games", 15, 0, 0, CHECKS), "command", turns);
    rollout.record.tools = vec![tool("agent")];
    let opening = |prompt: &str| {
        vec![Message::text(Role::System, "You are a helper."), Message::text(Role::User, prompt)]
    };
    let parent = |thread, turn, call: Option<&str>| {
        Some(ThreadParent { thread, turn, tool_call: call.map(str::to_owned) })
    };
    let thread = |kind, parent, prompt: &str, tools: &[&str], turns: Vec<Turn>| Thread {
        kind,
        parent,
        opening: opening(prompt),
        tools: tools.iter().map(|name| tool(name)).collect(),
        turns,
        handoffs: Vec::new(),
    };
    use ThreadKind::{Auxiliary, Subagent, Superseded};
    let counted = vec![
        said("", vec![call("c1", "shell", r#"{"timeout":5,"command":"ls | wc -l"}"#)]),
        said("There are 3.", Vec::new()),
    ];
    rollout.record.threads = vec![
        thread(Auxiliary, None, "Name this session.", &[], vec![said("Counting files", Vec::new())]),
        thread(Subagent, parent(0, 0, Some("t1")), "count", &["shell"], counted),
        thread(
            Subagent,
            parent(0, 0, Some("t2")),
            "sum",
            &["agent"],
            vec![said("", vec![call("d1", "agent", r#"{"prompt":"add"}"#)]), said("It is 6.", Vec::new())],
        ),
        thread(Subagent, parent(3, 0, Some("d1")), "add", &[], vec![said("6", Vec::new())]),
        thread(Superseded, parent(0, 1, None), "go on", &["agent"], vec![said("Discarded.", Vec::new())]),
    ];
    let ends = |shown: Vec<Shown>| ThreadShown { shown: vec![shown, Vec::new()], handoffs: Vec::new() };
    let only = || ThreadShown { shown: vec![Vec::new()], handoffs: Vec::new() };
    rollout.threads = vec![
        only(),
        ends(vec![Shown::result("c1", "3")]),
        ends(vec![Shown::result("d1", "6")]),
        only(),
        only(),
    ];
    rollout
}

fn aside(kind: AsideKind, content: &str) -> Aside {
    Aside {
        kind,
        content: content.to_owned(),
        reasoning: Some("I sum up.".to_owned()),
        call: Key::parse(format!("{:064x}", 0xa0 + kind as usize)).unwrap(),
        usage: Some(Tokens { prompt: 400, completion: 40 }),
    }
}

/// A rollout that was summarised twice. The second summary did not read the last turn.
fn summarised() -> Rollout {
    let mut rollout = by_model(rollout("games", 12, 0, 5, CHECKS));
    let user = |content: &str| Message::text(Role::User, content);
    let handoff = |turns, unread, content| Handoff {
        turns,
        unread,
        asides: vec![aside(AsideKind::Summary, content)],
        ..Handoff::default()
    };
    let read = |content: &str| HandoffShown {
        prompts: vec!["Write down what matters.".to_owned()],
        context: vec![user(content)],
    };
    rollout.record.handoffs = vec![handoff(2, 0, "Two parts are read."), handoff(4, 1, "Three are.")];
    rollout.handoffs = vec![read("The task. Two parts are read."), read("The task. Three are.")];
    rollout
}

fn summarised_terminus() -> Rollout {
    let mut rollout = terminus();
    rollout.id = "0000000d00000000".to_owned();
    let message = |role, content: &str| Message::text(role, content);
    rollout.record.handoffs = vec![Handoff {
        turns: 2,
        asides: vec![
            aside(AsideKind::Summary, "I listed the folder."),
            aside(AsideKind::Questions, "1. What is in src?"),
            aside(AsideKind::Answers, "1. Nothing yet."),
        ],
        ..Handoff::default()
    }];
    rollout.handoffs = vec![HandoffShown {
        prompts: vec!["Sum up.".to_owned(), "Ask.".to_owned(), "Answer: 1. What is in src?".to_owned()],
        context: vec![
            message(Role::User, &rollout.record.prompt),
            message(Role::User, "Ask."),
            message(Role::Assistant, "1. What is in src?"),
            message(Role::User, "The answers: 1. Nothing yet."),
        ],
    }];
    rollout
}

fn two_steps() -> Rollout {
    let mut rollout = by_model(rollout("games", 14, 0, 3, CHECKS));
    rollout.record.turns[1].kind = TurnKind::Submitted;
    rollout.record.turns[1].acts.clear();
    rollout.shown[1].clear();
    rollout.record.handoffs = vec![Handoff { turns: 2, step: Some("pick".to_owned()), ..Handoff::default() }];
    rollout.handoffs =
        vec![HandoffShown { prompts: Vec::new(), context: vec![Message::text(Role::User, "Now pick one.")] }];
    rollout
}
