//! What counts against time limits. Neither an endpoint nor a queue becomes an agent's failure.

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use serde_json::json;
use termsmith::agent::{
    AgentError, AssistantMessage, Conversation, Deadline, Driver, Ended, EpisodeContext, Hooks, Installed,
    Logprobs, Machine, ModelPolicy, NoTurnLog, Policy, Program, Scaffold, StepLimits, run_episode,
    run_installed,
};
use termsmith::harbor::read_task;
use termsmith::llm::{CallError, ModelRole, Models, Options, RetryPolicy, Settings};
use termsmith::model::{Assume, End, File, Outcome, RelPath, Shown, TurnKind, environment_digest};
use termsmith::retry::Backoff;
use termsmith::rollout::{Evaluated, Evaluation, RoundPlan, Slot};
use termsmith::sandbox::Sandbox;
use termsmith::store::{RunDir, Store};
use termsmith::verify::{Foreign, HashedTask, Target};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::endings::whole;
use super::scaffolds::{Messages, message, scaffold};
use crate::support::clock::TestClock;
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Kind, Server};
use crate::support::engine::{docker, launch, process, run, shell};
use crate::support::runner::RunnerParts;
use crate::support::task::{REFERENCE, Shape, task};

/// A row may exceed its limits by this much. It is reached only if the test fails.
pub(crate) const LONG: Duration = Duration::from_secs(30);
const SUBMIT: &str = "So.\n\n```bash\nsubmit\n```";

/// Models behind `server`. A request may take `timeout` seconds, and is sent up to `attempts`
/// times. Only the requests take time.
pub(crate) fn models(server: &Server, store: &Store, timeout: f64, attempts: u32) -> Models {
    let base = server.base_url();
    let text = format!(
        "version = 1\n[endpoints.e]\nbase_url = \"{base}\"\ntimeout_sec = {timeout:?}\n\
         [roles.expert]\nendpoint = \"e\"\nmodel = \"m\"\nmax_tokens = 64\n"
    );
    let retry = RetryPolicy::default();
    let retry = RetryPolicy { backoff: Backoff { attempts, ..retry.backoff }, ..retry };
    let options = Options { retry, clock: TestClock::jumping(), ..Options::default() };
    Models::new(Settings::parse("termsmith.toml", &text).unwrap(), |_| None, store, options).unwrap()
}

pub(crate) fn fresh_store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(RunDir::open(dir.path()).unwrap());
    (dir, store)
}

/// Continues `conversation` in a fresh sandbox, within `total`.
async fn continued(
    scaffold: &dyn Scaffold,
    policy: &mut impl Policy,
    conversation: &mut Conversation,
    total: Duration,
) -> Result<Ended, AgentError> {
    let sandbox = launch(&process()).await;
    let limits = StepLimits { turns: 9, ..StepLimits::scripted(total) };
    let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has a loop of its own") };
    let deadline = Deadline::after(total, sandbox.clock().clone());
    let episode = EpisodeContext {
        sandbox: &sandbox,
        env: &[],
        limits: &limits,
        deadline,
        assume: Assume::Nothing,
        machine: Machine::Fresh,
        drain: CancellationToken::new(),
    };
    let mut log = NoTurnLog;
    run_episode(protocol, policy, conversation, "Do it.", &episode, Hooks::none(&mut log)).await
}

/// An episode of a model, with one reply.
async fn episode(
    models: &Models,
    conversation: &mut Conversation,
    total: Duration,
) -> Result<End, AgentError> {
    let scaffold = scaffold("bash-block");
    let mut policy = ModelPolicy {
        models,
        role: ModelRole::Expert,
        unit: "u",
        round: 0,
        stop: Vec::new(),
        logprobs: Logprobs::No,
    };
    continued(&*scaffold, &mut policy, conversation, total).await.map(|ended| ended.end)
}

