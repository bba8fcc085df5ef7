//! Watches the host's state, which no container may change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use bollard::Docker;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptions,
};

/// Tolerated loss of free disk space, because other programs of the host write too. A saboteur
/// writes hundreds of megabytes.
const DISK_TOLERANCE: u64 = 1 << 30;

/// A host with a marked folder that no container may reach.
pub(crate) struct Host {
    /// Holds `secret` and `box/secret`.
    pub(crate) folder: tempfile::TempDir,
    /// A name that saboteurs give to everything they create outside.
    pub(crate) mark: String,
    before: Facts,
    free: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Facts {
    kernel: Vec<(String, String)>,
    /// Mount points that are not the engine's.
    mounts: BTreeSet<String>,
    marked: Vec<(PathBuf, Vec<u8>, SystemTime)>,
    /// Times of files that a solver could try to write through a link.
    touched: Vec<Option<SystemTime>>,
}

impl Host {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("box")).unwrap();
        for file in SECRETS {
            fs::write(folder.path().join(file), format!("{SECRET} {file}\n")).unwrap();
        }
        let mark = format!("termsmith-was-here-{}", std::process::id());
        let before = Facts::of(folder.path());
        Self { folder, mark, before, free: free() }
    }

    /// Files whose content must not appear in a verdict, log or fingerprint.
    pub(crate) fn secrets(&self) -> Vec<Vec<u8>> {
        let own = SECRETS.iter().map(|file| self.folder.path().join(file));
        own.chain(["/etc/shadow".into(), "/etc/machine-id".into()])
            .filter_map(|path| fs::read(path).ok())
            .filter(|text| !text.is_empty())
            .collect()
    }

    /// Checks that programs can be started and files written while saboteurs run.
    pub(crate) fn works(&self) -> Result<(), String> {
        let ran = Command::new("true")
            .status()
            .map_err(|error| format!("the host cannot start a program: {error}"))?;
        if !ran.success() {
            return Err(format!("a program of the host ended with {ran}"));
        }
        let place = self.folder.path().join("alive");
        fs::write(&place, "x")
            .and_then(|()| fs::remove_file(&place))
            .map_err(|error| format!("the host's disk: {error}"))
    }

    /// All differences from the state at the start.
    pub(crate) fn harm(&self) -> Vec<String> {
        let mut harm = Vec::new();
        let after = Facts::of(self.folder.path());
        if after != self.before {
            harm.push(format!("the host changed from {:#?} to {after:#?}", self.before));
        }
        for folder in ["/", "/tmp", "/var/tmp", "/root", "/etc", "/run", "/dev", "/app", "/srv", "/mnt"] {
            if Path::new(folder).join(&self.mark).symlink_metadata().is_ok() {
                harm.push(format!("{folder}/{} is on the host", self.mark));
            }
        }
        harm.extend(self.works().err());
        harm
    }

    /// Whether the used disk space was released.
    pub(crate) fn has_its_disk(&self) -> bool {
        free() + DISK_TOLERANCE > self.free
    }
}

/// The host's secret. If a record contains it, a container has read it.
pub(crate) const SECRET: &str = "kept-by-the-host-alone";
const SECRETS: [&str; 2] = ["secret", "box/secret"];

impl Facts {
    fn of(marked: &Path) -> Self {
        let kernel = ["core_pattern", "hostname", "sysrq", "modprobe", "domainname"];
        let kernel = kernel.map(|name| {
            (name.to_owned(), fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default())
        });
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let is_engines = |place: &&str| {
            ["docker", "containers", "containerd", "netns"].iter().any(|part| place.contains(part))
        };
        let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        let list = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = list(marked).chain(list(&marked.join("box"))).collect();
        files.retain(|path| !path.is_dir());
        files.sort();
        Self {
            kernel: kernel.to_vec(),
            mounts: mounts.filter(|place| !is_engines(place)).map(str::to_owned).collect(),
            marked: files
                .into_iter()
                .map(|path| (path.clone(), fs::read(&path).unwrap(), modified(&path).unwrap()))
                .collect(),
            touched: ["/etc/passwd", "/etc/shadow", "/etc/ld.so.preload", "/etc/crontab"]
                .map(|path| modified(Path::new(path)))
                .to_vec(),
        }
    }
}

fn free() -> u64 {
    let stat = rustix::fs::statvfs("/").unwrap();
    stat.f_bavail * stat.f_frsize
}

/// Names of this process's containers and images that are left on the engine.
pub(crate) async fn left_on_engine(api: &Docker) -> Vec<String> {
    let label = "termsmith.owner".to_owned();
    let pid = std::process::id().to_string();
    let is_ours = |owner: Option<&String>| owner.is_some_and(|owner| owner.split(':').nth(2) == Some(&pid));
    let filters = std::collections::HashMap::from([("label".to_owned(), vec![label.clone()])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let containers = api.list_containers(Some(options)).await.unwrap();
    let containers = containers
        .into_iter()
        .filter(|found| is_ours(found.labels.as_ref().and_then(|labels| labels.get(&label))));
    let options = ListImagesOptionsBuilder::new().filters(&filters).build();
    let images = api.list_images(Some(options)).await.unwrap();
    let images = images.into_iter().filter(|image| is_ours(image.labels.get(&label)));
    let networks = api.list_networks(None::<ListNetworksOptions>).await.unwrap();
    let networks =
        networks.into_iter().filter_map(|network| network.name).filter(|name| name.contains("termsmith"));
    let names = containers.flat_map(|found| found.names.unwrap_or_default());
    names.chain(images.map(|image| image.id)).chain(networks).collect()
}

/// Processes of this host in the control group of a container that the engine no longer knows.
pub(crate) async fn strays(api: &Docker) -> Vec<String> {
    let options = ListContainersOptionsBuilder::new().all(true).build();
    let known: BTreeSet<String> =
        api.list_containers(Some(options)).await.unwrap().into_iter().filter_map(|found| found.id).collect();
    let mut strays = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let groups = fs::read_to_string(process.path().join("cgroup")).unwrap_or_default();
        let ids = groups.split(|byte: char| !byte.is_ascii_hexdigit()).filter(|part| part.len() == 64);
        if let Some(id) = ids.into_iter().find(|id| groups.contains("docker") && !known.contains(*id)) {
            strays.push(format!("process {} of container {id}", process.file_name().to_string_lossy()));
        }
    }
    strays
}

/// Peak memory of this process, in bytes.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    peak.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1024
}
