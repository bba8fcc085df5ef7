//! A `/dev/pts` with a limit for each container.
//!
//! All pseudo-terminals of a host are one pool (`/proc/sys/kernel/pty/max`), and the engine's own
//! mount has no limit. So one container could take them all, and others could open no terminal.

use std::collections::HashMap;

use bollard::models::{
    Mount, MountPoint, MountType, MountVolumeOptions, MountVolumeOptionsDriverConfig, SystemInfo,
    SystemVersion,
};

use crate::guest::MAX_TERMINALS;

const PLACE: &str = "/dev/pts";

/// The mount. The engine makes it when the container starts, and removes it with the container's
/// volumes.
pub(super) fn mount() -> Mount {
    let options = [
        ("type", "devpts".to_owned()),
        ("device", "devpts".to_owned()),
        // The engine's own options, with a limit. Group 5 is `tty`.
        ("o", format!("newinstance,ptmxmode=0666,mode=0620,gid=5,max={MAX_TERMINALS}")),
    ];
    let options: HashMap<_, _> = options.map(|(name, value)| (name.to_owned(), value)).into();
    Mount {
        typ: Some(MountType::VOLUME),
        target: Some(PLACE.to_owned()),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(true),
            driver_config: Some(MountVolumeOptionsDriverConfig {
                name: Some("local".to_owned()),
                options: Some(options),
            }),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

/// Whether a mount is this one. It is a volume, but has no files.
pub(super) fn is_ours(mount: &MountPoint) -> bool {
    mount.destination.as_deref() == Some(PLACE)
}

/// Whether the engine can make the mount. Podman, and engines without root's user ids, are not
/// tried.
pub(super) fn are_limited(info: &SystemInfo, version: &SystemVersion) -> bool {
    let mut components = version.components.iter().flatten();
    let mut security = info.security_options.iter().flatten();
    components.any(|component| component.name == "Engine")
        && !security.any(|option| option.starts_with("name=rootless") || option.starts_with("name=userns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dockers_root_daemon_limits_terminals() {
        let check = |info: &str, component: &str, expect: bool| {
            let version = format!(r#"{{"Components":[{{"Name":"{component}","Version":"1"}}]}}"#);
            let (info, version) =
                (serde_json::from_str(info).unwrap(), serde_json::from_str(&version).unwrap());
            assert_eq!(are_limited(&info, &version), expect, "{component}");
        };
        check(r#"{"SecurityOptions":["name=seccomp,profile=default"]}"#, "Engine", true);
        check("{}", "Engine", true);
        check("{}", "Podman Engine", false);
        check(r#"{"SecurityOptions":["name=seccomp,profile=default","name=rootless"]}"#, "Engine", false);
        check(r#"{"SecurityOptions":["name=userns"]}"#, "Engine", false);
        assert!(!are_limited(&SystemInfo::default(), &SystemVersion::default()));
    }
}
