//! The machine's resources: disk, memory, cores, and a writable output folder.

use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{Access, access, statvfs};

use crate::sandbox::{Finding, Host};

/// Images of all bases and the layers of a few hundred tasks take about 3 GiB. The rest is for
/// containers.
const MIN_FREE_BYTES: u64 = 5 << 30;
/// Memory for a default sandbox (1 GiB), its verifier and the pipeline itself.
const MIN_MEMORY_BYTES: u64 = 2 << 30;
/// With a second core, the solver of one task can run beside the verifier of another.
const GOOD_CORES: usize = 2;

/// Free space for a run's output and for the engine's images. `image_folder` is `None` for a remote
/// engine, which does not fill this machine's disk.
pub(super) fn inspect_disk(out: &Path, image_folder: Option<&Path>) -> Finding {
    let mut disks = vec![("output", nearest_existing(&absolute(out)))];
    // Only root can see into the image folder. Its parent is on the same disk.
    disks.extend(image_folder.map(|folder| ("images", nearest_existing(folder))));
    let measured = disks.into_iter().map(|(what, folder)| {
        let free = statvfs(&folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)).ok();
        (what, folder, free)
    });
    judge_disk(&measured.collect::<Vec<_>>())
}

fn judge_disk(disks: &[(&str, PathBuf, Option<u64>)]) -> Finding {
    let describe = |(what, folder, free): &(&str, PathBuf, Option<u64>)| match free {
        Some(free) => format!("{} free for {what} (`{}`)", gib(*free), folder.display()),
        None => format!("free space for {what} is unknown (`{}`)", folder.display()),
    };
    let detail = disks.iter().map(describe).collect::<Vec<_>>().join(", ");
    let is_short = |disk: &&(&str, PathBuf, Option<u64>)| disk.2.is_some_and(|free| free < MIN_FREE_BYTES);
    if disks.iter().any(|disk| is_short(&disk)) {
        Finding::missing(detail).hint(format!(
            "at least {} are needed; `termsmith clean` removes images of earlier runs",
            gib(MIN_FREE_BYTES)
        ))
    } else if disks.iter().any(|(.., free)| free.is_none()) {
        Finding::warn(detail)
    } else {
        Finding::ok(detail)
    }
}

/// Whether the memory is enough for one sandbox.
pub(super) fn inspect_memory(host: &Host) -> Finding {
    let meminfo = std::fs::read_to_string(host.path("/proc/meminfo")).unwrap_or_default();
    judge_memory(&meminfo)
}

/// MiB of memory that are available now. `SMALL` if the kernel does not say.
pub fn memory_mb() -> u64 {
    /// The memory of a small machine in MiB.
    const SMALL: u64 = 2048;
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available(&meminfo).map_or(SMALL, |bytes| bytes >> 20)
}

/// Bytes that `/proc/meminfo` says are available.
fn available(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| {
        let kib = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim();
        kib.parse::<u64>().ok()?.checked_mul(1024)
    })
}

fn judge_memory(meminfo: &str) -> Finding {
    match available(meminfo) {
        None => Finding::warn("available memory is unknown"),
        Some(bytes) if bytes < MIN_MEMORY_BYTES => Finding::warn(format!("{} available", gib(bytes))).hint(
            format!("tasks may be killed; {} hold one sandbox with default limits", gib(MIN_MEMORY_BYTES)),
        ),
        Some(bytes) => Finding::ok(format!("{} available", gib(bytes))),
    }
}

/// The processors that this process may use.
pub(super) fn inspect_cores() -> Finding {
    judge_cores(thread::available_parallelism().map_or(1, usize::from))
}

fn judge_cores(cores: usize) -> Finding {
    if cores >= GOOD_CORES {
        Finding::ok(format!("{cores} cores"))
    } else {
        Finding::warn(format!("{cores} core")).hint("tasks run one at a time")
    }
}

/// Whether the run's output can be written.
pub(super) fn inspect_output(out: &Path) -> Finding {
    let out = absolute(out);
    let nearest = nearest_existing(&out);
    let shown = nearest.display();
    if !nearest.is_dir() {
        return Finding::missing(format!("`{shown}` is not a folder"))
            .hint("choose another folder with --out");
    }
    match access(&nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok(format!("`{}` can be written", out.display())),
        Err(error) => {
            Finding::missing(format!("`{shown}` cannot be written: {}", std::io::Error::from(error)))
                .hint("choose another folder with --out, or change its owner")
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The path itself, or its nearest ancestor that exists.
fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.exists()).unwrap_or(path).to_owned()
}

fn gib(bytes: u64) -> String {
    // Rounded down to tenths, so that too little never looks sufficient.
    let tenths = u128::from(bytes) * 10 / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Status;

    #[test]
    fn the_fullest_disk_counts() {
        let disk = |what, free| (what, PathBuf::from("/x"), free);
        for (disks, status, detail) in [
            (vec![disk("output", Some(5 << 30))], Status::Ok, "5.0 GiB free for output (`/x`)"),
            (vec![disk("output", Some((5 << 30) - 1))], Status::Missing, "4.9 GiB free for output (`/x`)"),
            (
                vec![disk("output", Some(9 << 30)), disk("images", Some(0))],
                Status::Missing,
                "9.0 GiB free for output (`/x`), 0.0 GiB free for images (`/x`)",
            ),
            (vec![disk("output", None)], Status::Warn, "free space for output is unknown (`/x`)"),
        ] {
            let finding = judge_disk(&disks);
            assert_eq!((finding.status, finding.detail.as_str()), (status, detail));
        }
    }

    #[test]
    fn memory_is_what_is_available() {
        for (meminfo, status, detail) in [
            ("MemTotal:       24683000 kB\nMemAvailable:   23068672 kB\n", Status::Ok, "22.0 GiB available"),
            ("MemAvailable:    1048576 kB\n", Status::Warn, "1.0 GiB available"),
            ("MemFree: 1 kB\n", Status::Warn, "available memory is unknown"),
            ("MemAvailable: 99999999999999999999 kB\n", Status::Warn, "available memory is unknown"),
            ("", Status::Warn, "available memory is unknown"),
        ] {
            let finding = judge_memory(meminfo);
            assert_eq!((finding.status, finding.detail.as_str()), (status, detail));
        }
    }

    #[test]
    fn one_core_is_a_warning() {
        for (cores, status) in [(1, Status::Warn), (2, Status::Ok), (64, Status::Ok)] {
            assert_eq!(judge_cores(cores).status, status);
        }
    }

    #[test]
    fn the_output_may_be_created_later() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        for (out, status) in [("", Status::Ok), ("a/b/c", Status::Ok), ("file/x", Status::Missing)] {
            let finding = inspect_output(&dir.path().join(out));
            assert_eq!(finding.status, status, "{out}: {}", finding.detail);
        }
        // Not even root can write to this place.
        let finding = inspect_output(Path::new("/proc/1/x"));
        assert_eq!(finding.status, Status::Missing, "{}", finding.detail);
    }
}
