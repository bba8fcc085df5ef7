//! Scaffolds on the process engine: the limits in their texts, the actions that they refuse, and a
//! scaffold that this test defines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use termsmith::agent::terminal::Wake;
use termsmith::agent::{
    ActSeen, AgentError, AssistantMessage, Conversation, Deadline, Driver, Ended, EpisodeContext, HandedOff,
    Hooks, Machine, NoTurnLog, Opening, Policy, Protocol, SCAFFOLDS, Scaffold, ScaffoldEntry, ScaffoldError,
    ScaffoldOptions, Session, Step, StepLimits, TurnLog, TurnSeen, run_episode,
};
use termsmith::assets::Assets;
use termsmith::model::{Act, Assume, End, Shown, ToolCall, Turn, TurnKind};
use termsmith::sandbox::{ExecLimit, Sandbox};
use termsmith::store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::support::engine::{launch, process, run};

/// Longer than any command in this file.
const LONG: Duration = Duration::from_secs(60);
/// Larger than a command may be.
const TOO_LONG: usize = 2 << 20;

/// A policy that sends these messages, one in each turn.
pub(crate) struct Messages(pub(crate) VecDeque<AssistantMessage>);

impl Policy for Messages {
    async fn next(&mut self, _: &Conversation) -> Result<AssistantMessage, AgentError> {
        Ok(self.0.pop_front().unwrap_or_default())
    }
}

fn limits() -> StepLimits {
    StepLimits { turns: 9, ..StepLimits::scripted(LONG) }
}

pub(crate) fn scaffold(option: &str) -> Arc<dyn Scaffold> {
    let entry = SCAFFOLDS.iter().find(|entry| entry.option == option).unwrap();
    let options = ScaffoldOptions { wake: Wake::WhenDone, command: Some("true".to_owned()) };
    (entry.load)(&Assets::embedded(), &options).unwrap()
}

fn context<'a>(sandbox: &'a Sandbox, limits: &'a StepLimits) -> EpisodeContext<'a> {
    EpisodeContext {
        sandbox,
        env: &[],
        limits,
        deadline: Deadline::after(LONG, sandbox.clock().clone()),
        assume: Assume::Nothing,
        machine: Machine::Fresh,
        drain: CancellationToken::new(),
    }
}

/// Runs `messages` in a fresh sandbox, after the recorded turns of `conversation`.
async fn run_messages(
    scaffold: &dyn Scaffold,
    messages: Vec<AssistantMessage>,
    conversation: &mut Conversation,
) -> Ended {
    let sandbox = launch(&process()).await;
    let limits = limits();
    let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has a loop of its own") };
    let (mut log, mut policy) = (NoTurnLog, Messages(messages.into()));
    let (episode, hooks) = (context(&sandbox, &limits), Hooks::none(&mut log));
    run_episode(protocol, &mut policy, conversation, "Do it.", &episode, hooks).await.unwrap()
}

/// A message that runs `command`, for the scaffold `option`.
pub(crate) fn message(option: &str, command: &str) -> AssistantMessage {
    let (content, tool_calls) = match option {
        "bash" => {
            let arguments = serde_json::json!({ "command": command }).to_string();
            let call = ToolCall { id: "1".to_owned(), name: "bash".to_owned(), arguments };
            ("Next.".to_owned(), vec![call])
        }
        "bash-block" => (format!("Next.\n\n```bash\n{command}\n```"), Vec::new()),
        "react" => (format!("Thought: next\nAction: {command}"), Vec::new()),
        other => panic!("no message is written for `{other}`"),
    };
    AssistantMessage { content, tool_calls, ..AssistantMessage::default() }
}

fn shown(conversation: &Conversation, turn: usize) -> String {
    conversation.seen[turn].shown.iter().map(|shown| shown.content.as_str()).collect()
}

