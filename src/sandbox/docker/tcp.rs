//! A limit on the memory in socket buffers, e.g. of connections that nobody reads.
//!
//! Cgroup v2 counts it as memory of the container. Version 1 has a separate limit, which the
//! engine's API no longer sets.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::ContainerId;

use super::Shared;

/// A container may have this part of its memory limit in socket buffers, in addition to the limit.
pub(super) const PART: u64 = 8;
/// The limit for all processes of the host. If it is missing, containers have none either.
pub(super) const LIMIT_OF_HOST: &str = "/sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes";

impl Shared {
    /// Limits a started container, if the engine is on this host and this user is root.
    pub(super) async fn limit_tcp(&self, id: &ContainerId) {
        let bytes = self.live().get(id).map(|watched| watched.max_memory / PART);
        let Some(bytes) = bytes.filter(|_| self.is_on_this_host() && Path::new(LIMIT_OF_HOST).exists())
        else {
            return;
        };
        let Ok(inspected) = self.docker.inspect_container(id.as_str(), None).await else { return };
        let (Some(container), Some(pid)) = (inspected.id, inspected.state.and_then(|state| state.pid)) else {
            return;
        };
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let Some(file) = limit_file(&cgroups, &container) else { return };
        if let Err(error) = fs::write(&file, bytes.to_string()) {
            tracing::debug!(container = %id, %error, "cannot limit the memory of socket buffers");
        }
    }
}

/// The file with the limit, from `/proc/PID/cgroup`. `None` if the process is not in the container.
fn limit_file(cgroups: &str, container: &str) -> Option<PathBuf> {
    let host = Path::new(LIMIT_OF_HOST);
    cgroups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        let is_found = controllers.split(',').any(|name| name == "memory") && group.contains(container);
        is_found.then(|| Some(host.parent()?.join(group.trim_start_matches('/')).join(host.file_name()?)))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_container_is_found_in_its_cgroup() {
        let check = |cgroups: &str, expect: Option<&str>| {
            assert_eq!(limit_file(cgroups, "f00").as_deref(), expect.map(Path::new), "{cgroups}");
        };
        let file = "/sys/fs/cgroup/memory/docker/f00/memory.kmem.tcp.limit_in_bytes";
        check("5:cpu,cpuacct:/docker/f00\n4:memory:/docker/f00\n", Some(file));
        let scope = "/sys/fs/cgroup/memory/system.slice/docker-f00.scope/memory.kmem.tcp.limit_in_bytes";
        check("4:memory:/system.slice/docker-f00.scope\n", Some(scope));
        // A process of the host has the number now.
        check("4:memory:/user.slice\n", None);
        check("4:memory:/\n", None);
        // Cgroup v2.
        check("0::/docker/f00\n", None);
        check("", None);
    }
}
