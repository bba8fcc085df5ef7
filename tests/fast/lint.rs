//! The command line of `termsmith lint`.

use crate::support::bench::Bench;

const TOML: &str = "schema_version = \"1.4\"\n[task]\nname = \"org/a\"\n[agent]\ntimeout_sec = 60\n[verifier]\nenvironment_mode = \"separate\"\n";

fn task(bench: &Bench, place: &str, dockerfile: &str) {
    bench.write(&format!("{place}/task.toml"), TOML);
    bench.write(&format!("{place}/instruction.md"), "<!-- canary -->\nWrite `/app/a`.\n");
    bench.write(&format!("{place}/environment/Dockerfile"), dockerfile);
    bench.write(&format!("{place}/tests/test.sh"), "# canary\necho 1 > /logs/verifier/reward.txt\n");
}

#[test]
fn tasks_are_found_and_judged() {
    let bench = Bench::new();
    task(&bench, "tasks/good/a", "FROM debian\n");
    bench.run(&["lint", "tasks"]).ok().says("1 task: 0 errors, 0 warnings, 1 note, 0 suppressed");
    bench.run(&["lint", "tasks/good/a"]).ok().says("tasks/good/a/task.toml: note[task-fields]");
    task(&bench, "tasks/bad/a", "FROM debian\nCOPY none /\n");
    bench
        .run(&["lint", "tasks"])
        .ends(1)
        .says("tasks/bad/a/environment/Dockerfile:2: error[copy-source] COPY of `none`, which is not there")
        .says("2 tasks: 1 error");
    bench.run(&["lint", "tasks/bad", "tasks/good"]).ends(1).says("2 tasks");

    let json = bench.run(&["lint", "tasks", "--format", "json"]).ends(1);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&report["version"], &report["counts"]["errors"]), (&1.into(), &1.into()));
    let same = bench.run(&["--json", "lint", "tasks"]).ends(1);
    assert_eq!(json.out, same.out);
    let sarif = bench.run(&["lint", "tasks", "--format", "sarif"]).ends(1);
    let log: serde_json::Value = serde_json::from_str(&sarif.out).unwrap();
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "copy-source");
}

#[test]
fn an_excuse_with_a_reason_counts() {
    let bench = Bench::new();
    task(&bench, "a", "FROM debian\nCOPY none /\n");
    let excuse = "[metadata.termsmith.lint]\nignore = { copy-source = \"made by a hook\" }\n";
    bench.write("a/task.toml", &format!("{TOML}{excuse}"));
    bench
        .run(&["lint", "a"])
        .ok()
        .says("suppressed[copy-source]")
        .says("reason: made by a hook")
        .says("1 suppressed");
}

#[test]
fn rules_are_explained() {
    let bench = Bench::new();
    bench.run(&["lint", "--rules"]).ok().says("shared-verifier").says("opt-in     root-agent");
    bench
        .run(&["lint", "--explain", "no-canary"])
        .ok()
        .says("in tasks of termsmith's own: error")
        .says("Source:");
    bench.run(&["lint", "--explain", "D-25-eval-of-agent-data"]).ok().says("Attack D-25");
    bench.run(&["lint", "--explain", "none"]).ends(2).says("no lint rule `none`").says("hint:");
    bench.run(&["lint"]).ends(2);
    bench.run(&["lint", "none"]).ends(65).says("`none` does not exist");
    bench.write("empty/x", "");
    bench.run(&["lint", "empty"]).ends(65).says("`empty` has no task directory");
    bench.write("templates/lint/x.toml", "severity = 1");
    bench
        .run(&["--templates", "templates", "lint", "--rules"])
        .ends(65)
        .says("lint rule `templates/lint/x.toml`");
}
