//! Runs one part of an engine's script.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{fmt, io};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::Event;
use crate::sandbox::Host;

/// Time between two signs of life. People doubt a program that is silent for ten seconds.
const PERIOD: Duration = Duration::from_secs(5);
/// Prefix of the line that says what to do. It is the last line of the script's error output.
const HINT: &str = "hint: ";

/// One part of a script, with what it needs to run.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) script: &'static str,
    pub(super) part: &'static str,
    /// Where an engine answers.
    pub(super) address: Option<&'a str>,
    pub(super) host: &'a Host,
}

/// Why a part of the script did not provide what was missing.
#[derive(Debug)]
pub(super) enum FixError {
    /// The script could not be run.
    Io(io::Error),
    /// The script failed. Its error output says why.
    Failed { stderr: String },
}

impl FixError {
    /// What the script says to do about it.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Io(_) => None,
            Self::Failed { stderr } => split(stderr).1.map(str::to_owned),
        }
    }
}

impl fmt::Display for FixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the script could not be run: {error}"),
            Self::Failed { stderr } => f.write_str(split(stderr).0),
        }
    }
}

impl From<io::Error> for FixError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Splits an error output into the reason and the hint after it.
fn split(stderr: &str) -> (&str, Option<&str>) {
    let text = stderr.trim_end();
    match text.rsplit_once('\n').and_then(|(reason, last)| Some((reason, last.strip_prefix(HINT)?))) {
        Some((reason, hint)) => (reason, Some(hint)),
        None => (text, None),
    }
}

impl Run<'_> {
    /// Runs the script to its end, and passes on what it prints.
    pub(super) async fn to_its_end(&self, on_event: &mut dyn FnMut(Event)) -> Result<(), FixError> {
        let mut file = tempfile::Builder::new().prefix("termsmith-fix-").suffix(".sh").tempfile()?;
        file.write_all(self.script.as_bytes())?;
        let path = file.path();
        on_event(Event::Script(format!(
            "Running `sh {} {}` (`termsmith doctor --print-fix` prints this script) …",
            path.display(),
            self.part
        )));
        let mut command = Command::new("sh");
        command.arg(path).arg(self.part).env_clear().envs(&self.host.env).kill_on_drop(true);
        command.envs(self.address.map(|address| ("ENGINE_ADDRESS", address)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let passed_on = pass_on(output, on_event);
        let (passed_on, stderr) = tokio::join!(passed_on, text_of(errors));
        passed_on?;
        if child.wait().await?.success() { Ok(()) } else { Err(FixError::Failed { stderr: stderr? }) }
    }
}

/// Passes on each line, and a sign of life after [`PERIOD`] without a line.
async fn pass_on(output: Option<impl AsyncRead + Unpin>, on_event: &mut dyn FnMut(Event)) -> io::Result<()> {
    let Some(output) = output else { return Ok(()) };
    let mut lines = BufReader::new(output).lines();
    let began = Instant::now();
    loop {
        // When it is cancelled, `next_line` keeps the part of a line that it has read.
        match timeout(PERIOD, lines.next_line()).await {
            Ok(Ok(Some(line))) => on_event(Event::Line(line)),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => on_event(Event::Progress(began.elapsed())),
        }
    }
}

async fn text_of(from: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let Some(mut from) = from else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
