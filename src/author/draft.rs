//! Turns a blueprint and a recipe into a draft.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::value::{Serde, Value};
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use regex::Regex;

use super::canary::canary;
use super::clauses::{Parts, clauses};
use super::expert::expert;
use super::interface::interface;
use super::render::Renderer;
use super::seeded::Vocabulary;
use super::{AuthorError, Recipe};
use crate::assets::Assets;
use crate::domain::{RecipeDecl, VariantsDecl};
use crate::harbor::task_name;
use crate::model::{
    Blueprint, CheckId, Draft, File, FileTree, Limits, RelPath, Seed, SubmissionSpec, Task, Variant,
    WrongSolution,
};
use crate::mutate::variants;

/// The end of a Dockerfile. It is the same for all recipes.
const DEFAULT_DOCKERFILE_TAIL: &str = "COPY app/ /app/\nWORKDIR /app\n";

/// Assets that all recipes share: bases, the verifier's own files, and the word lists.
#[derive(Clone, Debug)]
pub struct AuthorAssets {
    bases: BTreeMap<String, String>,
    verifier: FileTree,
    words: Vocabulary,
    variants: Vec<Variant>,
}

impl AuthorAssets {
    /// Reads the shared templates.
    pub fn load(assets: &Assets) -> Result<Self, AuthorError> {
        let missing = |path: &str| AuthorError::MissingTemplate(path.to_owned());
        let mut bases = BTreeMap::new();
        for (path, bytes, _) in assets.files_under("templates/bases") {
            if let Some(name) = path.as_str().strip_suffix("/Dockerfile")
                && let Ok(text) = String::from_utf8(bytes.to_vec())
            {
                bases.insert(name.to_owned(), text);
            }
        }
        let mut verifier = FileTree::default();
        for (path, bytes, executable) in assets.files_under("templates/verifier") {
            verifier.insert(path, File { bytes: bytes.to_vec(), executable });
        }
        if verifier.is_empty() {
            return Err(missing("verifier"));
        }
        let lines = |path: &str| -> Result<Vec<String>, AuthorError> {
            let text = assets.text(&format!("templates/words/{path}")).ok_or_else(|| missing(path))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        let words = Vocabulary { nouns: lines("nouns.txt")?, people: lines("people.txt")? };
        Ok(Self { bases, verifier, words, variants: variants(assets)? })
    }

    /// The text that a base's Dockerfiles begin with.
    pub fn base(&self, name: &str) -> Option<&str> {
        self.bases.get(name).map(String::as_str)
    }

    /// Variants that are legal for every task.
    pub fn unconditional_variants(&self) -> Vec<Variant> {
        self.variants.iter().filter(|variant| !variant.conditional).cloned().collect()
    }

    /// The interface of the module that tests use to reach the solver's work: signatures and
    /// docstrings.
    pub fn subject_interface(&self) -> String {
        interface(self.verifier.text("subject.py").unwrap_or_default())
    }

    /// Hash over all shared assets. It is part of a draft's key.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (name, text) in &self.bases {
            part(name.as_bytes());
            part(text.as_bytes());
        }
        for (path, file) in self.verifier.iter() {
            part(path.as_str().as_bytes());
            part(&[u8::from(file.executable)]);
            part(&file.bytes);
        }
        for variant in &self.variants {
            for text in [&variant.name, &variant.title, &variant.script, &variant.legal] {
                part(text.as_bytes());
            }
            part(&[variant.applies as u8, u8::from(variant.conditional)]);
        }
        for word in self.words.nouns.iter().chain(&self.words.people) {
            part(word.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Renders `recipe` for `blueprint`. `limits` are the domain's.
pub fn draft(
    shared: &AuthorAssets,
    recipe: &Recipe,
    blueprint: &Blueprint,
    limits: &Limits,
) -> Result<Draft, AuthorError> {
    let decl = &recipe.decl;
    let name = task_name(blueprint);
    let renderer = Renderer {
        recipe: recipe.id.as_str(),
        files: &recipe.files,
        seed: blueprint.seed,
        words: &shared.words,
    };
    let contexts = contexts(&renderer, recipe, blueprint, name.as_str())?;
    let need = |file: &str, hint: &'static str| AuthorError::MissingFile {
        recipe: recipe.id.to_string(),
        file: file.to_owned(),
        hint,
    };

    let canary = canary(&name, blueprint.seed);
    let instruction = renderer
        .one("instruction.md", &contexts.full)?
        .and_then(|file| file.as_text().map(str::to_owned))
        .ok_or_else(|| need("instruction.md.j2", "it is what a solver reads"))?;
    let environment = environment(shared, &renderer, recipe, &contexts.full)?;
    let solution = solution_files(&renderer, "solution", &contexts.full)?;
    let second = solution_files(&renderer, "second", &contexts.full)?;
    let submission = SubmissionSpec {
        roots: decl.submission.roots.clone(),
        programs: decl.submission.programs,
        bring_up: decl.submission.bring_up.clone(),
        shared_because: decl.submission.shared_because.clone(),
    };
    let limits = decl.limits.over(limits);
    let shipping =
        Shipping { environment: &environment, canary: &canary, submission: &submission, limits: &limits };
    let tests = tests(shared, &renderer, &contexts.full, shipping)?;
    let checks = check_ids(tests.text("test_outputs.py").unwrap_or_default());
    let weights = weights(recipe, &checks)?;
    let mut wrong = Vec::new();
    for declared in &decl.wrong {
        let path = format!("wrong/{}.sh", declared.name);
        let script = renderer
            .one(&path, &contexts.full)?
            .ok_or_else(|| need(&path, "every [[wrong]] of recipe.toml has a script of its name"))?;
        let mut files = solution.clone();
        files.insert(rel("solve.sh"), script);
        wrong.push(WrongSolution { name: declared.name.clone(), why: declared.why.clone(), files });
    }
    let parts = Parts { instruction: &instruction, solution: &solution, checks: &checks, wrong: &wrong };
    let clauses = clauses(&renderer, &contexts.full, &parts)?;
    let expert = expert(&renderer, &contexts.public)?;
    let variants = legal_variants(shared, &renderer, decl, &contexts.full)?;
    let task = Task {
        name,
        title: decl.title.clone(),
        blueprint: blueprint.clone(),
        base: decl.base.clone(),
        recipe_version: decl.version,
        canary,
        instruction: instruction.trim().to_owned() + "\n",
        environment,
        solution,
        tests,
        checks,
        weights,
        limits,
        profile: decl.profile,
        submission,
    };
    Ok(Draft {
        task,
        second: Some(second),
        wrong,
        clauses,
        variants,
        variants_excluded: decl.variants.exclude.clone(),
        expert,
    })
}

/// The tests of `draft` with other random numbers, so with other held-out inputs. All else stays as
/// it was. `None` if the tests draw no random numbers.
pub fn redrawn_tests(
    shared: &AuthorAssets,
    recipe: &Recipe,
    draft: &Draft,
    draw: u32,
) -> Result<Option<FileTree>, AuthorError> {
    let Task { blueprint, name, environment, canary, submission, limits, .. } = &draft.task;
    let renderer = Renderer {
        recipe: recipe.id.as_str(),
        files: &recipe.files,
        seed: blueprint.seed,
        words: &shared.words,
    };
    let contexts = contexts(&renderer, recipe, blueprint, name.as_str())?;
    let redrawing = Renderer { seed: blueprint.seed.derive(&["redraw", &draw.to_string()]), ..renderer };
    let shipping = Shipping { environment, canary, submission, limits };
    let tests = tests(shared, &redrawing, &contexts.full, shipping)?;
    Ok((tests != draft.task.tests).then_some(tests))
}

/// Variants for all tasks that the recipe does not exclude, conditional variants that it includes,
/// and its own variants.
fn legal_variants(
    shared: &AuthorAssets,
    renderer: &Renderer<'_>,
    decl: &RecipeDecl,
    context: &Value,
) -> Result<Vec<Variant>, AuthorError> {
    let VariantsDecl { include, exclude, own } = &decl.variants;
    let is_legal = |variant: &&Variant| {
        !exclude.contains_key(&variant.name) && (!variant.conditional || include.contains(&variant.name))
    };
    let mut legal: Vec<Variant> = shared.variants.iter().filter(is_legal).cloned().collect();
    for declared in own {
        let path = format!("variants/{}.sh", declared.name);
        let script = renderer
            .one(&path, context)?
            .and_then(|file| file.as_text().map(str::to_owned))
            .ok_or_else(|| AuthorError::MissingFile {
                recipe: renderer.recipe.to_owned(),
                file: path.clone(),
                hint: "every [[variants.own]] of recipe.toml has a script of its name",
            })?;
        legal.push(Variant {
            name: declared.name.clone(),
            title: declared.title.clone(),
            applies: declared.applies,
            script,
            legal: declared.legal.clone(),
            conditional: false,
        });
    }
    Ok(legal)
}

struct Contexts {
    /// All parameters. Fixtures, solutions and tests use them.
    full: Value,
    /// The parameters that a solver can know. The expert uses them.
    public: Value,
}

fn contexts(
    renderer: &Renderer<'_>,
    recipe: &Recipe,
    blueprint: &Blueprint,
    name: &str,
) -> Result<Contexts, AuthorError> {
    let mut rng = ChaCha20Rng::seed_from_u64(blueprint.seed.derive(&["params"]).0);
    let params = recipe.decl.draw(blueprint.difficulty, &mut rng);
    let public: BTreeMap<_, _> = recipe
        .decl
        .public_names()
        .into_iter()
        .filter_map(|name| params.get(&name).map(|value| (name, value.clone())))
        .collect();
    let task = serde_json::json!({
        "name": name,
        "difficulty": blueprint.difficulty,
        "kind": blueprint.kind,
        "language": blueprint.language,
        "persona": blueprint.persona,
        "fixture": blueprint.fixture,
        "verifier": blueprint.verifier,
    });
    let first = serde_json::json!({ "p": params, "task": task });
    let data = match renderer.one("data.json", &Value::from(Serde(&first)))? {
        None => serde_json::Value::Null,
        Some(file) => serde_json::from_slice(&file.bytes).map_err(|error| AuthorError::Malformed {
            recipe: recipe.id.to_string(),
            file: "data.json.j2".to_owned(),
            message: format!("its rendered text is not JSON: {error}"),
        })?,
    };
    Ok(Contexts {
        full: Value::from(Serde(serde_json::json!({ "p": params, "task": task, "data": data }))),
        public: Value::from(Serde(serde_json::json!({ "p": public, "task": task }))),
    })
}

fn environment(
    shared: &AuthorAssets,
    renderer: &Renderer<'_>,
    recipe: &Recipe,
    context: &Value,
) -> Result<FileTree, AuthorError> {
    let base = &recipe.decl.base;
    let prefix =
        shared.base(base).ok_or_else(|| AuthorError::MissingTemplate(format!("bases/{base}/Dockerfile")))?;
    let mut files = renderer.folder("environment", context)?;
    let tail = files.text("Dockerfile").unwrap_or(DEFAULT_DOCKERFILE_TAIL);
    let dockerfile = format!("{}\n\n{tail}", prefix.trim_end());
    files.insert(rel("Dockerfile"), File::text(dockerfile));
    Ok(files)
}

fn tests(
    shared: &AuthorAssets,
    renderer: &Renderer<'_>,
    context: &Value,
    shipping: Shipping<'_>,
) -> Result<FileTree, AuthorError> {
    shipped_tests(shared, renderer.folder("tests", context)?, shipping)
}

/// The parts of a task that its verifier's own files depend on.
#[derive(Clone, Copy, Debug)]
pub struct Shipping<'a> {
    pub environment: &'a FileTree,
    pub canary: &'a str,
    pub submission: &'a SubmissionSpec,
    pub limits: &'a Limits,
}

/// Seconds at the end of the declared limit that the checks leave to `test.sh`. A harness kills it
/// at the limit.
const MARGIN_SEC: u32 = 10;

/// The task's `own` tests with the files that every task ships beside them: the verifier's files,
/// and pristine copies of the environment.
pub fn shipped_tests(
    shared: &AuthorAssets,
    own: FileTree,
    Shipping { environment, canary, submission, limits }: Shipping<'_>,
) -> Result<FileTree, AuthorError> {
    let mut files = own;
    if let Some(checks) = files.text("test_outputs.py") {
        let marked = format!("# {canary}\n{checks}");
        files.insert(rel("test_outputs.py"), File::text(marked));
    }
    // From pristine copies the tests compute the expected values. No solver could change them.
    let mut pristine = environment.clone();
    pristine.files.remove(&rel("Dockerfile"));
    files.graft(&rel("pristine"), &pristine);
    let of_verifier =
        Renderer { recipe: "(verifier)", files: &shared.verifier, seed: Seed(0), words: &shared.words };
    let context = Value::from(Serde(serde_json::json!({
        "canary": canary,
        "workdir": submission.workdir(),
        "roots": submission.roots,
        "as_root": submission.needs_shared().is_some(),
        "seconds": limits.verifier_timeout_sec.saturating_sub(MARGIN_SEC).max(1),
        // Milliseconds per second of half a processor, or of half the container's share.
        "half_ms": (limits.cpus.min(1.0) * 500.0) as u32,
    })));
    for (path, _) in shared.verifier.iter() {
        let name = path.as_str().trim_end_matches(".j2");
        if let Some(file) = of_verifier.one(name, &context)? {
            files.insert(rel(name), file);
        }
    }
    Ok(files)
}

fn solution_files(renderer: &Renderer<'_>, folder: &str, context: &Value) -> Result<FileTree, AuthorError> {
    let files = renderer.folder(folder, context)?;
    if files.get("solve.sh").is_some() {
        return Ok(files);
    }
    Err(AuthorError::MissingFile {
        recipe: renderer.recipe.to_owned(),
        file: format!("{folder}/solve.sh"),
        hint: "a recipe has a reference in `solution/` and an independent one in `second/`",
    })
}

/// The recipe's weights, by check.
fn weights(recipe: &Recipe, checks: &[CheckId]) -> Result<BTreeMap<CheckId, f64>, AuthorError> {
    let weights = recipe.decl.weights.iter();
    let known = weights.map(|(name, weight)| match checks.iter().find(|check| check.as_str() == name) {
        Some(check) => Ok((check.clone(), *weight)),
        None => Err(AuthorError::Malformed {
            recipe: recipe.id.to_string(),
            file: "recipe.toml".to_owned(),
            message: format!("`weights` names `{name}`, which is no function of `test_outputs.py`"),
        }),
    });
    known.collect()
}

/// The names of the top-level functions `test_…`, in file order.
pub fn check_ids(source: &str) -> Vec<CheckId> {
    static TEST: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^def (test_\w+)\(").ok());
    let Some(pattern) = TEST.as_ref() else { return Vec::new() };
    pattern.captures_iter(source).filter_map(|found| CheckId::parse(&found[1]).ok()).collect()
}

#[expect(
    clippy::expect_used,
    reason = "only called with literals of this file and names of files that were read"
)]
fn rel(path: &str) -> RelPath {
    RelPath::new(path).expect("a plain relative path")
}
