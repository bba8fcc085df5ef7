//! Tests of the output formats.

use super::*;

fn report() -> LintReport {
    let finding = |file: &str, line, severity, rule: &str, message: &str| Finding {
        file: file.to_owned(),
        line,
        severity,
        rule: rule.to_owned(),
        message: message.to_owned(),
        hint: "do so".to_owned(),
        attack: None,
        suppressed: None,
    };
    let mut excused = finding("tests/test.sh", Some(2), Severity::Warning, "nproc", "asks");
    excused.suppressed = Some("four at most".to_owned());
    LintReport::new(vec![
        TaskReport {
            path: "some tasks/ä".to_owned(),
            findings: vec![
                finding("environment/Dockerfile", Some(3), Severity::Error, "copy-source", "not there"),
                excused,
                finding("instruction.md", None, Severity::Note, "no-canary", "no canary"),
            ],
        },
        TaskReport { path: "/tasks/b/".to_owned(), findings: Vec::new() },
        TaskReport {
            path: "/tasks/c/".to_owned(),
            findings: vec![finding("task.toml", None, Severity::Warning, "of-an-old-version", "x")],
        },
    ])
}

#[test]
fn findings_as_text() {
    insta::assert_snapshot!(report().text(), @r"
    some tasks/ä
    some tasks/ä/environment/Dockerfile:3: error[copy-source] not there
        hint: do so
    some tasks/ä/tests/test.sh:2: suppressed[nproc] asks
        reason: four at most
    some tasks/ä/instruction.md: note[no-canary] no canary
        hint: do so

    /tasks/c/
    /tasks/c/task.toml: warning[of-an-old-version] x
        hint: do so

    3 tasks: 1 error, 1 warning, 1 note, 1 suppressed
    ");
}

#[test]
fn json_can_be_read_back() {
    let text = serde_json::to_string(&report()).unwrap();
    assert_eq!(serde_json::from_str::<LintReport>(&text).unwrap(), report());
    assert!(serde_json::from_str::<LintReport>(&text.replacen("version", "versions", 1)).is_err());
}

/// A few rules, so that a new rule changes no snapshot.
fn few_rules() -> Rules {
    let embedded = Assets::embedded();
    let mut tree = FileTree::default();
    for id in ["copy-source", "no-canary", "nproc"] {
        let path = RelPath::new(format!("templates/lint/{id}.toml")).unwrap();
        let text = embedded.text(path.as_str()).unwrap();
        tree.insert(path, File::text(text));
    }
    Rules::load(&Assets::from_tree(tree)).unwrap()
}

#[test]
fn sarif_for_code_hosts() {
    let log = sarif(&few_rules(), &report());
    insta::assert_snapshot!(serde_json::to_string_pretty(&log["runs"][0]["results"]).unwrap());
    let driver = &log["runs"][0]["tool"]["driver"];
    let nproc = driver["rules"].as_array().unwrap().iter().find(|rule| rule["id"] == "nproc").unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(nproc).unwrap());
}

/// The fields that the schema of SARIF 2.1.0 requires, and those that GitHub's code scanning
/// requires.
#[test]
fn sarif_has_what_it_must_have() {
    let log = sarif(&rules(), &report());
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().ends_with("sarif-schema-2.1.0.json"));
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "termsmith");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for part in ["shortDescription", "fullDescription", "help"] {
            assert!(!rule[part]["text"].as_str().unwrap().is_empty(), "{rule}");
        }
        let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
        assert!(["error", "warning", "note", "none"].contains(&level), "{rule}");
    }
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        if let Some(index) = result["ruleIndex"].as_u64() {
            assert_eq!(rules[usize::try_from(index).unwrap()]["id"], result["ruleId"]);
        }
        let location = &result["locations"][0]["physicalLocation"];
        let uri = location["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
        assert!(location["region"]["startLine"].as_u64().is_none_or(|line| line > 0));
        for suppression in result["suppressions"].as_array().into_iter().flatten() {
            assert_eq!(suppression["kind"], "inSource");
        }
    }
}
