//! Tests of the edits of small programs, by operator.

use proptest::prelude::*;

use super::language::Language;
use super::*;
use crate::model::{File, FileTree, RelPath};

/// `expect` must be among the first changed lines, trimmed, of the mutants of `text` by `operator`.
fn check(path: &str, operator: Operator, text: &str, expect: &[&str]) {
    let got = changed_lines(path, operator, text);
    for line in expect {
        assert!(
            got.iter().any(|have| have == line),
            "{line:?} is not among the {operator:?} of {text:?}: {got:#?}"
        );
    }
    if expect.is_empty() {
        assert!(got.is_empty(), "{operator:?} of {text:?}: {got:#?}");
    }
}

fn changed_lines(path: &str, operator: Operator, text: &str) -> Vec<String> {
    mutants(&tree(path, text))
        .into_iter()
        .filter(|mutant| mutant.operator == operator)
        .map(|mutant| {
            let mutated = mutant.files.text(path).unwrap().to_owned();
            let mut pairs = mutated.lines().zip(text.lines().chain(std::iter::repeat("")));
            pairs.find(|(new, old)| new != old).map_or(String::new(), |(new, _)| new.trim().to_owned())
        })
        .collect()
}

fn tree(path: &str, text: &str) -> FileTree {
    let mut files = FileTree::default();
    files.insert(RelPath::new(path).unwrap(), File::script(text));
    files
}

fn bash(operator: Operator, text: &str, expect: &[&str]) {
    check("solve.sh", operator, text, expect);
}

fn python(operator: Operator, text: &str, expect: &[&str]) {
    check("a.py", operator, text, expect);
}

#[test]
fn bash_values() {
    use Operator::{Constant, OffByOne, Path};
    bash(Constant, "tool 3 > a\n", &["tool 4 > a", "tool 2 > a"]);
    bash(Constant, "tool --name 'draft' x\n", &["tool --name 'drafu' x"]);
    bash(Constant, "chmod 0640 f\ninstall -m 755 a b\n", &["chmod 0644 f", "install -m 751 a b"]);
    bash(Constant, "echo hello\nprintf 'done\\n' >&2\n", &[]);
    bash(Constant, "printf 'a=%s\\n' 1 > f\n", &["printf 'b=%s\\n' 1 > f"]);
    bash(Constant, "#!/bin/bash\n# 3 things\nset -euo pipefail\n", &[]);
    bash(Path, "cp /app/a.csv /app/b.csv\n", &["cp /app/b.csv /app/b.csv", "cp /app/a.csv /app/a.csv"]);
    bash(OffByOne, "head -n +2 f > g\necho $((n + 1)) > h\n", &["echo $((n + 2)) > h", "head -n +3 f > g"]);
    bash(
        OffByOne,
        "for ((i = 0; i < n; i++)); do touch $i; done\n",
        &["for ((i = 1; i < n; i++)); do touch $i; done"],
    );
}

#[test]
fn bash_commands() {
    use Operator::{ErrorHandling, Flag, Logic, Redirection, SortOrder};
    bash(SortOrder, "sort -rn a > b\n", &["sort -n a > b", "sort -r a > b"]);
    bash(SortOrder, "sort a > b\n", &["sort -r a > b", "cat a > b"]);
    bash(SortOrder, "sort -t , -k 2 a > b\n", &["sort -k 2 a > b", "sort -t , a > b"]);
    bash(Flag, "grep -i x a > b\n", &["grep x a > b", "grep -v -i x a > b"]);
    bash(Flag, "cp -p a b\nhead -n 3 c > d\n", &["cp a b", "mv -p a b", "tail -n 3 c > d"]);
    bash(Flag, "tool --folds 5 --fast x\n", &["tool --fast x"]);
    bash(Redirection, "echo a >> b\n", &["echo a > b"]);
    bash(ErrorHandling, "make a || exit 1\n[ -f b ] && rm b\n", &["make a", "rm b"]);
    bash(
        Logic,
        "make a || rm b\nif grep x y; then rm z; fi\n! cmp a b\n",
        &["make a && rm b", "if ! grep x y; then rm z; fi", "cmp a b"],
    );
}

