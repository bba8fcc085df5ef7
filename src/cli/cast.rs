//! `import cast`: has a model make tasks from recorded terminal sessions.

use std::collections::BTreeMap;

use super::args::{AuthorArg, HarborMode, RunArgs, Selection, Weights};
use super::args_data::{DataArgs, FailedTurnsArg, PairRewardArg, SftArg};
use super::args_import::CastArgs;
use super::authors::{self, AuthorOptions};
use super::config::Config;
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::{paths, run, say};
use crate::domain::{Authors, Plan};
use crate::model::{Blueprint, Seed};
use crate::pipeline::PipelineAssets;
use crate::recording::{Filters, Recording};

/// The smallest number of a recording's task. A task's number is computed from its recording, so it
/// does not depend on the other recordings. It has seven digits, so it is greater than those of
/// sampled tasks. If two recordings give the same number, the second one takes the next number.
const FIRST: u32 = 1_000_000;
const NUMBERS: u32 = 9_000_000;

pub(super) fn import(config: &Config, args: &CastArgs) -> Outcome {
    paths::check_output_folder(&args.out, "--out")?;
    let assets = config.pipeline_assets()?;
    let filters = Filters::load(&config.assets()?)?;
    // Recordings are sorted by digest, so that the order of the files does not matter. The same
    // recording twice is one.
    let mut accepted = BTreeMap::new();
    let mut refused = 0;
    for path in &args.files {
        let recording = match Recording::read(path) {
            Ok(recording) => recording,
            Err(error) => {
                // One bad file does not stop the others.
                say::note(format!("not imported: {error}"));
                refused += 1;
                continue;
            }
        };
        if let Some(refusal) = filters.refusal(&recording) {
            say::note(format!("not imported: `{}`: {} ({})", path.display(), refusal.reason, refusal.id));
            refused += 1;
            continue;
        }
        accepted.entry(recording.digest.clone()).or_insert(recording);
    }
    let mut recordings = BTreeMap::new();
    let mut plan = Plan { blueprints: Vec::new(), impossible: Vec::new() };
    for recording in accepted.into_values() {
        let blueprint = blueprint(&assets, args, &recording)?;
        let index = free_number(&recordings, blueprint.index)
            .ok_or_else(|| Failure::usage(format!("at most {NUMBERS} recordings can be imported at once")))?;
        plan.blueprints.push(Blueprint { index, ..blueprint });
        recordings.insert(index, recording);
    }
    if plan.blueprints.is_empty() {
        return Err(Failure::new(Status::BadInput, anyhow::anyhow!("no recording can become a task")));
    }
    plan.blueprints.sort_by_key(|blueprint| blueprint.index);
    let author = AuthorOptions {
        writes: true,
        blind: args.blind,
        difficulty_attempts: 0,
        mode: authors::mode(args.oneshot),
        counts: args.stages.counts.clone(),
        recordings,
    };
    let status = run::run_plan(config, &assets, &as_run(args), &plan, author)?;
    Ok(if refused > 0 && status == Status::Ok { Status::Failed } else { status })
}

/// The blueprint of a recording. It depends only on the recording, the domain and the seed.
fn blueprint(assets: &PipelineAssets, args: &CastArgs, recording: &Recording) -> Result<Blueprint, Failure> {
    let seed = Seed(args.seed).derive(&["recording", &recording.digest]);
    let selection = Selection { seed: seed.0, count: 1, only: vec![args.domain.clone()] };
    let plan = run::planned(assets, &selection, Authors::Model)?;
    let blueprint = plan.blueprints.into_iter().next();
    let blueprint = blueprint.ok_or_else(|| Failure::usage(format!("`{}` plans no tasks", args.domain)))?;
    let index = FIRST + u32::try_from(seed.0 % u64::from(NUMBERS)).unwrap_or_default();
    Ok(Blueprint { index, seed, ..blueprint })
}

/// The first free number from `wanted` on. After the last number comes the first.
fn free_number<T>(taken: &BTreeMap<u32, T>, wanted: u32) -> Option<u32> {
    (0..NUMBERS)
        .map(|step| FIRST + (wanted - FIRST + step) % NUMBERS)
        .find(|number| !taken.contains_key(number))
}

/// The same options as arguments of `run`.
fn as_run(args: &CastArgs) -> RunArgs {
    RunArgs {
        out: args.out.clone(),
        selection: Selection { seed: args.seed, count: 0, only: vec![args.domain.clone()] },
        author: AuthorArg::Model,
        blind: Some(args.blind),
        difficulty_attempts: 0,
        stages: args.stages.clone(),
        oneshot: args.oneshot,
        estimate: false,
        model: args.model.clone(),
        attempts: 0,
        scaffolds: Weights::default(),
        jobs: args.jobs,
        shard: None,
        image_prefix: None,
        verifier_mode: HarborMode::Separate,
        rigor: args.rigor,
        data: DataArgs {
            gamma: None,
            sft: SftArg::Passing,
            failed_turns: FailedTurnsArg::Mask,
            pair_reward: PairRewardArg::F2p,
            mask_secrets: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_recordings_have_one_number() {
        const LAST: u32 = FIRST + NUMBERS - 1;
        let check = |wanted: &[u32], expect: &[u32]| {
            let mut taken = BTreeMap::new();
            for wanted in wanted {
                taken.insert(free_number(&taken, *wanted).unwrap(), ());
            }
            assert_eq!(taken.into_keys().collect::<Vec<_>>(), expect, "{wanted:?}");
        };
        check(&[FIRST, FIRST + 5], &[FIRST, FIRST + 5]);
        check(&[FIRST + 5, FIRST + 5, FIRST + 5], &[FIRST + 5, FIRST + 6, FIRST + 7]);
        check(&[FIRST + 6, FIRST + 5, FIRST + 5], &[FIRST + 5, FIRST + 6, FIRST + 7]);
        check(&[LAST, LAST], &[FIRST, LAST]);
    }
}
