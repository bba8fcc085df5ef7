//! Recordings of terminal sessions: asciicasts of versions 1 to 3, and transcripts. A task can be
//! made from one (TerminalWorld, §3).
//!
//! A recording is untrusted. It is parsed within bounds, shown to a model as material, and never
//! executed.

mod asciicast;
mod commands;
mod filters;
mod incomplete;
mod prompts;
mod transcript;

use std::path::{Path, PathBuf};

use crate::folder::{WalkError, read_file, read_named_by_user, shown};

pub use filters::{FilterError, Filters, Refusal};

/// Maximum bytes of a file. TerminalWorld's recordings have a median of 20 KB, and an hour of a
/// compiler's output has a few megabytes.
const MAX_FILE: u64 = 16 << 20;
/// Maximum bytes of a transcript in a prompt. They are about 8,000 tokens, which leave room for a
/// reply in all usual models.
const EXCERPT_BYTES: usize = 24_000;
/// Folders with the kernel's links to open files, e.g. `/dev/stdin`.
const OPEN_FILES: [&str; 2] = ["/dev", "/proc/self/fd"];

/// A recorded session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Name of the file, without its extension.
    pub name: String,
    /// BLAKE3 of the file.
    pub digest: String,
    /// Title from the header. Empty if there is none.
    pub title: String,
    /// The lines that the terminal showed, without control sequences.
    pub transcript: String,
    /// The commands, in order. A command can have several lines.
    pub commands: Vec<String>,
    /// The output, with its control sequences.
    output: String,
}

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error(transparent)]
    Read(#[from] WalkError),
    #[error("`{}` does not exist", shown(path))]
    Missing { path: PathBuf },
    #[error("`{}` shows more than {} lines", shown(path), transcript::MAX_LINES)]
    TooLong { path: PathBuf },
    #[error("`{}` is binary\nhint: decompress it first", shown(path))]
    NotText { path: PathBuf },
    #[error(
        "`{}`:{line}: {message}\nhint: asciicasts of versions 1, 2 and 3 are understood, and plain transcripts",
        shown(path)
    )]
    Malformed { path: PathBuf, line: usize, message: String },
    #[error(
        "`{}` shows no command: no prompt recurs at the beginnings of its lines, and no input was recorded\nhint: record with a prompt \
         that ends in a sign and a blank, e.g. PS1='$ ', or record the input too: `asciinema rec --stdin` (version 2) or \
         `asciinema rec --capture-input` (version 3)",
        shown(path)
    )]
    NoCommand { path: PathBuf },
}

impl Recording {
    /// Reads the recording in `path`.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        // Links are refused: one among downloaded recordings could lead to a private file, and a
        // model would be shown it.
        let bytes = if OPEN_FILES.iter().any(|folder| path.starts_with(folder)) {
            read_named_by_user(path, MAX_FILE)?
        } else {
            read_file(path, MAX_FILE)?.ok_or_else(|| RecordingError::Missing { path: path.to_owned() })?
        };
        let digest = blake3::hash(&bytes).to_hex().to_string();
        if bytes.contains(&0) {
            return Err(RecordingError::NotText { path: path.to_owned() });
        }
        // Transcripts of `script` have characters that are cut in two.
        let text = String::from_utf8_lossy(&bytes);
        let session = asciicast::parse(&text).map_err(|(line, message)| RecordingError::Malformed {
            path: path.to_owned(),
            line,
            message,
        })?;
        let lines = transcript::rendered(&session)
            .ok_or_else(|| RecordingError::TooLong { path: path.to_owned() })?;
        let commands = match commands::typed(&session.input) {
            typed if typed.is_empty() => prompts::prompted(&lines),
            typed => typed,
        };
        if commands.is_empty() {
            return Err(RecordingError::NoCommand { path: path.to_owned() });
        }
        let transcript = lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, digest, title: session.title, transcript, commands, output: session.output })
    }
}

