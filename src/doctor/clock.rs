//! Looks for libfaketime. A certificate's row `clock` moves a container's clock with it.

use crate::sandbox::{Finding, Host};
use crate::verify::CLOCK_LIBRARIES;

/// The part of an engine's script that installs the library.
const PART: &str = "clock";

/// Whether the library is where the row `clock` reads it.
pub(super) fn inspect(host: &Host) -> Finding {
    let library = CLOCK_LIBRARIES.iter().find(|library| host.path(library).is_file());
    library.map_or_else(
        || {
            Finding::missing(
                "libfaketime is not installed: certificates of full rigor would lack their row `clock`",
            )
            .hint("`termsmith doctor --fix` installs it on systems with apt")
            .provided_by(PART)
        },
        |library| Finding::ok(format!("`{library}`")),
    )
}