#[test]
fn only_the_request_that_is_answered_counts() {
    const TOTAL: Duration = Duration::from_secs(2);
    /// Time limit of a request to a server that does not answer. It is longer than the episode's.
    const STALLED: f64 = 2.5;
    /// Time limit of a request to a slow server. It is reached only if the test fails.
    const SLOW: f64 = 60.0;
    run(async {
        let stalled = |requests: u32| {
            Server::start(
                move |_, attempt| {
                    if attempt < requests { Answer::Do(Kind::Stalled) } else { whole(SUBMIT) }
                },
            )
        };
        let outage = async {
            let ((_dir, store), mut conversation) = (fresh_store(), Conversation::default());
            let server = stalled(1).await;
            let models = models(&server, &store, STALLED, 2);
            let end = episode(&models, &mut conversation, TOTAL).await.unwrap();
            assert_eq!((end, server.requests()), (End::Submitted, 2), "the endpoint came back");
            assert!(conversation.seen[0].think_ms > STALLED * 1e3, "{:?}", conversation.seen);
            assert!(conversation.seen[0].served_ms < TOTAL.as_secs_f64() * 1e3, "{:?}", conversation.seen);
        };
        let gone = async {
            let ((_dir, store), mut conversation) = (fresh_store(), Conversation::default());
            let server = stalled(9).await;
            let end = episode(&models(&server, &store, STALLED, 1), &mut conversation, TOTAL).await;
            assert!(matches!(end, Err(AgentError::Call(CallError::Exhausted { .. }))), "{end:?}");
        };
        let slow = async {
            let ((_dir, store), mut conversation) = (fresh_store(), Conversation::default());
            let server = Server::start(|_, _| {
                tokio::task::block_in_place(|| std::thread::sleep(TOTAL + Duration::from_millis(500)));
                whole(SUBMIT)
            })
            .await;
            // The second process finds the reply in the journal, with the time that it took.
            for process in ["first", "second"] {
                let models = models(&server, &store, SLOW, 1);
                let end = episode(&models, &mut conversation, TOTAL).await.unwrap();
                assert_eq!((end, server.requests()), (End::TimedOut, 1), "{process}");
            }
        };
        tokio::join!(outage, gone, slow);
    });
}

/// A message of `terminus` can ask for hours. If there was no time for all of its keys and waits,
/// its submission does not count.
#[test]
fn a_message_is_typed_no_longer_than_the_time_lasts() {
    /// Longer than a login shell needs for its first prompt.
    const TOTAL: Duration = Duration::from_secs(4);
    run(async {
        let check = async |replies: &[(serde_json::Value, bool)], kinds: &[TurnKind], acts: usize| {
            let content = |(commands, task_complete): &(serde_json::Value, bool)| {
                let reply = json!({ "analysis": "", "plan": "", "commands": commands, "task_complete": task_complete });
                AssistantMessage { content: reply.to_string(), ..AssistantMessage::default() }
            };
            let scaffold = scaffold("terminus");
            let mut policy = Messages(replies.iter().map(content).collect());
            let (began, mut conversation) = (Instant::now(), Conversation::default());
            let ended = continued(&*scaffold, &mut policy, &mut conversation, TOTAL).await.unwrap();
            assert_eq!(ended.end, End::TimedOut, "{replies:?}");
            assert!(began.elapsed() < LONG, "{replies:?}: {:?}", began.elapsed());
            let found: Vec<_> = conversation.turns.iter().map(|turn| turn.kind).collect();
            assert_eq!(found, kinds, "{replies:?}");
            assert_eq!(conversation.turns.last().unwrap().acts.len(), acts, "{replies:?}");
        };
        let sleeps = json!({ "keystrokes": "sleep 100\n", "duration": 60 });
        let more = json!({ "keystrokes": "echo no\n", "duration": 1 });
        let two = [(json!([sleeps, more]), false)];
        let submitted = [(json!([]), true), (json!([sleeps]), true)];
        tokio::join!(
            check(&two, &[TurnKind::Acted], 1),
            check(&submitted, &[TurnKind::Claimed, TurnKind::Acted], 1),
        );
    });
}

/// A live round begins in a new container, with a time limit of its own. So must a round that is
/// executed again.
#[test]
fn a_resumed_round_begins_as_a_live_one() {
    /// Enough for one round, but not for two.
    const TOTAL: Duration = Duration::from_secs(3);
    run(async {
        let scaffold = scaffold("bash-block");
        let messages = |commands: &[&str]| {
            Messages(commands.iter().map(|command| message("bash-block", command)).collect())
        };
        let leaves = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >left; sleep 2";
        let mut conversation = Conversation::default();
        let mut policy = messages(&[leaves, "submit"]);
        let ended = continued(&*scaffold, &mut policy, &mut conversation, TOTAL).await.unwrap();
        assert_eq!((ended.end, conversation.turns.len()), (End::Submitted, 2));
        conversation.seen[1].shown = vec![Shown::text("a check failed")];
        let mut second = Conversation::default();
        continued(&*scaffold, &mut messages(&["sleep 2", "submit"]), &mut second, TOTAL).await.unwrap();
        conversation.turns.push(second.turns.remove(0));
        conversation.seen.push(second.seen.remove(0));

        let mut policy = messages(&["kill -0 $(cat left) && echo alive || echo gone", "submit"]);
        let ended = continued(&*scaffold, &mut policy, &mut conversation, TOTAL).await.unwrap();
        assert_eq!((ended.end, ended.cause.as_str()), (End::Submitted, ""));
        let shown = &conversation.seen[3].shown[0].content;
        assert!(shown.contains("gone") && !shown.contains("alive"), "{shown}");
    });
}

