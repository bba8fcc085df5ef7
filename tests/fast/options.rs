//! Options that a command cannot follow are refused. Inputs are checked before any engine or
//! endpoint is used.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use termsmith::assets::Assets;
use termsmith::domain::{Domains, plan};
use termsmith::harbor::Publication;
use termsmith::model::{Judging, Rates, Seed, task_digest};
use termsmith::pipeline::{PipelineAssets, UNIT, UnitRecord, hash_draft};
use termsmith::screen::SCREEN;
use termsmith::store::{BUILD_VARIABLE, RunDir, Store, build_id, key};
use termsmith::verify::TRIAL;

use crate::support::bench::{Bench, Ran, copy};

const USAGE: i32 = 2;
const BAD_INPUT: i32 = 65;
const NO_ENGINE: i32 = 69;

const ENDPOINT: [&str; 4] = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];

/// Settings with a model of every role.
fn settings() -> String {
    let mut text = "version = 1\n[endpoints.e]\nbase_url = \"http://127.0.0.1:9/v1\"\n".to_owned();
    text.push_str("usd_per_1m_input_tokens = 1.0\nusd_per_1m_output_tokens = 2.0\n");
    for role in ["expert", "judge", "adversary", "sampler", "author", "solver", "weak"] {
        text.push_str(&format!("[roles.{role}]\nendpoint = \"e\"\nmodel = \"of-{role}\"\nmax_tokens = 64\n"));
    }
    text
}

