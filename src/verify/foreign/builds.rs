//! Demands of an environment on builders and hosts. Demands that cannot be met here are refused by
//! name, e.g. GPUs.

use super::Unsupported;
use crate::harbor::HarborTask;
use crate::model::{FileTree, Limits, RelPath};
use crate::sandbox::HostSize;
use crate::syntax::builder::needs_buildkit;

/// More than any machine has.
const MAX_CPUS: f64 = 1024.0;

/// Refuses Dockerfiles that only BuildKit can build, and links that leave a build context. Only
/// folders that are built here are checked.
pub(super) fn check(task: &HarborTask, folders: &[&str]) -> Result<(), Unsupported> {
    for folder in folders {
        let context = task.folder(folder);
        if let Some((line, what)) = context.text("Dockerfile").and_then(needs_buildkit) {
            return Err(Unsupported(format!(
                "`{folder}/Dockerfile`, line {line}: {what} needs BuildKit, and images are built with the engine's classic builder"
            )));
        }
        if let Some((path, target)) = escaping_link(&context) {
            return Err(Unsupported(format!(
                "`{folder}/{path}` is a symbolic link that leaves the build context (`{target}`)"
            )));
        }
    }
    Ok(())
}

/// A link that leaves the context, with its target.
fn escaping_link(context: &FileTree) -> Option<(&RelPath, &str)> {
    let leaves = |path: &RelPath, target: &str| context.link_target(path, target).is_none();
    context
        .links
        .iter()
        .find(|(path, target)| leaves(path, target))
        .map(|(path, target)| (path, target.as_str()))
}

/// Refuses a number that cannot be a size of a container on any host.
pub(super) fn whole(key: &str, value: Option<i64>, default: u32) -> Result<u32, Unsupported> {
    match value {
        None => Ok(default),
        Some(value) => match u32::try_from(value) {
            Ok(value) if value > 0 && value < u32::MAX => Ok(value),
            _ => Err(Unsupported(format!("`environment.{key}` = {value} is out of range"))),
        },
    }
}

/// Refuses a number of processors that no host can have.
pub(super) fn cpus(value: Option<f64>, default: f64) -> Result<f64, Unsupported> {
    match value {
        None => Ok(default),
        Some(value) if value.is_finite() && value > 0.0 && value <= MAX_CPUS => Ok(value),
        Some(value) => Err(Unsupported(format!("`environment.cpus` = {value} is out of range"))),
    }
}

/// Refuses limits that exceed the host's own memory or disk. Fewer processors only make a trial
/// slower.
pub(in crate::verify) fn check_host(limits: &Limits, host: HostSize) -> Result<(), Unsupported> {
    let sizes = [
        ("memory_mb", u64::from(limits.memory_mb), Some(host.memory_mb)),
        ("storage_mb", u64::from(limits.storage_mb), host.storage_mb),
    ];
    for (key, wanted, has) in sizes {
        if let Some(has) = has.filter(|has| wanted > *has) {
            return Err(Unsupported(format!(
                "`environment.{key}` = {wanted} is more than the {has} MiB of the engine's host"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_are_not_made_here_are_refused_by_name() {
        let check = |toml: &str, files: &[(&str, &str)], links: &[(&str, &str)], expect: &str| {
            let (manifest, _) = crate::harbor::parse_manifest(toml).unwrap();
            let path = |path: &str| RelPath::new(path).unwrap();
            let mut tree: FileTree =
                files.iter().map(|(name, text)| (path(name), crate::model::File::text(*text))).collect();
            tree.links = links.iter().map(|(name, target)| (path(name), (*target).to_owned())).collect();
            let task = HarborTask { name: "a".to_owned(), manifest, files: tree, findings: Vec::new() };
            let found = super::super::Foreign::new(&task).map(drop);
            match expect {
                "" => assert_eq!(found, Ok(()), "{files:?} {links:?}"),
                part => {
                    let why = found.unwrap_err().to_string();
                    assert!(why.contains(part), "{why}");
                }
            }
        };
        let chmod = "FROM a\nCOPY --chmod=755 x /x\n";
        let needs = "line 2: `COPY --chmod` needs BuildKit";
        check("", &[("environment/Dockerfile", "FROM a\nCOPY x /x\n")], &[], "");
        check("", &[("environment/Dockerfile", chmod)], &[], &format!("`environment/Dockerfile`, {needs}"));
        check("environment.docker_image = 'a'", &[("environment/Dockerfile", chmod)], &[], "");
        check("", &[("tests/Dockerfile", chmod)], &[], "");
        let separate = "verifier.environment_mode = 'separate'";
        check(separate, &[("tests/Dockerfile", chmod)], &[], &format!("`tests/Dockerfile`, {needs}"));
        let file = [("environment/data/v1", "x")];
        check("", &file, &[("environment/data/latest", "v1")], "");
        check("", &file, &[("environment/latest", "./data/../data")], "");
        for target in ["../../tests/x", "/etc/passwd", "gone", "v1/../../.."] {
            let why = format!(
                "`environment/data/latest` is a symbolic link that leaves the build context (`{target}`)"
            );
            check("", &file, &[("environment/data/latest", target)], &why);
        }
        check(
            "environment.memory_mb = 4294967295",
            &[],
            &[],
            "`environment.memory_mb` = 4294967295 is out of range",
        );
    }

    #[test]
    fn sizes_that_no_host_has_are_refused() {
        let check = |value: Option<i64>, expect: Option<u32>| {
            assert_eq!(whole("memory_mb", value, 7).ok(), expect, "{value:?}");
        };
        check(None, Some(7));
        check(Some(1), Some(1));
        check(Some(0), None);
        check(Some(-1), None);
        check(Some(4_294_967_294), Some(4_294_967_294));
        check(Some(4_294_967_295), None);
        check(Some(5_000_000_000), None);
        let check = |value: Option<f64>, expect: Option<f64>| {
            assert_eq!(cpus(value, 2.0).ok(), expect, "{value:?}");
        };
        check(None, Some(2.0));
        check(Some(0.5), Some(0.5));
        check(Some(1024.0), Some(1024.0));
        check(Some(1e9), None);
        check(Some(0.0), None);
        check(Some(f64::NAN), None);
    }

    #[test]
    fn a_container_is_not_larger_than_its_host() {
        let check = |memory_mb: u32, storage_mb: u32, has: Option<u64>, expect: &str| {
            let limits = Limits { memory_mb, storage_mb, ..Limits::default() };
            let found = check_host(&limits, HostSize { memory_mb: 24_000, storage_mb: has });
            match expect {
                "" => assert_eq!(found, Ok(()), "{limits:?}"),
                part => assert!(found.unwrap_err().0.contains(part), "{limits:?}"),
            }
        };
        check(24_000, 1, Some(1), "");
        check(18_000_000, 1, Some(1), "`environment.memory_mb` = 18000000 is more than the 24000 MiB");
        check(1, 2, Some(1), "`environment.storage_mb` = 2 is more than the 1 MiB");
        check(1, 2, None, "");
    }
}
