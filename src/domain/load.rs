//! Loads domain specs and recipe declarations, and reports all their problems at once.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::{DomainError, Problem, suggest};
use super::recipe_decl::{RecipeDecl, Recipes};
use super::recipe_files;
use super::source::{Source, Step, at};
use super::spec::{DomainSpec, Specs};
use crate::assets::Assets;
use crate::model::{DomainId, RecipeId, RelPath, is_kebab_case};

const DOMAINS: &str = "domains";
const RECIPES: &str = "templates/recipes";
const BASES: &str = "templates/bases";
const VARIANTS: &str = "templates/variants";

/// Loads every `domains/<id>.toml`.
pub fn load_domains(assets: &Assets) -> Result<Specs, DomainError> {
    let bases = bases(assets);
    let mut specs = Specs::new();
    let mut problems = Vec::new();
    for (path, bytes, _) in assets.files_under(DOMAINS) {
        let Some(id) = path.as_str().strip_suffix(".toml") else { continue };
        let file = assets.display_path(&format!("{DOMAINS}/{path}"));
        match utf8(&file, bytes)
            .map_err(DomainError::from)
            .and_then(|text| parse_domain(&file, id, text, &bases))
        {
            Ok((id, spec)) => {
                specs.insert(id, spec);
            }
            Err(error) => problems.extend(error.problems),
        }
    }
    if specs.is_empty() && problems.is_empty() {
        let file = assets.display_path(DOMAINS);
        let message = "the folder contains no domain specs".to_owned();
        let problem = Problem { file, at: None, message, hint: None };
        problems.push(problem.hint("`termsmith new domain NAME` creates one"));
    }
    DomainError::unless(problems, specs)
}

/// Loads every recipe below `templates/recipes/<domain>/<name>/`, and checks it against its domain.
pub fn load_recipes(assets: &Assets, specs: &Specs) -> Result<Recipes, DomainError> {
    let mut recipes = Recipes::new();
    let mut problems = Vec::new();
    for (id, files) in recipe_folders(assets) {
        match load_folder(assets, specs, &id, &files) {
            Ok(decl) => {
                recipes.insert(id, decl);
            }
            Err(error) => problems.extend(error.problems),
        }
    }
    DomainError::unless(problems, recipes)
}

/// Loads one recipe. Problems of other recipes do not matter. `None` if there is no such folder.
pub fn load_recipe(assets: &Assets, specs: &Specs, id: &RecipeId) -> Option<Result<RecipeDecl, DomainError>> {
    recipe_folders(assets).get(id).map(|files| load_folder(assets, specs, id, files))
}

fn recipe_folders(assets: &Assets) -> BTreeMap<RecipeId, Vec<RelPath>> {
    let mut folders: BTreeMap<RecipeId, Vec<RelPath>> = BTreeMap::new();
    for (path, ..) in assets.files_under(RECIPES) {
        let mut parts = path.as_str().splitn(3, '/');
        if let (Some(domain), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next())
            && let Ok(rest) = RelPath::new(rest)
        {
            // Parts of a path always make an id. `check_name` checks their characters.
            if let Ok(id) = RecipeId::parse(format!("{domain}/{name}")) {
                folders.entry(id).or_default().push(rest);
            }
        }
    }
    folders
}

