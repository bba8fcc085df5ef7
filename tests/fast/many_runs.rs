//! `templates/verifier/many_runs.py` forks programs. Each must end as if it had been started.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
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

const PROGRAMS: [(&str, &str); 44] = [
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
    // What the interpreter does at its end.
    (
        "thread",
        "import threading, time\ndef work():\n    time.sleep(0.1)\n    print('late')\nthreading.Thread(target=work).start()\nprint('soon')\n",
    ),
    (
        "executor",
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(2).submit(lambda: (time.sleep(0.1), print('done')))\nraise SystemExit(4)\n",
    ),
    (
        "daemon",
        "import threading, time\ndef work():\n    while True:\n        time.sleep(0.01)\nthreading.Thread(target=work, daemon=True).start()\nprint('soon')\n",
    ),
    (
        "open-file",
        "import sys\nif len(sys.argv) < 4:\n    file = open('left', 'w')\n    file.write('written late')\n    def use(): return file\nelse:\n    print(open('left').read())\n",
    ),
    (
        "deleted",
        "class Thing:\n    def __del__(self): print('deleted', Thing.__name__, len)\nthing = Thing()\nthing.it = thing\n",
    ),
    (
        "finalized",
        "import weakref\nclass Thing: pass\nthing = Thing()\nweakref.finalize(thing, print, 'final')\n",
    ),
    (
        "temporary",
        "import os, tempfile\nfolder = tempfile.TemporaryDirectory()\nprint(os.path.isdir(folder.name))\n",
    ),
    ("closed", "import sys\nprint('text')\nsys.stdout.close()\n"),
    ("replaced", "import io, sys\nprint('first')\nsys.stdout = io.StringIO()\nprint('hidden')\n"),
    ("fails-at-exit", "import atexit\natexit.register(lambda: 1 / 0)\natexit.register(print, 'later')\n"),
    ("file-at-exit", "import atexit\natexit.register(lambda: print(__file__))\n"),
    ("file-at-exit-by-status", "import atexit, sys\natexit.register(lambda: print(__file__))\nsys.exit(2)\n"),
    // Statuses and exceptions.
    ("huge-status", "raise SystemExit(10 ** 30)\n"),
    ("negative-status", "raise SystemExit(-1)\n"),
    ("no-message", "import sys\nsys.exit('')\n"),
    (
        "raises",
        "import os\ndef use():\n    raise ValueError('of no use')\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    use()\n",
    ),
    (
        "own-hook",
        "import sys\ndef hook(kind, value, trace):\n    print('failed:', value)\n    sys.exit(9)\nsys.excepthook = hook\n1 / 0\n",
    ),
    ("interrupted", "raise KeyboardInterrupt\n"),
    ("syntax", "def broken(:\n"),
    ("warns", "assert (1, 'always true')\n"),
    ("deprecated", "import warnings\nwarnings.warn('old', DeprecationWarning)\n"),
    // What a program finds when it begins.
    ("names", "print(sorted(globals()), type(__loader__).__name__, __spec__, __doc__, __builtins__)\n"),
    ("documented", "'About.'\nprint(__doc__)\n"),
    ("modules", "import json, sys\nprint(sorted(name for name in sys.modules if '.' in name))\n"),
    ("submodule", "import xml\nprint(xml.etree)\n"),
    ("submodule-of-another", "import concurrent\nprint(concurrent.futures)\n"),
    ("collector", "import gc\nprint(gc.isenabled())\n"),
    ("descriptor", "import os\nprint(os.open('/dev/null', os.O_RDONLY))\n"),
    (
        "streams",
        "import sys\nprint(sys.stdin.seekable(), sys.stdout.seekable(), sys.stdout.line_buffering)\n",
    ),
    (
        "streams-by-name",
        "import subprocess\nprint('one', flush=True)\nsubprocess.run('echo two > /dev/stdout', shell=True)\nprint('three')\n",
    ),
    ("carriage-return", "print(1)\n"),
    ("path", "import sys\nsys.path.insert(0, 'elsewhere')\nimport calendar\nprint(calendar.NAME)\n"),
];

fn first_line(name: &str) -> &'static str {
    match name {
        "no-python" => "#!/bin/sh\n",
        "hash-bang-with-option" => "#!/usr/bin/python3 -O\n",
        "carriage-return" => "#!/usr/bin/env python3\r\n",
        _ => "#!/usr/bin/env python3\n",
    }
}

