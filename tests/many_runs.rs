//! `templates/verifier/many_runs.py`: programs that it forks must end as when they are started.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// What a program did: its exit status, standard output and standard error.
#[derive(Debug, PartialEq)]
struct Ended {
    code: i64,
    stdout: String,
    stderr: String,
}

const PROGRAMS: [(&str, &str); 12] = [
    ("silent", "pass\n"),
    ("words", "import sys\nprint(sys.argv[1:], sys.path[0], __name__, __file__)\n"),
    ("input", "import sys\nprint(sys.stdin.read().upper(), end='')\n"),
    ("status", "import sys\nsys.exit(3)\n"),
    ("large-status", "raise SystemExit(259)\n"),
    ("message", "import sys\nsys.exit('cannot do it')\n"),
    ("at-exit", "import atexit\natexit.register(print, 'later')\nprint('now')\n"),
    ("beside", "import helper\nprint(helper.NAME, helper.__file__)\n"),
    ("hash-bang-with-option", "print(__debug__)\n"),
    ("umlauts", "print('späť', ascii('ß'))\n"),
    ("killed", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"),
    ("no-python", "echo $0 $*; exit 7\n"),
];

fn first_line(name: &str) -> &'static str {
    match name {
        "no-python" => "#!/bin/sh\n",
        "hash-bang-with-option" => "#!/usr/bin/python3 -O\n",
        _ => "#!/usr/bin/env python3\n",
    }
}

fn program(folder: &Path, name: &str, text: &str) {
    let place = folder.join(name);
    std::fs::write(&place, format!("{}{text}", first_line(name))).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn started(folder: &Path, argv: &[&str], stdin: &str) -> Ended {
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .current_dir(folder)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Most programs do not read it, and may have ended.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let done = child.wait_with_output().unwrap();
    Ended {
        // Python reports a signal as a negative number.
        code: done.status.code().map_or(-9, i64::from),
        stdout: String::from_utf8(done.stdout).unwrap(),
        stderr: String::from_utf8(done.stderr).unwrap(),
    }
}

fn run_together(folder: &Path, cases: &[Value]) -> Vec<Value> {
    run_within(30, folder, cases)
}

/// All cases together have `seconds`.
fn run_within(seconds: u32, folder: &Path, cases: &[Value]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier/many_runs.py");
    let mut child = Command::new("python3")
        .args(["-I", "-S", "-B", script])
        .current_dir(folder)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let request = json!({ "cases": cases, "timeout": seconds });
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", done.status);
    inflated(&done.stdout)
}

/// What it printed: JSON, compressed.
fn inflated(printed: &[u8]) -> Vec<Value> {
    const INFLATE: &str = "import base64, sys, zlib; sys.stdout.buffer.write(zlib.decompress(base64.b64decode(sys.stdin.read())))";
    let mut child = Command::new("python3")
        .args(["-c", INFLATE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(printed).unwrap();
    let done = child.wait_with_output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn outputs_that_are_too_long_are_not_cut() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(folder, "long", "import sys\nprint('x' * int(sys.argv[1]), end='')\n");
    let cases = ["8000000", "8000001"].map(|length| case(folder, &["./long", length], ""));
    let found = run_together(folder, &cases);
    assert_eq!(text(&found[0][1]).len(), 8_000_000);
    assert_eq!(found[1][1], 8_000_000);
}

fn case(folder: &Path, argv: &[&str], stdin: &str) -> Value {
    json!({
        "argv": argv, "stdin": STANDARD.encode(stdin), "cwd": folder, "files": {}, "after": [], "timeout": 10,
        "env": {}, "links": {},
    })
}

fn text(value: &Value) -> String {
    String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn forked_programs_end_as_started_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("helper.py"), "import json\nNAME = json.dumps('helper')\n").unwrap();
    std::fs::create_dir(folder.join("package")).unwrap();
    std::fs::write(folder.join("package/__init__.py"), "").unwrap();
    std::fs::write(folder.join("package/__main__.py"), "import sys\nprint(sys.argv[1:], __package__)\n")
        .unwrap();
    let names = PROGRAMS.map(|(name, _)| format!("./{name}"));
    for (name, text) in PROGRAMS {
        program(folder, name, text);
    }
    let mut argvs: Vec<Vec<&str>> = names.iter().map(|name| vec![name.as_str(), "a", "b c"]).collect();
    argvs.push(vec!["python3", "words", "x"]);
    argvs.push(vec!["python3", "-m", "package", "x"]);
    argvs.push(vec!["python3", "-c", "print(1)"]);
    let cases: Vec<_> = argvs.iter().map(|argv| case(folder, argv, "given\n")).collect();
    let found = run_together(folder, &cases);
    assert_eq!(found.len(), argvs.len());
    for (argv, found) in argvs.iter().zip(found) {
        let forked =
            Ended { code: found[0].as_i64().unwrap(), stdout: text(&found[1]), stderr: text(&found[2]) };
        assert_eq!(forked, started(folder, argv, "given\n"), "{argv:?}");
    }
}

/// Whose traceback names other frames than a started program's, so only its last line is compared.
#[test]
fn exceptions_time_outs_and_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(folder, "raises", "import os\nraise ValueError('of no use')\n");
    program(folder, "syntax", "def broken(:\n");
    program(folder, "sleeps", "import time\ntime.sleep(60)\n");
    program(folder, "writes", "open('sub/new.txt', 'a').write('more')\n");
    let file = folder.join("sub/new.txt").display().to_string();
    let mut cases: Vec<_> = ["raises", "syntax", "sleeps", "writes", "absent"]
        .map(|name| case(folder, &[&format!("./{name}")], ""))
        .into();
    cases[2]["timeout"] = json!(0.5);
    cases[3]["files"] = json!({ &file: STANDARD.encode("some, ") });
    cases[3]["after"] = json!([&file, "/does/not/exist"]);
    let found = run_together(folder, &cases);
    let last = |at: usize| text(&found[at][2]).lines().last().unwrap_or_default().to_owned();
    let code = |at: usize| found[at][0].as_i64().unwrap();
    assert_eq!((code(0), last(0).as_str()), (1, "ValueError: of no use"));
    assert_eq!((code(1), last(1).starts_with("SyntaxError")), (1, true), "{}", last(1));
    assert_eq!(code(2), 124);
    assert_eq!((code(3), text(&found[3][3][&file]).as_str()), (0, "some, more"));
    assert_eq!(found[3][3]["/does/not/exist"], Value::Null);
    assert_eq!(code(4), 127);
}

/// The case that took the time is told from those after it.
#[test]
fn cases_after_the_time_for_all_are_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(folder, "sleeps", "import time\ntime.sleep(60)\n");
    let cases = ["true", "./sleeps", "true"].map(|name| case(folder, &[name], ""));
    let found = run_within(1, folder, &cases);
    let ended: Vec<_> = found.iter().map(|found| (found[0].as_i64().unwrap(), text(&found[2]))).collect();
    let late = "not started: the time for all cases was over".to_owned();
    assert_eq!(ended, [(0, String::new()), (124, String::new()), (124, late)]);
}

