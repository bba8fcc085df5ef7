//! The trials that run with and without faults: untouched, reference and a known wrong solution.
//! There is a task for each way of judging.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use termsmith::harbor::read_task;
use termsmith::model::{File, FileTree, Outcome, RelPath, Task, environment_digest};
use termsmith::sandbox::{Engine, Image};
use termsmith::store::{RunDir, Store};
use termsmith::verify::{Act, Condition, Foreign, HashedTask, Target, TrialError, TrialRecord, TrialRunner};

use crate::support::corpus::task_dir;
use crate::support::runner::RunnerParts;
use crate::support::task::{Shape, task, tree};

/// Number of trials at once.
const LANES: usize = 2;

/// A task, and how it is judged.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    target: Box<dyn Target>,
    reference: FileTree,
    wrong: FileTree,
    image: Image,
}

/// The act of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Untouched,
    Reference,
    Wrong,
}

pub(crate) const ACTIONS: [Action; 3] = [Action::Untouched, Action::Reference, Action::Wrong];

/// A trial's name: the task's name, and the action.
pub(crate) type Name = (&'static str, Action);

/// Committed trials by name.
pub(crate) type Verdicts = BTreeMap<Name, TrialRecord>;

/// A run folder.
pub(crate) struct Run {
    _dir: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Run {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(RunDir::open(dir.path()).unwrap());
        Self { _dir: dir, store }
    }
}

/// The result of one call.
#[derive(Debug, Default)]
pub(crate) struct Called {
    pub(crate) verdicts: Verdicts,
    /// Trials without a result, with the reason.
    pub(crate) open: BTreeMap<Name, String>,
}

/// How long the containers of a trial live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A fraction of a second on an idle machine.
    Ordinary,
    /// At least [`SLOW`]. So a container can be ended while it works, even on a fast machine.
    Slow,
}

/// In [`Pace::Slow`], solutions and tests first sleep for this time.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// Tasks that the clean room judges (files alone, programs, a service), and tasks that are judged
/// in place (shared, separate).
pub(crate) async fn subjects(engine: &Engine, pace: Pace) -> Vec<Subject> {
    let mut subjects = vec![
        ours("files", task(Shape::Files), pace),
        ours("programs", task(Shape::Programs), pace),
        ours("service", task(Shape::Service), pace),
        foreign("shared", "sound-report", SHARED_WRONG, pace),
        foreign("separate", "sound-separate-verifier", SEPARATE_WRONG, pace),
    ];
    // The images are built here, so that no fault meets a build.
    let run = Run::new();
    for subject in &mut subjects {
        with_runner(engine.clone(), &run, async |runner| subject.build(runner).await).await;
    }
    subjects
}

/// Totals of the wrong regions.
const SHARED_WRONG: &str = "echo '{\"total\": 1, \"count\": 2, \"by_region\": {}}' >/app/report.json\n";
/// Addresses with another status.
const SEPARATE_WRONG: &str = "awk '$4 >= 400 { print $1 }' /app/access.log >/app/errors.txt\n";
/// Solves half of our own task.
const OURS_WRONG: &str =
    "echo 5050 >sum.txt\nmkdir -p bin; printf '#!/bin/sh\\necho 4\\n' >bin/total; chmod 755 bin/total\n";

fn ours(name: &'static str, mut task: Task, pace: Pace) -> Subject {
    if pace == Pace::Slow {
        let seconds = SLOW.as_secs();
        put_first(&mut task.solution, "solve.sh", &format!("sleep {seconds}\n"));
        put_first(&mut task.tests, "test_outputs.py", &format!("import time\ntime.sleep({seconds})\n"));
    }
    let digest = environment_digest(&task.environment, "core");
    let reference = task.solution.clone();
    let target = Box::new(HashedTask::owned(task, digest).unwrap());
    Subject { name, target, reference, wrong: tree(&[("solve.sh", OURS_WRONG)]), image: Image::named("") }
}

