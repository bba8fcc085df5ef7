//! Resolution of `localhost` where the engine gives the container no `/etc/hosts`.

use std::fs;

const HOSTS: &str = "/etc/hosts";
const LOCALHOST: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Adds the loopback addresses to an empty or missing `/etc/hosts`. Only as process 1: elsewhere the file belongs
/// to the host. In a restarted container it may be a FIFO, and opening that would block forever.
pub(super) fn ensure_localhost() {
    if std::process::id() == 1
        && fs::metadata(HOSTS).map_or(true, |found| found.is_file() && found.len() == 0)
    {
        // On a read-only image the write fails; programs then report the missing name themselves.
        let _ = fs::write(HOSTS, LOCALHOST);
    }
}
