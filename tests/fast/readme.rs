//! Commands in README and guide are valid, and their sample output matches the binary's.

use std::path::Path;

use crate::support::bench::Bench;

/// The task of the sample: blueprint 0 of seed 7, in a plan of any length.
const TASK: &str = "security-harden-file-shelf-0000";

/// Stands for lines that a sample leaves out.
const ELLIPSIS: &str = "…";

/// The documents whose commands and samples are checked.
const DOCUMENTS: [&str; 2] = ["README.md", "docs/guide.md"];

/// Documents that must stay short: their maximum lines and columns.
const SHORT: [(&str, usize, usize); 2] = [("README.md", 150, 120), ("ARCHITECTURE.md", 200, 120)];

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The text of all [`DOCUMENTS`].
fn documents() -> String {
    DOCUMENTS.map(document).join("\n")
}

/// The contents of the code blocks of `language`.
fn blocks(language: &str) -> Vec<String> {
    let text = documents();
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Commands in the `console` blocks, each with its sample output. A command that ends in a
/// backslash continues in the next line.
fn sessions() -> Vec<(String, Vec<String>)> {
    let mut sessions: Vec<(String, Vec<String>)> = Vec::new();
    for block in blocks("console") {
        for line in block.lines() {
            match (line.strip_prefix("$ "), sessions.last_mut()) {
                (Some(command), _) => sessions.push((command.to_owned(), Vec::new())),
                (None, Some((command, _))) if command.ends_with('\\') => {
                    command.pop();
                    command.push_str(line.trim_start());
                }
                (None, Some((_, output))) => output.push(line.to_owned()),
                (None, None) => {}
            }
        }
    }
    sessions
}

/// Asserts that `output` has the sample lines of `command`, in this order. A line may end in an
/// ellipsis. A line that is only an ellipsis stands for any lines.
#[track_caller]
fn assert_shown(command: &str, output: &str) {
    let found: Vec<_> = sessions().into_iter().filter(|(shown, _)| shown == command).collect();
    assert!(!found.is_empty(), "no document shows `{command}`");
    for (_, shown) in found {
        assert_shows(&shown, output);
    }
}

#[track_caller]
fn assert_shows(shown: &[String], output: &str) {
    let mut lines = output.lines();
    for wanted in shown.iter().filter(|line| *line != ELLIPSIS) {
        let matches = |line: &str| match wanted.strip_suffix(ELLIPSIS) {
            Some(beginning) => line.starts_with(beginning.trim_end()),
            None => line.trim_end() == wanted.trim_end(),
        };
        assert!(
            lines.any(matches),
            "a document shows, and the command does not print in this place:\n{wanted}\n\nIt prints:\n{output}"
        );
    }
}

/// A line without the parts that differ between runs: numbers, padding, and the name of the first
/// task.
fn shape(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_whitespace() {
        let word = if word.contains("/tasks/") && !word.ends_with('/') { "<task>" } else { word };
        let is_digit = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
        let number = word.starts_with(|c: char| c.is_ascii_digit())
            && word.trim_end_matches([':', ',']).chars().all(is_digit);
        text.push_str(if number { "<n>" } else { word });
        text.push(' ');
    }
    text.trim_end().to_owned()
}

#[test]
fn every_command_shown_is_understood() {
    let bench = Bench::new();
    let table = documents();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `termsmith ")?.split('`').next());
    let mut commands: Vec<String> = rows.map(str::to_owned).collect();
    commands.extend(
        sessions()
            .into_iter()
            .filter_map(|(command, _)| Some(command.strip_prefix("termsmith ")?.to_owned())),
    );
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        // Placeholders serve as values, and options in brackets are included. With --help at the
        // end, nothing is run.
        let mut words: Vec<String> = command
            .split_whitespace()
            .map(|word| word.trim_matches(['[', ']']).trim_end_matches('…').to_owned())
            .map(|word| if word == "S" || word == "N" { "7".to_owned() } else { word })
            .collect();
        if let Some(scaffold) = words.iter().position(|word| word == "--scaffold")
            && words[scaffold + 1] == "7"
        {
            words[scaffold + 1] = "bash".to_owned();
        }
        words.push("--help".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        bench.run(&words).ok().says("Usage: termsmith");
    }
}

#[test]
fn exit_statuses_are_those_of_the_help() {
    let help = Bench::new().run(&["--help"]).ok();
    // The help is wrapped to the terminal's width.
    let words = help.out.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let text = documents();
    let rows: Vec<(u8, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .filter_map(|(code, meaning)| Some((code.parse().ok()?, meaning)))
        .collect();
    let codes: Vec<u8> = rows.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [0, 1, 2, 65, 69, 74, 75, 78, 130]);
    for (code, meaning) in rows {
        assert!(words.contains(&format!(" {code} {meaning} ")), "{code} {meaning}\n{words}");
    }
}

/// It needs an engine: the demo's first task is made at the default rigor, shown and judged.
#[test]
#[ignore = "minutes of screening; run before a release with `cargo test --test fast readme -- --ignored`"]
fn the_sample_output_matches_the_binary() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "--out", "out/demo", "--seed", "7", "--count", "1"]).ok();
    // The plan has 1 task instead of 20, so only the shapes of the lines are equal.
    let summary = blocks("text").into_iter().find(|block| block.starts_with("tasks ")).unwrap();
    let shapes = |text: &str| text.lines().map(shape).collect::<Vec<_>>();
    assert_eq!(shapes(&summary), shapes(&ran.out), "\n{}", ran.out);

    let show = bench.run(&["show", TASK, "--out", "out/demo"]).ok();
    assert_shown(&format!("termsmith show {TASK} --out out/demo"), &show.out);

    let task = format!("out/demo/tasks/{TASK}");
    let passed = bench.run(&["verify", &task]).ok();
    assert_shown(&format!("termsmith verify {task}"), &passed.out);
    let failed = bench.run(&["verify", &task, "--nothing"]).ends(1);
    assert_shown(&format!("termsmith verify {task} --nothing"), &failed.out);
    // The same solution is given as a folder, and as a script without the files beside it.
    bench.run(&["verify", &task, "--solution", &format!("{task}/solution")]).ok().says("checks passed");
}

