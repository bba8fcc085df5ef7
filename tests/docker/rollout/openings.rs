//! If something cannot be opened in a sandbox, an agent is to blame only if one acted there before.

use std::collections::VecDeque;

use termsmith::agent::{
    AgentError, Conversation, Deadline, Driver, EpisodeContext, Hooks, Machine, NoTurnLog, StepLimits,
    run_episode,
};
use termsmith::model::{Assume, Blame, End};
use termsmith::rollout::RolloutError;
use termsmith::verify::Blamed as _;
use tokio_util::sync::CancellationToken;

use super::deadlines::LONG;
use super::scaffolds::{Messages, scaffold};
use crate::support::engine::{launch, process, run, shell};

/// The folder in which the shell should begin is gone. That is one reason why a terminal cannot be
/// opened.
#[test]
fn an_episode_that_cannot_begin_in_a_fresh_sandbox_is_no_failure() {
    run(async {
        let check = async |name: &str, machine: Machine, expect: Result<End, Blame>| {
            let sandbox = launch(&process()).await;
            shell(&sandbox, "rmdir \"$PWD\"").await;
            let scaffold = scaffold(name);
            let Driver::TurnByTurn(protocol) = scaffold.driver() else { panic!("it has a loop of its own") };
            let limits = StepLimits::scripted(LONG);
            let deadline = Deadline::after(LONG, sandbox.clock().clone());
            let assume = Assume::SolverAtFault;
            let (sandbox, limits, drain) = (&sandbox, &limits, CancellationToken::new());
            let episode = EpisodeContext { sandbox, env: &[], limits, deadline, assume, machine, drain };
            let (mut log, mut conversation) = (NoTurnLog, Conversation::default());
            let mut says_nothing = Messages(VecDeque::new());
            let hooks = Hooks::none(&mut log);
            let ended =
                run_episode(protocol, &mut says_nothing, &mut conversation, "Do it.", &episode, hooks).await;
            let found = match ended {
                Ok(ended) => Ok(ended.end),
                Err(error) => {
                    assert!(matches!(error, AgentError::NotStarted(_)), "{name}: {error}");
                    Err(RolloutError::from(error).blame().unwrap())
                }
            };
            assert_eq!(found, expect, "{name} {machine:?}");
        };
        for name in ["terminus", "terminus-xml"] {
            check(name, Machine::Fresh, Err(Blame::Infra)).await;
            check(name, Machine::Used, Ok(End::SandboxLost)).await;
        }
    });
}