fn load_folder(
    assets: &Assets,
    specs: &Specs,
    id: &RecipeId,
    files: &[RelPath],
) -> Result<RecipeDecl, DomainError> {
    let folder = assets.display_path(&format!("{RECIPES}/{id}"));
    let bytes = assets.bytes(&format!("{RECIPES}/{id}/recipe.toml")).ok_or_else(|| {
        let problem = Problem {
            file: folder.clone(),
            at: None,
            message: "the folder has no `recipe.toml`".to_owned(),
            hint: None,
        };
        DomainError::from(problem.hint(format!("`termsmith new recipe {id}` shows a complete recipe")))
    })?;
    let file = format!("{folder}/recipe.toml");
    let text = utf8(&file, bytes)?;
    let source = Source::parse(&file, text)?;
    let decl = RecipeDecl::read(&source)?;
    let mut problems = recipe_files::check(&folder, &source, &decl, files);
    problems.extend(recipe_files::check_name(&folder, id));
    problems.extend(decl.variants.check_against(&source, &variants(assets), files));
    match specs.get(id.domain()) {
        Some(spec) => problems.extend(decl.check_against(&source, spec, &bases(assets))),
        None => {
            let domain = id.domain();
            let known = specs.keys().map(DomainId::as_str);
            let hint = suggest(domain, known);
            problems.push(
                source
                    .problem(&[], format!("the recipe is in the folder `{domain}`, which is not a domain"))
                    .hint(hint),
            );
        }
    }
    DomainError::unless(problems, decl)
}

/// Names of the base images. Empty if the templates folder has none. Then drafting reports it once,
/// instead of a problem for every spec.
fn bases(assets: &Assets) -> BTreeSet<String> {
    let folders = assets.files_under(BASES);
    folders.filter_map(|(path, ..)| Some(path.as_str().strip_suffix("/Dockerfile")?.to_owned())).collect()
}

/// Names of the variants that all recipes share.
fn variants(assets: &Assets) -> BTreeSet<String> {
    let files = assets.files_under(VARIANTS);
    files.filter_map(|(path, ..)| Some(path.as_str().strip_suffix(".toml")?.to_owned())).collect()
}

fn utf8<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Problem> {
    std::str::from_utf8(bytes).map_err(|error| Problem {
        file: file.to_owned(),
        at: None,
        message: format!("the file is not UTF-8 from byte {} on", error.valid_up_to()),
        hint: Some("save it as UTF-8".to_owned()),
    })
}

/// The problem of a base that does not exist.
pub(super) fn check_base(source: &Source<'_>, base: &str, bases: &BTreeSet<String>) -> Option<Problem> {
    if bases.is_empty() || bases.contains(base) {
        return None;
    }
    let hint = suggest(base, bases.iter().map(String::as_str));
    Some(source.problem(at!["base"], format!("unknown base `{base}`")).hint(hint))
}

fn parse_domain(
    file: &str,
    id: &str,
    text: &str,
    bases: &BTreeSet<String>,
) -> Result<(DomainId, DomainSpec), DomainError> {
    let source = Source::parse(file, text)?;
    if let Some(version) = source.integer("version")
        && version != i64::from(DomainSpec::VERSION)
    {
        let message = format!("version {version} of the format is unknown to this build");
        let hint = format!("it reads version {}; a newer termsmith may read this file", DomainSpec::VERSION);
        return Err(source.problem(at!["version"], message).hint(hint).into());
    }
    let spec: DomainSpec = source.read()?;
    let mut problems = check_domain(&source, &spec, bases);
    match DomainId::parse(id) {
        Ok(id) => DomainError::unless(problems, (id, spec)),
        Err(_) => {
            let problem = source.problem(&[], format!("`{id}` is not a valid name for a domain"));
            problems.push(problem.hint(DomainId::RULE));
            Err(DomainError { problems })
        }
    }
}

