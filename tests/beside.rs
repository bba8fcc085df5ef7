//! `templates/verifier/beside.py`: what programs of the subject can do to the process that runs them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::process::Command;

/// Starts a process of the programs' user that is called by the bytes of its argument, and prints whether `beside` finds it.
const SCRIPT: &str = r"
import ctypes, os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import beside
ready, told = os.pipe()
pid = os.fork()
if pid == 0:
    os.setresuid(beside.USER, beside.USER, beside.USER)
    # PR_SET_NAME of prctl(2).
    ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[2]), 0, 0, 0)
    os.write(told, b'.')
    time.sleep(100)
os.read(ready, 1)
try:
    print(beside._alive())
finally:
    os.kill(pid, signal.SIGKILL)
";

/// Runs the shell script of its argument, and prints what came of it.
const RUN: &str = r"
import os, sys
os.environ['SUBJECT_AS_ROOT'] = '1'
sys.path.insert(0, sys.argv[1])
import beside
argv = ['/bin/sh', '-c', sys.argv[2]]
print(beside.run({'argv': argv, 'env': {}, 'stdin': b'', 'cwd': '/', 'timeout': 60, 'files': {}}))
";

#[test]
fn stopped_programs_are_killed_unless_they_are_continued() {
    let check = |script: &str, expect: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier");
        let ended = Command::new("python3").args(["-I", "-B", "-c", RUN, folder, script]).output().unwrap();
        let error = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(String::from_utf8_lossy(&ended.stdout).trim(), expect, "{script}: {error}");
    };
    check("echo before; (kill -STOP $$; sleep 1000) & wait", r"(137, b'before\n', b'')");
    check("(kill -STOP $$; sleep 1; kill -CONT $$) & wait; echo after", r"(0, b'after\n', b'')");
    check("exit 3", "(3, b'', b'')");
}

#[test]
fn processes_of_any_name_are_found() {
    let check = |name: &[u8]| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier");
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let ended = Command::new("python3").args(["-I", "-B", "-c", SCRIPT, folder, &name]).output().unwrap();
        let error = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(String::from_utf8_lossy(&ended.stdout).trim(), "True", "{name}: {error}");
    };
    check(b"sleeper");
    check(b"\xff");
    check(b"a\nUid: 0");
    check(b"State:\tZ");
}
