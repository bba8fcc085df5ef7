//! Scores of a real model as judge. Run it with
//! `cargo test --test fast judge::real -- --ignored --nocapture`. `TERMSMITH_JUDGE_SETTINGS` is the
//! path of a termsmith.toml. `TERMSMITH_JUDGE_EVERY=6` takes every sixth trajectory.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::{StreamExt as _, stream};
use termsmith::assets::Assets;
use termsmith::judge::{JudgedTrajectory, Label, judge, judge_texts};
use termsmith::llm::{Models, Options, Settings};
use termsmith::store::{RunDir, Store};

use super::table::{cases, tally};

#[tokio::test]
#[ignore = "asks a real model"]
#[allow(clippy::print_stdout, reason = "the table is the result, and is shown with --nocapture")]
async fn scores_of_a_real_model() {
    let settings =
        std::env::var("TERMSMITH_JUDGE_SETTINGS").expect("TERMSMITH_JUDGE_SETTINGS names a settings file");
    let every = std::env::var("TERMSMITH_JUDGE_EVERY").map_or(1, |every| every.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(RunDir::open(dir.path()).unwrap());
    let env = |name: &str| std::env::var(name).ok();
    let models =
        Models::new(Settings::load(Path::new(&settings)).unwrap(), env, &store, Options::default()).unwrap();
    let texts = judge_texts(&Assets::embedded()).unwrap();
    let cases: Vec<_> = cases().into_iter().step_by(every).collect();
    let (models, texts) = (&models, &texts);
    let judged: Vec<_> = stream::iter(&cases)
        .map(|case| async move {
            let (record, shown) = case.recorded();
            let trajectory = JudgedTrajectory { record: &record, shown: &shown, handoffs: &[] };
            (case, judge(models, texts, &case.name, trajectory).await)
        })
        .buffered(cases.len())
        .collect()
        .await;
    let mut others = Vec::new();
    let mut found = Vec::new();
    for (case, judgement) in &judged {
        let judgement = judgement.as_ref().unwrap_or_else(|error| panic!("`{}`: {error}", case.name));
        let labels: BTreeSet<Label> = judgement.labels().collect();
        let free = labels.iter().filter(|label| !label.is_deterministic());
        others.extend(free.map(|label| format!("`{}`: {}", case.name, label.as_str())));
        found.push((*case, labels));
    }
    println!("{}", tally(found.into_iter()).table);
    println!("labels without a judgement by hand:\n{}", others.join("\n"));
    assert_eq!(judged.len(), cases.len());
}