impl Recording {
    /// The transcript for a prompt. Of a long one, the middle is left out, and the last line that
    /// fits may be cut.
    pub fn excerpt(&self) -> String {
        let lines: Vec<_> = self.transcript.lines().collect();
        let mut kept = (Vec::new(), Vec::new());
        let (mut first, mut last, mut left) = (0, lines.len(), EXCERPT_BYTES);
        // Lines are taken from both ends in turn.
        while first < last && left > 0 {
            kept.0.push(take(lines[first], &mut left));
            first += 1;
            if first < last && left > 0 {
                last -= 1;
                kept.1.push(take(lines[last], &mut left));
            }
        }
        let left_out = (first < last).then(|| format!("[… {} lines …]", last - first));
        let lines = kept.0.into_iter().chain(left_out);
        lines.chain(kept.1.into_iter().rev()).collect::<Vec<_>>().join("\n")
    }
}

/// Takes `line` and its line feed from the bytes that are `left`. A line that does not fit is cut.
fn take(line: &str, left: &mut usize) -> String {
    let end = (0..=line.len().min(*left)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    let (shown, rest) = line.split_at(end);
    *left = left.saturating_sub(line.len() + 1);
    if rest.is_empty() { shown.to_owned() } else { format!("{shown}[… {} bytes …]", rest.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_recordings() {
        type Make = fn(&Path) -> std::io::Result<()>;
        let check = |make: Make, expect: &str| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.cast");
            make(&path).unwrap();
            let error = Recording::read(&path).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(|_| Ok(()), "does not exist");
        check(|path| std::os::unix::fs::symlink("/dev/zero", path), "is a symbolic link");
        check(|path| std::os::unix::fs::symlink("/etc/hostname", path), "is a symbolic link");
        check(|path| std::fs::create_dir(path), "is neither a regular file nor a folder");
        check(|path| std::fs::File::create(path)?.set_len(MAX_FILE + 1), "is larger than");
        check(|path| std::fs::write(path, "\u{1f}\u{8b}\0"), "is binary");
        check(
            |path| std::fs::write(path, "\n".repeat(transcript::MAX_LINES + 100)),
            "shows more than 200000 lines",
        );
        check(|path| std::fs::write(path, "no prompt\n"), "no prompt recurs");
        let error = Recording::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("is a device"), "{error}");
    }

    /// Parts of a text, each with the number of its repetitions.
    type Parts<'a> = [(&'a str, usize)];

    #[test]
    fn an_excerpt_has_a_bound() {
        let text =
            |parts: &Parts<'_>| parts.iter().map(|(part, times)| part.repeat(*times)).collect::<String>();
        let check = |transcript: &Parts<'_>, expect: &Parts<'_>| {
            let recording = Recording {
                name: String::new(),
                digest: String::new(),
                title: String::new(),
                transcript: text(transcript),
                commands: Vec::new(),
                output: String::new(),
            };
            let (found, expect) = (recording.excerpt(), text(expect));
            assert!(found == expect, "{} bytes, and {} were expected", found.len(), expect.len());
        };
        check(&[("$ ls\na\n", 1)], &[("$ ls\na", 1)]);
        check(&[("x", 300_000)], &[("x", EXCERPT_BYTES), ("[… 276000 bytes …]", 1)]);
        // A character is not cut in two.
        check(&[("a", 1), ("é", 20_000)], &[("a", 1), ("é", 11_999), ("[… 16002 bytes …]", 1)]);
        check(
            &[("$ cat a\n", 1), ("x", 300_000), ("\n$ end\n", 1)],
            &[("$ cat a\n", 1), ("x", EXCERPT_BYTES - 14), ("[… 276014 bytes …]", 1), ("\n$ end", 1)],
        );
        let line = "0123456789012345678\n";
        check(&[(line, 2000)], &[(line, 600), ("[… 800 lines …]\n", 1), (line, 599), (line.trim_end(), 1)]);
    }
}
