//! Progress: a bar on a terminal, plain lines in a log.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::say;
use crate::pipeline::Event;

/// Where a run's events are shown.
pub(super) struct Progress {
    bar: ProgressBar,
    total: usize,
    finished: AtomicUsize,
    on_terminal: bool,
}

impl Progress {
    pub(super) fn new(total: usize) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let target = if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} tasks  {elapsed}  {msg}") {
            bar.set_style(style);
        }
        Self { bar, total, finished: AtomicUsize::new(0), on_terminal }
    }

    /// Shows one event.
    pub(super) fn show(&self, event: &Event) {
        match event {
            Event::Started { task } => self.bar.set_message(task.clone()),
            Event::Screened { task, certified: false, reasons, .. } => {
                self.line(&format!("rejected   {task}: {}", reasons.join("; ")));
            }
            Event::Failed { task, message } => {
                self.count();
                self.line(&format!("no result  {task}: {message}"));
            }
            Event::Finished { task, seconds } => {
                let finished = self.count();
                if !self.on_terminal {
                    self.line(&format!("done       {task} ({finished} of {}, {seconds:.1} s)", self.total));
                }
            }
            Event::Swept { containers } if *containers > 0 => {
                self.line(&format!("removed {containers} containers that an earlier run left behind"));
            }
            Event::Screened { .. } | Event::RolledOut { .. } | Event::Swept { .. } | Event::Stage { .. } => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn count(&self) -> usize {
        self.bar.inc(1);
        self.finished.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn line(&self, text: &str) {
        if self.on_terminal {
            self.bar.suspend(|| say::note(text));
        } else {
            say::note(text);
        }
    }
}
