use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

fn findings(text: &str) -> Vec<String> {
    let (_, findings) = parse_manifest(text).unwrap_or_else(|error| panic!("{error}"));
    findings.into_iter().map(|finding| finding.message).collect()
}

#[test]
fn manifests_of_all_ages() {
    for (text, expected) in [
        ("", &["no `schema_version`; 1.4 is assumed, as Harbor does"] as &[&str]),
        ("schema_version = \"1.0\"", &[]),
        ("schema_version = \"1.4\"", &[]),
        ("schema_version = \"2.0\"", &["schema version 2.0 is unknown; it is read as 1.4"]),
        ("version = \"1.0\"", &["`version` is deprecated; it is called `schema_version`"]),
        (
            "version = \"1.0\"\nschema_version = \"1.1\"",
            &[
                "`version` is deprecated; it is called `schema_version`",
                "`version` = 1.0 conflicts with `schema_version` = 1.1, which takes precedence",
            ],
        ),
        ("schema_version = \"1.4\"\nauthor = \"x\"", &["unknown key `author`, which Harbor ignores"]),
        (
            "schema_version = \"1.4\"\n[environment]\ncpu = 2\n[verifier.environment]\nram = 1\n[metadata]\nanything.goes = 1",
            &[
                "unknown key `environment.cpu`, which Harbor ignores",
                "unknown key `verifier.environment.ram`, which Harbor ignores",
            ],
        ),
        (
            "schema_version = \"1.4\"\n[[steps]]\nname = \"a\"\nmin_reward = 1\n[[steps]]\nname = \"b\"\nmax = 1\nagent.time = 2",
            &[
                "unknown key `steps[1].agent.time`, which Harbor ignores",
                "unknown key `steps[1].max`, which Harbor ignores",
            ],
        ),
        (
            "schema_version = \"1.4\"\n[environment]\nmemory = \"2G\"\nmemory_mb = 1024",
            &[
                "`memory` is deprecated; it is called `memory_mb`",
                "`memory` = \"2G\" conflicts with `memory_mb` = 1024, which takes precedence; Harbor refuses the task",
            ],
        ),
        (
            "schema_version = \"1.4\"\n[environment]\nstorage = \"lots\"\nallow_internet = false",
            &[
                "`storage` is deprecated; it is called `storage_mb`",
                "`storage` = \"lots\" is not a size such as \"512M\" or \"2G\"",
                "`allow_internet` is deprecated; it is called `network_mode`",
            ],
        ),
        (
            "schema_version = \"1.4\"\n[environment]\nmemory = 2048\nos = \"Linux\"",
            &[
                "`memory` is deprecated; it is called `memory_mb`",
                "`memory` = 2048 is not text, so Harbor ignores it",
            ],
        ),
    ] {
        let mut found = findings(text);
        found.sort_by_key(|message| expected.iter().position(|want| want == message));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn deprecated_keys_mean_what_they_meant() {
    let environment = |text: &str| {
        let (manifest, _) = parse_manifest(&format!("[environment]\n{text}")).unwrap();
        let environment = manifest.environment.unwrap();
        (environment.memory_mb, environment.storage_mb, environment.network_mode)
    };
    let mode = |mode: &str| Some(mode.to_owned());
    for (text, expected) in [
        ("memory = \"2G\"\nstorage = \"512M\"", (Some(2048), Some(512), None)),
        ("memory = \"1.5g\"\nstorage = \" 2048K \"", (Some(1536), Some(2), None)),
        ("memory = \"2G\"\nmemory_mb = 2048", (Some(2048), None, None)),
        ("memory = \"2G\"\nmemory_mb = 1", (Some(1), None, None)),
        ("memory = 2", (None, None, None)),
        ("memory = \"G\"\nstorage = \"\"", (None, None, None)),
        ("memory = \"é\"", (None, None, None)),
        ("memory = \" 2 G\"", (Some(2048), None, None)),
        ("allow_internet = true", (None, None, mode("public"))),
        ("allow_internet = false", (None, None, mode("no-network"))),
        ("allow_internet = false\nnetwork_mode = \"allowlist\"", (None, None, mode("allowlist"))),
    ] {
        assert_eq!(environment(text), expected, "{text}");
    }
}

/// The results of `TaskConfig.model_validate_toml` of harbor 0.24.0 for these values.
#[test]
fn numbers_may_be_texts() {
    let check = |value: &str, number: Option<f64>, whole: Option<i64>| {
        let limit = parse_manifest(&format!("agent.timeout_sec = {value}"))
            .map(|(manifest, _)| manifest.agent.unwrap().timeout_sec.unwrap());
        assert_eq!(limit.ok(), number, "{value}");
        let memory = parse_manifest(&format!("environment.memory_mb = {value}"))
            .map(|(manifest, _)| manifest.environment.unwrap().memory_mb.unwrap());
        assert_eq!(memory.ok(), whole, "{value}");
    };
    check("600", Some(600.0), Some(600));
    check("600.0", Some(600.0), Some(600));
    check("600.5", Some(600.5), None);
    check("1e3", Some(1000.0), Some(1000));
    check("\"600\"", Some(600.0), Some(600));
    check("\" 600 \"", Some(600.0), Some(600));
    check("\"600.0\"", Some(600.0), Some(600));
    check("\"600.5\"", Some(600.5), None);
    check("\"6e2\"", Some(600.0), None);
    check("\"5.\"", Some(5.0), None);
    check("\"-5\"", Some(-5.0), Some(-5));
    check("\"+5\"", Some(5.0), Some(5));
    check("\"007\"", Some(7.0), Some(7));
    check("\"\"", None, None);
    check("\"soon\"", None, None);
    check("[1]", None, None);
    check("inf", Some(f64::INFINITY), None);
    let os = |os: &str| {
        let (manifest, _) = parse_manifest(&format!("environment.os = \"{os}\"")).unwrap();
        manifest.environment.unwrap().os.unwrap()
    };
    assert_eq!((os("Linux"), os("WINDOWS"), os("beos")), ("linux".into(), "windows".into(), "beos".into()));
}

#[test]
fn every_key_of_the_schema_is_known() {
    let text = r#"
schema_version = "1.4"
source = "x"
multi_step_reward_strategy = "mean"
artifacts = ["/app/out", { source = "/a", destination = "b", exclude = ["*"], service = "main" }]
[task]
name = "a/b"
version = "1"
description = "d"
authors = [{ name = "n", email = "e" }]
keywords = ["k"]
[agent]
timeout_sec = 1
user = 1000
network_mode = "public"
allowed_hosts = []
[verifier]
timeout_sec = 1.5
user = "root"
environment_mode = "separate"
network_mode = "allowlist"
allowed_hosts = ["example.com"]
collect = [{ command = "c", service = "main", timeout_sec = 60.0, user = "u" }]
env = { A = "1" }
[verifier.environment]
docker_image = "i"
[environment]
build_timeout_sec = 600
docker_image = "i"
os = "linux"
cpus = 2
memory_mb = 1
storage_mb = 1
gpus = 0
gpu_types = ["H100"]
tpu = { type = "v6e", topology = "2x4" }
env = { A = "${A:-1}" }
skills_dir = "/s"
workdir = "/w"
network_mode = "allowlist"
allowed_hosts = ["example.com"]
[environment.healthcheck]
command = "true"
interval_sec = 5
timeout_sec = 30
start_period_sec = 0
start_interval_sec = 5
retries = 3
[[environment.mcp_servers]]
name = "m"
transport = "stdio"
url = "u"
command = "c"
args = ["a"]
headers = { A = "b" }
[solution]
env = { A = "1" }
[[steps]]
name = "one"
min_reward = { reward = 1.0 }
artifacts = ["/app"]
agent = { timeout_sec = 1 }
verifier = { timeout_sec = 1 }
healthcheck = { command = "true" }
"#;
    assert_eq!(findings(text), [""; 0]);
}

#[test]
fn malformed_manifests() {
    for (text, expected) in [
        ("a = ", "line 1"),
        ("[agent]\ntimeout_sec = \"long\"", "line 2"),
        ("[environment]\n\nos = 1", "line 3"),
    ] {
        let message = parse_manifest(text).unwrap_err().to_string();
        assert!(message.starts_with("malformed task.toml: ") && message.contains(expected), "{message}");
    }
}

/// The results of `strip_canary` of harbor 0.24.0 for these texts.
#[test]
fn solvers_do_not_read_canaries() {
    for (text, expected) in [
        ("do it\n", "do it\n"),
        ("<!-- x canary y -->\n\ndo it", "do it"),
        ("<!-- CANARY -->\n# canary GUID 1\n\n \n\ndo it", "do it"),
        ("  <!-- canary -->  \r\ndo it", "do it"),
        ("\n<!-- canary -->\ndo it", "<!-- canary -->\ndo it"),
        ("# title\n# canary\n", "# title\n# canary\n"),
        ("<!-- canary\n-->\ndo it", "<!-- canary\n-->\ndo it"),
        ("<!-- canary -->", ""),
        ("", ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path(), &tree(&[("task.toml", File::text("")), ("instruction.md", File::text(text))]));
        assert_eq!(read_task(dir.path()).unwrap().instruction(), Some(expected), "{text:?}");
    }
}

#[test]
fn a_task_has_the_name_of_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(&dir.path().join("one/tests"), &tree(&[("test.sh", File::text(""))]));
    lay_out(&dir.path().join("one"), &tree(&[("task.toml", File::text(""))]));
    for path in ["one", "one/", "one/.", "one/tests/..", "one/tests/../../one"] {
        assert_eq!(read_task(&dir.path().join(path)).unwrap().name, "one", "{path}");
    }
}

#[test]
fn problems_of_a_directory_are_reported() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, File::text(*text))).collect();
        lay_out(dir.path(), &tree(&files));
        let found: Vec<_> = read_task(dir.path()).unwrap().findings.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    };
    let toml = ("task.toml", "schema_version = \"1.4\"\n");
    check(
        &[toml],
        &[
            "`instruction.md`: missing, or not UTF-8",
            "`tests/test.sh`: missing, so solutions cannot be verified",
            "`environment/Dockerfile`: missing, and `environment.docker_image` names no image",
        ],
    );
    let image = ("task.toml", "schema_version = \"1.4\"\nenvironment.docker_image = \"x\"\n");
    check(&[image, ("instruction.md", "x"), ("tests/test.sh", "x")], &[]);
    let steps = ("task.toml", "schema_version = \"1.4\"\nsteps = [{ name = \"one\" }]\n");
    check(&[steps, ("environment/Dockerfile", "x"), ("steps/one/instruction.md", "x")], &[]);
    check(
        &[
            image,
            ("instruction.md", " \n"),
            ("tests/test.sh", "x"),
            ("trajectory.json", "{}"),
            (".gitignore", "*.log"),
        ],
        &[
            "`instruction.md`: empty",
            "`trajectory.json`: Harbor loads it as earlier context of the agent, and most agents then fail",
            "`.gitignore`: its patterns are not applied here, so the digest can differ from Harbor's",
        ],
    );
    let crackme =
        [image, ("instruction.md", "x"), ("tests/test.sh", "x"), ("environment/app/crackme.pyc", "x")];
    let left_over = "has the name of a leftover file, so Harbor leaves it out of packages and digests";
    check(&crackme, &[&format!("`environment/app/crackme.pyc`: {left_over}")]);
    check(
        &[crackme.as_slice(), &[("tests/__pycache__/a", "x"), ("tests/test.sh~", "x")]].concat(),
        &[&format!("`environment/app/crackme.pyc`: {left_over} (and 2 more such files)")],
    );
}

