//! Faults between request and reply change no verdict, and no cap is exceeded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use termsmith::agent::{BashBlock, Logprobs, StepLimits};
use termsmith::assets::Assets;
use termsmith::llm::{Budget, ModelRole, Models, Options, Settings};
use termsmith::model::{Arm, ModelActor, Outcome, Rollout};
use termsmith::pipeline::{
    Agents, CampaignContext, CampaignOptions, CampaignReport, Capacity, Judging, PipelineAssets,
    Solver as CampaignSolver, Stop, campaign, gather_groups,
};
use termsmith::rollout::{AgentConfig, Overflow, Preflight};
use termsmith::store::{RunDir, Store};
use termsmith::verify::EngineOnDemand;

use super::solver::{Numbered, SEED, Solver, TASKS};
use crate::support::clock::TestClock;
use crate::support::corpus::task_dir;
use crate::support::endpoint::{Answer, Kind, Server, fault};
use crate::support::runner::RunnerParts;

const ATTEMPTS: u32 = 3;
const AT_ONCE: u32 = 32;

fn settings(server: &Server) -> Settings {
    let base = server.base_url();
    // A stalled connection times out after a second. All else is answered sooner, even on a busy
    // machine.
    let text = format!(
        "version = 1\n[endpoints.test]\nbase_url = \"{base}\"\ntimeout_sec = 1.0\nconcurrency = {AT_ONCE}\n\
         [roles.expert]\nendpoint = \"test\"\nmodel = \"made-up\"\nmax_tokens = 64\nseed = {SEED}\n"
    );
    Settings::parse("termsmith.toml", &text).unwrap()
}

/// Runs all tasks, with the run folder `store`.
async fn run_tasks(store: &Store, server: &Server, budget: Budget) -> (CampaignReport, u64) {
    let assets = PipelineAssets::load(&Assets::embedded()).unwrap();
    let parts = RunnerParts::new(EngineOnDemand::default(), 4);
    let runner = parts.runner(store);
    let options =
        Options { budget, clock: TestClock::jumping(), drain: parts.drain.clone(), ..Options::default() };
    let models = Arc::new(Models::new(settings(server), |_| None, store, options).unwrap());
    let agent_config = AgentConfig {
        scaffold: Arc::new(BashBlock::load(&Assets::embedded()).unwrap()),
        role: ModelRole::Expert,
        actor: ModelActor {
            model: "made-up".to_owned(),
            endpoint: "test".to_owned(),
            arm: Arm::Base,
            adversary: None,
            program: None,
        },
        limits: StepLimits {
            turns: 8,
            tokens: None,
            context: None,
            ..StepLimits::scripted(Duration::from_secs(600))
        },
        rounds: 0,
        logprobs: Logprobs::No,
        overflow: Overflow::Ends,
        fork: None,
        preflight: Preflight::default(),
    };
    let options = CampaignOptions {
        solver: CampaignSolver::Model { models: models.clone(), agents: Agents::one(agent_config) },
        attempts: ATTEMPTS,
        fork_at: 0,
        trial: Some(Duration::from_secs(600)),
        judging: Judging::Rules,
    };
    let capacity = Capacity::new(AT_ONCE, 1 << 20, 1 << 10);
    let context = CampaignContext { runner: &runner, assets: &assets, capacity: &capacity };
    let dirs: Vec<PathBuf> = TASKS.iter().map(|name| task_dir(name)).collect();
    let report = campaign(context, &dirs, &options, &|_| {}).await;
    parts.engine.get().await.unwrap().close().await;
    (report, models.tally().spent.tokens)
}

/// All results that faults must not change, i.e. all but times.
fn essence(store: &Store) -> Vec<(String, u32, Outcome, Vec<String>)> {
    let rollouts = gather_groups(store).unwrap().flat_map(|group| group.unwrap().rollouts);
    let essence = |rollout: Rollout| {
        let record = rollout.record;
        let assistant = record.turns.iter().map(|turn| turn.content.clone()).collect();
        (record.task.to_string(), record.attempt, record.verdict.outcome, assistant)
    };
    rollouts.map(|(rollout, _)| essence(rollout)).collect()
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(RunDir::open(dir.path()).unwrap());
    (dir, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_change_no_verdict_and_no_cap_is_exceeded() {
    let solver = Arc::new(Solver::new());
    let answer = |solver: &Arc<Solver>| {
        let solver = Arc::clone(solver);
        move |body: &serde_json::Value| Answer::Text(solver.reply(body, Numbered::No))
    };
    let good = answer(&solver);
    let calm = Server::start(move |body, _| good(body)).await;
    let good = answer(&solver);
    let rough = Server::start(move |body, attempt| match fault(3, body, attempt) {
        Kind::Reply => good(body),
        kind => Answer::Do(kind),
    })
    .await;

    let (_dir, faultless) = store();
    let (report, _) = run_tasks(&faultless, &calm, Budget::default()).await;
    assert_eq!(report.members.len(), TASKS.len() * ATTEMPTS as usize, "{:?}", report.faults);
    let expect = essence(&faultless);
    let passed = expect.iter().filter(|(_, _, outcome, _)| *outcome == Outcome::Pass).count();
    assert!(passed > 0 && passed < expect.len(), "{passed} of {} pass", expect.len());

    let (_dir, faulty) = store();
    // The cost of the run without faults. Requests with lost replies are charged too, so this run
    // ends early, but without an error.
    let cap = calm.billed();
    let budget = Budget { max_tokens: Some(cap), ..Budget::default() };
    let (report, spent) = run_tasks(&faulty, &rough, budget).await;
    assert!(report.stop == Some(Stop::OutOfBudget) && report.members.len() < expect.len(), "{report:?}");
    assert!(rough.billed() <= spent && spent <= cap, "{} ≤ {spent} ≤ {cap}", rough.billed());

    let (report, _) = run_tasks(&faulty, &rough, Budget::default()).await;
    assert_eq!(report.members.len(), expect.len(), "{:?}", report.faults);
    assert_eq!(essence(&faulty), expect);
    let kinds: std::collections::BTreeSet<_> = rough.seen().iter().map(|seen| seen.kind).collect();
    assert!(kinds.len() > 4, "only {kinds:?} were met");
}