/// Like [`installed_at`]. The server does not answer the first `stalled` requests.
async fn installed(
    sandbox: &Sandbox,
    then: &str,
    stalled: u32,
    total: Duration,
    gave_up: u32,
) -> Result<End, AgentError> {
    let server = Server::start(
        move |_, attempt| {
            if attempt < stalled { Answer::Do(Kind::Stalled) } else { whole("Hello.") }
        },
    )
    .await;
    installed_after(gave_up, &server, sandbox, then, total).await
}

/// Runs an installed agent that sends a request and then does `then`.
pub(crate) async fn installed_at(
    server: &Server,
    sandbox: &Sandbox,
    then: &str,
    total: Duration,
) -> Result<End, AgentError> {
    installed_after(0, server, sandbox, then, total).await
}

/// Like [`installed_at`], in a rollout whose agent has given up `gave_up` times.
async fn installed_after(
    gave_up: u32,
    server: &Server,
    sandbox: &Sandbox,
    then: &str,
    total: Duration,
) -> Result<End, AgentError> {
    /// Longer than the episode may last.
    const TIMEOUT: f64 = 4.0;
    let (_dir, store) = fresh_store();
    let models = models(server, &store, TIMEOUT, 2);
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Hello?"}]}"#;
    let program = Program::of_command(format!(
        "(exec 3<>/dev/tcp/127.0.0.1/8421; printf 'POST /v1/chat/completions HTTP/1.1\\r\\nhost: x\\r\\n\
         content-type: application/json\\r\\ncontent-length: {}\\r\\n\\r\\n%s' '{body}' >&3; {then})",
        body.len()
    ));
    let (role, gave_up) = (ModelRole::Expert, &AtomicU32::new(gave_up));
    let installed = Installed { program: &program, models: &models, role, unit: "u", gave_up };
    let limits = StepLimits::scripted(total);
    let deadline = Deadline::after(total, sandbox.clock().clone());
    let episode = EpisodeContext {
        sandbox,
        env: &[],
        limits: &limits,
        deadline,
        assume: Assume::Nothing,
        machine: Machine::Fresh,
        drain: CancellationToken::new(),
    };
    let ended = run_installed(&installed, "Do it.", &mut Conversation::default(), &episode).await;
    ended.map(|ended| ended.end)
}

#[test]
fn an_installed_agent_does_not_pay_for_its_endpoint() {
    const TOTAL: Duration = Duration::from_secs(3);
    run(async {
        let Some(engine) = docker().await else { return };
        let run = async |then: &str, stalled: u32, gave_up: u32| {
            let sandbox = launch(&engine).await;
            installed(&sandbox, then, stalled, TOTAL, gave_up).await
        };
        let (waits, gives_up, again, fails, sleeps) = tokio::join!(
            run("cat <&3 >/dev/null", 1, 0),
            run("sleep 0.5; exit 1", 1, 1),
            run("sleep 0.5; exit 1", 1, 2),
            run("cat <&3 >/dev/null; exit 1", 0, 0),
            run("cat <&3 >/dev/null; sleep 100", 0, 0),
        );
        assert_eq!(waits.unwrap(), End::Submitted, "the endpoint came back after the time limit");
        assert!(matches!(gives_up, Err(AgentError::GaveUp { .. })), "{gives_up:?}");
        assert_eq!(again.ok(), Some(End::Submitted), "it can do so at will");
        assert_eq!(fails.unwrap(), End::Submitted, "its failure is its own");
        assert_eq!(sleeps.unwrap(), End::TimedOut);
    });
}

/// While a verdict waits for its slot, a background job of the solver could complete the work.
#[test]
fn a_verdict_does_not_depend_on_the_wait_for_a_slot() {
    /// By then the job has done everything.
    const WAIT: Duration = Duration::from_secs(4);
    run(async {
        let Some(engine) = docker().await else { return };
        let (_dir, store) = fresh_store();
        let parts = RunnerParts::new(engine, 1);
        let runner = parts.runner(&store);
        let task = task(Shape::Files);
        let hashed = HashedTask::new(&task, environment_digest(&task.environment, "core")).unwrap();
        let late = format!("(sleep 2\n{REFERENCE}) >/dev/null 2>&1 &");
        let (occupied, has_ended) = (parts.slots.acquire(0).await, Notify::new());
        let evaluation = Evaluation { runner: &runner, target: &hashed, slot: Slot::ForJudging, layer: None };
        let judged = evaluation.run(
            RoundPlan::ONLY,
            async |_, sandbox, _, _| {
                shell(sandbox, &late).await;
                has_ended.notify_one();
                Ok(Ended::by(End::Submitted))
            },
            async |_, _| Ok(()),
        );
        let others = async {
            has_ended.notified().await;
            tokio::time::sleep(WAIT).await;
            drop(occupied);
        };
        let (evaluated, ()) = tokio::join!(judged, others);
        assert_eq!(evaluated.unwrap().verdict.outcome, Outcome::Fail);
    });
}

