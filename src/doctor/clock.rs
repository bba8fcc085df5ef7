//! libfaketime, with which a certificate's row `clock` moves the clock of a container.

use super::error::FixError;
use super::{Context, Events, Finding, apt};
use crate::verify::CLOCK_LIBRARIES;

/// The package of Debian and its derivatives.
const PACKAGE: &str = "libfaketime";

/// Whether the library is where the row `clock` reads it.
pub(super) fn inspect(context: &Context<'_>) -> Finding {
    let library = CLOCK_LIBRARIES.iter().find(|library| context.system.path(library).is_file());
    library.map_or_else(
        || {
            Finding::missing(
                "libfaketime is not installed: certificates of full rigor would lack their row `clock`",
            )
            .hint("`termsmith doctor --fix` installs it on systems with apt")
        },
        |library| Finding::ok(format!("`{library}`")),
    )
}

/// Installs the package.
pub(super) fn fix(context: &Context<'_>, events: &mut Events<'_>) -> Result<(), FixError> {
    apt::install(context.system, &[PACKAGE], events)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::fake::{Machine, Reply};
    use super::super::{Check, Status, repair_with};
    use super::*;

    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

    /// The row's status without and with `--fix`, and whether apt ran; `installed` is what apt-get brings.
    fn check(machine: &Machine, installed: Option<&'static str>, expected: (Status, Status, bool)) {
        machine.when_run("env DEBIAN_FRONTEND=noninteractive apt-get", Reply::text(0, ""), move |machine| {
            if let Some(path) = installed {
                let _ = machine.clone().file(path, "");
            }
        });
        let system = machine.system();
        let context = Context { system: &system, out: Path::new("/out") };
        let before = inspect(&context).status;
        let checks = [Check { name: "clock", inspect, fix: Some(fix) }];
        let report = repair_with(&checks, &context, &mut Events::new(&mut |_| {}));
        let ran = machine.commands().iter().any(|command| command.contains("install"));
        assert_eq!((before, report.rows[0].status, ran), expected);
    }

    #[test]
    fn a_machine_without_libfaketime_is_not_ready_until_it_is_installed() {
        let debian = || Machine::new().file("/etc/os-release", "ID=debian\n");
        let (missing, fixed, ok) = (Status::Missing, Status::Fixed, Status::Ok);
        check(&debian().file(LIBRARY, ""), None, (ok, ok, false));
        check(&debian(), Some(LIBRARY), (missing, fixed, true));
        check(&debian(), Some("/usr/lib/faketime/libfaketime.so.1"), (missing, fixed, true));
        // The package brings another file than the one that is read.
        check(&debian(), Some("/usr/lib/elsewhere.so"), (missing, missing, true));
        check(&Machine::new().file("/etc/os-release", "ID=arch\n"), None, (missing, missing, false));
        check(&debian().uid(1000), None, (missing, missing, false));
    }
}
