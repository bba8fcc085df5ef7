//! A small task of ours: a sum to be written down, and a program to be made.

use termsmith::assets::Assets;
use termsmith::author::{Kit, draft, recipes};
use termsmith::domain::{Domains, load_domains, plan};
use termsmith::model::{CheckId, File, FileTree, Limits, RelPath, Seed, SubjectSpec, Task};

/// The reference: what a sibling of every saboteur does.
pub(crate) const REFERENCE: &str = "\
awk '{ sum += $1 } END { print sum }' numbers.txt >sum.txt
mkdir -p bin /srv/shelf/box
printf '#!/bin/sh\\nawk \"{ sum += \\\\$1 } END { print sum }\"\\n' >bin/total
chmod 755 bin/total
echo kept >/srv/shelf/box/note
";

const CHECKS: &str = "\
import subject


def test_sum():
    assert subject.read_text('/app/sum.txt').strip() == '5050'


def test_note():
    assert subject.read_text('/srv/shelf/box/note') == 'kept\\n'


def test_numbers_are_as_they_were():
    assert subject.read_text('/app/numbers.txt') == subject.pristine('app/numbers.txt').read_text()


def test_program():
    if subject.RELAY:
        assert subject.run(['/app/bin/total'], stdin='1\\n2\\n', timeout=5).stdout.strip() == '3'
";

/// A draft of a recipe with its environment, tests and solution replaced; base image and verifier are as with any task.
pub(crate) fn task(programs: bool) -> Task {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap();
    let recipes = recipes(&assets, &specs).unwrap();
    let kit = Kit::load(&assets).unwrap();
    let declared = recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
    let blueprint = plan(&specs, &declared, Seed(1), 1, &Domains::All).blueprints.remove(0);
    let mut task = draft(&kit, &recipes[&blueprint.recipe], &blueprint, &Limits::default()).unwrap().task;

    let numbers: String = (1..=100).map(|number| format!("{number}\n")).collect();
    let dockerfile = format!("{}\n\nCOPY app/ /app/\nWORKDIR /app\n", kit.base("core").unwrap().trim_end());
    task.environment = tree(&[("Dockerfile", &dockerfile), ("app/numbers.txt", &numbers)]);
    for file in ["run_checks.py", "subject.py", "test.sh"] {
        assert!(task.tests.get(file).is_some(), "{file}");
    }
    task.tests.0.retain(|path, _| !path.as_str().starts_with("pristine/"));
    task.tests.insert(path("pristine/app/numbers.txt"), File::text(numbers));
    task.tests.insert(path("test_outputs.py"), File::text(CHECKS));
    task.solution = tree(&[("solve.sh", REFERENCE)]);
    task.checks = ["test_sum", "test_note", "test_numbers_are_as_they_were", "test_program"]
        .map(|check| CheckId::parse(check).unwrap())
        .to_vec();
    // Small, so that they are soon reached and several containers fit beside each other.
    task.limits = Limits {
        memory_mb: 256,
        storage_mb: 128,
        pids: 200,
        agent_timeout_sec: 40,
        verifier_timeout_sec: 20,
        ..Limits::default()
    };
    let roots = ["/app", "/srv/shelf/box"].map(str::to_owned).to_vec();
    task.subject = SubjectSpec { roots, programs, bring_up: None };
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
