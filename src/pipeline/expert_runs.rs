//! Runs every branch of an expert's script, so that a recipe's author sees faults before any
//! rollout is drawn from it.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use regex::Regex;
use serde::Serialize;

use super::assets::PipelineAssets;
use super::error::Fault;
use super::unit::HashedDraft;
use crate::agent::{
    AgentError, Conversation, LEAST_NOVELTY, Leak, MessageFormat, Plan, PlannedRole, ScriptedAgent, Shows,
    checked_at_the_end, decisions, lose, losing, novelty, passing, rehearsed, unseen_literals,
};
use crate::author::Recipe;
use crate::model::{Act, ExpertScript, FailureMode, Seed, ShellOutcome};
use crate::rollout::{Evaluated, RolloutError, run_script, run_scripted_episode};
use crate::verify::{HashedTask, TrialRunner};

/// Number of pairs of a passing and a losing plan that are drawn, but not run. They show what
/// rollouts would be like.
const DRAWN_PAIRS: u64 = 40;
/// The largest accepted share of drawn pairs whose losing side mostly repeats the commands of the
/// passing side.
const MOST_ALIKE: f64 = 0.2;

/// One run of a branch of the expert.
#[derive(Debug, Serialize)]
pub struct ExpertRun {
    pub name: String,
    pub ok: bool,
    pub turns: Option<usize>,
    pub note: String,
}

impl ExpertRun {
    /// E.g. `7 turns`. Empty if the script could not be executed.
    pub fn turns_text(&self) -> String {
        self.turns.map_or_else(String::new, |turns| format!("{turns} turns"))
    }
}

/// Which branches are run. Every strategy is always run in every way, and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branches {
    /// Also make and repair every mistake. Only the mistake's own check says whether the repair
    /// worked.
    Repaired,
    /// Also leave every mistake as it is, and judge that.
    Unrepaired,
    /// Also judge the repaired mistakes.
    AllJudged,
}

/// The result that a branch must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Pass,
    Fail,
    /// The script's own patterns hold. No verdict is asked for.
    ScriptHolds,
}

/// A plan to run, with the result that it must have.
struct Branch {
    name: String,
    plan: Plan,
    format: MessageFormat,
    wanted: Wanted,
}

/// Runs branches of the draft's script, and draws pairs from it.
pub(super) async fn expert_runs(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    hashed_draft: &HashedDraft,
    hashed: &HashedTask<'_>,
    which: Branches,
) -> Result<Vec<ExpertRun>, Fault> {
    let script = &hashed_draft.draft.expert;
    let mut runs = vec![origins(hashed_draft), drawn(script)];
    let branches = branches(script, which);
    let runs_of_branches =
        branches.iter().map(|branch| run_branch(runner, assets, hashed_draft, hashed, branch));
    for run in join_all(runs_of_branches).await {
        runs.push(run?);
    }
    Ok(runs)
}

/// The branches: every strategy in all its ways and protocols, every mistake repaired at the second
/// attempt, and every mistake left as it is.
fn branches(script: &ExpertScript, which: Branches) -> Vec<Branch> {
    let mut branches = Vec::new();
    let repaired_wanted = match which {
        Branches::Repaired | Branches::Unrepaired => Wanted::ScriptHolds,
        Branches::AllJudged => Wanted::Pass,
    };
    // A mistake that two strategies share is left unrepaired in one of them only.
    let mut stays = BTreeSet::new();
    for strategy in &script.strategies {
        let ways = script.steps_of(strategy).map(|step| step.ways.len()).max().unwrap_or(1);
        for way in 0..ways.max(script.slips.len()).max(MessageFormat::ALL.len()) {
            let slip = script.slips.get(way);
            let format = MessageFormat::ALL
                .get(way % MessageFormat::ALL.len())
                .copied()
                .unwrap_or(MessageFormat::BashBlock);
            if let Some(plan) = rehearsed(script, strategy, None, None, slip, way) {
                // A shell's output can be matched as it is. A screen's cannot, so only this format
                // gets the checks at the end.
                let plan = match format {
                    MessageFormat::BashBlock => checked_at_the_end(script, plan),
                    MessageFormat::BashTool | MessageFormat::Terminus => plan,
                };
                let name = format!("{strategy}, ways {}, {}", way + 1, format.option());
                branches.push(Branch { name, plan, format, wanted: Wanted::Pass });
            }
        }
        for (index, mistake) in script.mistakes_of(strategy).enumerate() {
            // The formats alternate, so that both kinds of observation occur: a shell's output and
            // a screen.
            let format =
                if index.is_multiple_of(2) { MessageFormat::BashBlock } else { MessageFormat::Terminus };
            let repaired = mistake
                .check
                .as_ref()
                .and_then(|_| rehearsed(script, strategy, Some(&mistake.name), Some(index % 2), None, index));
            if let Some(plan) = repaired {
                let name = format!("{strategy}, {} repaired, {}", mistake.name, format.option());
                branches.push(Branch { name, plan, format, wanted: repaired_wanted });
            }
            match which {
                Branches::Unrepaired | Branches::AllJudged if stays.insert(&mistake.name) => {
                    branches.extend(unrepaired(script, strategy, &mistake.name));
                }
                Branches::Unrepaired | Branches::AllJudged | Branches::Repaired => {}
            }
        }
    }
    branches
}

