//! Test harness: runs the real binary in a folder of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder and the binary run in it.
pub(crate) struct Bench {
    dir: PathBuf,
    /// Removes `dir` at the end. `None` for a shared folder.
    _own: Option<tempfile::TempDir>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let own = tempfile::tempdir().unwrap();
        Self { dir: own.path().to_owned(), _own: Some(own) }
    }

    /// A folder that all test processes share. `prepare` fills it once for this build of the
    /// binary.
    pub(crate) fn shared(name: &str, prepare: impl Fn(&Self)) -> Self {
        let binary = fs::metadata(env!("CARGO_BIN_EXE_termsmith")).unwrap();
        let built = binary.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{built}"));
        fs::create_dir_all(&dir).unwrap();
        let bench = Self { dir, _own: None };
        let turn = fs::File::create(bench.path("turn")).unwrap();
        turn.lock().unwrap();
        if !bench.path("ready").exists() {
            prepare(&bench);
            bench.write("ready", "");
        }
        bench
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_termsmith"));
        command.args(args).current_dir(&self.dir).stdin(Stdio::null());
        command
            .env_remove("TERMSMITH_DOMAINS")
            .env_remove("TERMSMITH_TEMPLATES")
            .env_remove("TERMSMITH_ENGINE");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::new(args, &self.command(args).output().unwrap())
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// A finished command.
pub(crate) struct Ran {
    pub(crate) args: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn new(args: &[&str], output: &Output) -> Self {
        Self {
            args: args.join(" "),
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.ends(0)
    }

    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "termsmith {}\n{}\n{}", self.args, self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(
            self.out.contains(part) || self.err.contains(part),
            "{part:?} in\n{}\n{}",
            self.out,
            self.err
        );
        self
    }
}

/// Every file below `dir`, with its bytes.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Copies the files below a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
}

/// Names of the files below `dir`.
pub(crate) fn names(dir: &Path) -> Vec<PathBuf> {
    files(dir).into_keys().collect()
}

/// Asserts that two folders hold the same files with the same bytes.
#[track_caller]
pub(crate) fn assert_same(left: &Path, right: &Path) {
    let (a, b) = (files(left), files(right));
    let only = |a: &BTreeMap<PathBuf, Vec<u8>>, b: &BTreeMap<PathBuf, Vec<u8>>| {
        a.keys().filter(|key| !b.contains_key(*key)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(only(&a, &b), Vec::<PathBuf>::new(), "only in {}", left.display());
    assert_eq!(only(&b, &a), Vec::<PathBuf>::new(), "only in {}", right.display());
    for (path, bytes) in &a {
        assert!(
            b[path] == *bytes,
            "{} differs:\n{}\n{}",
            path.display(),
            String::from_utf8_lossy(bytes),
            String::from_utf8_lossy(&b[path])
        );
    }
    assert!(!a.is_empty(), "{} is empty", left.display());
}

/// Containers that one of these processes made, as the engine's own client lists them.
pub(crate) fn containers_of(pids: &[u32]) -> Vec<String> {
    let listed = Command::new("docker")
        .args([
            "ps",
            "-a",
            "--filter",
            "label=termsmith.owner",
            "--format",
            "{{.ID}} {{.Label \"termsmith.owner\"}}",
        ])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines()
        .filter(|line| owner(line).is_some_and(|pid| pids.contains(&pid)))
        .map(str::to_owned)
        .collect()
}

/// The process number in an owner label: host, boot, process number, start time.
fn owner(line: &str) -> Option<u32> {
    line.split_whitespace().nth(1)?.split(':').nth(2)?.parse().ok()
}
