//! Exit statuses of a guest that ends itself, for the host.
//!
//! The guest's standard error is attached too. No other process can write to it, so the host can
//! trust both.

use std::io;

/// The host closed the guest's input.
pub const HUNG_UP: i32 = 0;
/// A system error that no limit caused.
pub const FAILED: i32 = 1;
/// The host sent bytes that are no frame, or frames of another version.
pub const PROTOCOL: i32 = 3;
/// The guest met a limit of the container: memory, descriptors or processes.
pub const LIMIT: i32 = 4;

const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// The exit status for a fatal error of the guest.
pub fn status_of(error: &io::Error) -> i32 {
    match error.raw_os_error() {
        Some(EAGAIN | ENOMEM | ENFILE | EMFILE) => LIMIT,
        Some(_) => FAILED,
        // An error without a number comes from the frame decoder.
        None if error.kind() == io::ErrorKind::OutOfMemory => LIMIT,
        None => PROTOCOL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_name_limits_and_protocol_errors() {
        let check = |error: io::Error, expect: i32| assert_eq!(status_of(&error), expect, "{error}");
        for limit in [EAGAIN, ENOMEM, ENFILE, EMFILE] {
            check(io::Error::from_raw_os_error(limit), LIMIT);
        }
        check(io::Error::from_raw_os_error(32), FAILED);
        check(io::Error::from(io::ErrorKind::OutOfMemory), LIMIT);
        check(io::Error::other("frame ends inside a field"), PROTOCOL);
    }
}
