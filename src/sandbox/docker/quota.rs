//! Disk limits by quotas of the file system, if the engine's storage has them.
//!
//! overlay2 on XFS mounted with `pquota` limits a container's layer at each write, also for deleted
//! files. Elsewhere the watchdog looks at intervals. The limits of btrfs and ZFS include the image,
//! so a container could start above its own limit.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::SystemInfo;

use crate::sandbox::EngineError;

/// Interval between two looks of the watchdog. In that time a container can exceed its limit, but
/// no single file can.
pub(super) const POLLED_EVERY: Duration = Duration::from_secs(3);

/// Whether an engine's storage may support `storage-opt size`. XFS needs a mount option, which the
/// engine does not report. Without it the engine refuses `storage-opt`.
pub(super) fn is_possible(info: &SystemInfo) -> bool {
    info.driver.as_deref() == Some("overlay2") && backing(info) == Some("xfs")
}

/// The file system below the engine's storage driver.
pub(super) fn backing(info: &SystemInfo) -> Option<&str> {
    let status = info.driver_status.iter().flatten();
    let mut named = status.filter(|pair| pair.first().is_some_and(|name| name == "Backing Filesystem"));
    named.next().and_then(|pair| pair.get(1)).map(String::as_str)
}

/// The engine's option for a limit of a container's layer.
pub(super) fn storage_opt(storage_mb: u32) -> HashMap<String, String> {
    HashMap::from([("size".to_owned(), format!("{storage_mb}m"))])
}

/// Whether the engine refused to create a container for this option alone.
pub(super) fn is_refused(error: &EngineError) -> bool {
    let EngineError::Refused { message, .. } = error else { return false };
    let message = message.to_ascii_lowercase();
    ["storage-opt", "storage opt", "quota"].iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_that_may_have_quotas_is_known() {
        let check = |info: &str, expect: bool| {
            assert_eq!(is_possible(&serde_json::from_str(info).unwrap()), expect, "{info}");
        };
        check(r#"{"Driver":"overlay2","DriverStatus":[["Backing Filesystem","xfs"]]}"#, true);
        check(r#"{"Driver":"overlay2","DriverStatus":[["Backing Filesystem","extfs"]]}"#, false);
        check(r#"{"Driver":"btrfs","DriverStatus":[["Btrfs",""]]}"#, false);
        check(r#"{"Driver":"vfs"}"#, false);
        check("{}", false);
    }

    #[test]
    fn refusals_of_the_option_are_recognised() {
        let check = |message: &str, expect: bool| {
            let error = EngineError::Refused {
                action: "create a container",
                status: 400,
                message: message.to_owned(),
            };
            assert_eq!(is_refused(&error), expect, "{message}");
        };
        // Docker 20.10, 28 and Podman 4.
        check("--storage-opt is supported only for overlay over xfs with 'pquota' mount option", true);
        check("--storage-opt is not supported for overlay", true);
        check("storage option overlay.size only supported for backingFS XFS. Found extfs: quota", true);
        check("No such image: x", false);
    }
}
