//! Python code that runs the solver's code, and Python code that only reads it.

use crate::lint::python_starts::starts_of_solver;
use crate::lint::starts::Roots;

/// The first lines of each module.
const HEAD: &str = r#"
import importlib.util, os, pickle, runpy, subprocess, sys
import subprocess as sp
from pathlib import Path
from subprocess import check_output
from subject import ROOT, path, probe, pristine, read_bytes, read_text, run
"#;
/// Each module runs the solver's code once.
const STARTS: [&str; 32] = [
    r#"PROGRAM = "/app/x.py"
sp.run(["python3", "/app/x.py"])"#,
    r#"PROGRAM = "/app/x.py"
sp.run([sys.executable, "-I", PROGRAM, "a"])"#,
    r#"class TestA:
    def start(self, words, **more):
        return sp.run(words, **more)
    def test_a(self):
        self.start(words=["ruby", "/app/x.rb"])"#,
    r#"sp.run(["bash", "-c", "cd /app && ./x"])"#,
    r#"sp.run(f"cd {path('app')}; python3 x.py", shell=True)"#,
    r#"os.system("sh /app/run.sh")"#,
    r#"runpy.run_path(str(ROOT / "app/x.py"))"#,
    r#"spec = importlib.util.spec_from_file_location("x", path("/app/x.py"))"#,
    r#"exec(open("/app/x.py").read())"#,
    r#"eval(read_text("/app/x.txt").strip())"#,
    r#"sp.run(["sqlite3", ":memory:", ".read /app/x.sql"])"#,
    r#"sp.run(["sqlite3", ":memory:"], input=read_text("/app/x.sql"))"#,
    r#"sp.run(["make", "-C", "/app"])"#,
    r#"check_output(["timeout", "60", "make", "all"], cwd=path("/app"))"#,
    r#"sp.run([os.path.join(os.environ["SUBJECT_ROOT"], "app", "x")])"#,
    r#"sp.Popen(["awk", "-f", "/app/x.awk", "a.txt"])"#,
    r#"def start(*words):
    return sp.run(["env", "A=1", *words], text=True)
start("perl", "/app/x.pl")"#,
    r#"def script():
    return Path("/app") / "bin" / "x"
sp.run([script()])"#,
    r#"for name in ("/app/a.sh", "/app/b.sh"):
    sp.run(["bash", name])"#,
    r#"sp.run(["python3", "-m", "pytest", "/app/tests"])"#,
    r#"sp.run(["python3", "-c", "import x"], cwd="/app")"#,
    r#"sp.run(["python3", "-c", "exec(open('/app/x.py').read())"])"#,
    r#"sys.path.insert(0, "/app")"#,
    r#"sys.path += [str(path("/app/lib"))]"#,
    r#"sp.run(["python3", "-m", "x"], env={**os.environ, "PYTHONPATH": "/app/lib"})"#,
    r#"sp.run("cat /app/x.sh | bash", shell=True)"#,
    r#"sp.run(["find", "/app", "-name", "*.sh", "-exec", "sh", "{}", ";"])"#,
    r#"os.execv("/usr/bin/python3", ["python3", "/app/x.py"])"#,
    r#"def test_a():
    os.chdir("/app")
    sp.run(["./x"])"#,
    r#"with open(path("/app/x.sh")) as text:
    sp.run(["bash"], stdin=text)"#,
    r#"sp.run(["go", "run", "."], cwd="/app")"#,
    r#"sp.run(["node", "--no-warnings", "/app/x.js"])"#,
];
/// Each module only reads the solver's files, or starts them through subject.py.
const READS: [&str; 34] = [
    r#"run(["python3", "/app/x.py"])"#,
    r#"run(["bash", "-c", "cd /app && ./x"], cwd="/app")"#,
    r#"probe("import subprocess\nsubprocess.run(['python3', '/app/x.py'])\nexec(open('/app/x.py').read())", {})"#,
    r#"PROBE = """
subprocess.run(["make", "-C", "/app"])
""""#,
    r#"subprocess.run(["git", "-C", "/app/repo", "log"])"#,
    r#"subprocess.run(["git", "log"], cwd=path("/app/repo"))"#,
    r#"subprocess.run(["sqlite3", str(path("/app/x.db")), "select 1"])"#,
    r#"subprocess.run(["jq", ".", "/app/x.json"])"#,
    r#"subprocess.run(["bash", "-c", "cat /app/x | sort | sha256sum; openssl x509 -in /app/x.pem"])"#,
    r#"os.system("cd /app && sha256sum -c /tests/sums")"#,
    r#"check_output(["gawk", "{ print $1 }", "/app/x.txt"])"#,
    r#"check_output(["sed", "-n", "1p", "/app/x.txt"])"#,
    r#"subprocess.run(["python3", "/tests/check.py", "/app/x.json"])"#,
    r#"subprocess.run([sys.executable, "-I", "-c", "import json, sys; json.load(open('/app/x.json'))"])"#,
    r#"subprocess.run(["/bin/bash", str(pristine("make.sh")), "/app/x"])"#,
    r#"subprocess.run(["bash", "-n", path("/app/x.sh")])"#,
    r#"subprocess.run(["python3", "-I", "-m", "py_compile", "/app/x.py"])"#,
    r#"subprocess.run(["node", "--check", "/app/x.js"])"#,
    r#"subprocess.run(["perl", "-ne", "print", "/app/x.txt"])"#,
    r#"subprocess.run(["gcc", "-fsyntax-only", "/app/x.c"])"#,
    r#"subprocess.run(["tar", "-tf", "/app/x.tar"], cwd="/app")"#,
    r#"subprocess.run(["xz", "-dc"], input=read_bytes("/app/x.xz"))"#,
    r#"subprocess.run(["python3", "/tests/x.py"], input=read_text("/app/x.txt"))"#,
    r#"subprocess.run(["bash", "/apps/x.sh"])"#,
    r#"compile(read_text("/app/x.py"), "x.py", "exec")"#,
    r#"exec(pristine("x.py").read_text())"#,
    r#"eval("1 + 1")"#,
    r#"old = read_text("/app/x.txt")"#,
    r#"sys.path.insert(0, "/tests")"#,
    r#"def start(place):
    return subprocess.run([f"{place}/x"])
start("/tmp/old")"#,
    r#"def test_a(tmp_path):
    place = tmp_path / "app" / "x.py"
    subprocess.run(["python3", place])
    subprocess.run(["go", "vet", "./..."], cwd="/app")
    subprocess.run(["find", "/app", "-type", "f"])"#,
    r#"# subprocess.run(["python3", "/app/x.py"])"#,
    r#"subprocess.run(["sqlite3", "-safe", ":memory:"], input=read_text("/app/x.sql"))"#,
    r#"os.path.join("/app", "x.py")"#,
];

#[test]
fn code_of_the_solver_is_told_from_data() {
    let check = |text: &str, expect: usize| {
        let text = format!("{HEAD}{text}\n");
        let found = starts_of_solver(&text, &Roots(vec!["/app"]), 0);
        assert_eq!(found.len(), expect, "{text}: {found:?}");
    };
    STARTS.iter().for_each(|text| check(text, 1));
    READS.iter().for_each(|text| check(text, 0));
}

#[test]
fn hostile_modules_are_read_soon() {
    for text in [
        format!("x = {}1{}", "[".repeat(20_000), "]".repeat(20_000)),
        format!("a = \"x\"\n{}", "a = a + a + a\n".repeat(2_000)),
        format!("{}subprocess.run(a)", "a = [*a, *a, \"/app\"]\n".repeat(500)),
        format!("def f(x):\n    return f(f(x))\n{}", "f(\"/app\")\n".repeat(2_000)),
    ] {
        let started = std::time::Instant::now();
        starts_of_solver(&text, &Roots(vec!["/app"]), 0);
        assert!(started.elapsed().as_secs() < 30, "{}", &text[..40]);
    }
}
