//! Standard output and standard error. A reader that goes away (`| head`) ends the output, not the process with a panic.

#![expect(clippy::print_stderr, reason = "this is where the program speaks")]

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use serde::Serialize;

/// One line on standard output.
pub(super) fn line(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    ignore_broken_pipe(writeln!(out, "{}", text.as_ref()))
}

/// Text on standard output as it is.
pub(super) fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// A value as JSON on standard output.
pub(super) fn json<T: Serialize>(value: &T) -> io::Result<()> {
    line(serde_json::to_string_pretty(value)?)
}

/// The progress bar that is drawn on standard error, if any.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Draws `bar` from now on, or none. Notes are printed above it.
pub(super) fn draw(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// One line on standard error: progress, and what is not the answer.
pub(super) fn note(text: impl AsRef<str>) {
    match &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(|| eprintln!("{}", text.as_ref())),
        None => eprintln!("{}", text.as_ref()),
    }
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
    eprintln!("error: {text}");
}

fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
