//! Reads the recipes in a templates folder: a checked declaration, and the files beside it.

use std::collections::BTreeMap;

use super::render::is_executable;
use crate::assets::Assets;
use crate::domain::{DomainError, RecipeDecl, Specs, load_recipes};
use crate::model::{File, FileTree, RecipeId, RelPath};

/// A recipe: its declaration and all its files. Paths are relative to its folder.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub id: RecipeId,
    pub decl: RecipeDecl,
    pub files: FileTree,
}

impl Recipe {
    /// Hash over every file, and whether the file is executable in a task. It is part of a draft's
    /// key.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (path, file) in self.files.iter() {
            part(path.as_str().as_bytes());
            part(&[u8::from(is_executable(path.as_str(), file))]);
            part(&file.bytes);
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Every recipe below `templates/recipes/<domain>/<name>/`, by id.
pub fn recipes(assets: &Assets, specs: &Specs) -> Result<BTreeMap<RecipeId, Recipe>, DomainError> {
    let mut folders: BTreeMap<RecipeId, FileTree> = BTreeMap::new();
    for (path, bytes, executable) in assets.files_under("templates/recipes") {
        let mut parts = path.as_str().splitn(3, '/');
        let (Some(domain), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if let Ok(rest) = RelPath::new(rest) {
            let file = File { bytes: bytes.to_vec(), executable };
            if let Ok(id) = RecipeId::parse(format!("{domain}/{name}")) {
                folders.entry(id).or_default().insert(rest, file);
            }
        }
    }
    let declared = load_recipes(assets, specs)?;
    Ok(declared
        .into_iter()
        .map(|(id, decl)| (id.clone(), Recipe { files: folders.remove(&id).unwrap_or_default(), id, decl }))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_draft_is_rendered_from_changes_the_digest() {
        let assets = Assets::embedded();
        let specs = crate::domain::load_domains(&assets).unwrap();
        let recipe = recipes(&assets, &specs).unwrap().into_values().next().unwrap();
        let with = |path: &str, text: &str, executable: bool| {
            let mut recipe = recipe.clone();
            recipe.files.insert(RelPath::new(path).unwrap(), File { bytes: text.into(), executable });
            recipe.digest()
        };
        let check = |one: (&str, &str, bool), other: (&str, &str, bool), same: bool| {
            let (first, second) = (with(one.0, one.1, one.2), with(other.0, other.1, other.2));
            assert_eq!(first == second, same, "{one:?} {other:?}");
        };
        let plain = ("environment/app/hook", "x", false);
        check(plain, plain, true);
        check(plain, ("environment/app/hook", "y", false), false);
        check(plain, ("environment/app/hooks", "x", false), false);
        check(plain, ("environment/app/hook", "x", true), false);
        // Scripts are executable whatever their mode.
        check(("solution/a.sh", "x", false), ("solution/a.sh", "x", true), true);
        check(("solution/a.py.j2", "x", false), ("solution/a.py.j2", "x", true), true);
    }
}
