//! A folder as a layer: its content address, and its archive.
//!
//! Both depend only on names, contents, links and execute bits. E.g. two hosts that unpack the same
//! archives get the same address.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::lock::LayerSum;
use crate::sandbox::{LayerId, Spool, Spooled};

/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// Computes the address of the folder `root`, and packs it.
pub(super) fn pack(root: &Path) -> io::Result<(LayerSum, Spooled)> {
    let mut paths = Vec::new();
    list(root, Path::new(""), &mut paths)?;
    // By bytes, as a whole: the order of folders must not matter.
    paths.sort();
    let mut hasher = blake3::Hasher::new();
    let mut tar = tar::Builder::new(BufWriter::new(Spool::new()));
    let (mut files, mut bytes) = (0, 0);
    for path in paths {
        let full = root.join(&path);
        let metadata = fs::symlink_metadata(&full)?;
        let mut header = tar::Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        let name = path.as_os_str().as_encoded_bytes();
        if metadata.is_dir() {
            add(&mut hasher, name, b"folder");
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            tar.append_data(&mut header, &path, io::empty())?;
        } else if metadata.is_symlink() {
            let link = fs::read_link(&full)?;
            add(&mut hasher, name, b"link");
            add(&mut hasher, link.as_os_str().as_encoded_bytes(), b"");
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            tar.append_link(&mut header, &path, &link)?;
            files += 1;
        } else {
            let executable = metadata.permissions().mode() & 0o111 != 0;
            add(&mut hasher, name, if executable { b"program" } else { b"file" });
            hasher.update(content_hash(&full)?.as_bytes());
            header.set_mode(if executable { 0o755 } else { 0o644 });
            header.set_size(metadata.len());
            tar.append_data(&mut header, &path, File::open(&full)?)?;
            files += 1;
            bytes += metadata.len();
        }
    }
    let mut spool = tar.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    spool.flush()?;
    let id = LayerId::new(hasher.finalize().to_hex().to_string());
    Ok((LayerSum { id, files, bytes }, spool.finish()?))
}

/// All entries below `root/path`, without `root` itself.
fn list(root: &Path, path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(path))? {
        let entry = entry?;
        let path = path.join(entry.file_name());
        found.push(path.clone());
        if entry.file_type()?.is_dir() {
            list(root, &path, found)?;
        }
    }
    Ok(())
}

fn add(hasher: &mut blake3::Hasher, text: &[u8], kind: &[u8]) {
    for part in [kind, text] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

fn content_hash(path: &Path) -> io::Result<blake3::Hash> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE]);
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&piece[..count]),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with these files, links (`-> x`) and execute bits (`*` after the name).
    fn folder(entries: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in entries {
            let path = dir.path().join(name.trim_end_matches('*'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match content.strip_prefix("-> ") {
                Some(link) => symlink(link, &path).unwrap(),
                None => fs::write(&path, content).unwrap(),
            }
            if name.ends_with('*') {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            }
        }
        dir
    }

    #[test]
    fn addresses_depend_on_names_contents_links_and_execute_bits() {
        let sum = |entries: &[(&str, &str)]| pack(folder(entries).path()).unwrap();
        let usual = [("a/x", "1"), ("a-b", "2"), ("l", "-> a/x"), ("p*", "run")];
        let (first, tar) = sum(&usual);
        assert_eq!((first.files, first.bytes), (4, 5));
        let check = |entries: &[(&str, &str)], same: bool| {
            let (other, packed) = sum(entries);
            assert_eq!(other.id == first.id, same, "{entries:?}");
            assert_eq!(packed.bytes().unwrap() == tar.bytes().unwrap(), same, "{entries:?}");
        };
        check(&usual, true);
        check(&[("p*", "run"), ("l", "-> a/x"), ("a-b", "2"), ("a/x", "1")], true);
        check(&[("a/y", "1"), ("a-b", "2"), ("l", "-> a/x"), ("p*", "run")], false);
        check(&[("a/x", "3"), ("a-b", "2"), ("l", "-> a/x"), ("p*", "run")], false);
        check(&[("a/x", "1"), ("a-b", "2"), ("l", "-> a-b"), ("p*", "run")], false);
        check(&[("a/x", "1"), ("a-b", "2"), ("l", "-> a/x"), ("p", "run")], false);
        check(&[("a/x", "1"), ("a-b", "2"), ("l", "-> a/x")], false);
        let mut archive = tar::Archive::new(tar.reader());
        let modes: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 0));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let expect = [("a", 0o755), ("a/x", 0o644), ("a-b", 0o644), ("l", 0o777), ("p", 0o755)];
        assert_eq!(modes, expect.map(|(name, mode)| (name.to_owned(), mode)));
    }
}
