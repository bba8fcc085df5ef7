//! A tree of small files in memory, e.g. a build context, a solution, or tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A relative path with `/` separators and without empty, `.` or `..` parts. It is safe to join to
/// any folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RelPath(String);

/// Why a text is not a [`RelPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a plain relative path (no leading `/`, no `.` or `..`, no empty part, no NUL)")]
pub struct PathError(pub String);

impl RelPath {
    /// Checks and wraps `path`.
    pub fn new(path: impl Into<String>) -> Result<Self, PathError> {
        let path = path.into();
        let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if path.contains('\0') || !path.split('/').all(plain) {
            return Err(PathError(path));
        }
        Ok(Self(path))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// One regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the owner may execute it: 0755 instead of 0644.
    pub executable: bool,
}

impl File {
    /// A plain text file.
    pub fn text(text: impl Into<String>) -> Self {
        Self { bytes: text.into().into_bytes(), executable: false }
    }

    /// A text file with the execute bit.
    pub fn script(text: impl Into<String>) -> Self {
        Self { executable: true, ..Self::text(text) }
    }

    /// The permission bits that the file is written with.
    pub fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }

    /// The content as text, if it is UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }
}

/// The form of a [`File`] in JSON: text if it is UTF-8, else Base64. An empty folder has only
/// `folder`.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRepr {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    base64: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    executable: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    folder: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    link: Option<String>,
}

impl FileRepr {
    fn of(file: &File) -> Self {
        let text = file.as_text().map(str::to_owned);
        let base64 = text.is_none().then(|| BASE64.encode(&file.bytes));
        Self { text, base64, executable: file.executable, ..Self::default() }
    }

    fn into_file<E: de::Error>(self) -> Result<File, E> {
        let bytes = match (self.text, self.base64, self.folder, self.link) {
            (Some(text), None, false, None) => text.into_bytes(),
            (None, Some(coded), false, None) => BASE64.decode(coded).map_err(E::custom)?,
            _ => return Err(E::custom("a file has either `text` or `base64`")),
        };
        Ok(File { bytes, executable: self.executable })
    }
}

impl Serialize for File {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FileRepr::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        FileRepr::deserialize(deserializer)?.into_file()
    }
}

/// Files in path order, empty folders, and symbolic links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTree {
    pub files: BTreeMap<RelPath, File>,
    /// Folders without files. E.g. `COPY inbox/ /app/inbox/` needs an empty `inbox`. Other folders
    /// need no entry.
    pub empty_folders: BTreeSet<RelPath>,
    /// Symbolic links with their targets as written. Only build contexts have any.
    pub links: BTreeMap<RelPath, String>,
}

impl Serialize for FileTree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let folders =
            self.empty_folders.iter().map(|path| (path, FileRepr { folder: true, ..FileRepr::default() }));
        let files = self.files.iter().map(|(path, file)| (path, FileRepr::of(file)));
        let links = self
            .links
            .iter()
            .map(|(path, target)| (path, FileRepr { link: Some(target.clone()), ..FileRepr::default() }));
        let entries: BTreeMap<_, _> = folders.chain(files).chain(links).collect();
        entries.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FileTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tree = Self::default();
        for (path, entry) in BTreeMap::<RelPath, FileRepr>::deserialize(deserializer)? {
            match entry {
                FileRepr { text: None, base64: None, executable: false, folder: true, link: None } => {
                    tree.empty_folders.insert(path);
                }
                FileRepr {
                    text: None,
                    base64: None,
                    executable: false,
                    folder: false,
                    link: Some(target),
                } => {
                    tree.links.insert(path, target);
                }
                file => tree.insert(path, file.into_file()?),
            }
        }
        Ok(tree)
    }
}

impl FromIterator<(RelPath, File)> for FileTree {
    fn from_iter<I: IntoIterator<Item = (RelPath, File)>>(files: I) -> Self {
        Self { files: files.into_iter().collect(), ..Self::default() }
    }
}

impl FileTree {
    /// Adds or replaces one file.
    pub fn insert(&mut self, path: RelPath, file: File) {
        self.files.insert(path, file);
    }

    /// The file at `path`.
    pub fn get(&self, path: &str) -> Option<&File> {
        // The map cannot be searched by text without `Borrow<str>`. Trees are tiny, so a linear
        // search is fine.
        self.files.iter().find(|(have, _)| have.as_str() == path).map(|(_, file)| file)
    }

    /// The text of the file at `path`, if it is there and UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path).and_then(File::as_text)
    }

    /// Paths and files in path order.
    pub fn iter(&self) -> impl Iterator<Item = (&RelPath, &File)> {
        self.files.iter()
    }

    /// Adds everything of `other` below `prefix`.
    pub fn graft(&mut self, prefix: &RelPath, other: &FileTree) {
        for (path, file) in &other.files {
            self.files.insert(RelPath(format!("{prefix}/{path}")), file.clone());
        }
        self.empty_folders.extend(other.empty_folders.iter().map(|path| RelPath(format!("{prefix}/{path}"))));
        for (path, target) in &other.links {
            self.links.insert(RelPath(format!("{prefix}/{path}")), target.clone());
        }
    }

    /// The files below `folder` (e.g. `environment`), with paths relative to it.
    pub fn below(&self, folder: &str) -> Self {
        let rest = |path: &RelPath| {
            let rest = path.as_str().strip_prefix(folder)?.strip_prefix('/')?;
            Some(RelPath(rest.to_owned()))
        };
        let files = self.files.iter().filter_map(|(path, file)| Some((rest(path)?, file.clone())));
        let links = self.links.iter().filter_map(|(path, target)| Some((rest(path)?, target.clone())));
        let empty_folders = self.empty_folders.iter().filter_map(rest).collect();
        Self { files: files.collect(), empty_folders, links: links.collect() }
    }

    /// The target of a link at `path`, if it is a file, a folder or a link of this tree. Links
    /// within the target path are not followed.
    pub fn link_target(&self, path: &RelPath, target: &str) -> Option<RelPath> {
        // An absolute target is a path in the image, not in this tree.
        let target = Some(target).filter(|target| !target.starts_with('/'))?;
        let mut parts: Vec<&str> = path.as_str().split('/').collect();
        parts.pop();
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        let found = RelPath::new(parts.join("/")).ok()?;
        let below = format!("{found}/");
        let all = self.files.keys().chain(&self.empty_folders).chain(self.links.keys());
        all.into_iter().any(|have| *have == found || have.as_str().starts_with(&below)).then_some(found)
    }

    /// Whether it has no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
