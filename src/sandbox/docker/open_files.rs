//! Counts files and kernel objects that processes of a container hold open. Deleted files are in no
//! folder, and occupy the disk until their last user closes them. Some kernel objects are shared by
//! all containers, e.g. inotify instances.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::writable_layer::BLOCK;

/// Start of the link of a socket's descriptor.
const SOCKET: &str = "socket:";
/// The link of an `io_uring`'s descriptor. An `io_uring` can hold registered files.
const IO_URING: &str = "anon_inode:[io_uring]";
/// The line of `fdinfo` with the number of descriptors in flight to a Unix socket, or to its
/// connections that are not accepted yet (Linux 5.8; older kernels have no such line).
const QUEUED: &str = "scm_fds:";

/// Start of the link of a pipe's descriptor. The rest is the same at both ends.
const PIPE: &str = "pipe:";
const INOTIFY: &str = "anon_inode:inotify";
const EPOLL: &str = "anon_inode:[eventpoll]";
/// Start of a line of `fdinfo` for each watch of an epoll instance (proc_pid_fdinfo(5)).
const WATCH: &str = "tfd:";

/// Files and kernel objects that processes of a container hold open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenFiles {
    /// Bytes of deleted files that are open or mapped.
    pub(super) unlinked: u64,
    /// Descriptors that wait in sockets. Deleted files behind them are not counted, since no
    /// process has the descriptor. An `io_uring` can hide files too, and counts as one.
    pub(super) in_flight: u64,
    /// Descriptors of inotify instances.
    pub(super) inotify: u64,
    /// Watches of epoll instances.
    pub(super) watches: u64,
    pub(super) pipes: u64,
    /// This process may not look, since it is neither root nor the user who started the container.
    pub(super) unread: bool,
}

impl OpenFiles {
    /// Counts for the container of process `pid`. Deleted files count if they are on the disks of
    /// `folders` or of its root.
    pub(super) fn of(pid: i64, folders: &[PathBuf]) -> Self {
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        // A file in memory has no name either. It counts as memory, and not here.
        let root = device(Path::new(&format!("/proc/{pid}/root")));
        let devices = folders.iter().filter_map(|folder| device(folder)).chain(root).collect();
        let own = fs::read_dir(format!("/proc/{pid}/fd"));
        let unread = own.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        Self { unread, ..count(&processes(pid), &devices) }
    }

    /// Whether deleted files may be hidden from this count.
    pub(super) fn may_hide(&self) -> bool {
        self.unread || self.in_flight > 0
    }
}

/// The folders in `/proc` of all processes in the container of process `pid`.
fn processes(pid: i64) -> Vec<PathBuf> {
    let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/pid")) else { return Vec::new() };
    // The container has ended, and a process of the host has the number now.
    if fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own == namespace) {
        return Vec::new();
    }
    let is_inside =
        |process: &PathBuf| fs::read_link(process.join("ns/pid")).is_ok_and(|found| found == namespace);
    entries(Path::new("/proc")).filter(is_inside).collect()
}

/// Counts for these processes. Deleted files count if they are on `devices`.
fn count(processes: &[PathBuf], devices: &BTreeSet<u64>) -> OpenFiles {
    let mut open = OpenFiles::default();
    let (mut files, mut pipes, mut sockets) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut add_file = |open: &mut OpenFiles, link: &Path| {
        let Ok(file) = fs::metadata(link) else { return };
        let is_unlinked = file.is_file() && file.nlink() == 0 && devices.contains(&file.dev());
        if is_unlinked && files.insert((file.dev(), file.ino())) {
            open.unlinked += file.blocks() * BLOCK;
        }
    };
    for process in processes {
        // Threads with the same pipes share a table of descriptors. All inotify instances look
        // alike, so equal tables are counted once.
        let mut tables = BTreeSet::new();
        for thread in entries(&process.join("task")) {
            let [mut inotify, mut epoll] = [INOTIFY, EPOLL].map(|kind| linked(&thread, kind));
            inotify.sort();
            epoll.sort();
            let name = |descriptor: &PathBuf| descriptor.file_name().map(OsStr::to_owned);
            let names: Vec<_> = inotify.iter().chain(&epoll).map(name).collect();
            if tables.insert(names) {
                open.inotify += inotify.len() as u64;
                open.watches += epoll.iter().map(|descriptor| watches(descriptor)).sum::<u64>();
            }
        }
        for descriptor in descriptors(process) {
            // The descriptor may have been closed meanwhile.
            let link = fs::read_link(&descriptor).unwrap_or_default();
            let link = link.to_string_lossy();
            if link.starts_with(PIPE) {
                pipes.insert(link.into_owned());
            } else if link == IO_URING {
                open.in_flight += 1;
            } else if link.starts_with(SOCKET) {
                if sockets.insert(link.into_owned()) {
                    open.in_flight += fs::read_to_string(info(&descriptor)).map_or(0, |info| queued(&info));
                }
            } else {
                add_file(&mut open, &descriptor);
            }
        }
        mappings(process).iter().for_each(|mapped| add_file(&mut open, mapped));
    }
    open.pipes = pipes.len() as u64;
    open
}