fn check_domain(source: &Source<'_>, spec: &DomainSpec, bases: &BTreeSet<String>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (key, text) in [("title", &spec.title), ("description", &spec.description)] {
        if text.trim().is_empty() {
            problems.push(source.problem(at![key], format!("`{key}` is empty")));
        }
    }
    for (key, list) in [("languages", &spec.languages), ("tools", &spec.tools)] {
        if list.is_empty() {
            problems.push(source.problem(at![key], format!("`{key}` is empty")));
        }
        problems.extend(repeated(
            source,
            list.iter().enumerate().map(|(place, word)| (vec![key.into(), place.into()], &**word)),
        ));
    }
    problems.extend(check_base(source, &spec.base, bases));
    problems.extend(check_mix(
        source,
        "kinds",
        spec.kinds.iter().map(|(kind, weight)| (kind.as_str(), *weight)),
    ));
    problems.extend(check_mix(
        source,
        "difficulty",
        spec.difficulty.iter().map(|(level, weight)| (level.as_str(), *weight)),
    ));
    problems.extend(spec.limits.check(source));
    if spec.skills.len() < DomainSpec::MIN_SKILLS {
        let message = format!("{} skills are too few", spec.skills.len());
        let hint = format!(
            "a domain needs at least {}; with fewer, its tasks repeat each other",
            DomainSpec::MIN_SKILLS
        );
        problems.push(source.problem(at!["skills"], message).hint(hint));
    }
    let skills: Vec<_> = spec.skills.iter().map(|skill| (&*skill.id, &*skill.title)).collect();
    let personas: Vec<_> = spec.personas.iter().map(|persona| (&*persona.id, &*persona.text)).collect();
    let fixtures: Vec<_> =
        spec.fixtures.iter().map(|fixture| (&*fixture.id, &*fixture.description)).collect();
    let verifiers: Vec<_> = spec.verifiers.iter().map(|kind| (&*kind.id, &*kind.description)).collect();
    for (key, text_key, items) in [
        ("skills", "title", &skills),
        ("personas", "text", &personas),
        ("fixtures", "description", &fixtures),
        ("verifiers", "description", &verifiers),
    ] {
        problems.extend(check_items(source, key, text_key, items));
    }
    for (place, skill) in spec.skills.iter().enumerate() {
        if skill.operations.is_empty() {
            let message = format!("skill `{}` exercises no operation", skill.id);
            problems.push(source.problem(at!["skills", place, "operations"], message));
        }
    }
    problems
}

/// Problems of a table with ids: no entries, malformed or repeated ids, or empty texts.
fn check_items(source: &Source<'_>, key: &str, text_key: &str, items: &[(&str, &str)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if items.is_empty() {
        problems.push(source.problem(at![key], format!("`{key}` is empty")));
    }
    for (place, (id, text)) in items.iter().enumerate() {
        if !is_kebab_case(id) {
            let problem = source.problem(at![key, place, "id"], format!("`{id}` is not a valid id"));
            problems.push(problem.hint("ids are kebab-case: lower-case letters, digits and single hyphens"));
        }
        if text.trim().is_empty() {
            problems
                .push(source.problem(at![key, place, text_key], format!("`{text_key}` of `{id}` is empty")));
        }
    }
    let ids =
        items.iter().enumerate().map(|(place, (id, _))| (vec![key.into(), place.into(), "id".into()], *id));
    problems.extend(repeated(source, ids));
    problems
}

/// Problems of words that occur twice in one list.
pub(super) fn repeated<'a>(
    source: &Source<'_>,
    words: impl Iterator<Item = (Vec<Step<'a>>, &'a str)>,
) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    words
        .filter(|(_, word)| !seen.insert(*word))
        .map(|(path, word)| source.problem(&path, format!("`{word}` occurs twice")))
        .collect()
}

/// Problems of weights that do not form a mix, e.g. a negative weight.
fn check_mix<'a>(
    source: &Source<'_>,
    key: &'a str,
    weights: impl Iterator<Item = (&'a str, f64)> + Clone,
) -> Vec<Problem> {
    let mut problems: Vec<_> = weights
        .clone()
        .filter(|(_, weight)| !(weight.is_finite() && *weight >= 0.0))
        .map(|(name, weight)| {
            source
                .problem(at![key, name], format!("weight {weight} of `{name}` is negative, or not a number"))
        })
        .collect();
    if problems.is_empty() && weights.map(|(_, weight)| weight).sum::<f64>() <= 0.0 {
        let problem = source.problem(at![key], format!("the mix `{key}` is empty: no weight is above 0"));
        problems.push(problem.hint("give at least one entry a positive weight"));
    }
    problems
}
