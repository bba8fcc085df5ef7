//! Tests of the commands in shell texts: words, status, output.

use crate::lint::shell::{Shell, commands};

#[test]
fn words_and_status_of_commands() {
    let check = |text: &str, expect: &[&str]| {
        let got: Vec<_> = commands(text)
            .iter()
            .map(|one| {
                let marks = [(one.asked, "?"), (one.captured, "|"), (one.conditional, "~")];
                let marks: String = marks.iter().filter(|(on, _)| *on).map(|(_, mark)| *mark).collect();
                let files: String = one.writes.iter().map(|file| format!(" >{file}")).collect();
                format!("{} {:?}{marks} {}{files}", one.line, one.status, one.words.join(" "))
            })
            .collect();
        assert_eq!(got, expect, "{text}");
    };
    check("A=1 b 'c d' \"e\"\\ f # g", &["1 Kept b c d e f"]);
    check("a || true\nb || x=$?", &["1 Discarded a", "1 Kept~ true", "2 Tested b"]);
    check("a && b || :", &["1 Tested a", "1 Discarded~ b", "1 Kept~ :"]);
    check("if a; then b; else c; fi > f", &["1 Tested a >f", "1 Kept~ b >f", "1 Kept~ c >f"]);
    check("a 2>/dev/null | tee log", &["1 Piped| a", "1 Kept tee log"]);
    check(
        "a\nrc=$?\nb\nif [ $? = 0 ]; then c; fi",
        &["1 Kept? a", "3 Kept? b", "4 Tested [ $? = 0 ]", "4 Kept~ c"],
    );
    check("(a; b) || true", &["1 Tested a", "1 Discarded b", "1 Kept~ true"]);
    check("x=$(a | b)", &["1 Piped| a", "1 Kept| b"]);
    check("a && b > f", &["1 Tested a", "1 Kept~ b >f"]);
    check("D=/tests\nrun $D/x \"${D}/y\" ${E:-/z} $F", &["2 Kept run /tests/x /tests/y /z $F"]);
    check("D=/a\nD=/b\nrun $D", &["3 Kept run $D"]);
    check("cat > f <<'E'\nsudo x\nE\nb", &["1 Kept cat >f", "4 Kept b"]);
    check("cat <<E\n$(a)\nE", &["1 Kept cat", "2 Kept| a"]);
    check("\n\nbash -c 'a || true'", &["3 Kept bash -c a || true", "3 Discarded a", "3 Kept~ true"]);
    check("bash <<E || true\na\nE", &["1 Discarded bash", "2 Discarded a", "1 Kept~ true"]);
    check("! a", &["1 Tested a"]);
    check("while a; do b; done", &["1 Tested a", "1 Kept~ b"]);
    check("[[ -f x ]] && a", &["1 Tested [[ -f x ]]", "1 Kept~ a"]);
    check("set -e\nfor i in 1 2; do a $i; done", &["1 Kept set -e", "2 Kept~ a $i"]);
}

#[test]
fn functions_run_tests_too() {
    let shell = Shell::read("t() { pytest x; }\nt || true\necho pytest\n", "/tests");
    let got: Vec<_> = shell.commands.iter().map(|one| (one.name(), shell.runs_tests(one))).collect();
    assert_eq!(got, [("pytest", true), ("t", true), ("true", false), ("echo", false)]);
}

#[test]
fn a_script_knows_its_folder() {
    let check = |text: &str, expect: &str| {
        let commands = Shell::read(text, "/tests").commands;
        let last = commands.iter().rfind(|one| one.name() == "run").unwrap();
        assert_eq!(last.words.join(" "), expect, "{text}");
    };
    check("run \"$(dirname \"$0\")/x\"", "run /tests/x");
    check("D=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\nrun $D/x", "run /tests/x");
    check("run ${0%/*}/x", "run /tests/x");
    check("run $(dirname \"$0\")/../x", "run /tests/../x");
    check("run $(dirname $(which a))", "run $(dirname $(which a))");
}

#[test]
fn deep_and_long_texts_are_read_soon() {
    assert!(commands(&"(".repeat(20_000)).is_empty());
    assert_eq!(commands(&"a > f\n".repeat(20_000)).len(), 20_000);
    assert_eq!(commands(&format!("{}a{}", "( ".repeat(200), ") > f".repeat(200))).len(), 1);
}