/// The open descriptors of a process. Each thread is looked at, since it can have a table of its
/// own, and the first thread can end before the others.
fn descriptors(process: &Path) -> impl Iterator<Item = PathBuf> {
    entries(&process.join("task")).flat_map(|thread| entries(&thread.join("fd")))
}

/// The mapped files of a process. All of its threads have the same ones, but an ended thread shows
/// none.
fn mappings(process: &Path) -> Vec<PathBuf> {
    // `task` has no such folder, but a thread can be looked up like a process.
    let of_thread = |thread: PathBuf| {
        let number = thread.file_name().unwrap_or_default();
        entries(&Path::new("/proc").join(number).join("map_files")).collect::<Vec<_>>()
    };
    entries(&process.join("task")).map(of_thread).find(|mapped| !mapped.is_empty()).unwrap_or_default()
}

/// The path of the kernel's information about a descriptor: `fd/7` becomes `fdinfo/7`.
fn info(descriptor: &Path) -> PathBuf {
    let thread = descriptor.ancestors().nth(2).unwrap_or(descriptor);
    thread.join("fdinfo").join(descriptor.file_name().unwrap_or_default())
}

/// The descriptors of a thread whose links begin with `kind`.
fn linked(thread: &Path, kind: &str) -> Vec<PathBuf> {
    let is_one = |descriptor: &PathBuf| fs::read_link(descriptor).is_ok_and(|link| link == Path::new(kind));
    entries(&thread.join("fd")).filter(is_one).collect()
}

/// The number of watches of an epoll instance.
fn watches(descriptor: &Path) -> u64 {
    let text = fs::read_to_string(info(descriptor)).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(WATCH)).count() as u64
}

fn queued(info: &str) -> u64 {
    let mut counts = info.lines().filter_map(|line| line.strip_prefix(QUEUED));
    counts.next().and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}

/// The paths in a folder. Empty if the folder is gone.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    /// A program that holds deleted files of a megabyte in the folder `argv[1]`. `argv[2]` says
    /// how. It ends with its input.
    const HOLDER: &str = r#"
import ctypes, mmap, os, select, socket, sys, threading, time
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
def pooled():
    for _ in range(10): os.pipe()
    for _ in range(3): libc.inotify_init()
    globals()['epolls'] = epolls = [select.epoll() for _ in range(2)]
    for _ in range(7): epolls[0].register(os.pipe()[0])
    for _ in range(20): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
globals()[sys.argv[2]]()
until_end()
"#;
    /// The number of the system call that ends one thread.
    #[cfg(target_arch = "x86_64")]
    const EXIT: &str = "60";
    #[cfg(not(target_arch = "x86_64"))]
    const EXIT: &str = "93";

    #[test]
    fn what_processes_hold_is_counted() {
        let check = |how: &str, megabytes: u64, in_flight: u64| {
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
            let open = count(std::slice::from_ref(&process), &BTreeSet::from([device]));
            assert_eq!((open.unlinked / 1_000_000, open.in_flight), (megabytes, in_flight), "{how}");
            // The process has two pipes as standard streams, and what this test has.
            let expect = if how == "pooled" { (3, 19) } else { (0, 2) };
            let base = count(&[PathBuf::from("/proc/self")], &BTreeSet::new()).pipes;
            assert!((expect.1..=expect.1 + base).contains(&open.pipes), "{how}: {open:?}");
            assert_eq!((open.inotify, open.watches), (expect.0, expect.0 / 3 * 7), "{how}");
            let elsewhere = count(&[process], &BTreeSet::from([device + 1]));
            assert_eq!(elsewhere.unlinked, 0, "{how}: another disk");
            drop(holder.stdin.take());
            holder.wait().unwrap();
        };
        check("nothing", 0, 0);
        check("opened", 1, 0);
        check("mapped", 1, 0);
        check("of_thread", 1, 0);
        check("of_ended_first_thread", 1, 0);
        check("mapped_of_ended_first_thread", 1, 0);
        check("sent", 0, 1);
        check("sent_unaccepted", 0, 1);
        check("received", 1, 0);
        check("pooled", 0, 0);
    }

    #[test]
    fn queues_are_read_from_the_kernels_words() {
        let check = |info: &str, expect: u64| assert_eq!(queued(info), expect, "{info:?}");
        check("pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t7\nscm_fds: 0\n", 0);
        check("pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t7\nscm_fds: 253\n", 253);
        // Kernels before Linux 5.8.
        check("pos:\t0\nflags:\t02\nmnt_id:\t10\n", 0);
        check("", 0);
    }

    #[test]
    fn a_process_of_the_host_is_no_container() {
        let own = i64::from(std::process::id());
        for pid in [own, 0] {
            assert_eq!(OpenFiles::of(pid, &[]), OpenFiles::default(), "{pid}");
        }
    }
}
