//! Recipes of a templates folder: a checked declaration and the files beside it.

use std::collections::BTreeMap;

use crate::assets::Assets;
use crate::domain::{DomainError, RecipeDecl, Specs, load_recipes};
use crate::model::{File, FileTree, RecipeId, RelPath, TaskDigest, task_digest};

/// One recipe: its declaration and all its files, by path below its folder.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub id: RecipeId,
    pub decl: RecipeDecl,
    pub files: FileTree,
}

impl Recipe {
    /// Hash over every file, for the address of a draft.
    pub fn digest(&self) -> TaskDigest {
        task_digest(&self.files)
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
