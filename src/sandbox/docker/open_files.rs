//! Files that processes of a container hold without a name: they occupy the disk until the last user closes them, and no folder has them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::upper::BLOCK;

/// What the link of a descriptor of a socket begins with.
const SOCKET: &str = "socket:";
/// The link of an `io_uring`, which keeps the files that were registered with it.
const IO_URING: &str = "anon_inode:[io_uring]";
/// What the kernel says of a Unix socket: the number of descriptors that were sent to it, or to connections that it has not accepted, and
/// were not received yet (Linux 5.8; an older one says nothing).
const QUEUED: &str = "scm_fds:";

/// Bytes of the deleted files that processes in the container of process `pid` have open or mapped, on the disks of `folders` and of its
/// root.
pub(super) fn unlinked_bytes(pid: i64, folders: &[PathBuf]) -> u64 {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    // A file in memory has no name either, but is counted as memory.
    let root = device(Path::new(&format!("/proc/{pid}/root")));
    let devices = folders.iter().filter_map(|folder| device(folder)).chain(root).collect();
    unlinked(&processes(pid), &devices)
}

/// Whether processes in the container of process `pid` may hold deleted files that [`unlinked_bytes`] does not count, since no descriptor
/// leads to them: they wait in a socket, or are registered with an `io_uring`.
pub(super) fn may_be_hidden(pid: i64) -> bool {
    let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    // Not root, and not the user who started the container.
    if fs::read_dir(format!("/proc/{pid}/fd")).is_err_and(|error| is_denied(&error)) {
        return true;
    }
    processes(pid).iter().any(|process| hides(process))
}

/// The folders in `/proc` of all processes in the container of process `pid`.
fn processes(pid: i64) -> Vec<PathBuf> {
    let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/pid")) else { return Vec::new() };
    // The container has ended, and its process number was reused by a process of the host.
    if fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own == namespace) {
        return Vec::new();
    }
    let is_inside =
        |process: &PathBuf| fs::read_link(process.join("ns/pid")).is_ok_and(|found| found == namespace);
    entries(Path::new("/proc")).filter(is_inside).collect()
}

fn unlinked(processes: &[PathBuf], devices: &BTreeSet<u64>) -> u64 {
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for link in processes.iter().flat_map(|process| descriptors(process).chain(mappings(process))) {
        let Ok(file) = fs::metadata(link) else { continue };
        let is_unlinked = file.is_file() && file.nlink() == 0 && devices.contains(&file.dev());
        if is_unlinked && seen.insert((file.dev(), file.ino())) {
            bytes += file.blocks() * BLOCK;
        }
    }
    bytes
}

fn hides(process: &Path) -> bool {
    descriptors(process).any(|descriptor| {
        // It may have been closed meanwhile.
        let link = fs::read_link(&descriptor).unwrap_or_default();
        let link = link.to_string_lossy();
        link == IO_URING
            || (link.starts_with(SOCKET)
                && fs::read_to_string(info(&descriptor)).is_ok_and(|info| queues(&info)))
    })
}

/// The open descriptors of a process. Each thread is looked at: it can have a table of its own, and the first can end before the others.
fn descriptors(process: &Path) -> impl Iterator<Item = PathBuf> {
    entries(&process.join("task")).flat_map(|thread| entries(&thread.join("fd")))
}

/// The mapped files of a process. Its threads have the same ones; a thread that has ended shows none.
fn mappings(process: &Path) -> Vec<PathBuf> {
    // `task` has no such folder, but a thread can be looked up like a process.
    let of_thread = |thread: PathBuf| {
        let number = thread.file_name().unwrap_or_default();
        entries(&Path::new("/proc").join(number).join("map_files")).collect::<Vec<_>>()
    };
    entries(&process.join("task")).map(of_thread).find(|mapped| !mapped.is_empty()).unwrap_or_default()
}

/// What the kernel says of a descriptor: `fd/7` → `fdinfo/7`.
fn info(descriptor: &Path) -> PathBuf {
    let thread = descriptor.ancestors().nth(2).unwrap_or(descriptor);
    thread.join("fdinfo").join(descriptor.file_name().unwrap_or_default())
}