#[test]
fn hostile_directories_are_refused() {
    type Make = fn(&Path) -> std::io::Result<()>;
    let rows: [(&str, Make, &str); 8] = [
        ("no task.toml", |dir| fs::remove_file(dir.join("task.toml")), "contains no task.toml"),
        (
            "task.toml is a link",
            |dir| {
                fs::remove_file(dir.join("task.toml"))
                    .and_then(|()| symlink("/etc/hostname", dir.join("task.toml")))
            },
            "task.toml` is a symbolic link",
        ),
        ("task.toml is no text", |dir| fs::write(dir.join("task.toml"), [0xff]), "task.toml` is not UTF-8"),
        (
            "task.toml is no TOML",
            |dir| fs::write(dir.join("task.toml"), "x"),
            "task.toml` cannot be used: malformed",
        ),
        (
            "task.toml is huge",
            |dir| fs::File::create(dir.join("task.toml"))?.set_len(1 << 40),
            "is larger than 4194304 bytes",
        ),
        ("tests is a link", |dir| symlink("/etc", dir.join("tests")), "tests` is a symbolic link"),
        (
            "a link among the tests",
            |dir| {
                fs::create_dir(dir.join("tests")).and_then(|()| symlink("../../secret", dir.join("tests/x")))
            },
            "tests/x` is a symbolic link",
        ),
        (
            "a sparse file among the tests",
            |dir| {
                fs::create_dir(dir.join("tests"))
                    .and_then(|()| fs::File::create(dir.join("tests/x"))?.set_len(1 << 40))
            },
            "hold more than 268435456 bytes",
        ),
    ];
    for (what, make, expected) in rows {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("task.toml"), "").unwrap();
        make(dir.path()).unwrap();
        let message = read_task(dir.path()).unwrap_err().to_string();
        assert!(message.contains(expected), "{what}: {message}");
    }
}

