//! Prints progress on standard error: a bar on a terminal, else a line at least every ten seconds.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::say;
use crate::llm::{Models, Tally};
use crate::model::RowKind;
use crate::pipeline::Event;
use crate::verify::TrialStep;

/// Longest time without a line. It is one second below the documented ten.
const LONGEST_PAUSE: Duration = Duration::from_secs(9);

/// Interval between updates of the bar.
const REDRAW: Duration = Duration::from_secs(1);

/// Trials after which the pace is known well enough to estimate the time left.
const ENOUGH_FOR_A_PACE: usize = 5;

/// The unit name of the phase after the screening.
const ROLLOUTS: &str = "rollouts";

/// Characters of a row's name that are shown.
const LONGEST_ROW: usize = 40;

/// Shows the events of a run.
pub(super) struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
    state: Arc<Mutex<State>>,
    /// Tells the watcher that a line was printed. Dropping it ends the watcher.
    printed: Mutex<Option<Sender<()>>>,
    watcher: Option<JoinHandle<()>>,
}

impl Progress {
    /// `total` is the number of tasks, or of rollouts, that will be finished.
    pub(super) fn new(total: usize, unit: &'static str) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let target = if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let template = format!("{{bar:30}} {{pos}}/{{len}} {unit}  {{elapsed}}  {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        let state = Arc::new(Mutex::new(State::new(total, unit)));
        let (printed, on_print) = channel();
        let watcher = thread::spawn({
            let (bar, state) = (bar.clone(), state.clone());
            move || watch(&on_print, &state, if on_terminal { Some(&bar) } else { None })
        });
        if on_terminal {
            say::draw(Some(bar.clone()));
        }
        Self { bar, on_terminal, state, printed: Mutex::new(Some(printed)), watcher: Some(watcher) }
    }

    /// From now on also shows what the calls of `models` cost.
    pub(super) fn meter(&self, models: Arc<Models>) {
        lock(&self.state).models = Some(models);
    }

    /// Shows one event.
    pub(super) fn show(&self, event: &Event) {
        let (finished, total) = {
            let mut state = lock(&self.state);
            state.apply(event, Instant::now());
            (state.finished, state.total)
        };
        self.bar.set_position(finished as u64);
        match event {
            Event::Screened { task, certified: false, reasons, .. } => {
                self.line(&format!("rejected   {task}: {}", reasons.join("; ")));
            }
            Event::Failed { task, message } => self.line(&format!("no result  {task}: {message}")),
            Event::ScriptFailed { task, attempt, message } => {
                self.line(&format!("no rollout {task}, attempt {attempt}: {message}"));
            }
            Event::Finished { task, seconds } if !self.on_terminal => {
                self.line(&format!("done       {task} ({finished} of {total}, {seconds:.1} s)"));
            }
            Event::Swept { containers } if *containers > 0 => {
                self.line(&format!("removed {containers} containers left behind by an earlier run"));
            }
            Event::Started { .. }
            | Event::Trial { .. }
            | Event::Finished { .. }
            | Event::Screened { .. }
            | Event::RolledOut { .. }
            | Event::Swept { .. }
            | Event::Stage { .. } => {}
        }
    }

    fn line(&self, text: &str) {
        say::note(text);
        if let Some(printed) = &*lock(&self.printed) {
            // The watcher lives until this sender is dropped, so sending cannot fail.
            let _ = printed.send(());
        }
    }
}

impl Drop for Progress {
    /// Removes the bar and ends the watcher.
    fn drop(&mut self) {
        lock(&self.printed).take();
        if let Some(watcher) = self.watcher.take() {
            // If the watcher panicked, it has printed its own message.
            let _ = watcher.join();
        }
        self.bar.finish_and_clear();
        say::draw(None);
    }
}

