//! `recipe`: list, render and check recipes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;

use super::config::{Config, Format, jobs, run_to_write, runtime};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::inspect::{clauses, rows};
use super::interrupt::Interrupts;
use super::rows::only;
use super::screen::cost;
use super::{former, paths, say};
use crate::author::Recipe;
use crate::domain::{Domains, plan};
use crate::folder::{LARGEST_TEXT, read_file};
use crate::harbor::{CLAUSES, Publication, parse_manifest};
use crate::model::{Blueprint, Difficulty, FileTree, RecipeId, Rigor, Seed};
use crate::pipeline::{Fault, PipelineAssets, Rehearsal, Scope, Upcoming, add_clauses, hash_draft, rehearse};
use crate::screen::Only;
use crate::store::{parent_of, publish_tree};
use crate::verify::{EngineOnDemand, Slots, TrialRunner, Watcher};

/// Further draws of held-out inputs at `--rigor standard`. There are few, since each costs a trial
/// of two solutions.
const STANDARD_DRAWS: u32 = 2;
/// Further draws at `--rigor full`. Tests of the shipped recipes make 50 to 300 inputs from one
/// draw, so these are at least 500 inputs.
const FULL_DRAWS: u32 = 10;

/// Recipes that are checked at once. The last trials of a recipe are few and long. Without other
/// recipes, most slots would be empty.
const AT_ONCE: usize = 3;

/// The arguments of `recipe check`.
pub(super) struct CheckOptions {
    pub(super) names: Vec<String>,
    pub(super) seeds: u32,
    pub(super) from: u64,
    pub(super) out: Option<PathBuf>,
    pub(super) jobs: Option<u32>,
    pub(super) rigor: Rigor,
    /// Further draws of the tests' random inputs. `None` for the number of the rigor.
    pub(super) draws: Option<u32>,
    pub(super) only: Vec<String>,
}

pub(super) fn list(config: &Config) -> Outcome {
    let assets = config.pipeline_assets()?;
    if config.format == Format::Json {
        say::json(&assets.recipes.keys().collect::<Vec<_>>())?;
        return Ok(Status::Ok);
    }
    for (id, recipe) in &assets.recipes {
        let kinds: Vec<_> = recipe.decl.kinds.iter().map(|kind| kind.as_str()).collect();
        say::line(format!("{:<44} {:<34} {}", id.as_str(), kinds.join(", "), recipe.decl.title))?;
    }
    for domain in assets.domains.keys() {
        if !assets.recipes.keys().any(|id| id.as_str().starts_with(&format!("{domain}/"))) {
            say::line(format!("{domain}: no recipe yet; `termsmith new recipe {domain}/NAME` starts one"))?;
        }
    }
    Ok(Status::Ok)
}

pub(super) fn render(
    config: &Config,
    name: &str,
    seed: u64,
    difficulty: Option<Difficulty>,
    out: &Path,
) -> Outcome {
    paths::check_output_folder(out, "--out")?;
    let assets = config.pipeline_assets()?;
    let recipe = find(&assets, name)?;
    let scratch = tempfile::tempdir().map_err(Failure::io("make a temporary folder"))?;
    let store = run_to_write(&scratch.path().join("store"))?;
    let difficulty = difficulty.or_else(|| nth_difficulty(recipe, 0));
    let blueprint = blueprint(&assets, recipe, seed, difficulty)?;
    let hashed = hash_draft(&assets, &store, &blueprint, &Publication::default())?;
    let mut files = hashed.directory;
    add_clauses(&mut files, &hashed.draft.task.name, &hashed.draft.clauses).map_err(Fault::from)?;
    check_replaceable(out, &files)?;
    // The temporary folder lies beside the result, since a rename does not cross file systems.
    let parent = parent_of(out);
    std::fs::create_dir_all(parent).map_err(Failure::io("make the folder of --out"))?;
    let beside = tempfile::tempdir_in(parent).map_err(Failure::io("make a temporary folder"))?;
    publish_tree(beside.path(), out, &files)?;
    say::line(format!("wrote {}", out.display()))?;
    Ok(Status::Ok)
}

/// Refuses to replace a folder that is not an earlier rendering, because everything in it would be
/// removed. A rendering has only the entries of `files`, and its `task.toml` names the recipe.
fn check_replaceable(out: &Path, files: &FileTree) -> Result<(), Failure> {
    let unreadable = || Failure::io("read the folder of --out");
    let entries = match std::fs::read_dir(out) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable()(error)),
    };
    let mut is_empty = true;
    let mut other = None;
    for entry in entries {
        let name = entry.map_err(unreadable())?.file_name().to_string_lossy().into_owned();
        is_empty = false;
        let of_renderings = name == CLAUSES
            || files.iter().any(|(path, _)| path.as_str().split('/').next() == Some(name.as_str()));
        if !of_renderings {
            other = Some(name);
        }
    }
    let why = match other {
        _ if is_empty => return Ok(()),
        Some(name) => format!("it has `{name}`"),
        None if !names_a_recipe(&out.join("task.toml")) => {
            "it has no `task.toml` that names a recipe".to_owned()
        }
        None => return Ok(()),
    };
    Err(Failure::message(
        Status::Io,
        format!(
            "`{}` cannot be replaced, because it is not an earlier rendering: {why}\nhint: give a new or an empty folder as --out",
            out.display()
        ),
    ))
}

