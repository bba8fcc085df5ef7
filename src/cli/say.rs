//! Writes to standard output and standard error. A closed pipe (`| head`) ends the output without a
//! panic.

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

/// Prints text that contains our own control sequences. Callers have passed all foreign text
/// through [`printable`].
pub(super) fn styled(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
        .map_err(Failure::io("write to standard output"))
}

/// A value as JSON on standard output.
pub(super) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(|error| Failure::new(Status::Io, error))?)
}

/// The progress bar on standard error, if there is one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Sets the progress bar, or removes it. Notes are printed above it.
pub(super) fn draw(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Prints one line on standard error: progress, a note or a warning.
pub(super) fn note(text: impl AsRef<str>) {
    match &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(|| to_stderr(text.as_ref())),
        None => to_stderr(text.as_ref()),
    }
}

/// Like `eprintln!`, but does not panic when standard error is closed (`2>&1 | head`).
fn to_stderr(text: &str) {
    // There is no other place to report a failure to.
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Prints an error with its causes, each once.
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