#[test]
fn texts_state_the_limits_that_are_enforced() {
    run(async {
        let sandbox = launch(&process()).await;
        let limits = StepLimits {
            turns: 13,
            command: Duration::from_secs(37),
            output_bytes: 4_321,
            reply_tokens: Some(987),
            ..limits()
        };
        for option in ["bash", "bash-block", "react"] {
            let check = async |limits: &StepLimits, expect: &[&str], never: &[&str]| {
                let scaffold = scaffold(option);
                let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has its own loop") };
                let context = context(&sandbox, limits);
                let (_, opening) = protocol.open(&context, "Do it.").await.unwrap();
                for text in expect {
                    assert!(opening.system.contains(text), "{option}, `{text}`: {}", opening.system);
                }
                for text in never {
                    assert!(!opening.system.contains(text), "{option}, `{text}`: {}", opening.system);
                }
                for tool in &opening.tools {
                    let parameters = tool.parameters.to_string();
                    assert!(tool.description.contains("37 seconds"), "{}", tool.description);
                    assert!(tool.description.contains("4321 bytes"), "{}", tool.description);
                    assert!(parameters.contains("default and maximum: 37"), "{parameters}");
                }
            };
            let always =
                ["37 seconds", "killed", "4321 bytes", "middle of a longer output is omitted", "13 replies"];
            check(&limits, &always, &[]).await;
            check(&limits, &["987 tokens", "A longer one is cut off"], &[]).await;
            check(&StepLimits { reply_tokens: None, ..limits }, &always, &["tokens", "cut off"]).await;
        }
    });
}

#[test]
fn a_command_that_cannot_be_sent_is_a_malformed_action() {
    run(async {
        for option in ["bash", "bash-block", "react"] {
            let check = async |command: &str, expect: &str| {
                let scaffold = scaffold(option);
                let mut conversation = Conversation::default();
                let messages = || vec![message(option, command), message(option, "echo still $((40 + 2))")];
                let ended = run_messages(&*scaffold, messages(), &mut conversation).await;
                assert_eq!((ended.end, ended.cause.as_str()), (End::StepLimit, ""), "{option}");
                let kinds: Vec<_> = conversation.turns.iter().map(|turn| turn.kind).take(2).collect();
                assert_eq!(kinds, [TurnKind::Malformed, TurnKind::Acted], "{option}");
                assert!(conversation.turns[0].acts.is_empty(), "{option}");
                assert!(shown(&conversation, 0).contains(expect), "{option}: {}", shown(&conversation, 0));
                assert!(
                    shown(&conversation, 1).contains("still 42"),
                    "{option}: {}",
                    shown(&conversation, 1)
                );
                // The recorded turns have the same effects in another sandbox.
                conversation.turns.truncate(2);
                conversation.seen.truncate(2);
                let again =
                    run_messages(&*scaffold, vec![message(option, "echo again")], &mut conversation).await;
                assert_ne!(again.end, End::ResumeDiverged, "{option}: {}", again.cause);
                assert!(shown(&conversation, 2).contains("again"), "{option}");
            };
            check("echo a\0b", "the command holds a NUL byte").await;
            check(&format!("echo {}", "a".repeat(TOO_LONG)), "are allowed").await;
        }
    });
}

/// NUL is a key (C-@ and C-Space send it), and keys come in pieces of any size. A terminal accepts
/// all of them.
#[test]
fn a_pane_accepts_every_key() {
    run(async {
        // No shell edits a line of 1 MiB in time. So only the end of the episode is checked.
        for (keys, still) in
            [("\0", Some("still 42")), ("C-@", Some("still 42")), (&*"a".repeat(1 << 20), None)]
        {
            let keys = serde_json::json!([{ "keystrokes": keys, "duration": 0.1 }]);
            let content = |commands| {
                let reply = serde_json::json!({ "analysis": "", "plan": "", "commands": commands });
                AssistantMessage { content: reply.to_string(), ..AssistantMessage::default() }
            };
            let mut conversation = Conversation::default();
            let scaffold = scaffold("terminus");
            // The waits end early, once all keys are processed. There is no `clear`: like Harbor,
            // this finds new output by the last place of the screen before. That was only the
            // prompt, which would then stand below the output.
            let follow = serde_json::json!([
                { "keystrokes": "C-c", "duration": 30 },
                { "keystrokes": "echo still $((40 + 2))\n", "duration": 30 },
            ]);
            let ended =
                run_messages(&*scaffold, vec![content(keys), content(follow)], &mut conversation).await;
            assert_eq!((ended.end, ended.cause.as_str()), (End::StepLimit, ""));
            let kinds: Vec<_> = conversation.turns.iter().map(|turn| turn.kind).take(2).collect();
            assert_eq!(kinds, [TurnKind::Acted, TurnKind::Acted]);
            if let Some(still) = still {
                assert!(shown(&conversation, 1).contains(still), "{}", shown(&conversation, 1));
            }
        }
    });
}

#[test]
fn a_scaffold_of_a_program_needs_its_command() {
    let entry = SCAFFOLDS.iter().find(|entry| entry.option == "command").unwrap();
    let error = (entry.load)(&Assets::embedded(), &ScaffoldOptions::default()).unwrap_err();
    assert!(error.to_string().contains("--agent-command"), "{error}");
}