#[test]
fn bash_conditions() {
    use Operator::{Arithmetic, Comparison, Logic};
    bash(Comparison, "[ $a -lt 3 ]\n[ \"$b\" = x ]\n", &["[ $a -le 3 ]", "[ \"$b\" != x ]"]);
    bash(Comparison, "[[ -f $a && $b < $c ]]\n", &["[[ -d $a && $b < $c ]]", "[[ -f $a && $b > $c ]]"]);
    bash(Comparison, "((size >= most)) || exit 1\n", &["((size > most)) || exit 1"]);
    bash(Logic, "[[ ! -f $a && $b ]]\n", &["[[ ! -f $a || $b ]]", "[[  -f $a && $b ]]"]);
    bash(Arithmetic, "x=$((a + b * c))\n", &["x=$((a - b * c))", "x=$((a + b + c))"]);
}

#[test]
fn programs_inside_bash() {
    use Operator::{Comparison, Constant, Content, DroppedStatement, Flag, Logic};
    bash(
        Comparison,
        "swap.py a.py 'if a > b:' 'if a >= b:'\n",
        &["swap.py a.py 'if a >= b:' 'if a >= b:'", "swap.py a.py 'if a > b:' 'if a > b:'"],
    );
    bash(Comparison, "swap.py a.py 'c == d' x\n", &["swap.py a.py 'c != d' x"]);
    bash(Comparison, "python3 - <<'E'\nif a < b:\n    c()\nE\n", &["if a <= b:"]);
    bash(Comparison, "cat > t.py <<'E'\nif a == b:\n    c()\nE\n", &["if a != b:"]);
    bash(Logic, "cat > /app/tool <<'E'\n#!/usr/bin/env python3\nx = a and b\nE\n", &["x = a or b"]);
    bash(DroppedStatement, "cat > tool <<'E'\n#!/bin/bash\nmkdir a\nrm b\nE\n", &[":"]);
    bash(DroppedStatement, "mkdir a\nrm b\n", &[]);
    bash(
        Comparison,
        "python3 -c 'print(1 if a < b else 2)' > x\n",
        &["python3 -c 'print(1 if a <= b else 2)' > x"],
    );
    bash(
        Constant,
        "awk -F , 'NR > 1 { s += $3 } END { print s }' a > b\n",
        &["awk -F , 'NR > 2 { s += $3 } END { print s }' a > b"],
    );
    bash(
        Comparison,
        "awk 'NR >= 1' a > b\njq '.a == 1' c > d\n",
        &["awk 'NR > 1' a > b", "jq '.a != 1' c > d"],
    );
    bash(Flag, "sed -i 's/a/b/g' f\n", &["sed -i 's/a/b/' f"]);
    bash(Content, "cat > f.conf <<E\na = 1\nb = off\nE\n", &["a = 2", "a = 0", "b = ofg", "b = off"]);
    bash(
        Operator::SortOrder,
        "sqlite3 db 'SELECT MAX(a) FROM t ORDER BY b DESC' > x\n",
        &[
            "sqlite3 db 'SELECT MIN(a) FROM t ORDER BY b DESC' > x",
            "sqlite3 db 'SELECT MAX(a) FROM t ORDER BY b ASC' > x",
        ],
    );
}

#[test]
fn python_values() {
    use Operator::{Arithmetic, Constant, Content, OffByOne, Path};
    python(Constant, "x = 3\ny = True\nz = 0.5\n", &["x = 4", "x = 2", "y = False", "z = 0.6"]);
    python(Constant, "kind = 'open'\n", &["kind = 'opeo'"]);
    python(Constant, "\"\"\"Two 2.\"\"\"\nimport a2\nraise A('b 2')\nprint('x', file=sys.stderr)\n", &[]);
    python(
        Constant,
        "p.add_argument('x', help='3 things')\ndef f():\n    'doc'\n",
        &["p.add_argument('y', help='3 things')"],
    );
    python(Path, "f = open('/app/x')\n", &["f = open('/app/y')"]);
    python(
        OffByOne,
        "a = b[1:]\nfor i in range(2, n + 1): c()\n",
        &["a = b[2:]", "a = b[0:]", "for i in range(3, n + 1): c()", "for i in range(2, n + 2): c()"],
    );
    python(OffByOne, "a = b.split(',')\nc = b.rsplit(',', n)\n", &["c = b.split(',', n)"]);
    python(Content, "print(f'{a} items')\n", &["print(f'{a} itemt')"]);
    python(Arithmetic, "print(f'{a:.2f}')\nb = -c\n", &["print(f'{a:.3f}')", "b = c"]);
}

