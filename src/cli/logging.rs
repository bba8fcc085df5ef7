//! Logs: `-v` and `-vv` to standard error, `--log-file` as JSON lines. Nothing is ever read back
//! from them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::prelude::*;

use super::args::LogArgs;
use super::exit::Status;
use super::failure::Failure;
use super::{paths, say};

/// Target of every span and event of this crate.
const OWN: &str = env!("CARGO_CRATE_NAME");

/// Shorter values are not replaced. They may be ordinary words, and a log without those would be
/// unreadable.
const SHORTEST_SECRET: usize = 8;

/// Takes the place of a secret.
const REDACTED: &str = "[redacted]";

/// Values that no log may contain.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Installs the logs that the flags ask for. Without flags nothing is installed, so spans cost
/// nothing.
pub(super) fn install(args: &LogArgs) -> Result<(), Failure> {
    if args.verbose == 0 && args.log_file.is_none() {
        return Ok(());
    }
    let screen = (args.verbose > 0).then(|| {
        fmt::layer()
            .with_ansi(false)
            .with_timer(fmt::time::uptime())
            .with_writer(|| Redacting(Screen))
            .with_filter(filter(args.verbose))
    });
    let file = match &args.log_file {
        Some(path) => Some(
            fmt::layer()
                .json()
                .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
                .with_writer(LogFile(Arc::new(open(path)?)))
                // A user who asks for a log file looks for details. So it has them even without -v.
                .with_filter(filter(args.verbose.max(1))),
        ),
        None => None,
    };
    tracing_subscriber::registry()
        .with(screen)
        .with(file)
        .try_init()
        .map_err(|error| Failure::new(Status::Failed, error))
}

/// Spans and events that are kept: those of this crate, with `-vv` also those of its dependencies.
/// The latter stop at the level debug, because HTTP libraries trace the headers of requests.
fn filter(verbose: u8) -> Targets {
    match verbose {
        0 | 1 => Targets::new().with_target(OWN, Level::DEBUG).with_default(LevelFilter::WARN),
        _ => Targets::new().with_target(OWN, Level::TRACE).with_default(LevelFilter::DEBUG),
    }
}

/// Keeps `value` out of all logs from now on.
pub(super) fn hide(value: &str) {
    let value = value.trim();
    if value.len() >= SHORTEST_SECRET {
        let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
        if !secrets.iter().any(|known| known == value) {
            secrets.push(value.to_owned());
        }
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    paths::check_output_file(path, "--log-file")?;
    OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
        Failure::message(Status::Io, format!("failed to open the log file `{}`: {error}", path.display()))
    })
}

/// Standard error, printed above the progress bar if there is one.
struct Screen;

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        say::note(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file of `--log-file`. An event is one write to a file that is open for appending. So lines
/// of two processes do not mix.
struct LogFile(Arc<File>);

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Redacting<Arc<File>>;

    fn make_writer(&'a self) -> Self::Writer {
        Redacting(self.0.clone())
    }
}

/// Replaces secrets. The formatting layer writes an event at once, so no secret is split over two
/// writes.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
        if secrets.is_empty() {
            self.0.write_all(bytes)?;
        } else {
            let text = String::from_utf8_lossy(bytes);
            self.0.write_all(redact(&text, &secrets).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn redact(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, REDACTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_decides_whose_events_are_kept() {
        let check = |verbose: u8, target: &str, level: Level, expect: bool| {
            assert_eq!(
                filter(verbose).would_enable(target, &level),
                expect,
                "-v × {verbose}, {target}, {level}"
            );
        };
        check(1, "termsmith::sandbox", Level::DEBUG, true);
        check(1, "termsmith::sandbox", Level::TRACE, false);
        check(1, "hyper_util::client", Level::WARN, true);
        check(1, "hyper_util::client", Level::DEBUG, false);
        check(2, "termsmith::sandbox", Level::TRACE, true);
        check(2, "hyper_util::client", Level::DEBUG, true);
        check(2, "h2::codec", Level::TRACE, false);
        check(3, "h2::codec", Level::TRACE, false);
    }

    #[test]
    fn secrets_are_replaced() {
        let check = |text: &str, secrets: &[&str], expect: &str| {
            let secrets: Vec<_> = secrets.iter().map(|&secret| secret.to_owned()).collect();
            assert_eq!(redact(text, &secrets), expect);
        };
        check("Bearer sk-12345678.", &["sk-12345678"], "Bearer [redacted].");
        check("aaaaaaaa bbbbbbbb aaaaaaaa", &["aaaaaaaa", "bbbbbbbb"], "[redacted] [redacted] [redacted]");
        check("nothing here", &["sk-12345678"], "nothing here");
    }
}
