//! Unpacks archives of registries into a folder: npm's and PyPI's tarballs, Debian's packages,
//! wheels.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use lzma_rust2::XzReader;
use tar::{Archive, EntryType};

use super::packages::Choice;

/// Size of the header of an `ar` member, which Debian's packages consist of.
const AR_HEADER: usize = 60;
/// The first bytes of an `ar` archive.
const AR_MAGIC: &[u8; 8] = b"!<arch>\n";

/// Why an archive cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("failed to unpack `{}`: {source}", archive.display())]
    Io {
        archive: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` cannot be part of a layer: {message}", archive.display())]
    Malformed { archive: PathBuf, message: String },
}

/// The form of an archive.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// A tarball of npm. Its files lie in one folder, which is left out.
    Npm,
    /// A package of Debian.
    Deb,
    /// Packages of Python, ready to be imported.
    Wheel,
    /// A source distribution of PyPI: only this folder of Python files.
    Sdist { package: String },
}

/// Unpacks the chosen files of `archive` into `into`.
pub(super) fn unpack(archive: &Path, form: &Form, choice: &Choice, into: &Path) -> Result<(), UnpackError> {
    let unpacked = match form {
        Form::Npm => tarball(archive, into, choice, |path| {
            let (_, path) = path.split_once('/')?;
            Some(path.to_owned())
        }),
        Form::Sdist { package } => tarball(archive, into, choice, |path| {
            let (_, path) = path.split_once('/')?;
            let path = path.strip_prefix("src/").unwrap_or(path);
            let is_inside = path.strip_prefix(package.as_str()).is_some_and(|rest| rest.starts_with('/'));
            is_inside.then(|| path.to_owned())
        }),
        Form::Deb => deb(archive, into, choice),
        Form::Wheel => wheel(archive, into, choice),
    };
    unpacked.map_err(|failed| match failed {
        Failed::Io(source) => UnpackError::Io { archive: archive.to_owned(), source },
        Failed::Malformed(message) => UnpackError::Malformed { archive: archive.to_owned(), message },
    })
}

enum Failed {
    Io(io::Error),
    Malformed(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn tarball(
    archive: &Path,
    into: &Path,
    choice: &Choice,
    name: impl Fn(&str) -> Option<String>,
) -> Result<(), Failed> {
    files_of_tar(GzDecoder::new(BufReader::new(File::open(archive)?)), into, choice, name)
}

/// A Debian package is an `ar` archive, and one of its members has the files.
fn deb(archive: &Path, into: &Path, choice: &Choice) -> Result<(), Failed> {
    let mut file = BufReader::new(File::open(archive)?);
    let mut magic = [0; AR_MAGIC.len()];
    file.read_exact(&mut magic)?;
    if magic != *AR_MAGIC {
        return Err(Failed::Malformed("it is no Debian package".to_owned()));
    }
    let mut header = [0; AR_HEADER];
    loop {
        if file.read(&mut header[..1])? == 0 {
            return Err(Failed::Malformed("it has no member `data.tar`".to_owned()));
        }
        file.read_exact(&mut header[1..])?;
        let text = String::from_utf8_lossy(&header);
        let name = text.get(..16).unwrap_or_default().trim().trim_end_matches('/').to_owned();
        let size = text.get(48..58).unwrap_or_default().trim().parse::<u64>();
        let Ok(size) = size else { return Err(Failed::Malformed("a member has no size".to_owned())) };
        let take = |path: &str| Some(path.trim_start_matches("./").to_owned());
        match name.as_str() {
            "data.tar.xz" => return files_of_tar(XzReader::new(file.take(size), true), into, choice, take),
            "data.tar.zst" => {
                return files_of_tar(zstd::Decoder::new(file.take(size))?, into, choice, take);
            }
            "data.tar.gz" => return files_of_tar(GzDecoder::new(file.take(size)), into, choice, take),
            other if other.starts_with("data.tar") => {
                return Err(Failed::Malformed(format!("`{other}` is compressed in an unknown way")));
            }
            _ => {}
        }
        // Members begin at even offsets.
        file.seek(SeekFrom::Current(i64::try_from(size + size % 2).unwrap_or(i64::MAX)))?;
    }
}

/// Writes the chosen files and links of an archive. `name` gives their paths below `into`.
fn files_of_tar(
    reader: impl Read,
    into: &Path,
    choice: &Choice,
    name: impl Fn(&str) -> Option<String>,
) -> Result<(), Failed> {
    let mut archive = Archive::new(reader);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind == EntryType::XGlobalHeader {
            continue;
        }
        let Some(path) = name(&path).filter(|path| choice.takes(path)) else { continue };
        let target = place(into, &path)?;
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                let executable = entry.header().mode()? & 0o111 != 0 || choice.is_program(&path);
                write(&target, &mut entry, executable)?;
            }
            EntryType::Symlink => {
                let Some(link) = entry.link_name()? else { continue };
                link_to(&link, &target)?;
            }
            other => {
                return Err(Failed::Malformed(format!("`{path}` is of the kind {other:?}")));
            }
        }
    }
    Ok(())
}

/// Wheels are unpacked as pip installs them, without scripts: agents are started as modules.
fn wheel(archive: &Path, into: &Path, choice: &Choice) -> Result<(), Failed> {
    let malformed = |error: zip::result::ZipError| Failed::Malformed(error.to_string());
    let mut zip = zip::ZipArchive::new(BufReader::new(File::open(archive)?)).map_err(malformed)?;
    for number in 0..zip.len() {
        let mut entry = zip.by_index(number).map_err(malformed)?;
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_err(malformed)?.into_owned();
        // `x-1.data/purelib/` is a second place for modules.
        let path = match name.split_once(".data/") {
            Some((_, rest)) => {
                match rest.strip_prefix("purelib/").or_else(|| rest.strip_prefix("platlib/")) {
                    Some(path) => path,
                    None => continue,
                }
            }
            None => &name,
        };
        if !choice.takes(path) {
            continue;
        }
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        write(&place(into, path)?, &mut entry, executable)?;
    }
    Ok(())
}

/// The place of a file of an archive. It must not lead out of the folder, also not by a link.
fn place(into: &Path, path: &str) -> Result<PathBuf, Failed> {
    let mut target = into.to_owned();
    let mut parts = Path::new(path).components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(Failed::Malformed(format!("the path `{path}` leads out of the archive")));
        };
        target.push(name);
        if parts.peek().is_none() {
            return Ok(target);
        }
        match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(Failed::Malformed(format!("`{path}` is below a file or link"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&target)?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failed::Malformed("a file has no name".to_owned()))
}

fn write(target: &Path, content: &mut impl Read, executable: bool) -> io::Result<()> {
    remove(target)?;
    let mut file = File::create(target)?;
    io::copy(content, &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
}

fn link_to(link: &Path, target: &Path) -> io::Result<()> {
    remove(target)?;
    symlink(link, target)
}

/// Two packages may have the same file. The later one's is taken.
fn remove(target: &Path) -> io::Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn tar_of(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_mode(if path.contains("bin/") { 0o755 } else { 0o600 });
            header.set_size(content.len() as u64);
            // As a hostile archive has it: `append_data` refuses `..`.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            match content.strip_prefix("-> ") {
                Some(link) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_size(0);
                    header.set_link_name(link).unwrap();
                    header.set_cksum();
                    tar.append(&header, io::empty()).unwrap();
                }
                None => {
                    header.set_cksum();
                    tar.append(&header, content.as_bytes()).unwrap();
                }
            }
        }
        tar.into_inner().unwrap()
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = AR_MAGIC.to_vec();
        for (name, content) in members {
            bytes.extend(
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, content.len()).bytes(),
            );
            bytes.extend(*content);
            if content.len() % 2 == 1 {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    fn zipped(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (path, content) in entries {
            zip.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(content.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    /// The files below `dir`, each with its mode and content.
    fn listed(dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            if metadata.is_dir() {
                found.extend(listed(&path).into_iter().map(|file| format!("{name}/{file}")));
            } else if metadata.is_symlink() {
                found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else {
                let mode = metadata.permissions().mode() & 0o777;
                found.push(format!("{name} {mode:o} {}", fs::read_to_string(&path).unwrap()));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn archives_of_every_registry_are_unpacked() {
        let check = |form: Form, bytes: Vec<u8>, drop: &str, expect: Result<&[&str], &str>| {
            let dir = tempfile::tempdir().unwrap();
            let archive = dir.path().join("archive");
            fs::write(&archive, bytes).unwrap();
            let into = dir.path().join("into");
            fs::create_dir(&into).unwrap();
            let choice = Choice::new(&[], &[drop.to_owned()]);
            match (unpack(&archive, &form, &choice, &into), expect) {
                (Ok(()), Ok(expect)) => assert_eq!(listed(&into), expect, "{form:?}"),
                (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
                (found, expect) => panic!("{form:?}: {found:?}, and not {expect:?}"),
            }
        };
        let npm = [
            ("package/bin/x", "run"),
            ("package/a.js", "1"),
            ("package/docs/b", "2"),
            ("package/l", "-> a.js"),
        ];
        check(Form::Npm, gz(&tar_of(&npm)), "docs/**", Ok(&["a.js 644 1", "bin/x 755 run", "l -> a.js"]));
        check(Form::Npm, gz(&tar_of(&[("package/../../x", "1")])), "", Err("leads out"));
        check(
            Form::Npm,
            gz(&tar_of(&[("package/l", "-> /"), ("package/l/x", "1")])),
            "",
            Err("below a file or link"),
        );
        check(Form::Npm, b"no archive".to_vec(), "", Err("failed to unpack"));
        let data = gz(&tar_of(&[("./usr/bin/x", "run"), ("./usr/share/doc/y", "1")]));
        check(
            Form::Deb,
            ar(&[("debian-binary", b"2.0"), ("control.tar.xz", b"odd"), ("data.tar.gz", &data)]),
            "usr/share/**",
            Ok(&["usr/bin/x 755 run"]),
        );
        check(Form::Deb, ar(&[("debian-binary", b"2.0\n")]), "", Err("no member `data.tar`"));
        check(Form::Deb, ar(&[("data.tar.lz", b"")]), "", Err("unknown way"));
        check(Form::Deb, b"no archive".to_vec(), "", Err("no Debian package"));
        let files =
            [("p/a.py", "1"), ("p-1.data/purelib/p/b.py", "2"), ("p-1.data/scripts/p", "3"), ("q/c.py", "4")];
        check(Form::Wheel, zipped(&files), "q/**", Ok(&["p/a.py 644 1", "p/b.py 644 2"]));
        check(Form::Wheel, zipped(&[("../x", "1")]), "", Err("leads out"));
        let sdist = gz(&tar_of(&[("p-1/setup.py", "1"), ("p-1/p/a.py", "2"), ("p-1/pq/b.py", "3")]));
        check(Form::Sdist { package: "p".to_owned() }, sdist, "", Ok(&["p/a.py 644 2"]));
    }
}
