//! `try` and `verify`: a task directory in the hands of a person.

use std::fmt::Write as _;
use std::path::Path;

use super::args::{TryArgs, VerifyArgs};
use super::config::{Config, Format, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::{say, tty};
use crate::author::Kit;
use crate::harbor::read_task;
use crate::model::{
    EnvironmentDigest, File, FileTree, Outcome as Verdicts, RelPath, Task, Verdict, environment_digest,
};
use crate::sandbox::{Engine, Image, ImageError, ImageSpec, LaunchSpec};
use crate::verify::{Act, Condition, VerifierLog, judge, run_trial, solver_container};

pub(super) fn verify(config: &Config, args: &VerifyArgs) -> Outcome {
    let (task, digest) = load(config, &args.task)?;
    let files = match &args.solution {
        Some(path) => {
            let text = std::fs::read(path).map_err(|error| {
                Failure::new(Status::Io, anyhow::anyhow!("failed to read `{}`: {error}", path.display()))
            })?;
            let mut files = FileTree::default();
            let name = RelPath::new("solve.sh").map_err(Failure::usage)?;
            files.insert(name, File { bytes: text, executable: true });
            files
        }
        None => task.solution.clone(),
    };
    let act = if args.nothing { Act::Nothing } else { Act::Solve(&files) };
    let trial = runtime()?.block_on(async {
        let engine = Engine::docker().await?;
        let trial = async {
            let image = image(&engine, &task, &digest).await?;
            Ok::<_, Failure>(run_trial(&engine, &image, &task, act, Condition::Ordinary).await?)
        }
        .await;
        engine.close().await;
        trial
    })?;
    report(config, &trial.verdict, &trial.log.verifier)
}

pub(super) fn try_task(config: &Config, args: &TryArgs) -> Outcome {
    let (task, digest) = load(config, &args.task)?;
    let (verdict, log) = runtime()?.block_on(async {
        let engine = Engine::docker().await?;
        let tried = attempt(&engine, &task, &digest).await;
        engine.close().await;
        tried
    })?;
    report(config, &verdict, &log)
}

async fn attempt(
    engine: &Engine,
    task: &Task,
    digest: &EnvironmentDigest,
) -> Result<(Verdict, VerifierLog), Failure> {
    let image = image(engine, task, digest).await?;
    let sandbox = engine.launch(&LaunchSpec { purpose: "try", ..solver_container(&image, task) }).await?;
    say::note(format!(
        "{}\n{}\n\nThis is the task's sandbox. Work on it, then leave with `exit` or Ctrl-D to be judged.\n",
        task.title, task.instruction
    ));
    tty::attach(&sandbox, task.subject.workdir()).await?;
    say::note("judging what you left …");
    let judged = judge(engine, &image, task, sandbox).await?;
    Ok((judged.verdict, judged.log))
}

/// Reads one of our task directories, and works out its environment's digest.
fn load(config: &Config, dir: &Path) -> Result<(Task, EnvironmentDigest), Failure> {
    let task = read_task(dir)?.into_task()?;
    let kit = Kit::load(&config.assets()?)?;
    let base = kit.base(&task.base).unwrap_or_default();
    let digest = environment_digest(&task.environment, base);
    Ok((task, digest))
}

async fn image(engine: &Engine, task: &Task, digest: &EnvironmentDigest) -> Result<Image, Failure> {
    let timeout = std::time::Duration::from_secs(task.limits.build_timeout_sec.into());
    let spec = ImageSpec { digest: digest.as_str(), context: &task.environment, timeout };
    engine.ensure_image(&spec).await.map_err(|error| match error {
        ImageError::Engine(error) => error.into(),
        bad => Failure::new(Status::BadInput, bad),
    })
}

fn report(config: &Config, verdict: &Verdict, log: &VerifierLog) -> Outcome {
    match config.format {
        Format::Json => say::json(&serde_json::json!({ "verdict": verdict, "messages": log.messages }))?,
        Format::Text => {
            let mut text = String::new();
            for check in &verdict.checks {
                // Writing to a String cannot fail.
                let _ = match log.messages.get(&check.id) {
                    Some(message) => writeln!(text, "FAIL {}: {}", check.id, message.trim()),
                    None => writeln!(text, "pass {}", check.id),
                };
            }
            let passed = verdict.checks.iter().filter(|check| check.passed).count();
            let _ = writeln!(
                text,
                "{}: {passed} of {} checks {}",
                match verdict.outcome {
                    Verdicts::Pass => "passed",
                    Verdicts::Fail => "failed",
                    Verdicts::Timeout => "timed out",
                    Verdicts::Infra => "no verdict (engine)",
                    Verdicts::VerifierError => "no verdict (verifier)",
                },
                verdict.checks.len(),
                verdict.cause
            );
            say::text(&text)?;
        }
    }
    Ok(if verdict.passed() { Status::Ok } else { Status::Failed })
}