#[test]
fn python_operations() {
    use Operator::{Arithmetic, Comparison, Logic, SortOrder};
    python(Comparison, "if a <= b: c()\nif d not in e: f()\n", &["if a < b: c()", "if d in e: f()"]);
    python(Comparison, "if __name__ == '__main__':\n    main()\n", &[]);
    python(
        Logic,
        "a = b and not c\nif d(): e()\nf = [g for g in h if g.ok]\n",
        &["a = b or not c", "a = b and c", "if not d(): e()", "f = [g for g in h if not g.ok]"],
    );
    python(Arithmetic, "a = b + c\nd += e\nf = 'x' + g\nh = i // 2\n", &["a = b - c", "d -= e", "h = i * 2"]);
    python(Arithmetic, "a = 'x' + g\n", &[]);
    python(
        Arithmetic,
        "a = d.quantize(c, rounding=decimal.ROUND_HALF_UP)\nb = math.floor(a)\n",
        &["a = d.quantize(c, rounding=decimal.ROUND_HALF_EVEN)", "b = math.ceil(a)"],
    );
    python(
        SortOrder,
        "a = sorted(b)\nc.sort(key=d)\ne = min(f)\n",
        &[
            "a = list(b)",
            "a = sorted(b, reverse=True)",
            "c.sort()",
            "c.sort(key=d, reverse=True)",
            "e = max(f)",
        ],
    );
}

#[test]
fn python_statements() {
    use Operator::{DroppedStatement, ErrorHandling, Flag};
    python(
        ErrorHandling,
        "try:\n    a()\nexcept (B, C) as d:\n    e()\n",
        &["except NotImplementedError as d:"],
    );
    python(ErrorHandling, "try:\n    a()\nexcept:\n    e()\n", &["except NotImplementedError:"]);
    python(ErrorHandling, "if a:\n    raise B\nraise C\n", &["pass"]);
    python(
        DroppedStatement,
        "for a in b:\n    if a:\n        continue\n    c(a)\nd = 1\nd = 2\ne[1] = 2\n",
        &["pass"],
    );
    // Later statements need the first binding of a name.
    for (text, dropped) in [
        ("a = 1\n", 0),
        ("a = 1\na = 2\na = 3\n", 2),
        ("a, b = 1, 2\na = 2\n", 0),
        ("def f(a, b=1):\n    a = 1\n    b = 2\n    c = 3\n    c = 4\n", 2),
        ("a = 1\ndef f():\n    a = 2\n", 0),
        ("def f():\n    a = 2\na = 1\n", 1),
        ("a = a = 1\n", 0),
    ] {
        assert_eq!(changed_lines("a.py", DroppedStatement, text).len(), dropped, "{text:?}");
    }
    python(
        Flag,
        "json.dump(a, b, default=c)\nd = f(first=1, other=2)\n",
        &["json.dump(a, b)", "d = f(other=2)", "d = f(first=1)"],
    );
}

#[test]
fn makefiles() {
    use Operator::{DroppedStatement, Flag};
    let text = "P := a b\n.PHONY: all\nall: x $(patsubst %,y/%,$(P)) | z\n\tsort -u $< > $@\n";
    check(
        "Makefile",
        DroppedStatement,
        text,
        &["P :=  b", "all:  $(patsubst %,y/%,$(P)) | z", "all: x  | z", "@:"],
    );
    check("Makefile", Operator::SortOrder, text, &["sort $< > $@"]);
    check("Makefile", Flag, "a:\n\tgrep -w $* b\n", &["grep $* b"]);
}

/// The edits only must not fail. Trees of texts with errors have nodes without text, and tokens
/// that end inside a character.
#[test]
fn texts_with_errors() {
    for (path, text) in [
        ("a.py", "y = [sorted(é]\n"),
        ("a.py", "a.sort(é\n"),
        ("a.py", "sorted(\n"),
        ("a.py", "f'{a:.2é"),
        ("solve.sh", "python3 -c \"é"),
        ("solve.sh", "bash -c 'é (a"),
        ("solve.sh", "tool 'é (a b"),
        ("solve.sh", "chmod -mé 0640é"),
        ("solve.sh", "sort -é a\nsort é-r\n"),
        ("solve.sh", "cat > é.py <<é\nsorted(é\né"),
        ("Makefile", "a: $(é\n\tsort 'é"),
        ("a.conf", "é=é\né"),
    ] {
        mutants(&tree(path, text));
        ablations(text);
        cuts(text);
    }
}

