//! The command line without an engine: errors with their messages and exit statuses, logs, help.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::bench::{Bench, Ran, names};

/// Runs `args` in a folder that `prepare` has filled. No engine is in reach. Checks status and
/// text.
fn check(prepare: impl Fn(&Bench), args: &[&str], code: i32, parts: &[&str]) {
    let bench = Bench::new();
    prepare(&bench);
    let output = bench.command(args).env("DOCKER_HOST", "unix:///nowhere/docker.sock").output().unwrap();
    let mut ran = Ran::new(args, &output).ends(code);
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
fn errors_name_their_cause_and_have_a_hint() {
    const USAGE: i32 = 2;
    const BAD_INPUT: i32 = 65;
    const NO_ENGINE: i32 = 69;
    const IO: i32 = 74;

    check(nothing, &["run", "--count", "1"], NO_ENGINE, &["cannot reach the container engine", "hint:"]);
    check(nothing, &["run", "--domain", "codign"], USAGE, &["codign", "coding", "hint:"]);
    check(nothing, &["run", "--shard", "2/2"], USAGE, &["2/2"]);
    check(nothing, &["run", "--jobs", "0"], USAGE, &["--jobs"]);
    check(nothing, &["recipe", "check", "coding/none"], USAGE, &["no recipe `coding/none`", "hint:"]);
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
fn plans_are_deterministic_and_a_shorter_one_is_a_prefix() {
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
    bench
        .run(&["--help"])
        .ok()
        .says("Examples:")
        .says("Exit statuses:")
        .says("130  interrupted")
        .says("75  work was left open");
    bench.run(&["run", "--help"]).ok().says("the same command continues");
}

#[test]
fn new_recipes_and_domains_are_valid() {
    let bench = Bench::new();
    bench.run(&["new", "domain", "astronomy"]).ok().says("wrote domains/astronomy.toml");
    bench.run(&["new", "domain", "astronomy"]).ends(2).says("already exists");
    bench.run(&["--templates", "templates", "new", "recipe", "coding/my-recipe"]).ends(65);
    bench.run(&["new", "recipe", "coding/my-recipe"]).ok().says("recipe.toml");
    assert!(bench.path("templates/recipes/coding/my-recipe/expert.toml").exists());
}

/// A rollout made elsewhere, as `import` reads it.
const ATIF: &str = r#"{"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m"},
  "steps": [{"step_id": 1, "source": "user", "message": "Do it."}, {"step_id": 2, "source": "agent", "message": "Done."}]}"#;

/// An endpoint that answers one request with status 401 and the received key.
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
                    length = value.parse().unwrap();
                }
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                    authorization = value.to_owned();
                }
                None if line.trim_end().is_empty() => break,
                Some(_) | None => {}
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
    let ran = Ran::new(&args, &output).ends(75);
    let log = fs::read_to_string(bench.path("log.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let own = |line: &&Value| line["target"].as_str().unwrap().starts_with("termsmith");
    assert!(lines.iter().filter(own).any(|line| line["span"]["command"] == "judge"), "{log}");
    // With -vv, libraries are logged too, inside our spans.
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

/// A folder with one entry of each kind that a path can wrongly lead to.
fn with_places(bench: &Bench) {
    bench.write("file", "hello\n");
    bench.write("folder/sub/file", "");
    // Tasks made elsewhere.
    bench.write("task/task.toml", "version = \"1.0\"\n");
    bench.write("tasks/bare/task.toml", "version = \"1.0\"\n");
    bench.write("others/bare/task.toml", "version = \"1.0\"\n");
    bench.write("broken/task.toml", "version = \n");
    bench.write("certified/task.toml", "version = \"1.0\"\n");
    bench.write("certified/certificate.json", "{");
}

#[test]
fn a_wrong_path_is_named_with_what_was_expected_there() {
    const USAGE: i32 = 2;
    const BAD_INPUT: i32 = 65;
    const IO: i32 = 74;
    const ENDPOINT: [&str; 4] = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    let missing = "does not exist";
    let tasks = "a task directory or a folder of them was expected";
    let task = "a task directory was expected";
    let run = "a termsmith run folder was expected";
    let check = |args: &[&str], code: i32, parts: &[&str]| {
        let mut parts = parts.to_vec();
        parts.push("hint:");
        check(with_places, args, code, &parts);
    };
    for command in ["screen", "rollout", "lint", "verify-certificate"] {
        check(&[command, "none"], BAD_INPUT, &["`none`", missing, tasks]);
        check(&[command, "tasks", "none/further"], BAD_INPUT, &["`none/further`", missing, tasks]);
        check(&[command, "file"], BAD_INPUT, &["`file` is a file", tasks]);
        check(&[command, "file/below"], BAD_INPUT, &["`file/below`", missing, tasks]);
        check(&[command, "folder"], BAD_INPUT, &["`folder` has no task directory", tasks]);
    }
    for command in ["verify", "try"] {
        check(&[command, "none"], BAD_INPUT, &["`none`", missing, task]);
        check(&[command, "file"], BAD_INPUT, &["`file` is a file", task]);
        check(&[command, "folder"], BAD_INPUT, &["`folder`", "task.toml"]);
        check(&[command, "task"], BAD_INPUT, &["`task`", "was not made by termsmith"]);
    }
    for args in [&["show", "x"][..], &["judge"], &["report"], &["export"], &["audit"]] {
        let with = |out: &'static str| [args, &["--out", out]].concat();
        check(&with("none"), IO, &["`none`", missing, run]);
        check(&with("file"), IO, &["`file` is a file", run]);
        check(&with("folder"), IO, &["`folder` is not a termsmith run folder"]);
    }
    for args in [
        &["run"][..],
        &["screen", "tasks"],
        &["rollout", "tasks", "--scaffold", "nop"],
        &["import", "folder/sub/file"],
        &["recipe", "check"],
        &["recipe", "render", "coding/mend-booking-cli"],
        &["man"],
    ] {
        let with = |out: &'static str| [args, &["--out", out]].concat();
        check(&with("file"), IO, &["`file` cannot be written", "is a file"]);
        check(&with("file/below"), IO, &["`file/below` cannot be written", "`file` is a file"]);
    }
    // Other people's files in a folder are neither replaced nor removed.
    for args in [
        &["run"][..],
        &["screen", "tasks"],
        &["rollout", "tasks", "--scaffold", "nop"],
        &["import", "folder/sub/file"],
        &["recipe", "check"],
    ] {
        let args = [args, &["--out", "folder"]].concat();
        check(&args, IO, &["`folder` cannot become a run folder", "`sub`"]);
    }
    check(
        &["recipe", "render", "coding/mend-booking-cli", "--out", "folder"],
        IO,
        &["`folder` cannot be replaced", "it has `sub`"],
    );
    let rollout = |more: &[&'static str]| [&["rollout", "tasks"][..], more].concat();
    let model = |more: &[&'static str]| [&["rollout", "tasks"][..], &ENDPOINT, more].concat();
    check(&["rollout"], USAGE, &["`out/rollouts` has none", "name task directories"]);
    check(&rollout(&["--scaffold", "nop", "--harbor-jobs", "file"]), IO, &["`file` cannot be written"]);
    check(&rollout(&["--settings", "none.toml"]), BAD_INPUT, &["`none.toml`", missing, "schema settings"]);
    check(
        &rollout(&["--settings", "folder"]),
        BAD_INPUT,
        &["`folder` is a folder", "a settings file was expected"],
    );
    check(
        &model(&["--cassette", "none"]),
        BAD_INPUT,
        &["`none`", missing, "a recording of model calls was expected"],
    );
    check(&model(&["--cassette", "folder"]), BAD_INPUT, &["`folder` is a folder", "a recording"]);
    check(
        &model(&["--record", "none/calls"]),
        IO,
        &["`none/calls` cannot be written", "`none` does not exist"],
    );
    check(&model(&["--record", "folder"]), IO, &["`folder` cannot be written", "it is a folder"]);
    check(&model(&["--api-key-env", "NO_SUCH_KEY"]), BAD_INPUT, &["NO_SUCH_KEY"]);
    check(
        &rollout(&["--base-url", "nonsense", "--model", "m"]),
        USAGE,
        &["--base-url", "`nonsense` is not a URL"],
    );
    check(
        &["import", "none"],
        BAD_INPUT,
        &["`none`", missing, "a Harbor job folder, a trial folder or an ATIF file"],
    );
    check(&["import", "folder"], BAD_INPUT, &["`folder`", "neither an ATIF file nor a folder with trials"]);
    check(&["import", "file"], 1, &["not imported: `file`"]);
    check(
        &["verify-certificate", "certified"],
        BAD_INPUT,
        &["`certified/certificate.json`", "termsmith screen"],
    );
    check(
        &["plan", "--domains", "none"],
        BAD_INPUT,
        &["`none`", missing, "a folder of domain specs was expected"],
    );
    check(
        &["plan", "--domains", "file"],
        BAD_INPUT,
        &["`file` is a file", "a folder of domain specs was expected"],
    );
    check(&["plan", "--domains", "folder"], BAD_INPUT, &["folder", "no domain spec"]);
    check(
        &["plan", "--templates", "none"],
        BAD_INPUT,
        &["`none`", missing, "a folder of templates was expected"],
    );
    check(
        &["plan", "--log-file", "none/log"],
        IO,
        &["`none/log` cannot be written", "`none` does not exist"],
    );
    check(&["plan", "--log-file", "folder"], IO, &["`folder` cannot be written", "it is a folder"]);
    check(&["lint", "--explain", "nope"], USAGE, &["no lint rule `nope`"]);
    check(&["screen", "tasks", "--only", "nope"], USAGE, &["no row `nope`"]);
    let same = "`tasks/bare` and `others/bare` have the same name";
    check(&["screen", "tasks", "others/bare"], USAGE, &[same]);
    check(&["new", "recipe", "nope"], USAGE, &["`nope`"]);
    check(&["recipe", "render", "nope", "--out", "new"], USAGE, &["no recipe `nope`"]);
    check(&["run", "--gamma", "7"], USAGE, &["--gamma", "not 7"]);
}

/// With `--json`, standard output has a document for each task, screened or not, and one for a
/// corpus.
#[test]
fn what_cannot_be_screened_is_json_too() {
    let bench = Bench::new();
    with_places(&bench);
    let check = |args: &[&str], expect: &[Value]| {
        let ran = bench.run(&[&["--json", "screen"][..], args].concat()).ends(1);
        let said = serde_json::Deserializer::from_str(&ran.out).into_iter::<Value>();
        let mut said: Vec<Value> = said.map(Result::unwrap).collect();
        // Messages of libraries are left out.
        said.iter_mut().filter_map(Value::as_object_mut).for_each(|said| {
            said.remove("why");
            said.remove("says");
        });
        assert_eq!(said, expect, "{args:?}");
    };
    let unreadable = json!({ "task": "broken", "not_screened": "unreadable" });
    check(&["broken"], std::slice::from_ref(&unreadable));
    // The same task twice is screened once.
    check(&["broken", "./broken"], &[unreadable]);
    let task = json!({ "task": "broken", "as_expected": false, "certificate": null });
    let all = json!({ "tasks": 1, "sound": 0, "with_defect": 1, "as_expected": 0, "attacks_proven": [] });
    check(&["--summary", "broken"], &[task, all]);
}

#[test]
fn only_renderings_are_replaced_by_renderings() {
    let bench = Bench::new();
    let render = |out: &str| bench.run(&["recipe", "render", "coding/mend-booking-cli", "--out", out]);
    render("task").ok();
    bench.write("task/solution/more.sh", "true\n");
    render("task").ok();
    assert!(!bench.path("task/solution/more.sh").exists(), "below its own folders a rendering is replaced");
    bench.write("task/notes.txt", "mine\n");
    render("task").ends(74).says("it has `notes.txt`");
    assert!(bench.path("task/notes.txt").exists());
    // Another maker's task with lint settings for termsmith.
    bench.write("other/task.toml", "version = \"1.0\"\n[metadata.termsmith.lint]\nignore = {}\n");
    render("other").ends(74).says("no `task.toml` that names a recipe");
    assert_eq!(names(&bench.path("other")), [std::path::Path::new("task.toml")]);
    fs::create_dir(bench.path("empty")).unwrap();
    render("empty").ok();
}

#[test]
fn a_closed_pipe_does_not_panic() {
    let bench = Bench::new();
    // The reader of standard error closes it before anything is written.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bench.command(&["verify", "none"]);
    let status = command.stdout(std::process::Stdio::null()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(65));
}
