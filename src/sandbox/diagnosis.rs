//! An engine's state and its host's, for `termsmith doctor`. An engine that does not answer has a
//! diagnosis too. So the registry's row makes the diagnosis, not the engine.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

/// The host that is diagnosed. Tests replace its root by a folder.
#[derive(Clone, Debug)]
pub struct Host {
    /// The root of the file system, e.g. `/`.
    pub root: PathBuf,
    /// The environment's variables that are valid UTF-8.
    pub env: BTreeMap<String, String>,
    /// Effective user id.
    pub uid: u32,
}

impl Host {
    /// The host of this process.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            root: PathBuf::from("/"),
            env: env::vars_os().filter_map(text).collect(),
            uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// `absolute`, as a path below the root.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// A program's path. It is searched in `PATH`, and then in the system's folders, which a user's
    /// `PATH` may lack.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = self.env.get("PATH").map(String::as_str).unwrap_or_default();
        let folders = path.split(':').filter(|folder| folder.starts_with('/'));
        let system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        folders
            .chain(system)
            .map(|folder| Path::new(folder).join(name))
            .find(|file| self.path(file).is_file())
    }
}

/// The state of an engine.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The engine's requirements by name, e.g. `engine`, in the order of the report.
    pub rows: Vec<(&'static str, Finding)>,
    /// The limits of its containers. Empty if the engine does not answer.
    pub limits: Vec<Limit>,
    /// The folder of its images, if it is on this host.
    pub image_folder: Option<PathBuf>,
    /// Its address, if it answers.
    pub address: Option<String>,
}

/// The state of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// The requirement was missing, and was provided.
    Fixed,
    /// Runs work, with restrictions.
    Warn,
    /// Runs cannot work, or certificates of full rigor would lack rows.
    Missing,
}

impl Status {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fixed => "fixed",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }
}

/// The state of one requirement, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub status: Status,
    /// The details. They may end with indented lines of a log.
    pub detail: String,
    /// A hint for the user.
    pub hint: Option<String>,
    /// The part of the engine's script ([`super::EngineEntry::fix_script`]) that provides it.
    pub part: Option<&'static str>,
}

impl Finding {
    fn new(status: Status, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), hint: None, part: None }
    }

    /// The requirement is met.
    pub fn ok(detail: impl Into<String>) -> Self {
        Self::new(Status::Ok, detail)
    }

    /// The requirement is met with restrictions.
    pub fn warn(detail: impl Into<String>) -> Self {
        Self::new(Status::Warn, detail)
    }

    /// The requirement is not met.
    pub fn missing(detail: impl Into<String>) -> Self {
        Self::new(Status::Missing, detail)
    }

    /// The state is unknown, since no engine answers.
    pub fn needs_engine() -> Self {
        Self::missing("unknown until an engine answers").hint("see the row `engine`")
    }

    /// The same finding with a hint for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same finding. This part of the script provides the requirement.
    #[must_use]
    pub fn provided_by(mut self, part: &'static str) -> Self {
        self.part = Some(part);
        self
    }
}

/// The thing that enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The kernel, by limits of processes, mounts and the network namespace.
    Kernel,
    Cgroup,
    /// A quota of the file system.
    Quota,
    /// The system-call filter refuses the call.
    Seccomp,
    /// termsmith itself. It looks every few seconds, and kills a container beyond the limit.
    Watchdog,
    Nothing,
}

impl By {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Cgroup => "cgroup",
            Self::Quota => "quota",
            Self::Seccomp => "seccomp",
            Self::Watchdog => "watchdog",
            Self::Nothing => "nothing",
        }
    }
}

/// A row of the table of limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Limit {
    pub name: String,
    /// In containers of termsmith's own tasks.
    pub own_tasks: By,
    /// In containers of other makers' tasks. They run without our system-call filter.
    pub other_tasks: By,
    /// The limit, or the consequence of having none.
    pub detail: String,
}

/// The table of limits as text, in aligned columns.
pub fn limits_table(limits: &[Limit]) -> String {
    if limits.is_empty() {
        return String::new();
    }
    let widest = limits.iter().map(|limit| limit.name.len()).max().unwrap_or_default();
    let line = |name: &str, own: &str, other: &str, detail: &str| {
        format!("{name:<widest$}  {own:<9}  {other:<11}  {detail}").trim_end().to_owned() + "\n"
    };
    let head = line("limit of a container", "own tasks", "other tasks", "");
    let rows = limits
        .iter()
        .map(|limit| line(&limit.name, limit.own_tasks.as_str(), limit.other_tasks.as_str(), &limit.detail));
    std::iter::once(head).chain(rows).collect()
}
