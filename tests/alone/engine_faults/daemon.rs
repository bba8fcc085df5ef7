//! An engine that belongs to the test, on a small disk of its own. It can be stopped, killed and
//! filled without disturbing anyone.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::ImportImageOptions;
use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};

/// Room for the base image, a task's layers and a few containers.
const DISK: &str = "3G";
/// A busy machine needs some seconds to start an engine.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Sets up the folder's disk, waits for the end of its input, and clears everything away. The input
/// ends however the test ends.
const KEEPER: &str = r#"
set -u
cd "$1" || exit 1
clear_away() {
    for round in 1 2 3 4 5 6 7 8 9 10; do
        # Everything that was started with this folder in its arguments: the engine, its containerd, the shims.
        pids=$(grep -lsaF -f - /proc/[0-9]*/cmdline <<<"$1/" | cut -d/ -f3)
        # Processes of containers, half-started ones too: they outlive a shim that was killed, in mount namespaces of their own.
        for process in $(grep -lsF -f - /proc/[0-9]*/mountinfo <<<"$1/" | cut -d/ -f3); do
            [ "$(readlink /proc/$process/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ] || pids="$pids $process"
        done
        [ -z "$pids" ] && break
        kill -CONT $pids 2>/dev/null
        kill -KILL $pids 2>/dev/null
        sleep 0.3
    done
    # The innermost mounts first.
    cut -d' ' -f2 /proc/self/mounts | grep -F -- "$1/" | sort -r | while read -r place; do umount -l "$place"; done
    cd / && rm -rf -- "$1"
}
truncate -s "$2" disk && mkfs.ext4 -q -m 0 disk && mkdir data exec && mount -o loop disk data || { clear_away "$1"; echo failed; exit 1; }
echo ready
trap '' INT TERM HUP
cat >/dev/null
clear_away "$1"
"#;

/// The engine. It is removed when this is dropped, and also when the test process is killed.
pub(crate) struct Daemon {
    folder: PathBuf,
    keeper: Child,
    /// The keeper clears up when this is closed.
    input: Option<ChildStdin>,
    engine: Child,
}

impl Daemon {
    /// Why no engine can be started on this machine. `None` if one can.
    pub(crate) fn impossible() -> Option<&'static str> {
        if !rustix::process::geteuid().is_root() {
            return Some("it needs root, to start an engine of its own");
        }
        let lacks = |program: &str| {
            let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
            !folders.iter().any(|folder| PathBuf::from(folder).join(program).exists())
        };
        if lacks("dockerd") || lacks("containerd") {
            return Some("there is no dockerd or containerd to start");
        }
        (lacks("unshare") || lacks("mkfs.ext4")).then_some("there is no unshare or mkfs.ext4")
    }

    /// Starts an engine. `Err` says what this machine does not allow.
    pub(crate) async fn start() -> Result<Self, String> {
        // The path is short, because a socket's path has at most 107 bytes, and containerd appends
        // 60.
        let folder = tempfile::Builder::new().prefix("ts-").tempdir_in("/tmp").unwrap().keep();
        let mut keeper = Command::new("bash")
            .args(["-c", KEEPER, "bash"])
            .arg(&folder)
            .arg(DISK)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A killed test takes its process group with it. The keeper is in a group of its own,
            // so it survives and clears up.
            .process_group(0)
            .spawn()
            .unwrap();
        let input = keeper.stdin.take();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(keeper.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        if line.trim() != "ready" {
            let _ = keeper.wait();
            return Err("this machine does not let root mount a loop device".to_owned());
        }
        let engine = spawn(&folder);
        let daemon = Self { folder, keeper, input, engine };
        daemon.answers().await?;
        Ok(daemon)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("sock")
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// A client. `None` while there is no socket.
    fn api(&self) -> Option<Docker> {
        Docker::connect_with_unix(&self.socket().to_string_lossy(), 120, bollard::API_DEFAULT_VERSION).ok()
    }

    async fn is_up(&self) -> bool {
        match self.api() {
            Some(api) => api.ping().await.is_ok(),
            None => false,
        }
    }

    /// Waits until the engine answers a ping.
    pub(crate) async fn answers(&self) -> Result<(), String> {
        let answers = async {
            while !self.is_up().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(STARTS_WITHIN, answers).await.map_err(|_| {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            let end: Vec<&str> = log.lines().rev().take(5).collect();
            format!("an engine of our own does not start: {}", end.join("\n"))
        })
    }

    /// Copies images from another engine.
    pub(crate) async fn copy_images(&self, from: &Docker, names: &[&str]) {
        let exported = from.export_images(names);
        // The pieces are collected, because the stream borrows from the other client.
        let pieces: Vec<_> = exported.collect().await;
        let options = ImportImageOptions::default();
        let api = self.api().unwrap();
        let mut imported =
            Box::pin(api.import_image_stream(options, futures_util::stream::iter(pieces), None));
        while let Some(step) = imported.next().await {
            step.unwrap();
        }
    }

    /// Halts the engine and its containerd for some time. It loses nothing, and answers nothing.
    pub(crate) async fn freeze(&self, time: Duration) {
        let pids = self.processes();
        for pid in &pids {
            let _ = kill_process(*pid, Signal::STOP);
        }
        tokio::time::sleep(time).await;
        for pid in &pids {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }

    /// Stops the engine as an administrator does, with all containers. Starts it again after some
    /// time.
    pub(crate) async fn stop(&mut self, time: Duration) {
        self.end(Signal::TERM).await;
        tokio::time::sleep(time).await;
        self.engine = spawn(&self.folder);
        self.answers().await.unwrap();
    }

    /// Kills the engine, and starts it again at once.
    pub(crate) async fn crash(&mut self) {
        self.end(Signal::KILL).await;
        self.engine = spawn(&self.folder);
        self.answers().await.unwrap();
    }

    async fn end(&mut self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.engine), signal);
        while self.engine.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Containerd ends too. If process 1 does not reap it, it stays a zombie, and the new engine
        // would take its number for a running one's.
        while !self.processes().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for file in ["pid", "exec/containerd/containerd.pid"] {
            let _ = fs::remove_file(self.folder.join(file));
        }
    }

    /// Fills the engine's disk to the last byte for some time, as another user of the disk could.
    pub(crate) async fn fill_disk(&self, time: Duration) {
        let place = self.folder.join("data/somebody-elses");
        let (path, block) = (place.clone(), vec![1_u8; 1 << 20]);
        tokio::task::spawn_blocking(move || {
            let mut file = fs::File::create(path).unwrap();
            // Most bytes are allocated at once. Only the last ones are written one by one.
            let stat = rustix::fs::fstatvfs(&file).unwrap();
            let most = (stat.f_bavail * stat.f_frsize).saturating_sub(8 << 20);
            let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, most);
            std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
            while file.write_all(&block).is_ok() {}
        })
        .await
        .unwrap();
        tokio::time::sleep(time).await;
        fs::remove_file(place).unwrap();
    }

    /// The engine's own processes, without its containers.
    fn processes(&self) -> Vec<Pid> {
        let folder = format!("{}/", self.folder.display());
        let is_engine = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let program = line.split('\0').next().unwrap_or_default();
            line.contains(&folder) && (program.ends_with("dockerd") || program.ends_with("containerd"))
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| is_engine(*pid))
            .filter_map(Pid::from_raw)
            .collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.keeper.wait();
        // The keeper has killed the engine.
        let _ = self.engine.wait();
    }
}

fn spawn(folder: &std::path::Path) -> Child {
    let log = fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    // The engine is in a network namespace of its own. An engine without a bridge removes
    // `docker0`, which belongs to another engine.
    Command::new("unshare")
        .args(["--net", "--", "dockerd", "--bridge=none", "--iptables=false"])
        // If all engines share a containerd, our containers are in a namespace of their own.
        .args(["--containerd-namespace", "ts-test", "--containerd-plugins-namespace", "ts-test-plugins"])
        .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
        // The parent is not `docker`, because other tests look there for processes that the shared
        // engine does not know.
        .args(["--cgroup-parent", "/ts-engine"])
        .args(["--host", &format!("unix://{}", at("sock"))])
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}
