//! A small task: write a sum, and build a program.

use termsmith::assets::Assets;
use termsmith::author::{AuthorAssets, draft, recipes};
use termsmith::domain::{Domains, load_domains, plan};
use termsmith::model::{CheckId, File, FileTree, Limits, RelPath, Seed, SubmissionSpec, Task};

/// The reference solution. The sibling of a saboteur runs it too.
pub(crate) const REFERENCE: &str = "\
awk '{ sum += $1 } END { print sum }' numbers.txt >sum.txt
mkdir -p bin /srv/shelf/box
printf '#!/bin/sh\\nawk \"{ sum += \\\\$1 } END { print sum }\"\\n' >bin/total
chmod 755 bin/total
echo kept >/srv/shelf/box/note
";

/// The reference of [`Shape::Service`]: the files, and a service.
const SERVICE_REFERENCE: &str = r#"
awk '{ sum += $1 } END { print sum }' numbers.txt >sum.txt
mkdir -p www /srv/shelf/box
echo kept >/srv/shelf/box/note
echo ready >www/index.html
cat >start.sh <<'START'
setsid python3 -m http.server --directory /app/www --bind 127.0.0.1 8470 </dev/null >/dev/null 2>&1 &
# Until it listens.
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  python3 -c "import socket; socket.create_connection(('127.0.0.1', 8470))" 2>/dev/null && break
  sleep 0.3
done
START
"#;

/// The tests reach the service only over the loopback that they share with it. They do not call the
/// guest.
const SERVICE_CHECKS: &str = "
import time
import urllib.request


def ask():
    return urllib.request.urlopen('http://127.0.0.1:8470/', timeout=5).read()


def test_service():
    assert ask() == b'ready\\n'


def test_service_goes_on():
    for _ in range(5):
        time.sleep(0.1)
        assert ask() == b'ready\\n'
";

const PROGRAM_CHECKS: &str = "

def test_program():
    for _ in range(2):
        assert subject.run(['/app/bin/total'], stdin='1\\n2\\n', timeout=5).stdout.strip() == '3'
";

const CHECKS: &str = "\
import gzip

import subject


def test_sum():
    assert subject.read_text('/app/sum.txt').strip() == '5050'


def test_note():
    assert subject.read_text('/srv/shelf/box/note') == 'kept\\n'


def test_numbers_are_as_they_were():
    assert subject.read_text('/app/numbers.txt') == subject.pristine('app/numbers.txt').read_text()


def test_tables_can_be_read():
    if subject.exists('/app/table.json'):
        table = subject.read_json('/app/table.json')
        assert table == [], f'the table is {table}'
    if subject.exists('/app/table.csv'):
        assert subject.read_csv('/app/table.csv') == []
    if subject.exists('/app/table.gz'):
        assert gzip.decompress(subject.read_bytes('/app/table.gz')) == b''
";

/// What is judged in addition to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Files,
    /// Files of the system.
    System,
    /// A program of the solver, which the tests run.
    Programs,
    /// A service of the solver, whose clients the tests are.
    Service,
}

/// A recipe's draft with another environment, tests and solution. Base image and verifier are those
/// of every task.
pub(crate) fn task(shape: Shape) -> Task {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap();
    let recipes = recipes(&assets, &specs).unwrap();
    let kit = AuthorAssets::load(&assets).unwrap();
    let declared = recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
    let blueprint = plan(&specs, &declared, Seed(1), 1, &Domains::All).blueprints.remove(0);
    let mut task =
        draft(&kit, &recipes[blueprint.recipe().unwrap()], &blueprint, &Limits::default()).unwrap().task;

    let numbers: String = (1..=100).map(|number| format!("{number}\n")).collect();
    let dockerfile = format!("{}\n\nCOPY app/ /app/\nWORKDIR /app\n", kit.base("core").unwrap().trim_end());
    task.environment = tree(&[("Dockerfile", &dockerfile), ("app/numbers.txt", &numbers)]);
    for file in ["run_checks.py", "subject.py", "beside.py", "patience.py", "test.sh"] {
        assert!(task.tests.get(file).is_some(), "{file}");
    }
    task.tests.files.retain(|path, _| !path.as_str().starts_with("pristine/"));
    task.tests.insert(path("pristine/app/numbers.txt"), File::text(numbers));
    let (reference, further, names): (_, _, &[&str]) = match shape {
        Shape::Files | Shape::System => (REFERENCE, "", &[]),
        Shape::Programs => (REFERENCE, PROGRAM_CHECKS, &["test_program"]),
        Shape::Service => (SERVICE_REFERENCE, SERVICE_CHECKS, &["test_service", "test_service_goes_on"]),
    };
    task.tests.insert(path("test_outputs.py"), File::text(format!("{CHECKS}{further}")));
    task.solution = tree(&[("solve.sh", reference)]);
    let always = ["test_sum", "test_note", "test_numbers_are_as_they_were", "test_tables_can_be_read"];
    task.checks = always.iter().chain(names).map(|check| CheckId::parse(*check).unwrap()).collect();
    // The limits are small, so that they are soon reached and several containers fit beside each
    // other.
    task.limits = Limits {
        memory_mb: 256,
        storage_mb: 128,
        pids: 200,
        agent_timeout_sec: 40,
        verifier_timeout_sec: 100,
        ..Limits::default()
    };
    let mut roots = ["/app", "/srv/shelf/box"].map(str::to_owned).to_vec();
    roots.extend((shape == Shape::System).then(|| "/etc".to_owned()));
    let bring_up = (shape == Shape::Service).then(|| "bash /app/start.sh".to_owned());
    task.submission = SubmissionSpec {
        roots,
        programs: matches!(shape, Shape::Programs | Shape::Service),
        bring_up,
        shared_because: None,
    };
    task
}

/// Files by path.
pub(crate) fn tree(files: &[(&str, &str)]) -> FileTree {
    let mut tree = FileTree::default();
    for (name, text) in files {
        tree.insert(path(name), File::text(*text));
    }
    tree
}

fn path(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}