fn program(folder: &Path, name: &str, text: &str) {
    let place = folder.join(name);
    std::fs::write(&place, format!("{}{text}", first_line(name))).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Starts a program with the variables that a solver's programs have. Some other variables keep
/// `many_runs.py` from forking.
fn command(folder: &Path, name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).env_clear().env("LANG", "C.UTF-8");
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command
}

fn started(folder: &Path, argv: &[&str], stdin: &str) -> Ended {
    let mut child = command(folder, argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Most programs do not read their input, and may have ended.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let done = child.wait_with_output().unwrap();
    Ended {
        // Python reports a signal as a negative number.
        code: done.status.code().or(done.status.signal().map(|signal| -signal)).unwrap().into(),
        stdout: String::from_utf8(done.stdout).unwrap(),
        stderr: String::from_utf8(done.stderr).unwrap(),
    }
}

fn run_together(folder: &Path, cases: &[Value]) -> Vec<Value> {
    run_within(30, folder, cases)
}

/// Runs the cases. All together have `seconds`.
fn run_within(seconds: u32, folder: &Path, cases: &[Value]) -> Vec<Value> {
    // `subject.probe` starts it in the same way.
    let texts = ["patience.py", "many_runs.py"]
        .map(|name| fs::read(format!("{}/templates/verifier/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap());
    let script = tempfile::NamedTempFile::new().unwrap();
    fs::write(script.path(), texts.concat()).unwrap();
    let mut child = command(folder, "python3")
        .args(["-I", "-S", "-B"])
        .arg(script.path())
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

/// Decompresses and parses what it printed.
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
    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    std::fs::write(folder.join("elsewhere/calendar.py"), "NAME = 'own'\n").unwrap();
    let names = PROGRAMS.map(|(name, _)| format!("./{name}"));
    for (name, text) in PROGRAMS {
        program(folder, name, text);
    }
    let mut argvs: Vec<Vec<&str>> = names.iter().map(|name| vec![name.as_str(), "a", "b c"]).collect();
    argvs.push(vec!["python3", "words", "x"]);
    argvs.push(vec!["python3", "-m", "package", "x"]);
    argvs.push(vec!["python3", "-m", "absent"]);
    argvs.push(vec!["python3", "-c", "print(1)"]);
    argvs.push(vec!["python3", "package"]);
    argvs.push(vec!["./open-file", "what", "was", "written"]);
    let cases: Vec<_> = argvs.iter().map(|argv| case(folder, argv, "given\n")).collect();
    let found = run_together(folder, &cases);
    assert_eq!(found.len(), argvs.len());
    // Addresses of objects differ from run to run.
    let address = regex::Regex::new("at 0x[0-9a-f]+").unwrap();
    let without_addresses = |text: &str| address.replace_all(text, "at 0x").into_owned();
    for (argv, found) in argvs.iter().zip(found) {
        let forked = Ended {
            code: found[0].as_i64().unwrap(),
            stdout: text(&found[1]),
            stderr: without_addresses(&text(&found[2])),
        };
        let started = started(folder, argv, "given\n");
        let started = Ended { stderr: without_addresses(&started.stderr), ..started };
        assert_eq!(forked, started, "{argv:?}");
    }
}

/// A program is forked, which shows in `sys.flags.isolated`. The exception is a program that could
/// find other modules than if it were started.
#[test]
fn programs_that_may_find_other_modules_are_started() {
    const SHOWS: &str = "import sys\nprint(sys.flags.isolated)\n";
    let check = |argv: &[&str], files: &[(&str, &str)], expect: &str| {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, text) in files {
            std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            program(folder, name, text);
        }
        let found = run_together(folder, &[case(folder, argv, "")]);
        assert_eq!(text(&found[0][1]), expect, "{argv:?} {files:?}: {}", text(&found[0][2]));
    };
    let imports = |what: &str| format!("{SHOWS}import {what}\nprint(getattr({what}, 'OWN', 'shared'))\n");
    let (calendar, select, json) = (imports("calendar"), imports("select"), imports("json"));
    let beside = ("calendar.py", "OWN = 'own'");
    check(&["./tool"], &[("tool", SHOWS)], "1\n");
    check(&["./tool"], &[("tool", &calendar)], "1\nshared\n");
    check(&["./tool"], &[("tool", &calendar), beside], "0\nown\n");
    check(&["python3", "tool"], &[("tool", &json), ("json.py", "OWN = 'own'")], "0\nown\n");
    check(&["./tool"], &[("tool", &select), ("select/__init__.py", "OWN = 'own'")], "0\nown\n");
    // None of these files is a module that would be imported.
    check(&["./tool"], &[("tool", &json), ("json/data.txt", "")], "1\nshared\n");
    check(&["./tool"], &[("tool", &calendar), ("calendar.csv", ""), ("calendar.old.py", "")], "1\nshared\n");
    check(&["./bin/tool"], &[("bin/tool", &calendar), beside], "1\nshared\n");
    check(&["python3", "-m", "kit"], &[("kit/__main__.py", &calendar)], "1\nshared\n");
    check(&["python3", "-m", "kit"], &[("kit/__main__.py", &calendar), beside], "0\nown\n");
    // The program's own modules may search other folders too, whenever they are imported.
    let searches = ("helper.py", "from sys import path\npath.insert(0, 'elsewhere')\n");
    let late = format!("def use():\n    import helper\nuse()\n{calendar}");
    check(&["./tool"], &[("tool", &late), searches, ("elsewhere/calendar.py", "OWN = 'own'")], "0\nown\n");
    // A submodule is there only if the program itself imports it, not if another program does.
    let tree = "import sys, xml\nprint(sys.flags.isolated, hasattr(xml, 'etree'))\n";
    let import = "from xml import etree\n";
    check(&["./tool"], &[("tool", tree), ("other.py", import)], "1 False\n");
    check(&["./tool"], &[("tool", &format!("import helper\n{tree}")), ("helper.py", import)], "1 True\n");
}

/// More programs than one parent runs at once.
#[test]
fn many_programs_are_forked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let names: Vec<_> = (0..12).map(|number| format!("./tool-{number}")).collect();
    for name in &names {
        program(folder, name, "import sys\nprint(sys.argv[0], sys.flags.isolated)\n");
    }
    let cases: Vec<_> = names.iter().chain(&names).map(|name| case(folder, &[name.as_str()], "")).collect();
    let shown: Vec<_> = run_together(folder, &cases).iter().map(|found| text(&found[1])).collect();
    let expect: Vec<_> = names.iter().chain(&names).map(|name| format!("{name} 1\n")).collect();
    assert_eq!(shown, expect);
}

/// A program that does not read its input does not delay the others, nor does one that leaves a
/// process behind.
#[test]
fn streams_hold_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(folder, "reads", "import sys\nprint(len(sys.stdin.read()))\n");
    program(folder, "reads-nothing", "print('done')\n");
    program(folder, "leaves", "import subprocess\nsubprocess.Popen(['sleep', '20'])\nprint('left')\n");
    program(
        folder,
        "writes",
        "import sys\nprint('x' * 1_000_000, end='')\nprint('y' * 1_000_000, end='', file=sys.stderr)\n",
    );
    let long = "x".repeat(3_000_000);
    let cases =
        ["./reads", "./reads-nothing", "./leaves", "./writes"].map(|name| case(folder, &[name], &long));
    let found = run_together(folder, &cases);
    let shown: Vec<_> = found.iter().take(3).map(|found| text(&found[1])).collect();
    assert_eq!(shown, ["3000000\n", "done\n", "left\n"]);
    assert_eq!((text(&found[3][1]).len(), text(&found[3][2]).len()), (1_000_000, 1_000_000));
}

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
    cases.push(case(folder, &["python3", "absent"], ""));
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
    assert_eq!((code(4), code(5)), (127, 2));
}

/// The case that took the time is told from later ones.
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
    // A link replaces the file at its path.
    cases[2]["files"] = json!({ &near: STANDARD.encode("over"), folder.join("other").display().to_string(): STANDARD.encode("other") });
    cases[2]["links"] = json!({ &near: "../other" });
    let found = run_together(folder, &cases);
    let shown: Vec<_> = found.iter().map(|found| text(&found[1])).collect();
    assert_eq!(shown, ["None far\n", "here far\n", "None other\n"]);
}

/// Names of folders differ within a run. The next run has the same names. Other tests have others.
#[test]
fn folders_of_cases_are_repeatable_and_of_no_use_to_programs() {
    let names = |tests: &str| {
        let folder = tempfile::tempdir().unwrap();
        for file in ["subject.py", "beside.py", "patience.py"] {
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
