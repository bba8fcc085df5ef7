//! Standard output and standard error. A closed pipe (`| head`) ends the output, and does not panic.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use serde::Serialize;

use super::exit::Status;
use super::failure::Failure;
use super::printable::printable;

/// One line on standard output.
pub(super) fn line(line: impl AsRef<str>) -> Result<(), Failure> {
    text(&format!("{}\n", line.as_ref()))
}

/// Text on standard output, with control characters escaped.
pub(super) fn text(text: &str) -> Result<(), Failure> {
    styled(&printable(text))
}

/// Text on standard output as it is, with control sequences of our own. Whatever else is in it has gone through [`printable`].
pub(super) fn styled(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
        .map_err(Failure::io("write to standard output"))
}

/// A value as JSON on standard output.
pub(super) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(|error| Failure::new(Status::Io, error))?)
}

/// The progress bar that is drawn on standard error, if any.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Draws `bar` from now on, or none. Notes are printed above it.
pub(super) fn draw(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// One line on standard error: progress, notes and warnings.
pub(super) fn note(text: impl AsRef<str>) {
    match &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(|| to_stderr(text.as_ref())),
        None => to_stderr(text.as_ref()),
    }
}

/// Like `eprintln!`, but does not panic when standard error is closed (`2>&1 | head`).
fn to_stderr(text: &str) {
    // There is no other place to report this to.
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// An error with its causes, each cause once.
pub(super) fn error(error: &anyhow::Error) {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    note(format!("error: {text}"));
}

fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
