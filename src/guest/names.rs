//! The name `localhost`, for containers whose engine gives them no `/etc/hosts`.

use std::fs;

const HOSTS: &str = "/etc/hosts";
const LOCALHOST: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Adds the loopback addresses to an empty or missing `/etc/hosts`. It does so only as process 1:
/// otherwise the file is the host's. In a restarted container the file may be a FIFO, and opening
/// it would block for ever.
pub(super) fn ensure_localhost() {
    if std::process::id() == 1
        && fs::metadata(HOSTS).map_or(true, |found| found.is_file() && found.len() == 0)
    {
        // A read-only image refuses the write. Then programs report that they do not know the name.
        let _ = fs::write(HOSTS, LOCALHOST);
    }
}
