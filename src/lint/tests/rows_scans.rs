//! Rows of the scans in attack files.

use super::{Row, row};

const TEST: &str = "tests/test_outputs.py";
const SCRIPT: &str = "tests/test.sh";
const DOCKERFILE: &str = "environment/Dockerfile";

pub(super) const ROWS: &[Row] = &[
    row("D-12-copied-tests", &[(DOCKERFILE, "FROM debian\nCOPY app/ /app/\n")], &[]),
    row(
        "D-12-copied-tests",
        &[(DOCKERFILE, "FROM debian\nCOPY golden.json /app/\n"), ("environment/golden.json", "{}")],
        &[
            "environment/Dockerfile:2 the image receives what only the verifier may know",
            "environment/golden.json:1 a file of the build context is called like an answer",
        ],
    ),
    row("D-15-image-checker", &[(SCRIPT, "python3 /tests/check.py\nsha256sum -c /tests/sums\n")], &[]),
    row(
        "D-15-image-checker",
        &[(SCRIPT, "#!/bin/bash\npython3 /app/verify.py\n")],
        &["tests/test.sh:2 the verifier runs a checker that the solver can write"],
    ),
    row("D-23-source-grep", &[(TEST, "def test_a():\n    assert result == 'source'\n")], &[]),
    row(
        "D-23-source-grep",
        &[
            (TEST, "def test_a():\n    assert 'sorted(' in source\n"),
            (SCRIPT, "grep -q sorted /app/main.py\n"),
        ],
        &[
            "tests/test_outputs.py:2 a word in the source decides",
            "tests/test.sh:1 a word in the source decides",
        ],
    ),
    row("D-26-whole-history", &[(DOCKERFILE, "FROM debian\nCOPY app/ /app/\nRUN git init /app\n")], &[]),
    row(
        "D-26-whole-history",
        &[(DOCKERFILE, "FROM debian\nCOPY app/.git /app/.git\n")],
        &["environment/Dockerfile:2 a .git directory is copied into the image"],
    ),
    row("D-28-left-overs", &[("environment/app/a.py", "x = 1\n")], &[]),
    row(
        "D-28-left-overs",
        &[("environment/app/a.py.orig", "x = 1\n"), ("environment/app/.cache/x", "x")],
        &[
            "environment/app/a.py.orig:1 a left-over that may hold the answer",
            "environment/app/.cache/x:1 a cache directory in the build context",
        ],
    ),
    row("D-31-compose", &[("environment/docker-compose.yaml", "services:\n  main:\n    build: .\n")], &[]),
    row(
        "D-31-compose",
        &[("environment/docker-compose.yaml", "services:\n  main:\n    build: .\n    privileged: true\n")],
        &["environment/docker-compose.yaml:4 the task asks for privileges or a piece of the host"],
    ),
    row("D-34-operator-files", &[("environment/app/README.md", "x\n")], &[]),
    row(
        "D-34-operator-files",
        &[("environment/AGENTS.md", "x\n")],
        &["environment/AGENTS.md:1 a file that agents read by themselves"],
    ),
];
