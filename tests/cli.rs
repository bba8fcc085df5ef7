//! The command line without an engine: what goes wrong, how it is said, and which exit status it ends with.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use common::Bench;
use serde_json::Value;

/// Runs `args` in a folder that `prepare` has filled, with no engine in reach, and checks status and text.
fn check(prepare: impl Fn(&Bench), args: &[&str], code: i32, parts: &[&str]) {
    let bench = Bench::new();
    prepare(&bench);
    let output = bench.command(args).env("DOCKER_HOST", "unix:///nowhere/docker.sock").output().unwrap();
    let mut ran = common::Ran::new(args, &output).ends(code);
    for part in parts {
        ran = ran.says(part);
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

fn nothing(_: &Bench) {}

/// Copies the built-in domain specs, with one text replaced.
fn with_domain(file: &'static str, from: &'static str, to: &'static str) -> impl Fn(&Bench) {
    move |bench| {
        let specs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("domains");
        for entry in fs::read_dir(specs).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut text = fs::read_to_string(&path).unwrap();
            if name == file {
                assert!(text.contains(from), "{from:?} is not in {file}");
                text = text.replacen(from, to, 1);
            }
            bench.write(&format!("domains/{name}"), &text);
        }
    }
}

#[test]
fn what_goes_wrong_is_said_with_a_way_out() {
    const USAGE: i32 = 2;
    const BAD_INPUT: i32 = 65;
    const NO_ENGINE: i32 = 69;
    const IO: i32 = 74;

    check(nothing, &["run", "--count", "1"], NO_ENGINE, &["cannot reach the container engine", "hint:"]);
    check(nothing, &["run", "--domain", "codign"], USAGE, &["codign", "coding", "hint:"]);
    check(nothing, &["run", "--shard", "2/2"], USAGE, &["2/2"]);
    check(nothing, &["run", "--jobs", "0"], USAGE, &["--jobs"]);
    check(nothing, &["recipe", "check", "coding/none"], USAGE, &["no recipe `coding/none`", "hint:"]);
    check(nothing, &["show", "x", "--out", "none"], IO, &["`none` is not a termsmith run folder", "hint:"]);
    check(nothing, &["verify", "none"], BAD_INPUT, &["none"]);
    check(nothing, &["plan", "--domains", "none"], BAD_INPUT, &["none"]);
    check(|bench| bench.write("out", ""), &["run", "--out", "out"], IO, &["failed to create folder `out`"]);
    check(|_| {}, &["run", "--out", "/proc/nowhere"], IO, &["/proc/nowhere"]);
    check(
        |bench| bench.write("out/run.json", r#"{"format":9,"tool":"9.9.9"}"#),
        &["run", "--out", "out"],
        IO,
        &["`out` was written in run format 9", "9.9.9", "hint:"],
    );
    check(
        with_domain("coding.toml", "[kinds]", "[kidns]"),
        &["plan", "--domains", "domains"],
        BAD_INPUT,
        &["coding.toml:", "kidns"],
    );
    check(
        with_domain("games.toml", "operations = [", "operations = [\"no-such-operation\", "),
        &["plan", "--domains", "domains"],
        BAD_INPUT,
        &["games.toml:", "no-such-operation"],
    );
}

#[test]
fn a_plan_is_the_same_every_time_and_a_longer_one_begins_alike() {
    let bench = Bench::new();
    let plan = |count: &str| {
        let ran = bench.run(&["--json", "plan", "--count", count]).ok();
        let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        plan["blueprints"].as_array().unwrap().clone()
    };
    let long = plan("30");
    assert_eq!(long, plan("30"));
    assert_eq!(long[..10], plan("10")[..]);
    let domains: std::collections::BTreeSet<_> =
        long.iter().map(|task| task["domain"].as_str().unwrap()).collect();
    assert_eq!(domains.len(), 10, "{domains:?}");
    let kinds: std::collections::BTreeSet<_> =
        long.iter().map(|task| task["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[test]
fn schemas_manuals_and_completions_are_printed() {
    let bench = Bench::new();
    for format in ["domain", "recipe", "certificate", "lint", "audit"] {
        let schema: serde_json::Value =
            serde_json::from_str(&bench.run(&["schema", format]).ok().out).unwrap();
        assert!(schema["properties"].is_object(), "{format}");
    }
    for shell in ["bash", "zsh", "fish"] {
        bench.run(&["completions", shell]).ok().says("termsmith");
    }
    bench.run(&["man"]).ok().says(".TH");
    bench.run(&["man", "--out", "man"]).ok();
    assert!(bench.path("man/termsmith-run.1").exists());
}

#[test]
fn help_shows_examples_and_exit_statuses() {
    let bench = Bench::new();
    bench.run(&["--help"]).ok().says("Examples:").says("Exit statuses:").says("130 interrupted");
    bench.run(&["run", "--help"]).ok().says("the same command continues");
}

#[test]
fn new_recipes_and_domains_are_understood() {
    let bench = Bench::new();
    bench.run(&["new", "domain", "astronomy"]).ok().says("wrote domains/astronomy.toml");
    bench.run(&["new", "domain", "astronomy"]).ends(2).says("exists already");
    bench.run(&["--templates", "templates", "new", "recipe", "coding/my-recipe"]).ends(65);
    bench.run(&["new", "recipe", "coding/my-recipe"]).ok().says("recipe.toml");
    assert!(bench.path("templates/recipes/coding/my-recipe/expert.toml").exists());
}

/// A rollout of somebody else's, as `import` reads it.
const ATIF: &str = r#"{"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m"},
  "steps": [{"step_id": 1, "source": "user", "message": "Do it."}, {"step_id": 2, "source": "agent", "message": "Done."}]}"#;

/// An endpoint that answers one request with status 401 and the key that it was sent.
fn refusing_endpoint() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut length, mut authorization) = (0, String::new());
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap()
                }
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                    authorization = value.to_owned()
                }
                Some(_) => {}
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let body = format!(r#"{{"error": {{"message": "bad key: {authorization}"}}}}"#);
        write!(
            stream,
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        authorization
    });
    (url, seen)
}

