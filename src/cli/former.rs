//! Tells the user what a command computes again in a run folder of another build.

use std::path::Path;

use super::failure::Failure;
use super::say;
use crate::pipeline::{Former, Upcoming};
use crate::store::{ReadStore, build_id};

/// Prints a note on standard error if `store` has results of other builds that `upcoming` needs.
pub(super) fn note(out: &Path, store: &ReadStore, upcoming: Upcoming<'_>) -> Result<(), Failure> {
    let former = Former::read(store, upcoming)?;
    if !former.builds.is_empty() {
        say::note(text(out, &former, build_id()));
    }
    Ok(())
}

fn text(out: &Path, former: &Former, own: &str) -> String {
    let builds: Vec<&str> = former.builds.iter().map(String::as_str).collect();
    let counted = [(former.tasks, "tasks"), (former.rollouts, "rollouts"), (former.trials, "trials")];
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    let counted: Vec<_> = counted
        .map(|(count, what)| match count {
            1 => format!("1 {}", what.trim_end_matches('s')),
            _ => format!("{count} {what}"),
        })
        .collect();
    let verb = if former.tasks + former.rollouts + former.trials == 1 { "is" } else { "are" };
    let named = if builds.len() == 1 { "build" } else { "builds" };
    format!(
        "`{}` was made by {named} {}; this is build {own}: {} {verb} computed again\n\
         hint: `termsmith export` still reads the old results; only the build that made them can continue them",
        out.display(),
        builds.join(", "),
        counted.join(" and "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_again_is_counted() {
        let check = |builds: &[&str], tasks: usize, rollouts: usize, trials: usize, expect: &str| {
            let builds = builds.iter().map(|build| (*build).to_owned()).collect();
            let text = text(Path::new("out/demo"), &Former { builds, tasks, rollouts, trials }, "def");
            assert_eq!(text.lines().next(), Some(expect));
        };
        check(
            &["abc"],
            1,
            20,
            0,
            "`out/demo` was made by build abc; this is build def: 1 task and 20 rollouts are computed again",
        );
        check(
            &["abc", "bcd"],
            0,
            0,
            84,
            "`out/demo` was made by builds abc, bcd; this is build def: 84 trials are computed again",
        );
    }
}
