//! What cannot be opened is blamed on an agent only where one has acted before, and an interrupted run judges what is finished.

use std::collections::VecDeque;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use termsmith::agent::{
    AgentError, Conversation, Deadline, Driver, EpisodeContext, Hooks, Machine, NoTurnLog, StepLimits,
    run_episode,
};
use termsmith::model::{Blame, End};
use termsmith::rollout::RolloutError;
use termsmith::verify::Blamed as _;

use super::deadlines::LONG;
use super::scaffolds::{Messages, scaffold};
use super::support::{launch, output, process, run};

/// The guest may open no further file. A terminal and a shell need some.
#[test]
fn an_episode_that_cannot_begin_in_a_fresh_sandbox_is_no_failure() {
    run(async {
        let check = async |name: &str, machine: Machine, expect: Result<End, Blame>| {
            let sandbox = launch(&process()).await;
            let guest = output(&sandbox, "echo $PPID").await.trim().parse().unwrap();
            // The next request starts another shell.
            sandbox.end_processes().await.unwrap();
            let none = Rlimit { current: Some(3), maximum: Some(3) };
            prlimit(Pid::from_raw(guest), Resource::Nofile, none).unwrap();
            let scaffold = scaffold(name);
            let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has a loop of its own") };
            let limits = StepLimits::scripted(LONG);
            let deadline = Deadline::after(LONG, sandbox.clock().clone());
            let episode = EpisodeContext {
                sandbox: &sandbox,
                env: &[],
                limits: &limits,
                deadline,
                silent_loss: None,
                machine,
            };
            let (mut log, mut conversation) = (NoTurnLog, Conversation::default());
            let mut says_nothing = Messages(VecDeque::new());
            let ended = run_episode(
                protocol,
                &mut says_nothing,
                &mut conversation,
                "Do it.",
                &episode,
                Hooks::none(&mut log),
            );
            let found = match ended.await {
                Ok(ended) => Ok(ended.end),
                Err(error) => {
                    assert!(matches!(error, AgentError::NotBegun(_)), "{name}: {error}");
                    Err(RolloutError::from(error).blame().unwrap())
                }
            };
            assert_eq!(found, expect, "{name} {machine:?}");
        };
        for name in ["terminus", "bash", "bash-block", "react"] {
            check(name, Machine::Fresh, Err(Blame::Infra)).await;
            check(name, Machine::Used, Ok(End::SandboxLost)).await;
        }
    });
}
