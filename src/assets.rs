//! The folders `domains/` and `templates/`. They are embedded in the binary. A folder on disk can
//! replace either, as a whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::folder::{Bounds, WalkError, read_sources};
use crate::model::{FileTree, RelPath};

/// Path, bytes and execute bit of each embedded file.
static EMBEDDED: &[(&str, &[u8], bool)] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Limits of a folder that replaces an embedded one. No folder of specs or templates comes near
/// them. A larger folder is probably the wrong one, e.g. `/`.
const BOUNDS: Bounds = Bounds { files: 20_000, depth: 16, bytes: 64 << 20 };

/// Folders on disk that replace embedded ones.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Replaces `domains/`.
    pub domains: Option<PathBuf>,
    /// Replaces `templates/`.
    pub templates: Option<PathBuf>,
}

/// All files of both folders, by path, e.g. `domains/coding.toml`.
#[derive(Clone, Debug)]
pub struct Assets {
    files: BTreeMap<RelPath, Asset>,
    overrides: Overrides,
}

#[derive(Clone, Debug)]
struct Asset {
    bytes: Cow<'static, [u8]>,
    executable: bool,
}

/// A folder that cannot replace an embedded one.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the {folder} folder: {source}")]
pub struct AssetError {
    /// `domains` or `templates`.
    pub folder: &'static str,
    #[source]
    pub source: WalkError,
}

impl Assets {
    /// The embedded assets.
    pub fn embedded() -> Self {
        let asset = |bytes: &'static [u8], executable| Asset { bytes: Cow::Borrowed(bytes), executable };
        let files = EMBEDDED
            .iter()
            .filter_map(|(path, bytes, executable)| {
                Some((RelPath::new(*path).ok()?, asset(bytes, *executable)))
            })
            .collect();
        Self { files, overrides: Overrides::default() }
    }

    /// The embedded files, with the folders of `overrides` in place of the embedded ones. A file
    /// that such a folder lacks is missing: the embedded one does not take its place.
    pub fn with_override(overrides: &Overrides) -> Result<Self, AssetError> {
        let mut assets = Self::embedded();
        for (folder, replacement) in [("domains", &overrides.domains), ("templates", &overrides.templates)] {
            if let Some(replacement) = replacement {
                let tree =
                    read_sources(replacement, &BOUNDS).map_err(|source| AssetError { folder, source })?;
                assets.files.retain(|path, _| below(path, folder).is_none());
                assets.add(folder, tree);
            }
        }
        assets.overrides = overrides.clone();
        Ok(assets)
    }

    /// Assets with only these files. Their paths begin with `domains/` or `templates/`.
    pub fn from_tree(tree: FileTree) -> Self {
        let mut assets = Self { files: BTreeMap::new(), overrides: Overrides::default() };
        assets.add("", tree);
        assets
    }

    fn add(&mut self, prefix: &str, tree: FileTree) {
        for (path, file) in tree.files {
            let full = if prefix.is_empty() { path.to_string() } else { format!("{prefix}/{path}") };
            if let Ok(path) = RelPath::new(full) {
                self.files.insert(path, Asset { bytes: Cow::Owned(file.bytes), executable: file.executable });
            }
        }
    }

    /// Files below `folder`, e.g. `templates/recipes`, in the order of their paths: path below it,
    /// bytes, execute bit.
    pub fn files_under(&self, folder: &str) -> impl Iterator<Item = (RelPath, &[u8], bool)> {
        self.files.iter().filter_map(move |(path, asset)| {
            let rest = RelPath::new(below(path, folder)?).ok()?;
            Some((rest, &*asset.bytes, asset.executable))
        })
    }

    /// The bytes at `path`, e.g. `domains/coding.toml`.
    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        let path = RelPath::new(path).ok()?;
        self.files.get(&path).map(|asset| &*asset.bytes)
    }

    /// The text of the file `path`. `None` if the file is missing or is not UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(path)?).ok()
    }

    /// `path` as users see it: on disk if its folder was replaced, else below the repository's
    /// root.
    pub fn display_path(&self, path: &str) -> String {
        let on_disk = |folder: &str, replacement: &Option<PathBuf>| {
            let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
            Some(replacement.as_ref()?.join(Path::new(rest)).display().to_string())
        };
        on_disk("domains", &self.overrides.domains)
            .or_else(|| on_disk("templates", &self.overrides.templates))
            .unwrap_or_else(|| path.to_owned())
    }
}

fn below<'a>(path: &'a RelPath, folder: &str) -> Option<&'a str> {
    path.as_str().strip_prefix(folder)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_binary_carries_both_folders() {
        let assets = Assets::embedded();
        assert!(assets.text("domains/coding.toml").unwrap().contains("title"));
        let under: Vec<_> = assets.files_under("domains").map(|(path, ..)| path.to_string()).collect();
        assert_eq!(under.len(), 10, "{under:?}");
        assert!(assets.files_under("templates/verifier").any(|(path, ..)| path.as_str() == "subject.py"));
    }

    #[test]
    fn an_override_replaces_its_folder_whole_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine.toml"), "title = 1").unwrap();
        let overrides = Overrides { domains: Some(dir.path().to_owned()), templates: None };
        let assets = Assets::with_override(&overrides).unwrap();
        let under: Vec<_> = assets.files_under("domains").map(|(path, ..)| path.to_string()).collect();
        assert_eq!(under, ["mine.toml"]);
        assert!(assets.files_under("templates").next().is_some());
        assert_eq!(
            assets.display_path("domains/mine.toml"),
            dir.path().join("mine.toml").display().to_string()
        );
        assert_eq!(assets.display_path("templates/x"), "templates/x");
    }

    #[test]
    fn a_missing_override_names_the_folder() {
        let overrides = Overrides { domains: None, templates: Some("/nowhere/at/all".into()) };
        let message = Assets::with_override(&overrides).unwrap_err().to_string();
        assert!(
            message.starts_with("failed to load the templates folder: failed to read `/nowhere/at/all`"),
            "{message}"
        );
    }
}
