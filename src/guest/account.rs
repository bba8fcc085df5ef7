//! Users of the container other than root.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::frame::Account;
use super::sys::Credentials;

/// The ids that the kernel knows a user by.
pub(super) fn credentials(account: &Account) -> Credentials {
    let Account { uid, gid, groups, .. } = account;
    Credentials { uid: *uid, gid: *gid, groups: groups.clone() }
}

/// The environment variables that `login` sets.
pub(super) fn variables(account: &Account) -> [(&'static str, &OsStr); 3] {
    let (name, home) = (OsStr::from_bytes(&account.name), OsStr::from_bytes(&account.home));
    [("HOME", home), ("USER", name), ("LOGNAME", name)]
}