#[test]
fn short_documents_stay_short() {
    for (name, max_lines, max_columns) in SHORT {
        let text = document(name);
        let lines = text.lines().count();
        assert!(lines <= max_lines, "{name} has {lines} lines");
        for (number, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            assert!(columns <= max_columns, "{name}:{} has {columns} columns", number + 1);
        }
    }
}

/// The anchor of a heading, as code hosts make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<String> = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.extend(["README.md", "ARCHITECTURE.md", "SPECIFICATION.md"].map(str::to_owned));
    let mut links = 0;
    for name in names {
        let text = document(&name);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file = Path::new(&name).parent().unwrap().join(path);
            let file = if path.is_empty() { Path::new(&name).to_owned() } else { file };
            assert!(root.join(&file).exists(), "{name} links to {target}");
            if !fragment.is_empty() {
                let linked = document(file.to_str().unwrap());
                let mut headings = linked.lines().filter(|line| line.starts_with('#'));
                let found = headings.any(|line| anchor(line.trim_start_matches('#')) == fragment);
                assert!(found, "{name} links to {target}");
            }
            links += 1;
        }
    }
    assert!(links > 20, "{links} links");
}

/// Tests that a text names as `file::name` in backticks.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter_map(|quoted| quoted.split_once(".rs::"));
    named
        .filter(|(_, name)| is_name(name))
        .map(|(file, name)| (format!("{file}.rs"), name.to_owned()))
        .collect()
}

#[test]
fn tests_that_the_specification_names_exist() {
    let named = named_tests(&document("SPECIFICATION.md"));
    assert!(named.len() > 40, "{named:?}");
    for (file, name) in named {
        assert!(document(&file).contains(&format!("fn {name}(")), "{file} has no test `{name}`");
    }
}

/// Whether a binary of `tests/` has the test `path`, e.g. `pipeline::shards_merge_into_the_whole`.
fn is_test(binary: &str, path: &str) -> bool {
    let (modules, name) = path.rsplit_once("::").unwrap();
    let module =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(binary).join(modules.replace("::", "/"));
    let files = [module.with_extension("rs"), module.join("mod.rs")];
    let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
    text.is_some_and(|text| text.contains(&format!("fn {name}(")))
}

/// `cargo test` and nextest's filters accept names of tests that do not exist.
#[test]
fn tests_that_the_makefile_and_nextest_name_exist() {
    let makefile = document("Makefile");
    let mut named = 0;
    for line in makefile.lines() {
        let mut words = line.split_whitespace().skip_while(|word| *word != "--test").skip(1);
        let (Some(binary), Some(path)) = (words.next(), words.next()) else { continue };
        assert!(is_test(binary, path), "tests/{binary} has no test `{path}`");
        named += 1;
    }
    assert!(named > 0, "the Makefile names no test");
    let nextest = document(".config/nextest.toml");
    let paths = nextest.split("test(=").skip(1).filter_map(|rest| rest.split(')').next());
    for path in paths {
        assert!(is_test("docker", path) || is_test("alone", path), "no test `{path}`");
        named += 1;
    }
    assert!(named > 1, "nextest's configuration names no test");
}
