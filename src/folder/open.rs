//! Opens and reads single files. Every path that somebody else may have made is opened here.
//!
//! A path may lead to a device without end (`/dev/zero`), to a pipe without a writer, or through a
//! link to a private file. So the type is checked on the open descriptor. The size is checked while
//! reading, because the metadata of a device or a pipe says 0 bytes.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_setfl, fstatfs};
use rustix::io::Errno;

use super::{Fault, WalkError};

/// File system type of unnamed pipes (`PIPEFS_MAGIC` of Linux).
const PIPE_FS: u64 = 0x5049_5045;

/// Opens the regular file at `path`. `None` if it does not exist. A link is an error.
pub fn open_file(path: &Path) -> Result<Option<File>, WalkError> {
    let refused = |fault| Err(WalkError { path: path.to_owned(), fault });
    // Without NONBLOCK, opening a named pipe waits for a writer.
    let file = match open(path, OFlags::NOFOLLOW | OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if is_errno(&error, Errno::LOOP) => return refused(Fault::Link),
        Err(error) if is_errno(&error, Errno::NXIO) => return refused(Fault::Special),
        Err(error) => return Err(WalkError::io(path, error)),
    };
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(Some(file)),
        Ok(_) => refused(Fault::Special),
        Err(error) => Err(WalkError::io(path, error)),
    }
}

/// The bytes of the regular file at `path`. `None` if it does not exist. A link is an error, and so
/// is a file of more than `most` bytes.
pub fn read_file(path: &Path, most: u64) -> Result<Option<Vec<u8>>, WalkError> {
    match open_file(path)? {
        Some(file) => read_bounded(file, path, most).map(Some),
        None => Ok(None),
    }
}

/// The first `most` bytes of the regular file at `path`. `None` if it does not exist. A link is an
/// error.
pub fn read_start(path: &Path, most: u64) -> Result<Option<Vec<u8>>, WalkError> {
    let Some(file) = open_file(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|error| WalkError::io(path, error))?;
    Ok(Some(bytes))
}

/// The bytes at a path that the user typed. It may be a link or an unnamed pipe, e.g. `/dev/stdin`
/// or `<(zstd -dc calls.zst)`. A device, a named pipe and more than `most` bytes are errors.
pub fn read_named_by_user(path: &Path, most: u64) -> Result<Vec<u8>, WalkError> {
    let io = |error| WalkError::io(path, error);
    let refused = |fault| Err(WalkError { path: path.to_owned(), fault });
    let file = match open(path, OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(error) if is_errno(&error, Errno::NXIO) => return refused(Fault::Endless),
        Err(error) => return Err(io(error)),
    };
    let kind = file.metadata().map_err(io)?.file_type();
    let unnamed_pipe = || fstatfs(&file).is_ok_and(|found| found.f_type.cast_unsigned() == PIPE_FS);
    if kind.is_fifo() && unnamed_pipe() {
        // A named pipe without a writer is refused above. This one has a writer, so reading may
        // block.
        fcntl_setfl(&file, OFlags::empty()).map_err(|errno| io(errno.into()))?;
    } else if kind.is_dir() {
        return refused(Fault::Folder);
    } else if !kind.is_file() {
        return refused(Fault::Endless);
    }
    read_bounded(file, path, most)
}

fn open(path: &Path, flags: OFlags) -> std::io::Result<File> {
    // A terminal must not become the controlling terminal.
    let flags = (flags | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn read_bounded(file: File, path: &Path, most: u64) -> Result<Vec<u8>, WalkError> {
    let hint = file.metadata().map_or(0, |found| found.len().min(most));
    let mut bytes = Vec::with_capacity(usize::try_from(hint).unwrap_or_default());
    // One byte more than allowed shows that the file is too large.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| WalkError::io(path, error))?;
    if bytes.len() as u64 > most {
        return Err(WalkError { path: path.to_owned(), fault: Fault::TooLarge(most) });
    }
    Ok(bytes)
}

fn is_errno(error: &std::io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    const MOST: u64 = 4;

    /// A function that makes an entry of a folder, e.g. a link.
    type Make = fn(&Path) -> std::io::Result<()>;

    fn pipe_at(path: &Path) -> std::io::Result<()> {
        Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
    }

    /// `foreign` is the result of `read_file`, `by_user` that of `read_named_by_user`: the text, or
    /// the beginning of the error.
    #[track_caller]
    fn check(make: Make, foreign: Result<Option<&str>, &str>, by_user: Result<&str, &str>) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("target"), "text").unwrap();
        let path = dir.path().join("entry");
        make(&path).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (foreign, by_user) = (foreign.map(|text| text.map(str::to_owned)), by_user.map(str::to_owned));
        match (read_file(&path, MOST).map(|bytes| bytes.map(text)), foreign) {
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expect) => {
                assert_eq!(found.map_err(|error| error.to_string()), expect.map_err(str::to_owned));
            }
        }
        match (read_named_by_user(&path, MOST).map(text), by_user) {
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expect) => {
                assert_eq!(found.map_err(|error| error.to_string()), expect.map_err(str::to_owned));
            }
        }
    }

    #[test]
    fn entries_are_read_by_type_and_size() {
        const LINK: &str = "is a symbolic link";
        const SPECIAL: &str = "is neither a regular file nor a folder";
        const ENDLESS: &str = "is a device, a named pipe or a socket";
        const LARGE: &str = "is larger than 4 bytes";
        check(|_| Ok(()), Ok(None), Err("No such file"));
        check(|path| fs::write(path, "text"), Ok(Some("text")), Ok("text"));
        check(|path| fs::write(path, "texts"), Err(LARGE), Err(LARGE));
        check(|path| fs::create_dir(path), Err(SPECIAL), Err("is a folder"));
        check(pipe_at, Err(SPECIAL), Err(ENDLESS));
        check(|path| UnixListener::bind(path).map(drop), Err(SPECIAL), Err(ENDLESS));
        check(|path| symlink("target", path), Err(LINK), Ok("text"));
        check(|path| symlink("missing", path), Err(LINK), Err("No such file"));
        check(|path| symlink("/dev/zero", path), Err(LINK), Err(ENDLESS));
        // The metadata of files in /proc says 0 bytes.
        check(|path| symlink("/proc/version", path), Err(LINK), Err(LARGE));
    }

    #[test]
    fn a_pipe_of_the_shell_is_read() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let writes = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            writer.write_all(b"text").unwrap();
        });
        assert_eq!(read_named_by_user(Path::new(&path), MOST).unwrap(), b"text");
        writes.join().unwrap();
    }
}
