//! `try` and `verify`: work on one task directory by hand.

use std::fmt::Write as _;
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::args_tasks::{TryArgs, VerifyArgs};
use super::config::{Config, Format, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::paths::{self, Expected};
use super::{say, tty};
use crate::author::AuthorAssets;
use crate::folder::{Bounds, read_named_by_user, read_tree};
use crate::harbor::{IntoTaskError, read_task};
use crate::model::{Assume, File, FileTree, Outcome as Verdicts, RelPath, Verdict, environment_digest};
use crate::sandbox::{Engine, ImageError, ImageSpec, LaunchSpec};
use crate::verify::{
    Act, Condition, HashedTask, Images, JudgedSteps, Retain, Target as _, TrialContext, VerifierLog,
    run_trial,
};

/// The file of a solution that is run, as in Harbor's task directories.
const SCRIPT: &str = "solve.sh";

/// Limits of a solution. It is held in memory and uploaded. A larger folder is probably the wrong
/// one.
const SOLUTION_BOUNDS: Bounds = Bounds { files: 10_000, depth: 32, bytes: 256 << 20 };

pub(super) fn verify(config: &Config, args: &VerifyArgs) -> Outcome {
    let hashed = load(config, &args.task)?;
    let given = args.solution.as_deref().map(solution).transpose()?;
    let files = given.as_ref().map_or_else(|| hashed.task.solution.clone(), |given| given.files.clone());
    let act = if args.nothing { Act::Nothing } else { Act::Solve(&files) };
    let trial = runtime()?.block_on(async {
        let engine = config.engine.connect().await?;
        let trial = async {
            let images = images(&engine, &hashed).await?;
            let never = CancellationToken::new();
            Ok::<_, Failure>(run_trial(&engine, &images, &hashed, act, Condition::Ordinary, &never).await?)
        }
        .await;
        engine.close().await;
        trial
    })?;
    let status = report(config, &trial.verdict, &trial.log.verifier)?;
    if status != Status::Ok
        && let Some(hint) = given.and_then(|given| given.hint)
    {
        say::note(hint);
    }
    Ok(status)
}

/// The solution that `--solution` names.
struct Solution {
    files: FileTree,
    /// What the user can try if it does not pass.
    hint: Option<String>,
}

/// Reads a script, which becomes `solve.sh`, or a folder with a `solve.sh`.
fn solution(path: &Path) -> Result<Solution, Failure> {
    paths::check(path, Expected::Solution)?;
    if path.is_dir() {
        let files = read_tree(path, &SOLUTION_BOUNDS)?;
        if files.get(SCRIPT).is_none() {
            return Err(Expected::Solution.failure(path, "has no `solve.sh`"));
        }
        return Ok(Solution { files, hint: None });
    }
    let bytes = read_named_by_user(path, SOLUTION_BOUNDS.bytes)?;
    let hint = uses_files_beside_it(path, &String::from_utf8_lossy(&bytes)).then(|| {
        format!(
            "hint: only `{}` was copied into the sandbox, as /solution/solve.sh. If it uses files beside it, call it solve.sh and give \
             its folder: --solution {}",
            path.display(),
            folder_of(path).display()
        )
    });
    let mut files = FileTree::default();
    files.insert(RelPath::new(SCRIPT).map_err(Failure::usage)?, File { bytes, executable: true });
    Ok(Solution { files, hint })
}

/// Whether a script uses its own path, or names a file beside it.
fn uses_files_beside_it(path: &Path, script: &str) -> bool {
    let asks = ["dirname", "BASH_SOURCE", "/solution/"].iter().any(|word| script.contains(word));
    let siblings = std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    let named = siblings
        .map(|entry| entry.file_name())
        .filter(|name| Some(name.as_os_str()) != path.file_name())
        .any(|name| script.contains(&*name.to_string_lossy()));
    asks || named
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn try_task(config: &Config, args: &TryArgs) -> Outcome {
    let hashed = load(config, &args.task)?;
    let (verdict, log) = runtime()?.block_on(async {
        let engine = config.engine.connect().await?;
        let tried = attempt(&engine, &hashed).await;
        engine.close().await;
        tried
    })?;
    report(config, &verdict, &log)
}

async fn attempt(engine: &Engine, hashed: &HashedTask<'_>) -> Result<(Verdict, VerifierLog), Failure> {
    let images = images(engine, hashed).await?;
    let context = TrialContext::new(engine, &images, hashed, Condition::Ordinary).await?;
    let sandbox = engine.launch(&LaunchSpec { purpose: "try", ..hashed.solver(&context) }).await?;
    let task = &hashed.task;
    say::note(format!(
        "{}\n{}\n\nThis is the task's sandbox. Leave with `exit` or Ctrl-D to have your work judged.\n",
        task.title, task.instruction
    ));
    tty::attach(&sandbox, task.submission.workdir()).await?;
    say::note("judging …");
    let mut judged = JudgedSteps::default();
    judged.add(hashed.judge(&context, 0, sandbox, Retain::Nothing).await);
    let verdict = judged.verdict(hashed, Assume::Nothing)?;
    Ok((verdict, judged.log))
}

/// Reads a task directory of termsmith's own, and computes its environment's digest.
fn load(config: &Config, dir: &Path) -> Result<HashedTask<'static>, Failure> {
    paths::check(dir, Expected::TaskDirectory)?;
    let task = read_task(dir)?.into_task().map_err(|error| {
        let message = format!("`{}`: {error}", dir.display());
        let hint = match error {
            IntoTaskError::Foreign { .. } => {
                "\nhint: `termsmith rollout` and `termsmith screen` take tasks of any origin"
            }
            IntoTaskError::Format { .. } | IntoTaskError::Malformed { .. } => "",
        };
        Failure::message(Status::BadInput, message + hint)
    })?;
    let kit = AuthorAssets::load(&config.assets()?)?;
    let base = kit.base(&task.base).unwrap_or_default();
    let digest = environment_digest(&task.environment, base);
    Ok(HashedTask::owned(task, digest)?)
}

async fn images(engine: &Engine, hashed: &HashedTask<'_>) -> Result<Images, Failure> {
    let HashedTask { task, environment_digest: digest, .. } = hashed;
    let timeout = std::time::Duration::from_secs(task.limits.build_timeout_sec.into());
    let spec = ImageSpec { digest: digest.as_str(), context: &task.environment, timeout };
    engine.ensure_image(&spec).await.map(Images::from).map_err(|error| match error {
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
                "{}: {passed} of {} checks passed{}{}",
                match verdict.outcome {
                    Verdicts::Pass => "passed",
                    Verdicts::Fail => "failed",
                    Verdicts::Timeout => "timed out",
                    Verdicts::Infra => "no verdict (engine)",
                    Verdicts::VerifierError => "no verdict (verifier)",
                },
                verdict.checks.len(),
                if verdict.cause.is_empty() { "" } else { "; " },
                verdict.cause
            );
            say::text(&text)?;
        }
    }
    Ok(if verdict.passed() { Status::Ok } else { Status::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solution_is_a_script_or_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("alone/mine.sh", "echo done\n"),
            ("asks/mine.sh", "cp \"$(dirname \"$0\")/data\" .\n"),
            ("names/mine.sh", "python3 /solution/fix.py\n"),
            ("beside/mine.sh", "cp data.csv out\n"),
            ("beside/data.csv", "1\n"),
            ("folder/solve.sh", "bash /solution/lib/more.sh\n"),
            ("folder/lib/more.sh", "true\n"),
            ("empty/README.md", "\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let check = |path: &str, expect: Result<(&[&str], bool), &str>| match (
            solution(&dir.path().join(path)),
            expect,
        ) {
            (Ok(found), Ok((names, hint))) => {
                let found_names: Vec<_> = found.files.iter().map(|(path, _)| path.as_str()).collect();
                assert_eq!((found_names.as_slice(), found.hint.is_some()), (names, hint), "{path}");
            }
            (Err(failure), Err(part)) => {
                let text = failure.error.to_string();
                assert!(text.contains(part) && text.contains(path) && text.contains("hint:"), "{text}");
            }
            (found, _) => panic!("{path}: {}", found.is_ok()),
        };
        check("alone/mine.sh", Ok((&["solve.sh"], false)));
        check("asks/mine.sh", Ok((&["solve.sh"], true)));
        check("names/mine.sh", Ok((&["solve.sh"], true)));
        check("beside/mine.sh", Ok((&["solve.sh"], true)));
        check("folder", Ok((&["lib/more.sh", "solve.sh"], false)));
        check("empty", Err("has no `solve.sh`"));
        check("none", Err("does not exist"));
    }
}