/// A recursive walk of a deep text would overflow the stack. People do not write such texts.
#[test]
fn deep_texts() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}\n", open.repeat(times), close.repeat(times))
    };
    let check = |path: &str, text: &str, some: bool| {
        let found = [mutants(&tree(path, text)).len(), ablations(text).len(), cuts(text).len()];
        assert_eq!(
            found.iter().sum::<usize>() > 0,
            some,
            "{path} {}: {found:?}",
            text.get(..20).unwrap_or(text)
        );
    };
    check("a.py", &nested("(", "1", ")", 390), true);
    check("a.py", &nested("(", "1", ")", 14_000), false);
    check("a.py", &nested("f(", "1", ")", 14_000), false);
    check("a.py", &format!("x = 1{}\n", " + 1".repeat(14_000)), false);
    check("solve.sh", &nested("{ ", "mv a b; mv c d", "; }", 100), true);
    check("solve.sh", &nested("{ ", "mv a b; mv c d", "; }", 5_000), false);
    check("solve.sh", &format!("mv a b{}\n", " && mv c d".repeat(5_000)), false);
    // Programs nested in each other. The innermost ones count as plain text.
    let inside = |levels: usize| {
        (0..levels).fold("mv a b\nmv c d\n".to_owned(), |text, level| {
            format!("cat > {level}.sh <<'E{level}'\n{text}E{level}\n")
        })
    };
    check("solve.sh", &inside(2), true);
    check("solve.sh", &inside(2_000), true);
}

#[test]
fn long_solutions_have_fewer_mutants() {
    let check = |lines: usize, expect: usize| {
        let text: String = (0..lines).map(|line| format!("SELECT {} FROM t;\n", 10_000_000 + line)).collect();
        assert_eq!(mutants(&tree("a.sql", &text)).len(), expect, "{lines} lines, {} bytes", text.len());
    };
    check(300, 600);
    // At most 2000, spread evenly over 3000.
    check(1_500, 1_500);
    // Longer texts are data.
    check(6_000, 0);
}

#[test]
fn places_and_descriptions() {
    let all = mutants(&tree("solve.sh", "cd /app\nf() {\n  sort -r a > b\n}\nf\n"));
    let found = all.iter().find(|mutant| mutant.what.contains("`-r` dropped from `sort`")).unwrap();
    assert_eq!((&*found.place, &*found.region), ("solve.sh:3", "solve.sh:2"));
    let all = mutants(&tree("solve.sh", "python3 - <<'E'\ndef f():\n    return 1 + 2\nE\n"));
    let found = all.iter().find(|mutant| mutant.operator == Operator::Arithmetic).unwrap();
    assert_eq!((&*found.place, &*found.region), ("solve.sh:3", "solve.sh:2"));
}

/// Programs made of lines that the grammars support.
fn script() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "sort -rnk2 a.csv | head -n 3 > /app/b.csv",
        "if [ \"$a\" -le 3 ] && ! grep -qi x y; then rm -f z; else mv z w; fi",
        "for x in 1 2 3; do echo \"$x\" >> /app/out; done",
        "cat > t.py <<'E'\nimport a\ndef f(x, y=2):\n    if not x: return None\n    try:\n        return x[1:] + y\n    except K as k:\n        raise\nE",
        "awk -F: '$3 >= 1000 && NR != 1 { print $1 }' /etc/passwd > u",
        "x=$((y % 3 - 1)) || exit 1",
        "f() { local z=$1; printf '%s\\n' \"${z:1:2}\" 2> /dev/null; }",
        "cat > c.ini <<E\n[a]\nb = $x\nE",
        "case $x in a | b) rm c ;; *) exit 2 ;; esac",
        "sed -i -e 's,a,b,g' -e '3,$d' f",
        "while IFS=, read -r a b; do ((a < b)) && echo \"$a\"; done < in > out",
        "python3 -c \"print(sorted(set(open('a')), key=len)[:5])\" | tee o",
    ]);
    prop::collection::vec(line, 1..8).prop_map(|lines| lines.join("\n") + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn mutants_parse_and_differ(script in script()) {
        let files = tree("solve.sh", &script);
        let mut seen = std::collections::BTreeSet::new();
        for mutant in mutants(&files) {
            let mutated = mutant.files.text("solve.sh").unwrap().to_owned();
            prop_assert_ne!(&mutated, &script);
            prop_assert!(Language::Bash.faults(&mutated) <= Language::Bash.faults(&script), "{}", mutant.what);
            prop_assert!(seen.insert(mutated), "{}", mutant.what);
        }
        for ablation in ablations(&script) {
            prop_assert!(Language::Bash.faults(&ablation.script) <= Language::Bash.faults(&script));
            prop_assert_ne!(&ablation.script, &script);
        }
    }

    #[test]
    fn any_text_is_accepted(text in "[ -~\né]{0,200}") {
        for path in ["solve.sh", "a.py", "Makefile", "a.sql", "a.conf"] {
            mutants(&tree(path, &text));
        }
        ablations(&text);
        cuts(&text);
    }
}