#[test]
fn a_case_has_variables_and_links_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(
        folder,
        "shows",
        "import os\nprint(os.environ.get('WORD'), open('sub/near').read(), flush=True)\n",
    );
    std::fs::write(folder.join("far"), "far").unwrap();
    let near = folder.join("sub/near").display().to_string();
    let mut cases = [(); 3].map(|()| case(folder, &["./shows"], ""));
    cases[0]["links"] = json!({ &near: "../far" });
    cases[1]["env"] = json!({ "WORD": "here" });
    // A link takes the place of what is there.
    cases[2]["files"] = json!({ &near: STANDARD.encode("over"), folder.join("other").display().to_string(): STANDARD.encode("other") });
    cases[2]["links"] = json!({ &near: "../other" });
    let found = run_together(folder, &cases);
    let shown: Vec<_> = found.iter().map(|found| text(&found[1])).collect();
    assert_eq!(shown, ["None far\n", "here far\n", "None other\n"]);
}

/// Names of folders differ within a run, are the same in the next one, and other tests have others.
#[test]
fn folders_of_cases_are_repeatable_and_of_no_use_to_programs() {
    let names = |tests: &str| {
        let folder = tempfile::tempdir().unwrap();
        for file in ["subject.py", "beside.py"] {
            let shipped = format!("{}/templates/verifier/{file}", env!("CARGO_MANIFEST_DIR"));
            std::fs::copy(shipped, folder.path().join(file)).unwrap();
        }
        std::fs::write(folder.path().join("test_outputs.py"), tests).unwrap();
        let text = "import subject\nprint(subject.folder(), subject.folder())";
        let done =
            Command::new("python3").args(["-B", "-c", text]).current_dir(folder.path()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let found = names("def test_a(): pass\n");
    let (first, second) = found.trim().split_once(' ').unwrap();
    assert_ne!(first, second);
    assert!(first.starts_with("/tmp/") && first.len() == "/tmp/".len() + 16, "{first}");
    assert_eq!(names("def test_a(): pass\n"), found);
    assert_ne!(names("def test_b(): pass\n"), found);
}