/// The branch in which a mistake stays. If the mistake has a check, the expert sees it and repairs
/// the wrong thing.
fn unrepaired(script: &ExpertScript, strategy: &str, mistake: &str) -> Option<Branch> {
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let made = rehearsed(script, strategy, Some(mistake), None, None, 0);
    let passing = made.or_else(|| rehearsed(script, strategy, None, None, None, 0))?;
    let found = decisions(script, &passing);
    let of = |mode| found.iter().find(|decision| decision.mode == mode && decision.mistake.name == mistake);
    let decision = of(FailureMode::WrongRepair).or_else(|| of(FailureMode::MissedRequirement))?;
    let losing = lose(script, &passing, *decision, &mut rng);
    let name = format!("{strategy}, {mistake}, {}", losing.mode.as_str());
    Some(Branch { name, plan: losing.plan, format: MessageFormat::BashBlock, wanted: Wanted::Fail })
}

async fn run_branch(
    runner: &TrialRunner<'_>,
    assets: &PipelineAssets,
    hashed_draft: &HashedDraft,
    hashed: &HashedTask<'_>,
    branch: &Branch,
) -> Result<ExpertRun, Fault> {
    let _slot = runner.slot().await?;
    let draft = &hashed_draft.draft;
    let name = branch.name.clone();
    let agent = ScriptedAgent::new(&draft.expert, &branch.plan, branch.format);
    let scaffold = assets.scripted.of(branch.format);
    let ended = match branch.wanted {
        Wanted::ScriptHolds => {
            run_script(runner, scaffold, hashed, agent).await.map(|conversation| (conversation, None))
        }
        Wanted::Pass | Wanted::Fail => run_scripted_episode(runner, scaffold, hashed, agent)
            .await
            .map(|finished| (finished.conversation, Some(finished.evaluated))),
    };
    let (conversation, evaluated) = match ended {
        Ok(ended) => ended,
        Err(RolloutError::Agent(AgentError::Script(error))) => {
            return Ok(ExpertRun { name, ok: false, turns: None, note: error.to_string() });
        }
        Err(other) => return Err(other.into()),
    };
    let leaks = match branch.format {
        // The messages of the other protocols hold the same texts, as JSON.
        MessageFormat::BashBlock => leaks(assets, hashed_draft, &conversation),
        MessageFormat::BashTool | MessageFormat::Terminus => Vec::new(),
    };
    let complaint = complaint(branch, &conversation, &leaks);
    let note = complaint.or_else(|| evaluated.and_then(|evaluated| wrong_verdict(branch.wanted, &evaluated)));
    let note = note.unwrap_or_default();
    let turns = Some(conversation.turns.len());
    Ok(ExpertRun { name, ok: note.is_empty(), turns, note })
}

fn leaks(assets: &PipelineAssets, hashed_draft: &HashedDraft, conversation: &Conversation) -> Vec<Leak> {
    let task = &hashed_draft.draft.task;
    let recipe = task.blueprint.recipe().and_then(|id| assets.recipes.get(id));
    let script = recipe.map(author_texts).unwrap_or_default();
    let tools = assets.domains.get(&task.blueprint.domain).map_or(&[][..], |domain| domain.tools.as_slice());
    let shown: Vec<_> = conversation.seen.iter().map(|seen| seen.shown.clone()).collect();
    let prompt = &conversation.opening.prompt;
    unseen_literals(&task.environment, &script, tools, prompt, &conversation.turns, &shown)
}