fn foreign(name: &'static str, folder: &str, wrong: &str, pace: Pace) -> Subject {
    let mut task = read_task(&task_dir(folder)).unwrap();
    if pace == Pace::Slow {
        for script in ["solution/solve.sh", "tests/test.sh"] {
            put_first(&mut task.files, script, &format!("#!/bin/bash\nsleep {}\n", SLOW.as_secs()));
        }
    }
    let task = Foreign::new(&task).unwrap();
    let reference = task.solution().unwrap().clone();
    let wrong = tree(&[("solve.sh", wrong)]);
    Subject { name, target: Box::new(task), reference, wrong, image: Image::named("") }
}

/// Puts `text` before the content of a file.
fn put_first(tree: &mut FileTree, name: &str, text: &str) {
    let File { bytes, executable } = tree.get(name).unwrap().clone();
    let bytes = [text.as_bytes(), &bytes].concat();
    tree.insert(RelPath::new(name).unwrap(), File { bytes, executable });
}

async fn with_runner<T>(engine: Engine, run: &Run, work: impl AsyncFnOnce(&TrialRunner<'_>) -> T) -> T {
    let parts = RunnerParts::new(engine, LANES);
    work(&parts.runner(&run.store)).await
}

impl Subject {
    async fn build(&mut self, runner: &TrialRunner<'_>) {
        self.target.build(runner).await.unwrap().unwrap();
        self.image = self.target.images(runner, Condition::Ordinary).await.unwrap().solver;
    }

    /// The name of the image for its solver.
    pub(crate) fn image(&self) -> String {
        self.image.reference().to_owned()
    }

    async fn trial(&self, action: Action, runner: &TrialRunner<'_>) -> Result<TrialRecord, TrialError> {
        let act = match action {
            Action::Untouched => Act::Nothing,
            Action::Reference => Act::Solve(&self.reference),
            Action::Wrong => Act::Solve(&self.wrong),
        };
        let trial = runner.trial(&*self.target, act, Condition::Ordinary, 0).await;
        trial.map(|(record, _)| record)
    }
}

/// Runs every trial of these subjects once, as one call of termsmith would. Committed trials are
/// not run again.
pub(crate) async fn call(engine: &Engine, run: &Run, subjects: &[&Subject], actions: &[Action]) -> Called {
    let mut called = Called::default();
    with_runner(engine.clone(), run, async |runner| {
        let trials =
            subjects.iter().flat_map(|subject| actions.iter().map(move |action| (*subject, *action)));
        let mut ended = futures_util::stream::iter(trials)
            .map(async |(subject, action)| ((subject.name, action), subject.trial(action, runner).await))
            .buffer_unordered(LANES);
        while let Some((name, ended)) = ended.next().await {
            match ended {
                Ok(record) => drop(called.verdicts.insert(name, record)),
                Err(error) => drop(called.open.insert(name, error.to_string())),
            }
        }
    })
    .await;
    called
}

/// How these verdicts differ from those of the faultless run.
pub(crate) fn differences(verdicts: &Verdicts, faultless: &Verdicts) -> Vec<String> {
    let differs = |(name, record): &(&Name, &TrialRecord)| faultless.get(*name) != Some(*record);
    verdicts
        .iter()
        .filter(differs)
        .map(|(name, record)| format!("{name:?}: {record:?}, and without faults {:?}", faultless.get(name)))
        .collect()
}

/// Checks the faultless run itself: every verdict is right, and different actions have different
/// verdicts.
pub(crate) fn assert_faultless(called: &Called, subjects: &[&Subject], actions: &[Action]) {
    assert!(called.open.is_empty(), "{:?}", called.open);
    for ((name, action), record) in &called.verdicts {
        let expect = if *action == Action::Reference { Outcome::Pass } else { Outcome::Fail };
        assert_eq!(record.verdict.outcome, expect, "{name} {action:?}: {record:?}");
        assert!(!record.verdict.checks.is_empty() || record.verdict.cause.is_empty(), "{name}: {record:?}");
    }
    assert_eq!(called.verdicts.len(), subjects.len() * actions.len());
}

/// Stored records that say that a trial has no verdict. There must be none.
pub(crate) fn stored_without_verdict(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![run.store.dir().root().join("store")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let flat: String = text.split_whitespace().collect();
            if ["infra", "verifier_error"].iter().any(|bad| flat.contains(&format!("\"outcome\":\"{bad}\"")))
            {
                found.push(format!("{}: {text}", path.display()));
            }
        }
    }
    found
}