#[test]
fn logs_are_json_lines_with_spans_and_without_keys() {
    const KEY: &str = "sk-0123456789abcdef";
    let bench = Bench::new();
    bench.write("rollout.json", ATIF);
    bench.run(&["import", "rollout.json", "--out", "out"]).ok();
    let (url, seen) = refusing_endpoint();
    let args = [
        "judge",
        "--out",
        "out",
        "--base-url",
        &url,
        "--model",
        "m",
        "--api-key-env",
        "THE_KEY",
        "-vv",
        "--log-file",
        "log.jsonl",
    ];
    let output = bench.command(&args).env("THE_KEY", KEY).output().unwrap();
    assert_eq!(seen.join().unwrap(), format!("Bearer {KEY}"));
    let ran = common::Ran::new(&args, &output).ends(75);
    let log = fs::read_to_string(bench.path("log.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let own = |line: &&Value| line["target"].as_str().unwrap().starts_with("termsmith");
    assert!(lines.iter().filter(own).any(|line| line["span"]["command"] == "judge"), "{log}");
    // From -vv on, libraries are logged too, inside our spans.
    let foreign = lines.iter().find(|line| !own(line)).unwrap();
    assert_eq!(foreign["spans"][0]["command"], "judge", "{log}");
    assert!(ran.err.contains("termsmith{command=\"judge\""), "{}", ran.err);
    for text in [&log, &ran.out, &ran.err] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[test]
fn flags_of_logs_change_neither_output_nor_status() {
    let check = |args: &[&str], lines_on_stderr: bool| {
        let bench = Bench::new();
        let plain = bench.run(&["--json", "plan", "-n", "2"]).ok();
        assert_eq!(plain.err, "");
        let mut all = vec!["--json", "plan", "-n", "2"];
        all.extend(args);
        let ran = bench.run(&all).ok();
        assert_eq!(ran.out, plain.out);
        assert_eq!(!ran.err.is_empty(), lines_on_stderr, "{args:?}: {}", ran.err);
        assert_eq!(bench.path("log").exists(), args.contains(&"--log-file"));
    };
    check(&[], false);
    check(&["-v"], true);
    check(&["-vv"], true);
    check(&["--log-file", "log"], false);
    check(&["-v", "--log-file", "log"], true);
}