/// Whether termsmith wrote this `task.toml` for a recipe's task. The table `metadata.termsmith`
/// alone is no proof: tasks of other makers have lint settings there.
fn names_a_recipe(manifest: &Path) -> bool {
    let text = read_file(manifest, LARGEST_TEXT).ok().flatten();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let manifest = text.and_then(|text| parse_manifest(&text).ok());
    let metadata = manifest.and_then(|(manifest, _)| manifest.metadata);
    metadata.is_some_and(|metadata| metadata.get("termsmith").and_then(|table| table.get("recipe")).is_some())
}

pub(super) fn check(config: &Config, options: &CheckOptions) -> Outcome {
    if let Some(out) = &options.out {
        paths::check_output_folder(out, "--out")?;
    }
    let scope = scope(&options.only)?;
    let draws = options.draws.unwrap_or(match (&scope, options.rigor) {
        (Scope::Rows(_) | Scope::Expert, _) | (Scope::All, Rigor::Quick) => 0,
        (Scope::All, Rigor::Standard) => STANDARD_DRAWS,
        (Scope::All, Rigor::Full) => FULL_DRAWS,
    });
    let assets = config.pipeline_assets()?;
    let recipes: Vec<&Recipe> = if options.names.is_empty() {
        assets.recipes.values().collect()
    } else {
        options.names.iter().map(|name| find(&assets, name)).collect::<Result<_, _>>()?
    };
    let scratch = tempfile::tempdir().map_err(Failure::io("make a temporary folder"))?;
    let out = options.out.as_deref().unwrap_or(scratch.path());
    let store = run_to_write(out)?;
    former::note(out, &store, Upcoming::Screening)?;
    let mut work = Vec::new();
    for recipe in recipes {
        for nth in 0..options.seeds {
            let difficulty = nth_difficulty(recipe, nth);
            work.push(blueprint(&assets, recipe, options.from + u64::from(nth), difficulty)?);
        }
    }
    let slots = Slots::new(jobs(options.jobs) as usize);
    let engine = EngineOnDemand::new(config.engine);
    let ended = runtime()?.block_on(async {
        let interrupts = Interrupts::listen()?;
        let runner = TrialRunner {
            engine: &engine,
            store: &store,
            slots: &slots,
            priority: 0,
            drain: &interrupts.drain,
            watcher: Watcher::default(),
        };
        let mut problems = 0;
        let mut finished = 0;
        let rehearsals = work.iter().map(async |blueprint| {
            if interrupts.drain.is_cancelled() {
                return (blueprint, Err(Fault::Drained));
            }
            let rehearsed = tokio::select! {
                biased;
                () = interrupts.kill.cancelled() => Err(Fault::Drained),
                rehearsed = rehearse(&runner, &assets, blueprint, options.rigor, draws, &scope) => rehearsed,
            };
            (blueprint, rehearsed)
        });
        let mut rehearsals = std::pin::pin!(futures_util::stream::iter(rehearsals).buffered(AT_ONCE));
        let mut failed = None;
        while let Some((blueprint, rehearsed)) = rehearsals.next().await {
            let ended = match rehearsed {
                Ok(rehearsal) => {
                    finished += 1;
                    problems += rehearsal.problems.len();
                    report(config, blueprint, &rehearsal)
                }
                // A recipe that cannot be rendered is a problem to report. The others are still
                // checked.
                Err(fault @ (Fault::Author(_) | Fault::Directory(_))) => {
                    finished += 1;
                    problems += 1;
                    say::note(format!("{}\n  → {fault}\n", recipe_of(blueprint)));
                    Ok(())
                }
                Err(Fault::Drained) => Ok(()),
                Err(fault) => Err(Failure::from(fault)),
            };
            if let Err(failure) = ended {
                // The other checks finish and store their trials in progress, and begin no further
                // ones.
                interrupts.drain.cancel();
                failed.get_or_insert(failure);
            }
        }
        engine_close(&engine).await;
        failed.map_or(Ok::<_, Failure>((problems, finished)), Err)
    });
    let (problems, finished) = ended?;
    if config.format == Format::Text {
        let wrong = if problems == 0 { "no problems".to_owned() } else { format!("{problems} problems") };
        say::line(if finished < work.len() {
            format!("interrupted after {finished} of {} checks, {wrong} so far", work.len())
        } else {
            format!("{finished} checks, {wrong}")
        })?;
    }
    Ok(match problems {
        _ if finished < work.len() => Status::Interrupted,
        0 => Status::Ok,
        _ => Status::Failed,
    })
}

