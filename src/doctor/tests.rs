use std::fs;

use futures_util::future::BoxFuture;

use super::*;
use crate::sandbox::{Diagnosis, EngineError};
use crate::verify::CLOCK_LIBRARIES;

/// Provides `engine`, then `image`.
const WORKS: &str = r#"echo "Making $1"; : >"$FIX_ROOT/$1""#;

/// An engine that is there, and has its image, if these files exist on the host.
fn diagnosed(host: &Host) -> BoxFuture<'_, Diagnosis> {
    let row = |name: &'static str, otherwise: Finding| {
        (name, if host.path(name).exists() { Finding::ok("there") } else { otherwise })
    };
    let missing = || Finding::missing("not there").hint("look");
    let has_engine = host.path("/engine").exists();
    let image = if has_engine { missing().provided_by("image") } else { Finding::needs_engine() };
    let warned = Finding::warn("slow").provided_by("speed");
    let rows = vec![row("engine", missing().provided_by("engine")), row("image", image), ("speed", warned)];
    Box::pin(async move { Diagnosis { rows, ..Diagnosis::default() } })
}

/// Checks the rows of the engine and of the clock before and after `--fix` with this script, and
/// what the script printed.
fn check(script: Option<&'static str>, files: &[&str], before: &[&str], after: &[&str], printed: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let engine = EngineEntry {
        name: "toy",
        description: "",
        connect: |_| Box::pin(async { Err(EngineError::Unsupported { engine: "toy", action: "start" }) }),
        diagnose: diagnosed,
        fix_script: script,
    };
    let variables = [("FIX_ROOT", dir.path().display().to_string()), ("PATH", "/usr/bin:/bin".to_owned())];
    let env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let host = Host { root: dir.path().to_owned(), env, uid: 0 };
    let machine = Machine { host: &host, engine: &engine, out: Path::new("/tmp") };
    let rows = |report: &Report| -> Vec<String> {
        let rows = report.rows.iter().take(4).filter(|row| row.name != "speed");
        let row = |row: &Row| {
            let hint = row.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{} {}: {}{hint}", row.status.as_str(), row.name, row.detail)
        };
        rows.map(row).collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(rows(&runtime.block_on(diagnose(&machine))), before);
    let mut said = Vec::new();
    let report = runtime.block_on(repair(&machine, &mut |event| match event {
        Event::Line(line) => said.push(line),
        Event::Script(_) | Event::Progress(_) => {}
    }));
    assert_eq!(rows(&report), after);
    assert_eq!(said, printed);
    let is_missing = |row: &Row| row.status == Status::Missing;
    assert_eq!(report.healthy, !report.rows.iter().any(is_missing));
}

#[test]
fn what_is_missing_is_provided_by_the_script_and_inspected_again() {
    let library = CLOCK_LIBRARIES[0];
    let clock = format!("ok clock: `{library}`");
    let engine = "missing engine: not there (look)";
    let unknown = "missing image: unknown until an engine answers (see the row `engine`)";
    let none = [engine, unknown, &clock];
    let image = "missing image: not there (look)";
    let (fixed_engine, fixed_image) = ("fixed engine: there", "fixed image: there");
    let all = [fixed_engine, fixed_image, &clock];
    check(Some(WORKS), &[library], &none, &all, &["Making engine", "Making image"]);
    // A ready machine is not changed, even if there is a warning.
    let ready = ["ok engine: there", "ok image: there", &clock];
    check(Some(WORKS), &[library, "engine", "image"], &ready, &ready, &[]);
    check(
        Some(WORKS),
        &[library, "engine"],
        &[ready[0], image, &clock],
        &[ready[0], fixed_image, &clock],
        &["Making image"],
    );
    // A script without effect runs only once.
    check(Some("echo tried $1"), &[library], &none, &none, &["tried engine"]);
    // A script fails and says why.
    let failed = ["missing engine: no network\n  | dns", unknown, &clock];
    check(Some("echo no network >&2; echo '  | dns' >&2; exit 1"), &[library], &none, &failed, &[]);
    let failed = ["missing engine: this needs root (become root)", unknown, &clock];
    check(Some("printf 'this needs root\nhint: become root\n' >&2; exit 1"), &[library], &none, &failed, &[]);
    // Output before a failure is passed on, and the next part is tried.
    let partly = r#"echo "Making $1"; [ $1 = engine ] || { echo full >&2; exit 1; }; : >"$FIX_ROOT/$1""#;
    let failed = [fixed_engine, "missing image: full", &clock];
    check(Some(partly), &[library], &none, &failed, &["Making engine", "Making image"]);
    check(None, &[library], &none, &none, &[]);
}

#[test]
fn the_clock_library_is_provided_too() {
    let missing = "missing clock: libfaketime is not installed: certificates of full rigor would lack their row `clock`";
    let before = format!("{missing} (`termsmith doctor --fix` installs it on systems with apt)");
    let rows = ["ok engine: there", "ok image: there", &before];
    let files = ["engine", "image"];
    check(
        Some("echo Trying $1; echo no package >&2; exit 1"),
        &files,
        &rows,
        &[rows[0], rows[1], "missing clock: no package"],
        &["Trying clock"],
    );
    let installs =
        r#"mkdir -p "$FIX_ROOT/usr/lib/faketime"; : >"$FIX_ROOT/usr/lib/faketime/libfaketime.so.1""#;
    check(
        Some(installs),
        &files,
        &rows,
        &[rows[0], rows[1], "fixed clock: `/usr/lib/faketime/libfaketime.so.1`"],
        &[],
    );
}