fn queues(info: &str) -> bool {
    let counts = info.lines().filter_map(|line| line.strip_prefix(QUEUED));
    counts.filter_map(|count| count.trim().parse::<u64>().ok()).any(|count| count > 0)
}

/// The paths in a folder; none if it is gone.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    /// Holds files of a megabyte without names in the folder `argv[1]`, as `argv[2]` says, until its input ends.
    const HOLDER: &str = r#"
import ctypes, mmap, os, socket, sys, threading
libc = ctypes.CDLL(None)
def unlinked():
    path = sys.argv[1] + '/file'
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(file, b'x' * 1000000)
    os.fsync(file)
    os.unlink(path)
    return file
def until_end():
    print(flush=True)
    sys.stdin.read()
    os._exit(0)
def in_own_table():
    libc.unshare(0x400)
    unlinked()
    until_end()
def opened():
    os.dup(unlinked())
def mapped():
    file = unlinked()
    globals()['kept'] = mmap.mmap(file, 1000000)
    os.close(file)
def of_thread():
    threading.Thread(target=in_own_table).start()
    threading.Event().wait()
def of_ended_first_thread():
    unlinked()
    threading.Thread(target=until_end).start()
    libc.syscall(int(sys.argv[3]), 0)
def mapped_of_ended_first_thread():
    mapped()
    threading.Thread(target=until_end).start()
    libc.syscall(int(sys.argv[3]), 0)
def send(socket_):
    file = unlinked()
    socket.send_fds(socket_, [b'x'], [file])
    os.close(file)
def sent():
    globals()['kept'] = pair = socket.socketpair()
    send(pair[0])
def received():
    sent()
    socket.recv_fds(kept[1], 1, 1)
def sent_unaccepted():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1] + '/listener')
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1] + '/listener')
    globals()['kept'] = listener, client
    send(client)
def nothing():
    globals()['kept'] = socket.socketpair()
globals()[sys.argv[2]]()
until_end()
"#;
    /// The number of the call that ends one thread.
    #[cfg(target_arch = "x86_64")]
    const EXIT: &str = "60";
    #[cfg(not(target_arch = "x86_64"))]
    const EXIT: &str = "93";

    #[test]
    fn files_without_a_name_are_counted_or_known_to_be_possible() {
        let check = |how: &str, megabytes: u64, hidden: bool| {
            let folder = tempfile::tempdir().unwrap();
            let mut holder = Command::new("python3")
                .args(["-I", "-B", "-c", HOLDER])
                .arg(folder.path())
                .args([how, EXIT])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
            let process = PathBuf::from(format!("/proc/{}", holder.id()));
            let device = fs::metadata(folder.path()).unwrap().dev();
            let bytes = unlinked(std::slice::from_ref(&process), &BTreeSet::from([device]));
            assert_eq!((bytes / 1_000_000, hides(&process)), (megabytes, hidden), "{how}");
            assert_eq!(unlinked(&[process], &BTreeSet::from([device + 1])), 0, "{how}: another disk");
            drop(holder.stdin.take());
            holder.wait().unwrap();
        };
        check("nothing", 0, false);
        check("opened", 1, false);
        check("mapped", 1, false);
        check("of_thread", 1, false);
        check("of_ended_first_thread", 1, false);
        check("mapped_of_ended_first_thread", 1, false);
        check("sent", 0, true);
        check("sent_unaccepted", 0, true);
        check("received", 1, false);
    }

    #[test]
    fn queues_are_read_from_the_kernels_words() {
        let check = |info: &str, expect: bool| assert_eq!(queues(info), expect, "{info:?}");
        check("pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t7\nscm_fds: 0\n", false);
        check("pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t7\nscm_fds: 253\n", true);
        // Kernels before Linux 5.8.
        check("pos:\t0\nflags:\t02\nmnt_id:\t10\n", false);
        check("", false);
    }

    #[test]
    fn a_process_of_the_host_is_no_container() {
        let own = i64::from(std::process::id());
        assert_eq!((unlinked_bytes(own, &[]), may_be_hidden(own)), (0, false));
        assert_eq!((unlinked_bytes(0, &[]), may_be_hidden(0)), (0, false));
    }
}
