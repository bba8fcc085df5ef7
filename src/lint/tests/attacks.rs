//! Tests of attack files, valid and invalid, and of the commands that they match.

use crate::assets::Assets;
use crate::lint::attack::{Alone, Kind, attacks, trace_findings};
use crate::model::{File, FileTree, RelPath};

fn assets(name: &str, text: &str) -> Assets {
    let mut tree = FileTree::default();
    tree.insert(RelPath::new(format!("templates/attacks/{name}")).unwrap(), File::text(text));
    Assets::from_tree(tree)
}

const HEAD: &str = "id = 'D-02'\ntitle = 't'\nsource = 's'\n";
const EXECUTE: &str = "kind = 'execute'\nscript = 'true'\nplants = 'p'\nstopped_by = 'b'\n";

#[test]
fn invalid_attack_files_are_refused() {
    let check = |name: &str, text: &str, expect: &str| {
        let message = attacks(&assets(name, text)).unwrap_err().to_string();
        let begin = format!("attack `templates/attacks/{name}`: ");
        assert!(message.starts_with(&begin) && message.contains(expect), "{message}");
    };
    let head = |rest: &str| format!("{HEAD}{rest}");
    check("D-02-x.toml", "id = 1", "invalid type");
    check("D-02-x.toml", &head("kind = 'execute'\nmood = 1"), "unknown field `mood`");
    check("D-02-x.toml", &head("kind = 'dance'"), "unknown variant `dance`");
    check("D-03-x.toml", &head(EXECUTE), "the file's name must have the form `D-02-SLUG.toml`");
    check("D-02.toml", &head(EXECUTE), "the file's name must have the form");
    check("D-02-x.toml", &head(EXECUTE).replace("D-02", "D-2"), "must have the form `D-02`");
    check("D-02-x.toml", &head("kind = 'execute'\nscript = 'x'"), "needs `plants` and `stopped_by`");
    check(
        "D-02-x.toml",
        &head("kind = 'execute'"),
        "kind `execute` needs `script`, and neither `scan` nor `trace`",
    );
    check("D-02-x.toml", &head("kind = 'scan'"), "kind `scan` needs `[[scan]]`");
    check("D-02-x.toml", &head("kind = 'scan'\nalone = true"), "`alone` is only for kind `execute`");
    check(
        "D-02-x.toml",
        &head(&format!("{EXECUTE}alone = 'elsewhere'")),
        "`alone` is true, false or \"shared\"",
    );
    check(
        "D-02-x.toml",
        &head("kind = 'scan'\n[[trace]]\npattern = 'x'\nmessage = ''"),
        "kind `scan` needs `[[scan]]`",
    );
    check(
        "D-02-x.toml",
        &head("kind = 'trace'\n[[trace]]\npattern = '('\nmessage = ''"),
        "regex parse error",
    );
}

#[test]
fn executed_attacks_bring_a_script() {
    let check = |declared: &str, expect: Alone| {
        let found = attacks(&assets("D-02-x.toml", &format!("{HEAD}{EXECUTE}{declared}\n"))).unwrap();
        let [attack] = &found[..] else { panic!("{found:?}") };
        assert_eq!((attack.id.as_str(), attack.name.as_str()), ("D-02", "D-02-x"));
        let Kind::Execute { script, alone } = &attack.kind else { panic!("{attack:?}") };
        assert_eq!((script.as_str(), *alone), ("true", expect), "{declared}");
        assert_eq!(attack.explain(), "Attack D-02: t.\nIt plants p.\nStopped by b.");
    };
    check("", Alone::Nowhere);
    check("alone = false", Alone::Nowhere);
    check("alone = 'shared'", Alone::Shared);
    check("alone = true", Alone::Always);
}

#[test]
fn commands_that_fetch_are_known() {
    let attacks = attacks(&Assets::embedded()).unwrap();
    let check = |command: &str, expect: &[&str]| {
        let found = trace_findings(&attacks, ["true", command]);
        let fetches = found.iter().filter(|found| found.id == "D-27");
        assert!(found.iter().all(|found| found.command == 1));
        let got: Vec<_> = fetches.map(|found| found.evidence.as_str()).collect();
        assert_eq!(got, expect, "{command}");
    };
    check("ls /app", &[]);
    check("curl -s http://localhost:8080/x", &[]);
    check("echo https://github.com/a/b", &[]);
    check("cd /tmp && git clone https://a.org/b c", &["git clone https://"]);
    check("git clone /srv/repo.git", &[]);
    check("curl -L https://raw.githubusercontent.com/a", &["curl -L https://raw.githubusercontent.com"]);
    check("pip download x; wget https://pastebin.com/a", &["wget https://pastebin.com"]);
}
