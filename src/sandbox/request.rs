//! Checks requests to the guest before they are sent. If the kernel or a frame cannot take one, the
//! caller is at fault.

use std::os::unix::ffi::OsStrExt as _;

use super::{Process, SandboxError};
use crate::guest::frame::{MAX_COMMAND, Program};

/// Maximum length of a path, as in the kernel (`PATH_MAX`). Also, a request must fit into one
/// frame.
pub(super) const MAX_PATH: usize = 4096;

pub(super) fn program(process: &Process) -> Result<Program, SandboxError> {
    let argv: Vec<Vec<u8>> = process.argv.iter().map(|arg| arg.as_bytes().to_vec()).collect();
    let entry = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        [name.as_bytes(), b"=", value.as_bytes()].concat()
    };
    let env: Vec<Vec<u8>> = process.env.iter().map(entry).collect();
    fits(
        "the argument vector and environment",
        argv.iter().chain(&env).map(|item| item.len() + 4).sum(),
        MAX_COMMAND,
    )?;
    argv.iter().chain(&env).try_for_each(|item| no_nul("an argument or variable", item))?;
    path_fits("the working directory", &process.cwd)?;
    Ok(Program { argv, env, cwd: process.cwd.as_bytes().to_vec() })
}

pub(super) fn fits(what: &'static str, bytes: usize, max: usize) -> Result<(), SandboxError> {
    if bytes > max { Err(SandboxError::TooLarge { what, bytes, max }) } else { Ok(()) }
}

pub(super) fn no_nul(what: &'static str, bytes: &[u8]) -> Result<(), SandboxError> {
    if bytes.contains(&0) { Err(SandboxError::Nul { what }) } else { Ok(()) }
}

pub(super) fn path_fits(what: &'static str, path: &str) -> Result<(), SandboxError> {
    fits(what, path.len(), MAX_PATH)?;
    no_nul(what, path.as_bytes())
}
