//! Reads foreign folders and files into memory, with size limits and without following links.
//!
//! Task directories are untrusted, and template folders may contain mistakes. Both are only read
//! here.

mod open;
mod surrogates;
mod walk;

use std::path::Path;

pub use open::{open_file, read_file, read_named_by_user, read_start};
pub use surrogates::replace_lone_surrogates;
pub use walk::{Bounds, Clutter, Fault, Links, Listed, WalkError, is_clutter, shown, walk};

use crate::model::{File, FileTree, RelPath};

/// Maximum bytes of a file that people write, e.g. a manifest or settings.
pub const LARGEST_TEXT: u64 = 4 << 20;

/// Reads every file below `root`.
pub fn read_tree(root: &Path, bounds: &Bounds) -> Result<FileTree, WalkError> {
    read_listed(root, bounds, Clutter::Kept, Links::Refused)
}

/// Reads a build context. Links are listed as content, and not followed.
pub fn read_context(root: &Path, bounds: &Bounds) -> Result<FileTree, WalkError> {
    read_listed(root, bounds, Clutter::Kept, Links::Listed)
}

/// Reads every file below `root`, a folder that people edit. Leftovers of editors and programs are
/// skipped.
pub fn read_sources(root: &Path, bounds: &Bounds) -> Result<FileTree, WalkError> {
    read_listed(root, bounds, Clutter::LeftOut, Links::Refused)
}

fn read_listed(root: &Path, bounds: &Bounds, clutter: Clutter, links: Links) -> Result<FileTree, WalkError> {
    let mut tree = FileTree::default();
    let listed = walk(root, bounds, clutter, links)?;
    let plain = |path: String| {
        let place = root.join(&path);
        RelPath::new(path).map_err(|_| WalkError { path: place, fault: Fault::NotUtf8 })
    };
    for found in listed.files {
        let bytes = read_exactly(&root.join(&found.path), found.len)?;
        tree.insert(plain(found.path)?, File { bytes, executable: found.executable });
    }
    for (path, target) in listed.links {
        tree.links.insert(plain(path)?, target);
    }
    // Editors leave empty folders behind. Only in a task can an empty folder be meant.
    if clutter == Clutter::Kept {
        tree.empty_folders = listed.empty_folders.into_iter().map(plain).collect::<Result<_, _>>()?;
    }
    Ok(tree)
}

/// Reads `len` bytes of a regular file that was just listed.
fn read_exactly(path: &Path, len: u64) -> Result<Vec<u8>, WalkError> {
    // The entry may have been replaced since it was listed.
    match read_file(path, len) {
        Ok(Some(bytes)) if bytes.len() as u64 == len => Ok(bytes),
        Err(error) if matches!(error.fault, Fault::Io(_)) => Err(error),
        Ok(_) | Err(_) => Err(WalkError { path: path.to_owned(), fault: Fault::Changed }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const BOUNDS: Bounds = Bounds { files: 3, depth: 2, bytes: 100 };

    #[test]
    fn reads_files_with_their_bits_and_clutter_on_request() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/__pycache__")).unwrap();
        fs::write(dir.path().join("a/run"), "1").unwrap();
        fs::set_permissions(dir.path().join("a/run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(dir.path().join("b.txt"), "2").unwrap();
        fs::write(dir.path().join("b.txt~"), "old").unwrap();
        fs::write(dir.path().join("a/__pycache__/x.pyc"), "old").unwrap();
        fs::create_dir_all(dir.path().join("a/in/box")).unwrap();
        let listed = |tree: FileTree| -> Vec<_> {
            tree.iter().map(|(path, file)| (path.to_string(), file.mode())).collect()
        };
        let expect = |paths: &[(&str, u32)]| -> Vec<_> {
            paths.iter().map(|(path, mode)| ((*path).to_owned(), *mode)).collect()
        };
        let bounds = Bounds { depth: 3, ..BOUNDS };
        let own = [("a/run", 0o755), ("b.txt", 0o644)];
        assert_eq!(listed(read_sources(dir.path(), &bounds).unwrap()), expect(&own));
        let all = [("a/__pycache__/x.pyc", 0o644), ("a/run", 0o755), ("b.txt", 0o644), ("b.txt~", 0o644)];
        let bounds = Bounds { files: 5, depth: 3, ..BOUNDS };
        let tree = read_tree(dir.path(), &bounds).unwrap();
        assert_eq!(tree.empty_folders, [RelPath::new("a/in/box").unwrap()].into());
        assert_eq!(listed(tree), expect(&all));
    }

    #[test]
    fn links_and_special_files_are_refused() {
        type Make = fn(&Path) -> std::io::Result<()>;
        let rows: [(&str, Make, &str); 6] = [
            ("link to a file", |dir| symlink("/etc/hostname", dir.join("link")), "/link` is a symbolic link"),
            ("link to a folder", |dir| symlink("/etc", dir.join("etc")), "/etc` is a symbolic link"),
            (
                "socket",
                |dir| std::os::unix::net::UnixListener::bind(dir.join("socket")).map(|_| ()),
                "/socket` is neither a regular file nor a folder",
            ),
            ("odd name", |dir| fs::write(dir.join(std::ffi::OsStr::from_bytes(b"\xff")), ""), "is not UTF-8"),
            (
                "too deep",
                |dir| fs::create_dir_all(dir.join("a/b/c")),
                "/a/b/c` lies more than 2 folders deep",
            ),
            ("too large", |dir| fs::write(dir.join("big"), [0; 101]), "hold more than 100 bytes"),
        ];
        for (what, make, expected) in rows {
            let dir = tempfile::tempdir().unwrap();
            make(dir.path()).unwrap();
            let message = read_tree(dir.path(), &BOUNDS).unwrap_err().to_string();
            assert!(message.contains(expected), "{what}: {message}");
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["1", "2", "3", "4"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let message = read_tree(dir.path(), &BOUNDS).unwrap_err().to_string();
        assert!(message.contains("more than 3 files"), "{message}");
    }

    #[test]
    fn links_of_a_build_context_are_read_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/hostname", dir.path().join("away")).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        symlink("../gone", dir.path().join("a/near")).unwrap();
        let tree = read_context(dir.path(), &BOUNDS).unwrap();
        let links: Vec<_> =
            tree.links.iter().map(|(path, target)| (path.as_str(), target.as_str())).collect();
        assert_eq!(links, [("a/near", "../gone"), ("away", "/etc/hostname")]);
        assert!(tree.is_empty() && tree.empty_folders.is_empty());
        let bounds = Bounds { files: 1, ..BOUNDS };
        assert!(matches!(read_context(dir.path(), &bounds).unwrap_err().fault, Fault::TooManyFiles(1)));
    }
}
