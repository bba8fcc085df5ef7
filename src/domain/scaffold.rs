//! Files that `termsmith new` creates. They work unchanged, and say what to edit.

use super::problem::suggest;
use super::recipe_files::check_name;
use super::{DomainSpec, Specs};
use crate::assets::Assets;
use crate::model::{DomainId, File, FileTree, PathError, RecipeId, RelPath};

/// Why no files were created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaffoldError {
    #[error(
        "`{0}` is not a valid name for a domain\nhint: use at most 32 lower-case letters, digits and `_`, and begin with a letter"
    )]
    BadDomainName(String),
    #[error("domain `{0}` exists already\nhint: edit `domains/{0}.toml`")]
    DomainExists(DomainId),
    #[error("`{name}` is not a valid name for a recipe\nhint: {hint}")]
    BadRecipeName { name: String, hint: String },
    #[error("unknown domain `{domain}`\nhint: {hint}")]
    UnknownDomain { domain: String, hint: String },
    #[error("recipe `{0}` exists already\nhint: edit the files in `templates/recipes/{0}`")]
    RecipeExists(RecipeId),
    #[error("`templates/scaffold/{0}` is missing\nhint: an overriding templates folder must be complete")]
    MissingTemplate(&'static str),
    #[error("the scaffold has a file with an invalid path: {0}")]
    Path(#[from] PathError),
}

/// The file `domains/<name>.toml` of a new domain.
pub fn new_domain(assets: &Assets, specs: &Specs, name: &str) -> Result<FileTree, ScaffoldError> {
    let id = DomainId::parse(name).map_err(|_| ScaffoldError::BadDomainName(name.to_owned()))?;
    if specs.contains_key(&id) {
        return Err(ScaffoldError::DomainExists(id));
    }
    let text = assets.text("templates/scaffold/domain/domain.toml");
    let text = text.ok_or(ScaffoldError::MissingTemplate("domain/domain.toml"))?;
    let text = fill(text, &[("__TITLE__", &title(name)), ("__DOMAIN__", name)]);
    let mut files = FileTree::default();
    files.insert(RelPath::new(format!("domains/{name}.toml"))?, File::text(text));
    Ok(files)
}

/// The files of a new recipe, `templates/recipes/<domain>/<name>/…`. They make a small working task
/// with the domain's words.
pub fn new_recipe(assets: &Assets, specs: &Specs, id: &str) -> Result<FileTree, ScaffoldError> {
    let bad_name = |hint: String| ScaffoldError::BadRecipeName { name: id.to_owned(), hint };
    let id = &RecipeId::parse(id).map_err(|_| bad_name(format!("write {}", RecipeId::RULE)))?;
    let (domain, name) = (id.domain(), id.name());
    let unknown = || ScaffoldError::UnknownDomain {
        domain: domain.to_owned(),
        hint: suggest(domain, specs.keys().map(DomainId::as_str)),
    };
    let spec = specs.get(domain).ok_or_else(unknown)?;
    if let Some(problem) = check_name("", id) {
        return Err(bad_name(problem.hint.unwrap_or_default()));
    }
    let folder = format!("templates/recipes/{id}");
    if assets.files_under(&folder).next().is_some() {
        return Err(ScaffoldError::RecipeExists(id.clone()));
    }
    let words = words(spec, domain, name);
    let words: Vec<(&str, &str)> = words.iter().map(|(place, word)| (*place, word.as_str())).collect();
    let mut files = FileTree::default();
    for (path, bytes, executable) in assets.files_under("templates/scaffold/recipe") {
        let text = String::from_utf8_lossy(bytes);
        let file = File { executable, ..File::text(fill(&text, &words)) };
        files.insert(RelPath::new(format!("{folder}/{path}"))?, file);
    }
    if files.is_empty() { Err(ScaffoldError::MissingTemplate("recipe")) } else { Ok(files) }
}

/// The domain's words that a new recipe uses. The loader has checked that no list is empty.
fn words(spec: &DomainSpec, domain: &str, name: &str) -> Vec<(&'static str, String)> {
    let first = |mut ids: Box<dyn Iterator<Item = &str> + '_>| ids.next().unwrap_or_default().to_owned();
    let prefer = |wanted: &str, ids: Vec<&str>| {
        let found = ids.iter().find(|id| **id == wanted).or(ids.first());
        found.copied().unwrap_or_default().to_owned()
    };
    vec![
        ("__TITLE__", title(name)),
        ("__DOMAIN__", domain.to_owned()),
        ("__NAME__", name.to_owned()),
        ("__BASE__", spec.base.clone()),
        ("__SKILL__", first(Box::new(spec.skills.iter().map(|skill| skill.id.as_str())))),
        ("__FIXTURE__", first(Box::new(spec.fixtures.iter().map(|fixture| fixture.id.as_str())))),
        ("__VERIFIER__", prefer("recompute", spec.verifiers.iter().map(|kind| kind.id.as_str()).collect())),
        ("__LANGUAGE__", prefer("python", spec.languages.iter().map(String::as_str).collect())),
    ]
}

fn fill(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (place, word)| text.replace(place, word))
}

/// A title from a name, e.g. `Merge two logs` from `merge-two-logs`.
fn title(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