/// A whole new scaffold: a message is a command, and `bye` ends.
#[derive(Clone, Copy, Debug)]
struct Toy;

const TOY: ScaffoldEntry =
    ScaffoldEntry { option: "toy", description: "A message is a command", load: |_, _| Ok(Arc::new(Toy)) };

impl Scaffold for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn digest(&self) -> String {
        String::new()
    }

    fn stop(&self) -> &'static [&'static str] {
        &["\n"]
    }

    fn driver(&self) -> Driver<'_> {
        Driver::TurnByTurn(self)
    }
}

impl Protocol for Toy {
    fn open<'a>(
        &'a self,
        _: &'a EpisodeContext<'_>,
        instruction: &'a str,
    ) -> BoxFuture<'a, Result<(Box<dyn Session + 'a>, Opening), ScaffoldError>> {
        let opening = Opening { prompt: instruction.to_owned(), ..Opening::default() };
        async move { Ok((Box::new(Toy) as Box<dyn Session>, opening)) }.boxed()
    }
}

impl Session for Toy {
    fn execute<'a>(
        &'a mut self,
        assistant: &'a AssistantMessage,
        episode: &'a EpisodeContext<'_>,
    ) -> BoxFuture<'a, Result<Step, ScaffoldError>> {
        async move {
            let command = assistant.content.clone();
            if command == "bye" {
                return Ok(Step::submitted());
            }
            let ran = episode.sandbox.shell(&command, &ExecLimit::default()).await;
            let ran = ran.map_err(|error| ScaffoldError::Sandbox { error, acts: Vec::new() })?;
            Ok(Step {
                kind: TurnKind::Acted,
                acts: vec![Act::Command { command, outcome: Some(ran.outcome) }],
                seen: vec![ActSeen::default()],
                shown: vec![Shown::text(String::from_utf8_lossy(&ran.output))],
                ..Step::default()
            })
        }
        .boxed()
    }
}

#[test]
fn a_new_scaffold_is_one_file_and_one_line() {
    run(async {
        let say =
            |content: &str| AssistantMessage { content: content.to_owned(), ..AssistantMessage::default() };
        let scaffold = (TOY.load)(&Assets::embedded(), &ScaffoldOptions::default()).unwrap();
        let mut conversation = Conversation::default();
        let messages = vec![say("x=20"), say("echo $((x + 1))"), say("bye")];
        let ended = run_messages(&*scaffold, messages, &mut conversation).await;
        assert_eq!((ended.end, ended.cause.as_str()), (End::Submitted, ""));
        assert_eq!(conversation.opening.prompt, "Do it.");
        assert_eq!(shown(&conversation, 1), "21\n");
        // Resumed in another sandbox, it reaches the same state.
        conversation.turns.truncate(1);
        conversation.seen.truncate(1);
        run_messages(&*scaffold, vec![say("echo $((x + 2))"), say("bye")], &mut conversation).await;
        assert_eq!(shown(&conversation, 1), "22\n");
    });
}

/// Records in which span each turn is logged.
struct Spans(Vec<Option<&'static str>>);

impl TurnLog for Spans {
    async fn opened(&mut self, _: &Opening) -> Result<(), StoreError> {
        Ok(())
    }

    async fn turned(&mut self, _: usize, _: &Turn, _: &TurnSeen) -> Result<(), StoreError> {
        self.0.push(tracing::Span::current().metadata().map(tracing::Metadata::name));
        Ok(())
    }

    async fn handing_off(&mut self, _: usize, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn handed_off(&mut self, _: usize, _: &HandedOff) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn the_span_of_a_turn_lasts_until_it_is_logged() {
    let _subscriber = tracing::subscriber::set_default(tracing_subscriber::registry());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let logged = runtime.block_on(async {
        let scaffold = scaffold("bash-block");
        let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has a loop of its own") };
        let (sandbox, limits) = (launch(&process()).await, limits());
        let mut policy =
            Messages(vec![message("bash-block", "true"), message("bash-block", "submit")].into());
        let mut log = Spans(Vec::new());
        let episode = context(&sandbox, &limits);
        let hooks = Hooks::none(&mut log);
        let conversation = &mut Conversation::default();
        run_episode(protocol, &mut policy, conversation, "Do it.", &episode, hooks).await.unwrap();
        log.0
    });
    assert_eq!(logged, [Some("turn"); 2]);
}