#[test]
fn directories_of_other_formats_are_not_read_as_tasks() {
    let files = write_task(&task(), &Publication::default()).unwrap();
    let check = |file: &str, from: &str, to: &str, expected: &str| {
        let mut files = files.clone();
        let text = files.text(file).unwrap();
        assert!(text.contains(from), "{from}");
        let text = text.replace(from, to);
        files.insert(path(file), File::text(text));
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("odd one");
        lay_out(&place, &files);
        let message = read_task(&place).unwrap().into_task().unwrap_err().to_string();
        assert_eq!(message, format!("task `odd one`{expected}"));
    };
    check(
        "task.toml",
        "[metadata.termsmith]",
        "[metadata.other]",
        " was not made by termsmith: its task.toml has no [metadata.termsmith]",
    );
    check(
        "task.toml",
        "format = 4",
        "format = 5",
        " has format 5, but this build reads 4\nhint: use the termsmith that wrote it, or a newer one",
    );
    check("task.toml", "format = 4\n", "", ": [metadata.termsmith] has no `format`");
    check(
        "task.toml",
        "network_mode = \"no-network\"\n",
        "",
        ": `environment.network_mode` is missing; tasks of termsmith have `no-network`",
    );
    check(
        "task.toml",
        "\"no-network\"",
        "\"public\"",
        ": `environment.network_mode` is public; tasks of termsmith have `no-network`",
    );
    check(
        "task.toml",
        "format = 4",
        "format = 4\nmood = 1",
        ": [metadata.termsmith]: unknown field `mood`, expected one of `format`, `tool`, `domain`, `skills`, `operations`, `kind`, `difficulty`, `persona`, `language`, `fixture`, `verifier`, `author`, `recipe`, `recipe_version`, `seed`, `index`, `base`, `profile`, `roots`, `programs`, `bring_up`, `shared_because`, `pids`, `checks`, `weights`, `canary`",
    );
    check(
        "task.toml",
        "kind = \"bug-fix\"",
        "kind = \"bug\"",
        ": [metadata.termsmith]: unknown variant `bug`, expected one of `from-scratch`, `feature-addition`, `bug-fix`, `refactor`",
    );
    check(
        "task.toml",
        "name = \"termsmith/data",
        "name = \"other/data",
        ": `task.name` does not begin with `termsmith/`",
    );
    check("task.toml", "cpus = 1", "cpus = 0", ": `environment.cpus` is missing or not positive");
    check(
        "task.toml",
        "memory_mb = 1024",
        "memory_mb = -1",
        ": `environment.memory_mb` is missing or out of range",
    );
    check(
        "task.toml",
        "timeout_sec = 300.0",
        "timeout_sec = 0.5",
        ": `verifier.timeout_sec` is missing, or not a whole number of seconds",
    );
    check(
        "instruction.md",
        "termsmith-canary 0",
        "termsmith-canary 1",
        ": `instruction.md` does not begin with the task's canary line",
    );
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in r#"((\[\[?(task|steps|environment)\]?\]|version|memory|user|a\.b) ?=? ?("2G"|1|\{|\[|nan|.)\n?){0,8}"#) {
        let _ = parse_manifest(&text);
    }

    #[test]
    fn no_size_breaks_the_parser(size in ".{0,6}") {
        let text = toml::to_string(&toml::toml! { [environment] memory = size }).unwrap();
        prop_assert!(parse_manifest(&text).is_ok());
    }
}