/// A task made elsewhere, and a run folder.
fn with_inputs(bench: &Bench) {
    bench.write("task/task.toml", "version = \"1.0\"\n");
    bench.write("session.txt", "$ make\n$ ./a > b\n$ sort b > c\n$ rm b\n");
    bench.write("run/run.json", r#"{"format":1,"tool":"0.1.0"}"#);
}

/// Runs `args` with no engine in reach. Checks status and text.
#[track_caller]
fn check(bench: &Bench, args: &[&str], code: i32, parts: &[&str]) {
    let output = bench.command(args).env("DOCKER_HOST", "unix:///nowhere/docker.sock").output().unwrap();
    let mut ran = Ran::new(args, &output).ends(code);
    for part in parts {
        ran = ran.says(part);
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

#[test]
fn an_engine_has_a_known_name() {
    let bench = Bench::new();
    for args in [&["--engine", "kubernetes", "clean"][..], &["clean", "--engine", "kubernetes"]] {
        check(&bench, args, USAGE, &["--engine", "possible values: docker"]);
    }
    for args in [&["clean"][..], &["--engine", "docker", "clean"], &["clean", "--engine", "docker"]] {
        check(&bench, args, NO_ENGINE, &["/nowhere/docker.sock"]);
    }
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let bench = Bench::new();
    with_inputs(&bench);
    let refused = |args: &[&str], parts: &[&str]| check(&bench, args, USAGE, parts);
    // Only agents' messages can have log-probabilities.
    for args in
        [&["judge", "--out", "run"][..], &["screen", "task"], &["run"], &["import", "cast", "session.txt"]]
    {
        refused(&[args, &["--logprobs"]].concat(), &["--logprobs"]);
    }
    for scaffold in ["oracle", "nop", "scripted"] {
        for option in [&["--adversary", "blind"][..], &["--arm", "plan"], &["--summarise"], &["--logprobs"]] {
            let args = [&["rollout", "task", "--scaffold", scaffold][..], option].concat();
            refused(&args, &[option[0], scaffold, "hint: leave it out"]);
        }
    }
    // A model is named, and nothing calls it.
    refused(&["run", "--model", "m"], &["no model is called", "--author model"]);
    refused(&[&["run"][..], &ENDPOINT].concat(), &["no model is called"]);
    refused(&["screen", "task", "--model", "m"], &["no model is called", "--blind K"]);
    // One name for the models of several roles is refused.
    bench.write("termsmith.toml", &settings());
    let several = ["one role, and this command calls several", "`termsmith.toml`", "--base-url"];
    refused(&["run", "--author", "model", "--model", "m"], &several);
    refused(&["run", "--author", "model", "--estimate", "--model", "m"], &several);
    refused(&["import", "cast", "session.txt", "--model", "m"], &several);
    refused(&["screen", "task", "--clauses", "--blind", "1", "--model", "m"], &several);
}

#[test]
fn a_model_can_be_named_where_one_role_is_called() {
    let bench = Bench::new();
    with_inputs(&bench);
    bench.write("termsmith.toml", &settings());
    check(&bench, &["screen", "task", "--blind", "1", "--model", "m"], 1, &["rejected"]);
    check(
        &bench,
        &["screen", "task", "--clauses", "--model", "m"],
        1,
        &["not screened: it has no instruction.md"],
    );
    check(&bench, &["judge", "--out", "run", "--model", "m"], 0, &["0 rollouts judged"]);
    check(&bench, &["run", "-n", "1", "--blind", "1", "--model", "m", "--out", "new"], NO_ENGINE, &[]);
}

#[test]
fn missing_and_malformed_inputs_have_their_own_status() {
    let bench = Bench::new();
    with_inputs(&bench);
    let write = ["run", "--author", "model", "-n", "1"];
    let solve = ["rollout", "task", "--scaffold", "bash-block"];
    let missing = "`none.toml` does not exist; a settings file was expected";
    for args in [&write[..], &solve, &["judge", "--out", "run"], &["run", "--estimate", "--author", "model"]]
    {
        check(&bench, &[args, &["--settings", "none.toml"]].concat(), BAD_INPUT, &[missing, "hint:"]);
    }
    check(&bench, &solve, USAGE, &["no model is given: there is no `termsmith.toml`", "schema settings"]);
    let output = bench.command(&solve).env("TERMSMITH_SETTINGS", "none.toml").output().unwrap();
    Ran::new(&solve, &output).ends(BAD_INPUT).says(missing);
    bench.write("bad.toml", "version = 1\n[endpoint]\n");
    for args in [&write[..], &solve, &["run", "--estimate", "--author", "model"]] {
        check(&bench, &[args, &["--settings", "bad.toml"]].concat(), BAD_INPUT, &["bad.toml", "endpoint"]);
    }
    // A templates folder that lacks some files.
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let without = |gone: &str, args: &[&str], part: &str| {
        let _ = fs::remove_dir_all(bench.path("mine"));
        copy(&templates, &bench.path("mine"));
        let gone = bench.path("mine").join(gone);
        if gone.is_dir() { fs::remove_dir_all(gone) } else { fs::remove_file(gone) }.unwrap();
        check(&bench, &[args, &["--templates", "mine"]].concat(), BAD_INPUT, &[part]);
    };
    let endpoint = |args: &[&'static str]| [args, &ENDPOINT].concat();
    without("recordings/filters.toml", &["import", "cast", "session.txt"], "recordings/filters.toml");
    without("prompts/author-checks", &endpoint(&write), "author-checks");
    without("prompts/author-checks", &["run", "--estimate", "--author", "model"], "author-checks");
    without("prompts/author-checks", &endpoint(&["screen", "task", "--clauses"]), "author-checks");
    without(
        "prompts/author-blind/usual.toml",
        &["run", "--estimate", "--author", "model"],
        "author-blind/usual.toml",
    );
    without("prompts/bash-block", &endpoint(&solve), "bash-block");
    without("prompts/bash-block", &endpoint(&["run", "-n", "1", "--blind", "1"]), "bash-block");
}

#[test]
fn estimates_are_of_the_tasks_that_would_be_made() {
    let bench = Bench::new();
    bench.write("termsmith.toml", &settings());
    let estimate = |args: &[&str]| {
        let args = [&["--json", "run", "--estimate", "--author", "model", "-n", "4"], args].concat();
        serde_json::from_str::<Value>(&bench.run(&args).ok().out).unwrap()
    };
    let check = |args: &[&str], drafts: u32, solvers: &[(&str, f64)]| {
        let estimate = estimate(args);
        assert_eq!(estimate["drafts"], json!(drafts), "{args:?}");
        assert!(estimate["usd"].as_f64().unwrap() > 0.0, "{args:?}: {estimate}");
        let stages = estimate["stages"].as_array().unwrap().iter().filter(|stage| stage["stage"] == "blind");
        let found: Vec<_> = stages.map(|stage| (stage["role"].as_str(), stage["replies"].as_f64())).collect();
        let expect: Vec<_> = solvers.iter().map(|(role, replies)| (Some(*role), Some(*replies))).collect();
        assert_eq!(found, expect, "{args:?}");
    };
    // Ten replies of one solver (`author-blind/usual.toml`).
    check(&[], 4, &[("solver", 40.0)]);
    check(&["--blind", "0"], 4, &[]);
    check(&["--blind", "3", "--shard", "1/4"], 1, &[("solver", 30.0)]);
    check(&["--difficulty-attempts", "2", "--shard", "0/2"], 2, &[("solver", 60.0), ("weak", 40.0)]);
    bench
        .run(&["run", "--estimate", "--author", "model", "--shard", "2/2"])
        .ends(USAGE)
        .says("`2/2` is not a shard");
    let none = ["run", "--estimate", "--author", "model", "-n", "1", "--shard", "1/2"];
    bench.run(&none).ends(USAGE).says("none of these tasks");
}

#[test]
fn tasks_have_the_names_of_their_folders() {
    let bench = Bench::new();
    bench.write("one/task.toml", "version = \n");
    bench.write("one/tests/test.sh", "");
    let unreadable = json!({ "task": "one", "not_screened": "unreadable" });
    for (folder, path) in [("one", "."), ("one/tests", ".."), ("", "one/tests/..")] {
        let args = ["--json", "screen", path];
        let output = bench.command(&args).current_dir(bench.path(folder)).output().unwrap();
        let ran = Ran::new(&args, &output).ends(1);
        let mut said: Value = serde_json::from_str(&ran.out).unwrap();
        said.as_object_mut().unwrap().remove("why");
        assert_eq!(said, unreadable, "{path}");
    }
}

#[test]
fn every_certificate_is_looked_at() {
    let bench = Bench::new();
    let other_version = r#"{"version": 9, "tables": []}"#;
    for (name, task, certificate) in [
        ("a-malformed", "version = \"1.0\"\n", Some("{")),
        ("b-newer", "version = \"1.0\"\n", Some(other_version)),
        ("c-none", "version = \"1.0\"\n", None),
        ("d-broken", "version = \n", None),
        ("e-huge", "version = \"1.0\"\n", Some("")),
        ("f-linked", "version = \"1.0\"\n", None),
    ] {
        bench.write(&format!("tasks/{name}/task.toml"), task);
        if let Some(certificate) = certificate {
            bench.write(&format!("tasks/{name}/certificate.json"), certificate);
        }
    }
    let huge = fs::OpenOptions::new().write(true).open(bench.path("tasks/e-huge/certificate.json")).unwrap();
    huge.set_len(1 << 40).unwrap();
    bench.write("elsewhere.json", other_version);
    std::os::unix::fs::symlink("../../elsewhere.json", bench.path("tasks/f-linked/certificate.json"))
        .unwrap();
    let ran = bench.run(&["verify-certificate", "tasks"]).ends(BAD_INPUT);
    for (task, says) in [
        ("a-malformed", "is not a certificate of termsmith"),
        ("b-newer", "is a certificate of version 9"),
        ("c-none", "no certificate.json"),
        ("d-broken", "task.toml` cannot be used"),
        ("e-huge", "is larger than"),
        ("f-linked", "is a symbolic link"),
    ] {
        let line = ran.out.lines().find(|line| line.starts_with(&format!("tasks/{task}: "))).unwrap();
        assert!(line.contains(says), "{line}");
    }
    bench.run(&["verify-certificate", "tasks/c-none", "tasks/b-newer"]).ends(1);
}

/// A run folder of this build, with one finished task, its rollouts, and one trial.
fn with_a_finished_task(bench: &Bench) {
    let assets = PipelineAssets::load(&Assets::embedded()).unwrap();
    let recipes = assets.recipes.iter().map(|(id, recipe)| (id.clone(), recipe.decl.clone())).collect();
    let plan = plan(&assets.domains, &recipes, Seed(0), 1, &Domains::All);
    let store = Store::new(RunDir::open(&bench.path("made")).unwrap());
    let blueprint = plan.blueprints.first().unwrap();
    let hashed = hash_draft(&assets, &store, blueprint, &Publication::default()).unwrap();
    let certificate = json!({
        "version": 3, "task": hashed.draft.task.name, "task_digest": task_digest(&hashed.directory),
        "environment_digest": hashed.environment_digest, "tool": "0", "certified": true, "rigor": "quick",
        "judging": Judging::default(), "rates": Rates::default(), "clauses": [], "uncovered": [],
        "rows": [], "checks": [], "reasons": [],
    });
    let trial = key(TRIAL, &0).unwrap();
    store.put(TRIAL, &trial, &0).unwrap();
    let record = UnitRecord {
        blueprint: blueprint.clone(),
        draft: hashed.key,
        certificate: key(SCREEN, &certificate).unwrap(),
        rollouts: vec![trial.clone(), trial],
    };
    store.put(SCREEN, &record.certificate, &certificate).unwrap();
    store.put(UNIT, &key(UNIT, &record).unwrap(), &record).unwrap();
}

#[test]
fn another_build_reads_a_run_folder_and_says_what_it_computes_again() {
    let bench = Bench::new();
    with_inputs(&bench);
    with_a_finished_task(&bench);
    let own = build_id();
    let by = |build: &str, args: &[&str], code: i32, expect: &str| {
        let mut command = bench.command(args);
        command.env("DOCKER_HOST", "unix:///nowhere/docker.sock").env(BUILD_VARIABLE, build);
        let ran = Ran::new(args, &command.output().unwrap()).ends(code);
        let said = ran.err.lines().find(|line| line.contains("this is build")).unwrap_or_default();
        assert_eq!(said, expect, "{}", ran.err);
    };
    let again =
        |what: &str| format!("`made` was made by build {own}; this is build other: {what} computed again");
    let run = ["run", "--out", "made", "--count", "1", "--seed", "0"];
    by(own, &run, NO_ENGINE, "");
    by("other", &run, NO_ENGINE, &again("1 task and 2 rollouts are"));
    by("other", &["run", "--out", "made", "--count", "1", "--seed", "7"], NO_ENGINE, &again("1 trial is"));
    by("other", &["screen", "task", "--out", "made"], 1, &again("1 trial is"));
    // Existing results are read as before.
    let read = ["export", "audit", "report"].map(|command| {
        [own, "other"].map(|build| {
            let args = [command, "--out", "made"];
            let output = bench.command(&args).env(BUILD_VARIABLE, build).output().unwrap();
            Ran::new(&args, &output).ends(0).out
        })
    });
    for [by_own, by_other] in read {
        assert!(!by_own.is_empty());
        assert_eq!(by_own, by_other);
    }
}