/// Updates the bar, or prints a line if none was printed for a while. Ends when the sender is
/// dropped.
fn watch(printed: &Receiver<()>, state: &Mutex<State>, bar: Option<&ProgressBar>) {
    let interval = if bar.is_some() { REDRAW } else { LONGEST_PAUSE };
    loop {
        match printed.recv_timeout(interval) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let state = lock(state);
                match bar {
                    Some(bar) => {
                        bar.set_message(state.in_progress(Instant::now()));
                        bar.tick();
                    }
                    None => {
                        let text = state.text(Instant::now());
                        drop(state);
                        say::note(text);
                    }
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts of finished work, and the tasks in progress.
struct State {
    total: usize,
    unit: &'static str,
    finished: usize,
    certified: usize,
    rollouts: usize,
    /// The models whose costs are shown.
    models: Option<Arc<Models>>,
    active: BTreeMap<String, Active>,
    stage: Option<&'static str>,
    trials: Trials,
}

/// A task in progress.
struct Active {
    since: Instant,
    phase: &'static str,
    /// The row of the trial that began last.
    row: Option<(RowKind, String)>,
    /// Trials of its screening that have a result.
    done: usize,
    /// All trials of its screening, as far as they are known.
    expected: usize,
}

impl Active {
    fn new(since: Instant, phase: &'static str) -> Self {
        Self { since, phase, row: None, done: 0, expected: 0 }
    }
}

/// Trials of all tasks.
#[derive(Default)]
struct Trials {
    /// When the first trial began.
    since: Option<Instant>,
    /// Number of trials that ended since then.
    made: usize,
    /// Number of screenings that have ended.
    screenings: usize,
    done: usize,
}

impl State {
    fn new(total: usize, unit: &'static str) -> Self {
        Self {
            total,
            unit,
            finished: 0,
            certified: 0,
            rollouts: 0,
            models: None,
            active: BTreeMap::new(),
            stage: None,
            trials: Trials::default(),
        }
    }

    fn apply(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Started { task } => {
                self.active.insert(task.clone(), Active::new(now, "screening"));
            }
            Event::Trial { task, kind, name, step } => self.trial(task, (*kind, name), *step, now),
            Event::Screened { task, certified, .. } => {
                self.certified += usize::from(*certified);
                if let Some(active) = self.active.get_mut(task) {
                    self.trials.screenings += usize::from(active.done > 0);
                    self.trials.done += active.done;
                    *active = Active::new(active.since, ROLLOUTS);
                }
            }
            Event::RolledOut { .. } => self.rollouts += 1,
            Event::Failed { task, .. } | Event::Finished { task, .. } => {
                self.active.remove(task);
                self.finished += 1;
            }
            Event::Stage { name } => self.stage = Some(name),
            Event::ScriptFailed { .. } | Event::Swept { .. } => {}
        }
    }

    fn trial(&mut self, task: &str, row: (RowKind, &str), step: TrialStep, now: Instant) {
        // A model's draft has trials before its screening.
        let active = self.active.entry(task.to_owned()).or_insert_with(|| Active::new(now, "writing"));
        match step {
            TrialStep::Expected { trials } => active.expected = trials,
            TrialStep::Recalled => active.done += 1,
            TrialStep::Began => {
                self.trials.since.get_or_insert(now);
                active.row = Some((row.0, row.1.to_owned()));
            }
            TrialStep::Ended => {
                active.done += 1;
                self.trials.made += 1;
            }
        }
    }

    /// Trials done and expected, and the time left at the pace so far.
    fn screening(&self, now: Instant) -> Option<String> {
        let Trials { since, made, screenings, done } = self.trials;
        let known = || self.active.values().filter(|active| active.expected > 0);
        let (started, of_started) = known().fold((screenings, done), |(count, sum), active| {
            (count + 1, sum + active.expected.max(active.done))
        });
        let done = done + known().map(|active| active.done).sum::<usize>();
        let screened = self.active.values().filter(|active| active.phase == ROLLOUTS).count();
        let waiting = self.total.saturating_sub(self.finished + screened + known().count());
        let expected = of_started + (of_started * waiting).checked_div(started)?;
        let left = expected.saturating_sub(done);
        if left == 0 {
            return None;
        }
        let counts = format!("{done} of about {expected} trials");
        let Some(since) = since.filter(|_| made >= ENOUGH_FOR_A_PACE) else { return Some(counts) };
        let pace = now.saturating_duration_since(since) / u32::try_from(made).unwrap_or(u32::MAX);
        let left = pace * u32::try_from(left).unwrap_or(u32::MAX);
        Some(format!("{counts}, about {} left", rounded(left)))
    }

    /// One line: counts, and the task that has been in progress for longest.
    fn text(&self, now: Instant) -> String {
        let Self { total, unit, finished, rollouts, .. } = self;
        // If rollouts are the unit, `finished` counts them already.
        let counted = *rollouts == 0 || *unit == "rollouts";
        let rollouts = if counted { String::new() } else { format!(", {rollouts} rollouts") };
        let calls = self.models.as_ref().map(|models| models.tally());
        let calls = calls.map_or_else(String::new, |tally| cost(&tally, self.certified));
        let counts = format!("working    {finished} of {total} {unit} done{rollouts}{calls}");
        let in_progress = self.in_progress(now);
        if in_progress.is_empty() { counts } else { format!("{counts}; {in_progress}") }
    }

    fn in_progress(&self, now: Instant) -> String {
        let parts = [self.screening(now), Some(self.longest(now)).filter(|text| !text.is_empty())];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// The task that has been in progress for longest, and the row that is tried there.
    fn longest(&self, now: Instant) -> String {
        let longest = self.active.iter().min_by_key(|(_, active)| active.since);
        match (longest, self.stage) {
            (Some((task, active)), _) => {
                let seconds = now.saturating_duration_since(active.since).as_secs();
                let count = self.active.len();
                let row = active.row.as_ref().map_or_else(String::new, |(kind, name)| {
                    let kind = kind.name().replace('_', " ");
                    format!(", {kind} `{}`", name.chars().take(LONGEST_ROW).collect::<String>())
                });
                format!("{count} in progress, longest: {task}, {}{row}, {seconds} s", active.phase)
            }
            (None, Some(stage)) => stage.to_owned(),
            (None, None) => String::new(),
        }
    }
}

/// A time in words. Seconds are left out if there are hours.
fn rounded(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds @ 90..5_400 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}

/// The cost of calls so far, and the cost for each certified task.
fn cost(tally: &Tally, certified: usize) -> String {
    let mut text = format!(", {} replies, {} tokens", tally.replies, tally.spent.tokens);
    let usd = tally.spent.usd();
    if usd > 0.0 {
        text.push_str(&format!(", ${usd:.4}"));
        if certified > 0 {
            text.push_str(&format!(" (${:.4} a certified task)", usd / certified as f64));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Cost;
    use crate::model::Outcome;

    #[test]
    fn costs_are_shared_by_certified_tasks() {
        let check = |picodollars: u64, certified: usize, expect: &str| {
            let tally = Tally { replies: 7, spent: Cost { tokens: 900, picodollars }, ..Tally::default() };
            assert_eq!(cost(&tally, certified), expect);
        };
        check(0, 2, ", 7 replies, 900 tokens");
        check(600_000_000_000, 0, ", 7 replies, 900 tokens, $0.6000");
        check(600_000_000_000, 2, ", 7 replies, 900 tokens, $0.6000 ($0.3000 a certified task)");
    }

    #[test]
    fn the_line_names_the_work_in_progress() {
        let start = Instant::now();
        let started = |task: &str| Event::Started { task: task.to_owned() };
        let screened = |task: &str| Event::Screened {
            task: task.to_owned(),
            certified: true,
            rows: 9,
            reasons: Vec::new(),
            seconds: 1.0,
        };
        let rolled_out =
            |task: &str| Event::RolledOut { task: task.to_owned(), attempt: 0, outcome: Outcome::Pass };
        let finished = |task: &str| Event::Finished { task: task.to_owned(), seconds: 1.0 };
        // Each event comes one second after the former one.
        let check = |events: &[Event], expect: &str| {
            let mut state = State::new(3, "tasks");
            let mut now = start;
            for event in events {
                state.apply(event, now);
                now += Duration::from_secs(1);
            }
            assert_eq!(state.text(now), expect);
        };
        check(&[], "working    0 of 3 tasks done");
        check(&[started("a")], "working    0 of 3 tasks done; 1 in progress, longest: a, screening, 1 s");
        check(
            &[started("b"), started("a"), screened("b")],
            "working    0 of 3 tasks done; 2 in progress, longest: b, rollouts, 3 s",
        );
        check(
            &[started("b"), started("a"), rolled_out("b"), finished("b")],
            "working    1 of 3 tasks done, 1 rollouts; 1 in progress, longest: a, screening, 3 s",
        );
        let trial = |step| Event::Trial {
            task: "a".to_owned(),
            kind: RowKind::TruncatedSolution,
            name: "1 of 2".to_owned(),
            step,
        };
        let (began, ended) = (trial(TrialStep::Began), trial(TrialStep::Ended));
        let expected = trial(TrialStep::Expected { trials: 9 });
        check(
            &[started("a"), expected.clone(), trial(TrialStep::Recalled), began.clone()],
            "working    0 of 3 tasks done; 1 of about 27 trials; 1 in progress, longest: a, screening, \
             truncated solution `1 of 2`, 4 s",
        );
        let made = [[began, ended].as_slice(); 5].concat();
        check(
            &[[started("a"), expected].as_slice(), &made].concat(),
            "working    0 of 3 tasks done; 5 of about 27 trials, about 44 s left; 1 in progress, longest: \
             a, screening, truncated solution `1 of 2`, 12 s",
        );
        check(
            &[[started("a")].as_slice(), &made, &[screened("a"), finished("a"), started("b")]].concat(),
            "working    1 of 3 tasks done; 5 of about 15 trials, about 26 s left; 1 in progress, longest: \
             b, screening, 1 s",
        );
        check(
            &[started("a"), finished("a"), Event::Stage { name: "export" }],
            "working    1 of 3 tasks done; export",
        );
    }
}
