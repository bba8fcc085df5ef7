//! Rollouts for tests. `tests/fast` includes this file too.

use serde_json::json;

use crate::model::{
    Act, Actor, Blueprint, CheckId, CheckResult, Difficulty, DomainId, End, EngineeringKind,
    EnvironmentDigest, Outcome, RecipeId, Rewards, Rollout, Seed, ShellOutcome, Shown, TaskAuthor,
    TaskDigest, TaskMetadata, TaskName, ToolCall, ToolDefinition, TrajectoryRecord, Turn, TurnKind, Verdict,
};

/// Number of checks in each verdict made here.
pub(crate) const CHECKS: u32 = 8;

/// A blueprint of `domain`, number `index` of its run.
pub(crate) fn blueprint(domain: &str, index: u32) -> Blueprint {
    Blueprint {
        index,
        seed: Seed(1000 + u64::from(index)),
        domain: DomainId::parse(domain).unwrap(),
        author: TaskAuthor::Recipe(RecipeId::parse(format!("{domain}/roll-up")).unwrap()),
        skills: vec!["log-analysis".to_owned(), "aggregation".to_owned()],
        operations: vec!["data-processing".to_owned(), "file-system".to_owned()],
        kind: EngineeringKind::FromScratch,
        persona: "site reliability engineer".to_owned(),
        language: "python".to_owned(),
        difficulty: Difficulty::Medium,
        fixture: "web-logs".to_owned(),
        verifier: "recompute".to_owned(),
    }
}

/// Lines of the log that one attempt reads. So attempts differ in what they run after their first
/// command.
const LINES_PER_ATTEMPT: usize = 100;

/// A rollout of task `index`. It ran `commands` commands, submitted, and passed `passed` of
/// [`CHECKS`] checks.
pub(crate) fn rollout(domain: &str, index: u32, attempt: u32, commands: usize, passed: u32) -> Rollout {
    let mut turns: Vec<Turn> = (0..commands)
        .map(|number| {
            let line = if number == 0 { 0 } else { number + attempt as usize * LINES_PER_ATTEMPT };
            let command = format!("sed -n '{line}p' /app/access.log");
            Turn {
                content: format!("Attempt {attempt}: I look at part {number}.\n\n```bash\n{command}\n```"),
                acts: vec![Act::Command { command, outcome: Some(ShellOutcome::Exited(0)) }],
                ..Turn::default()
            }
        })
        .collect();
    turns.push(Turn {
        content: "The report is complete.\n\n```bash\nsubmit\n```".to_owned(),
        kind: TurnKind::Submitted,
        ..Turn::default()
    });
    let seen = |number| vec![Shown::text(format!("GET /a {number}\n[exit status 0]"))];
    let checks = (0..CHECKS)
        .map(|number| CheckResult {
            id: CheckId::parse(format!("test_{number}")).unwrap(),
            passed: number < passed,
        })
        .collect();
    let ratio = f64::from(passed) / f64::from(CHECKS);
    Rollout {
        left_out: 0,
        id: format!("{index:08x}{attempt:08x}"),
        record: TrajectoryRecord {
            task: TaskName::parse(format!("{}-roll-up-{index}", domain.replace('_', "-"))).unwrap(),
            task_digest: TaskDigest::parse(format!("sha256:{index:064x}")).ok(),
            environment_digest: EnvironmentDigest::parse(format!("blake3:{index:064x}")).ok(),
            attempt,
            actor: Actor::Scripted { strategy: "first".to_owned(), mistakes: Vec::new(), failure: None },
            scaffold: "bash-block".to_owned(),
            system: "You work in a terminal.".to_owned(),
            prompt: format!("Roll up /app/access.log, task {index}."),
            opening: Vec::new(),
            tools: Vec::new(),
            turns,
            threads: Vec::new(),
            end: End::Submitted,
            verdict: Verdict::from_checks(checks),
            rounds: Vec::new(),
            plans: Vec::new(),
            handoffs: Vec::new(),
            fork: None,
            exploits: Vec::new(),
        },
        metadata: TaskMetadata::from(&blueprint(domain, index)),
        shown: (0..commands).map(seen).chain([Vec::new()]).collect(),
        handoffs: Vec::new(),
        threads: Vec::new(),
        rewards: Some(Rewards {
            binary: if passed == CHECKS { 1.0 } else { 0.0 },
            pass_ratio: ratio,
            f2p: ratio,
            p2p: 1.0,
        }),
        round_rewards: Vec::new(),
        labels: Vec::new(),
        judge: "rules-2".to_owned(),
    }
}

/// The same rollout, as if its agent had called the function `bash`. A message calls it once or
/// twice. The results of two calls are in the other order.
pub(crate) fn calling(mut rollout: Rollout) -> Rollout {
    let parameters = json!({
        "type": "object",
        "properties": { "command": { "type": "string" }, "timeout": { "type": "number" } },
        "required": ["command"],
    });
    let description = "Runs a command.".to_owned();
    rollout.record.scaffold = "bash".to_owned();
    rollout.record.tools = vec![ToolDefinition { name: "bash".to_owned(), description, parameters }];
    for (number, (turn, shown)) in rollout.record.turns.iter_mut().zip(&mut rollout.shown).enumerate() {
        let content = turn.content.split_once("\n\n```").map(|(said, _)| said.to_owned());
        turn.content = content.unwrap_or_default();
        let Some(Act::Command { command, .. }) = turn.acts.first().cloned() else { continue };
        // Not the order of the alphabet.
        let arguments = format!(r#"{{"timeout":30,"command":{}}}"#, json!(command));
        let call = |at: usize| ToolCall {
            id: format!("call_{number}_{at}"),
            name: "bash".to_owned(),
            arguments: arguments.clone(),
        };
        turn.tool_calls = (0..=number % 2).map(call).collect();
        turn.acts = turn.tool_calls.iter().filter_map(|_| turn.acts.first().cloned()).collect();
        let text = shown.first().map(|shown| shown.content.clone()).unwrap_or_default();
        let results = turn.tool_calls.iter().rev();
        *shown = results.map(|call| Shown::result(&call.id, &text)).collect();
    }
    rollout
}

/// The same rollout, ended by a failure of the engine. It has no rewards.
pub(crate) fn unmeasured(mut rollout: Rollout) -> Rollout {
    rollout.record.verdict = Verdict::without_checks(Outcome::Infra, "the engine stopped answering");
    rollout.rewards = None;
    rollout
}
