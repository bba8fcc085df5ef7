//! Tests of round trips, foreign directories, and Harbor's digests.

mod foreign;
mod round_trip;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;
use crate::model::{
    Blueprint, CheckId, Difficulty, DomainId, EngineeringKind, File, FileTree, Limits, Profile, RecipeId,
    RelPath, Seed, SubmissionSpec, Task, TaskAuthor,
};

pub(super) fn path(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}

fn tree(files: &[(&str, File)]) -> FileTree {
    let mut tree = FileTree::default();
    for (name, file) in files {
        tree.insert(path(name), file.clone());
    }
    tree
}

pub(super) fn blueprint() -> Blueprint {
    Blueprint {
        index: 7,
        seed: Seed(6_777_727_780_853_989_857),
        domain: DomainId::parse("data_science").unwrap(),
        author: TaskAuthor::Recipe(RecipeId::parse("data_science/settle-meter-readings").unwrap()),
        skills: vec!["data-cleaning".to_owned(), "aggregation".to_owned()],
        operations: vec!["data-processing".to_owned()],
        kind: EngineeringKind::BugFix,
        persona: "data-engineer".to_owned(),
        language: "python".to_owned(),
        difficulty: Difficulty::Medium,
        fixture: "sensor-readings".to_owned(),
        verifier: "recompute".to_owned(),
    }
}

pub(super) fn task() -> Task {
    Task {
        name: task_name(&blueprint()),
        title: "Settle meter readings".to_owned(),
        blueprint: blueprint(),
        base: "core".to_owned(),
        recipe_version: 3,
        canary: "termsmith-canary 01234567-89ab-cdef-0123-456789abcdef".to_owned(),
        instruction: "Repair `/app/settle.py`.\n".to_owned(),
        environment: tree(&[
            ("Dockerfile", File::text("FROM debian:bookworm-slim\n")),
            ("app/settle.py", File::script("print('no')\n")),
            ("app/raw.bin", File { bytes: vec![0, 255, 10], executable: false }),
        ]),
        solution: tree(&[("solve.sh", File::script("sed -i s/no/yes/ settle.py\n"))]),
        tests: tree(&[
            ("test.sh", File::script("exit 0\n")),
            ("test_outputs.py", File::script("def test_a(): pass\n")),
        ]),
        checks: vec![CheckId::parse("test_a").unwrap()],
        weights: [].into(),
        limits: Limits::default(),
        profile: Profile::Plain,
        submission: SubmissionSpec {
            roots: vec!["/app".to_owned()],
            programs: false,
            bring_up: None,
            shared_because: None,
        },
    }
}

/// Writes `files` into `dir`.
pub(super) fn lay_out(dir: &Path, files: &FileTree) {
    for (path, file) in files.iter() {
        let place = dir.join(path.as_str());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, &file.bytes).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(file.mode())).unwrap();
    }
}

#[test]
fn names() {
    for (domain, recipe, index, expected) in [
        ("coding", "coding/mend-parser", 0, "coding-mend-parser-0000"),
        ("data_science", "data_science/roll-up", 12, "data-science-roll-up-0012"),
        ("ai_ml", "ai_ml/x", 123_456, "ai-ml-x-123456"),
        ("a", "a/no-domain", 1, "a-no-domain-0001"),
        ("uni", "uni/Grün  2--3_", 1, "uni-gr-n-2-3-0001"),
        (
            "scientific_computing",
            "scientific_computing/a-name-that-goes-on-and-on-and-on-and-then-some",
            9,
            "scientific-computing-a-name-that-goes-on-and-on-and-on-and-0009",
        ),
    ] {
        let domain = DomainId::parse(domain).unwrap();
        let recipe = RecipeId::parse(recipe).unwrap();
        let name = task_name(&Blueprint { index, domain, author: TaskAuthor::Recipe(recipe), ..blueprint() });
        assert_eq!(name.as_str(), expected);
        assert!(name.as_str().len() <= 64);
    }
}

/// The expected values come from `Packager.compute_content_hash` of harbor 0.24.0, which was run on
/// these directories.
#[test]
fn the_digest_is_harbors() {
    let tricky = tree(&[
        ("task.toml", File::text("schema_version = \"1.4\"\n")),
        ("instruction.md", File::text("do it\n")),
        ("environment/Dockerfile", File::text("FROM debian\n")),
        // Paths are sorted as whole texts, not by their parts: `-` and `.` come before `/`.
        ("tests/a/b", File::text("1")),
        ("tests/a-b", File::text("2")),
        ("tests/a.b", File::script("3")),
        ("tests/ä", File { bytes: vec![0xff, 0x00], executable: false }),
        ("tests/empty", File::text("")),
    ]);
    let plain = tree(&[
        ("task.toml", File::text("a = 1\n")),
        ("environment/Dockerfile", File::text("FROM scratch\n")),
    ]);
    for (name, files, expected) in [
        ("tricky", tricky, "sha256:31525d9a902bebebabc93bf5b421184658f7ab3bd38e99c60a3d67f7a2a3f05e"),
        ("plain", plain, "sha256:b41d641f0a0af660bd8041bb7eff713115495ae51af27091cebe9382c1e62259"),
    ] {
        assert_eq!(crate::model::task_digest(&files).as_str(), expected, "{name}");
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path(), &files);
        // Leftover and unknown files in the directory do not change the digest.
        fs::create_dir_all(dir.path().join("tests/__pycache__")).unwrap();
        fs::write(dir.path().join("tests/__pycache__/x.pyc"), "x").unwrap();
        fs::write(dir.path().join("tests/a-b~"), "x").unwrap();
        fs::write(dir.path().join("certificate.json"), "{}").unwrap();
        let read = read_task(dir.path()).unwrap();
        assert_eq!(read.digest().as_str(), expected, "{name}, read back");
        // The build and the tests get them all the same.
        assert!(read.folder("tests").get("__pycache__/x.pyc").is_some(), "{name}");
    }
}