/// The part of a check that `--only` selects.
fn scope(rows: &[String]) -> Result<Scope, Failure> {
    if let [row] = rows
        && row == "expert"
    {
        return Ok(Scope::Expert);
    }
    Ok(match only(rows)? {
        Only::All => Scope::All,
        only @ Only::Rows(_) => Scope::Rows(only),
    })
}

async fn engine_close(engine: &EngineOnDemand) {
    if let Some(engine) = engine.connected() {
        engine.close().await;
    }
}

fn report(config: &Config, blueprint: &Blueprint, rehearsal: &Rehearsal) -> Result<(), Failure> {
    if config.format == Format::Json {
        say::json(&serde_json::json!({
            "recipe": blueprint.recipe(),
            "seed": blueprint.seed,
            "difficulty": blueprint.difficulty,
            "certificate": rehearsal.certificate,
            "cost": rehearsal.cost,
            "expert_runs": rehearsal.expert_runs,
            "redrawn": rehearsal.redrawn,
            "problems": rehearsal.problems,
        }))?;
        return Ok(());
    }
    let mut text = format!(
        "{} seed {} {} {}\n",
        recipe_of(blueprint),
        blueprint.seed,
        blueprint.difficulty.as_str(),
        blueprint.kind.as_str()
    );
    text.push_str(&rows(&rehearsal.certificate));
    text.push_str(&clauses(&rehearsal.certificate));
    text.push_str(&cost(&rehearsal.cost));
    for redrawn in &rehearsal.redrawn {
        let mark = if redrawn.failure.is_none() { "ok " } else { "BAD" };
        let share = format!("{} of {} draws", redrawn.passed, redrawn.draws);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{mark} {:<18} {:<28} {share}", "redraw", redrawn.solution);
    }
    for run in &rehearsal.expert_runs {
        let mark = if run.ok { "ok " } else { "BAD" };
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{mark} {:<18} {:<28} {:<16} {}", "expert", run.name, run.turns_text(), run.note);
    }
    for problem in &rehearsal.problems {
        let _ = writeln!(text, "  → {problem}");
    }
    text.push('\n');
    say::text(&text)?;
    Ok(())
}

fn recipe_of(blueprint: &Blueprint) -> &str {
    blueprint.recipe().map_or("", RecipeId::as_str)
}

fn find<'a>(assets: &'a PipelineAssets, name: &str) -> Result<&'a Recipe, Failure> {
    assets.recipes.get(name).ok_or_else(|| {
        let known: Vec<_> = assets.recipes.keys().map(RecipeId::as_str).collect();
        Failure::usage(format!("no recipe `{name}`\nhint: known recipes: {}", known.join(", ")))
    })
}

/// Difficulties alternate, so that a few checks cover all of them.
fn nth_difficulty(recipe: &Recipe, nth: u32) -> Option<Difficulty> {
    recipe.decl.difficulties.iter().cycle().nth(nth as usize).copied()
}

/// A blueprint of this recipe. Its difficulty is `difficulty`, or the planned one.
fn blueprint(
    assets: &PipelineAssets,
    recipe: &Recipe,
    seed: u64,
    difficulty: Option<Difficulty>,
) -> Result<Blueprint, Failure> {
    let declared = &recipe.decl.difficulties;
    if let Some(difficulty) = difficulty.filter(|difficulty| !declared.contains(difficulty)) {
        let known: Vec<_> = declared.iter().map(|difficulty| difficulty.as_str()).collect();
        let (id, wanted) = (&recipe.id, difficulty.as_str());
        return Err(Failure::usage(format!(
            "recipe `{id}` has no difficulty `{wanted}`\nhint: it declares {}",
            known.join(", ")
        )));
    }
    let only = BTreeMap::from([(recipe.id.clone(), recipe.decl.clone())]);
    let plan = plan(&assets.domains, &only, Seed(seed), 1, &Domains::All);
    let impossible = || {
        let reasons: Vec<_> = plan.impossible.iter().map(ToString::to_string).collect();
        let message = format!("recipe `{}` cannot be planned: {}", recipe.id, reasons.join("; "));
        Failure::message(Status::BadInput, message)
    };
    let mut blueprint = plan.blueprints.first().cloned().ok_or_else(impossible)?;
    blueprint.difficulty = difficulty.unwrap_or(blueprint.difficulty);
    Ok(blueprint)
}
