use termsmith::export::atif::*;
use termsmith::model;
#[path = "../src/export/fixture.rs"]
mod fixture;
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    for attempt in 0..6 {
        let mut r = fixture::rollout("games", 1, attempt, 4, 8 - attempt);
        let mut stamps = None;
        match attempt {
            1 => r.record.system.clear(),
            2 => {
                r.record.turns.pop();
                r.record.end = model::End::StepLimit;
            }
            3 => r = fixture::unmeasured(r),
            4 => {
                r.record.turns.clear();
                r.observations.clear();
            }
            5 => {
                r.record.turns[1].outcome = Some(model::ShellOutcome::TimedOut);
                r.record.turns[1].thought.clear();
                r.observations[0] = "NUL \0 esc \x1b[0m 🦀".into();
                stamps = Some(Stamps {
                    started: "2026-03-01T12:00:00Z".into(),
                    turns: (0..5).map(|n| format!("2026-03-01T12:00:0{n}.123456+01:00")).collect(),
                });
            }
            _ => {}
        }
        write(&dir, &r, stamps.as_ref()).unwrap();
    }
}