/// An interrupted run starts no trial, but its finished episodes are judged, in each way of judging.
#[test]
fn an_interrupted_run_judges_finished_episodes() {
    run(async {
        let Some(engine) = docker().await else { return };
        let check = async |target: &dyn Target| {
            let (_dir, store) = fresh_store();
            let parts = RunnerParts::new(engine.clone(), 1);
            let runner = parts.runner(&store);
            target.build(&runner).await.unwrap().unwrap();
            let evaluation = Evaluation { runner: &runner, target, slot: Slot::ForJudging, layer: None };
            let evaluated = evaluation.run(
                RoundPlan::ONLY,
                async |_, sandbox, _, _| {
                    sandbox.put_tree("/solution", target.solution().unwrap()).await.unwrap();
                    shell(sandbox, "bash /solution/solve.sh").await;
                    parts.drain.cancel();
                    Ok(Ended::by(End::Submitted))
                },
                async |_, _| Ok(()),
            );
            assert_eq!(evaluated.await.unwrap().verdict.outcome, Outcome::Pass, "{}", target.name());
        };
        let task = task(Shape::Files);
        let hashed = HashedTask::new(&task, environment_digest(&task.environment, "core")).unwrap();
        check(&hashed).await;
        for name in ["sound-report", "sound-separate-verifier"] {
            check(&of_another_maker(name)).await;
        }
    });
}

/// A task of the screening corpus.
fn of_another_maker(name: &str) -> Foreign {
    Foreign::new(&read_task(&task_dir(name)).unwrap()).unwrap()
}

/// A step without a sandbox to judge decides for the task, however the steps before it ended.
#[test]
fn a_step_whose_sandbox_is_lost_ends_the_task() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (_dir, store) = fresh_store();
        let parts = RunnerParts::new(engine, 1);
        let runner = parts.runner(&store);
        let task = of_another_maker("sound-two-steps");
        task.build(&runner).await.unwrap().unwrap();
        let evaluation = Evaluation { runner: &runner, target: &task, slot: Slot::ForJudging, layer: None };
        let check = async |first: End, last: End, expect: (End, Outcome)| {
            let evaluated = evaluation.run(
                RoundPlan::ONLY,
                async |step, sandbox, _, _| {
                    let solution = &task.steps[step].solution;
                    sandbox.put_tree("/solution", solution).await.unwrap();
                    shell(sandbox, "bash /solution/solve.sh").await;
                    Ok(Ended::by(if step == 0 { first } else { last }))
                },
                async |_, _| Ok(()),
            );
            let Evaluated { ended, verdict, .. } = evaluated.await.unwrap();
            assert_eq!((ended.end, verdict.outcome), expect, "{first:?} {last:?}");
        };
        check(End::Submitted, End::Submitted, (End::Submitted, Outcome::Pass)).await;
        check(End::TimedOut, End::Submitted, (End::TimedOut, Outcome::Timeout)).await;
        check(End::Submitted, End::SandboxLost, (End::SandboxLost, Outcome::Fail)).await;
        check(End::TimedOut, End::SandboxLost, (End::SandboxLost, Outcome::Fail)).await;
    });
}

/// If a build hangs, its Dockerfile is at fault, as for a build that fails. It is built twice.
#[test]
fn a_build_that_hangs_is_the_tasks_fault() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (_dir, store) = fresh_store();
        let parts = RunnerParts::new(engine, 1);
        let runner = parts.runner(&store);
        let check = async |step: &str, limit: u32, expect: Result<(), &str>| {
            let mut task = task(Shape::Files);
            let dockerfile = task.environment.text("Dockerfile").unwrap().to_owned();
            let dockerfile = File::text(format!("{dockerfile}RUN {step} # {}\n", std::process::id()));
            task.environment.insert(RelPath::new("Dockerfile").unwrap(), dockerfile);
            task.limits.build_timeout_sec = limit;
            let digest = environment_digest(&task.environment, "core");
            let hashed = HashedTask::new(&task, digest).unwrap();
            match (runner.build(&hashed).await.unwrap(), expect) {
                (Ok(()), Ok(())) => {}
                (Err(log), Err(part)) => assert!(log.contains(part), "{step}: {log}"),
                (found, expect) => panic!("{step}: {found:?}, where {expect:?} was expected"),
            }
        };
        check("true", 600, Ok(())).await;
        check("sleep 1000", 5, Err("twice")).await;
        check("exit 3", 600, Err("returned a non-zero code: 3")).await;
    });
}
