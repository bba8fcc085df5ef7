//! The roots of a submission that lie in their own place in the verifier's container, e.g. `/app`
//! at `/app`.
//!
//! A tool of the tests may follow an absolute path that the solver wrote, e.g. git with
//! `objects/info/alternates`. The tool must find the solver's files there, not the pristine files
//! of the task's image.

use std::path::Path;

/// The verifier's own programs take code or configuration from these folders. A root there is only
/// read as a copy.
const SYSTEM: [&str; 16] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/logs", "/proc", "/root",
    "/run", "/sbin", "/sys", "/tests", "/usr",
];
/// Folders that hold the verifier's own files. A root below them does no harm.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The roots that the verifier puts in their own place. A root below another one, e.g. `/app/out`
/// in `/app`, comes with the outer root. Put there by itself, it could follow a link of the
/// solver's.
pub(super) fn own_places(roots: &[String]) -> Vec<&str> {
    let is_below_another =
        |root: &String| roots.iter().any(|other| other != root && Path::new(root).starts_with(other));
    let placed = roots.iter().filter(|root| !is_system(Path::new(root)) && !is_below_another(root));
    placed.map(String::as_str).collect()
}

fn is_system(root: &Path) -> bool {
    let holds = |folder: &str| Path::new(folder).starts_with(root);
    SYSTEM.iter().any(|folder| holds(folder) || root.starts_with(folder)) || TEMPORARY.into_iter().any(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_below_another_comes_with_it() {
        let roots = ["/app/out", "/app", "/apps", "/etc"].map(str::to_owned);
        assert_eq!(own_places(&roots), ["/app", "/apps"]);
    }

    #[test]
    fn no_root_takes_the_place_of_the_verifiers_own_programs() {
        let check = |root: &str, expect: bool| {
            let roots = [root.to_owned()];
            assert_eq!(own_places(&roots) == [root], expect, "{root}");
        };
        check("/app", true);
        check("/apps/etc", true);
        check("/etcetera", true);
        check("/home/user", true);
        check("/opt/venv", true);
        check("/srv/www", true);
        check("/tmp/work", true);
        check("/var/lib/shop", true);
        check("/", false);
        check("/etc", false);
        check("/etc/shop", false);
        check("/lib64", false);
        check("/root", false);
        check("/root/.config", false);
        check("/run/shop", false);
        check("/tests", false);
        check("/tmp", false);
        check("/usr/lib/python3", false);
        check("/usr/local/bin", false);
        check("/var", false);
        check("/var/tmp", false);
    }
}
