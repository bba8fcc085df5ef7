//! A simulated model. It knows the solutions of a few small tasks, and applies them in some
//! attempts.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::support::corpus::{prepared, task_dir};

/// Small tasks of the corpus. They share an image.
pub(crate) const TASKS: [&str; 4] = ["sound-merge", "sound-modes", "sound-report", "sound-roman"];

/// Seed of the expert's sampling. With it, each attempt sends requests of its own.
pub(crate) const SEED: u64 = 5;

/// A copy of the task `name` in `folder`, with a disk of 64 MiB.
pub(crate) fn with_small_disk(folder: &Path, name: &str) -> PathBuf {
    let task = prepared(folder, name);
    let manifest = task.join("task.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("storage_mb"));
    let lines = lines.map(|line| line.replace("memory_mb", "storage_mb = 64\nmemory_mb"));
    std::fs::write(&manifest, lines.collect::<Vec<_>>().join("\n")).unwrap();
    task
}

pub(crate) struct Solver {
    solutions: Vec<(String, String)>,
    serial: AtomicU64,
}

impl Solver {
    pub(crate) fn new() -> Self {
        let read = |name: &str, file: &str| std::fs::read_to_string(task_dir(name).join(file)).unwrap();
        let solutions = TASKS.iter().map(|name| {
            let instruction = read(name, "instruction.md");
            let opening =
                instruction.lines().find(|line| line.len() > 20 && !line.starts_with("<!--")).unwrap();
            (opening.to_owned(), read(name, "solution/solve.sh"))
        });
        Self { solutions: solutions.collect(), serial: AtomicU64::new(0) }
    }

    /// The next message: look, solve, submit. Two of three attempts solve, by their seeds. With
    /// `numbered`, each message has a number, which shows whether a reply was kept.
    pub(crate) fn reply(&self, body: &Value, numbered: Numbered) -> String {
        let messages = body["messages"].as_array().unwrap();
        let task = messages[1]["content"].as_str().unwrap();
        let (_, solution) = self.solutions.iter().find(|(opening, _)| task.contains(opening)).unwrap();
        // Each attempt has its own seed.
        let lazy = body["seed"].as_u64().unwrap().is_multiple_of(3);
        let command = match messages.iter().filter(|message| message["role"] == "assistant").count() {
            0 => "ls -a / | head -n 3".to_owned(),
            1 if lazy => "false".to_owned(),
            1 => format!("bash <<'SOLVE'\n{solution}\nSOLVE"),
            _ => "submit".to_owned(),
        };
        let number = match numbered {
            Numbered::Yes => format!(" ({})", self.serial.fetch_add(1, Ordering::Relaxed)),
            Numbered::No => String::new(),
        };
        format!("I go on{number}.\n\n````bash\n{command}\n````")
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Numbered {
    Yes,
    No,
}