/// All texts of a recipe but its fixtures. An expert's script may use any of them.
fn author_texts(recipe: &Recipe) -> String {
    let texts = recipe.files.iter().filter(|(path, _)| !path.as_str().starts_with("environment/"));
    texts.filter_map(|(_, file)| file.as_text()).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a conversation, if anything.
fn complaint(branch: &Branch, conversation: &Conversation, leaks: &[Leak]) -> Option<String> {
    if let Some(leak) = leaks.first() {
        return Some(format!(
            "turn {} uses `{}`, which the expert has not observed",
            leak.turn + 1,
            leak.literal
        ));
    }
    let fading = fading_checks(branch, conversation);
    if !fading.is_empty() && branch.wanted != Wanted::Fail {
        return Some(format!(
            "checks that show something else at the end of the work (write `lasting = false`): {}",
            fading.join(", ")
        ));
    }
    for (turn, planned) in conversation.turns.iter().zip(&branch.plan.turns) {
        let [Act::Command { command, outcome }] = turn.acts.as_slice() else { continue };
        let failed = !matches!(outcome, None | Some(ShellOutcome::Exited(0)));
        let slip = matches!(planned.role, PlannedRole::Slip { .. });
        if slip && !failed {
            return Some(format!("the slip's command succeeds: {command}"));
        }
        if failed && !slip && branch.wanted != Wanted::Fail {
            return Some(format!("a command fails, {:?}: {command}", planned.role));
        }
    }
    None
}

/// Mistakes whose check was run again at the end of the work and showed something other than the
/// right value.
fn fading_checks<'a>(branch: &'a Branch, conversation: &Conversation) -> Vec<&'a str> {
    let observed = conversation.turns.iter().zip(&conversation.seen).zip(&branch.plan.turns);
    let fading = observed.filter_map(|((turn, seen), planned)| {
        let (PlannedRole::OtherCheck { mistake }, Shows::IfClaimed(right)) = (&planned.role, &planned.shows)
        else {
            return None;
        };
        let [Act::Command { command, .. }] = turn.acts.as_slice() else { return None };
        let output = branch.format.output(&seen.shown.first()?.content, command);
        let shows = Regex::new(right).is_ok_and(|right| right.is_match(&output));
        (!shows).then_some(mistake.as_str())
    });
    fading.collect()
}

/// Why a verdict is not the wanted one. `None` if it is.
fn wrong_verdict(wanted: Wanted, evaluated: &Evaluated) -> Option<String> {
    let verdict = &evaluated.verdict;
    match (wanted, verdict.passed()) {
        (Wanted::Pass, false) => {
            let why = evaluated.log.messages.values().next().map_or("", String::as_str);
            let failed = verdict.checks.iter().filter(|check| !check.passed).map(|check| check.id.as_str());
            Some(format!("does not pass: {} {} {why}", verdict.cause, failed.collect::<Vec<_>>().join(", ")))
        }
        (Wanted::Fail, true) => Some("passes, but must fail".to_owned()),
        (Wanted::Pass, true) | (Wanted::Fail, false) | (Wanted::ScriptHolds, _) => None,
    }
}

/// Whether each mistake names an existing wrong solution or violation. Screening shows that those
/// fail.
fn origins(hashed_draft: &HashedDraft) -> ExpertRun {
    let draft = &hashed_draft.draft;
    let is_known = |from: &str| {
        let wrong = from
            .strip_prefix("wrong:")
            .is_some_and(|name| draft.wrong.iter().any(|wrong| wrong.name == name));
        let violation = from.strip_prefix("clause:").and_then(|place| place.split_once('/'));
        let violated = violation.is_some_and(|(id, name)| {
            let clause = draft.clauses.clause.iter().find(|clause| clause.id == id);
            clause.is_some_and(|clause| clause.violation.iter().any(|violation| violation.name == name))
        });
        wrong || violated
    };
    let unknown: Vec<_> = draft
        .expert
        .mistakes
        .iter()
        .filter(|mistake| !is_known(&mistake.from))
        .map(|mistake| format!("{} is from `{}`, which does not exist", mistake.name, mistake.from))
        .collect();
    ExpertRun {
        name: "mistakes' origins".to_owned(),
        ok: unknown.is_empty(),
        turns: None,
        note: unknown.join("; "),
    }
}

/// Draws pairs from the script without running them, and reports what they are like.
fn drawn(script: &ExpertScript) -> ExpertRun {
    let (mut pairs, mut alike, mut with_mistake, mut difference) = (0_u32, 0_u32, 0_u32, 0_i64);
    for seed in 0..DRAWN_PAIRS {
        let strategy =
            script.strategies.get(usize::try_from(seed).unwrap_or(0) % script.strategies.len().max(1));
        let Some(strategy) = strategy else { continue };
        let pass = passing(script, strategy, Seed(seed));
        with_mistake += u32::from(!pass.mistakes.is_empty());
        let Some(lost) = losing(script, &pass, Seed(seed)) else { continue };
        pairs += 1;
        alike += u32::from(novelty(&lost, &pass) < LEAST_NOVELTY);
        difference += lost.plan.turns.len() as i64 - pass.turns.len() as i64;
    }
    let share = |count: u32| f64::from(count) / f64::from(pairs.max(1));
    let ok = u64::from(pairs) == DRAWN_PAIRS && share(alike) <= MOST_ALIKE && share(with_mistake) >= 0.5;
    ExpertRun {
        name: format!("{DRAWN_PAIRS} drawn pairs"),
        ok,
        turns: None,
        note: format!(
            "{pairs} have a losing side; {alike} of these run much the same after the decision; {with_mistake} passes make a mistake; losing sides are {:+.1} turns longer",
            difference as f64 / f64::from(pairs.max(1)),
        ),
    }
}
