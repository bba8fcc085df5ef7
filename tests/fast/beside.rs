//! `templates/verifier/beside.py` runs the solver's programs. The tests check that these cannot
//! harm the process that runs them.

use std::process::Command;

/// Starts a process of the programs' user. Its name is the bytes of the argument. Prints whether
/// `beside` finds it.
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

/// Runs the shell script in its argument, and prints the result.
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

/// Runs the Python text in its argument.
const TEXT: &str = r"
import os, sys
os.environ['SUBJECT_AS_ROOT'] = '1'
sys.path.insert(0, sys.argv[1])
import beside, patience
request = {'env': {}, 'stdin': b'', 'cwd': '/', 'files': {}}
def run(script, timeout):
    return beside.run({'argv': ['/bin/sh', '-c', script], 'timeout': timeout, **request})[0]
def slow(factor):
    patience._slowness = lambda: factor
exec(sys.argv[2])
";

#[test]
fn a_busy_machine_shortens_no_limit() {
    let check = |text: &str, expect: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier");
        let ended = Command::new("python3").args(["-I", "-B", "-c", TEXT, folder, text]).output().unwrap();
        let error = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(String::from_utf8_lossy(&ended.stdout).trim(), expect, "{text}: {error}");
    };
    check("slow(1); print(run('sleep 1; exit 3', 0.4))", "124");
    check("slow(5); print(run('sleep 1; exit 3', 0.4))", "3");
    check("slow(5); print(run('exec >&- 2>&-; sleep 1; exit 3', 0.4))", "3");
    // A program may end between two looks at it. Then it was not stopped.
    check(
        "import subprocess\nchild = subprocess.Popen(['true'])\n\
         os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)\nprint(beside._is_stopped(child))",
        "False",
    );
    check("slow(1); print(run('exec >&- 2>&-; sleep 9; exit 3', 0.4))", "124");
    // Programs that hang have used up their time.
    check(
        "slow(1); beside.MAX_LOST = 1; print([run('sleep 3', 2) for _ in range(2)], beside._lost() < 3.5)",
        "[124, 124] True",
    );
    check("slow(1); print(run('sleep 9', 0.2), beside.took_the_time(99))", "124 True");
    check(
        "slow(1); print(run('sleep 1', 9), beside.took_the_time(99), beside.took_the_time(1))",
        "0 False True",
    );
    check("slow(5); print(run('sleep 1', 9), beside.took_the_time(1))", "0 False");
    // A pause of the container takes no time from anyone.
    check(
        "import time; slow(1); limit = patience.Limit(1.2); time.sleep(1.5); print(limit.met(), round(limit.had, 1))",
        "False 1.0",
    );
    check(
        "slow(1); whole = patience.Limit(0.5); print([patience.run_within(patience.Limit(9, whole), ['sleep', n]).returncode for n in ('0.2', '9', '9')])",
        "[0, 124, 124]",
    );
    check("print(patience.run_within(patience.Limit(9), ['cat'], b'in').stdout)", "b'in'");
    check(
        "slow(1)\npid = os.fork()\nif pid: print(patience.wait_within(patience.Limit(0.2), pid))\nelse: import time; time.sleep(9)",
        "124",
    );
    check(
        "pid = os.fork()\nif pid: print(patience.wait_within(patience.Limit(9), pid))\nelse: os._exit(7)",
        "7",
    );
}

/// Copies files and prints the copy's inodes: a letter for each, in the order of the names.
const COPY: &str = r"
import os, sys, tempfile
os.environ['SUBJECT_AS_ROOT'] = '1'
sys.path.insert(0, sys.argv[1])
import beside
with tempfile.TemporaryDirectory() as place:
    source, target = os.path.join(place, 'source'), os.path.join(place, 'target')
    os.makedirs(os.path.join(source, 'sub'))
    for names in sys.argv[2].split():
        first, *others = [os.path.join(source, name) for name in names.split(',')]
        with open(first, 'w') as file:
            file.write(names.ljust(1000))
        for other in others:
            os.link(first, other)
    left = [int(sys.argv[3]), 100]
    try:
        beside._copy(source, target, left, 0, {})
    except beside.TooLarge:
        sys.exit('too large')
    inodes = []
    for folder, _, names in sorted(os.walk(target)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            original = os.path.join(source, os.path.relpath(path, target))
            assert open(path).read() == open(original).read(), path
            inode = os.stat(path).st_ino
            assert inode != os.stat(original).st_ino, path
            if inode not in inodes:
                inodes.append(inode)
            print('abcdef'[inodes.index(inode)], end='')
    print('', left[0])
";

#[test]
fn a_file_with_several_names_is_copied_once() {
    let check = |files: &str, most: &str, expect: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier");
        let ended =
            Command::new("python3").args(["-I", "-B", "-c", COPY, folder, files, most]).output().unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&said).trim(), expect, "{files} {most}");
    };
    check("1 2", "2000", "ab 0");
    check("1 2", "1999", "too large");
    check("1,2,sub/3", "1000", "aaa 0");
    check("1,2,sub/3", "999", "too large");
    check("1,sub/2 3,sub/4", "2500", "abab 500");
}

/// The kernel counts processes by user over all containers. So a sibling with 512 of them must not
/// have the user of another container.
#[test]
fn the_programs_user_is_another_one_each_time() {
    let script = "
ids = [beside._free_ids() for _ in range(99)]
used = [id for pair in ids for id in pair]
print(len(set(used)) == 198, min(used) >= 1 << 15, max(used) < 1 << 31, beside.KILLER - beside.USER)
";
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/verifier");
    let ended = Command::new("python3").args(["-I", "-B", "-c", TEXT, folder, script]).output().unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said).trim(), "True True True 1");
}
