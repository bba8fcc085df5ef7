//! Finds the commands of a transcript by their prompt.
//!
//! Prompts differ: `$ `, `box% `, `me@box ~/work> `, `[12:30:01] ~ ❯ `. But a prompt recurs at the
//! starts of lines, and commands follow it. So each line is cut after every sign that can end a
//! prompt. The earliest start that recurs is the prompt.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::incomplete::is_incomplete;
use super::transcript::Line;

/// Characters that end prompts, and are rare in outputs.
const RARE_SIGNS: [char; 10] = ['❯', '➜', '»', 'λ', '⟩', '❱', '▶', '›', '→', '➤'];
/// Characters that end prompts, and are common in outputs too.
const SIGNS: [char; 4] = ['$', '#', '%', '>'];
/// Maximum number of cuts of a line. A prompt has few signs before its end.
const MOST_CUTS: usize = 4;
/// Maximum number of characters of a prompt.
const LONGEST: usize = 120;
/// At least this many blanks separate a command from a prompt at the right edge, e.g. the time in
/// zsh.
const RIGHT_PROMPT: &str = "          ";
/// Of the texts after a prompt, at least this many percent must look like commands.
const PLAUSIBLE: usize = 60;

/// A prompt with a user and a machine, or with a shell and its version. Few outputs begin so.
static STRONG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:\([\w./-]+\) )?(?:\[?[\w.-]+@[\w.-]+[: ]?[^$#%❯➜»]{0,80}\]?[$#%]|(?:bash|sh|zsh)-[\d.]+[$#])$",
    )
    .ok()
});
/// A prompt that needs no recurrence.
static USUAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\w.~/-]{0,60} ?[$❯➜»]$").ok());
/// The prompt of oh-my-zsh begins with its sign, e.g. `➜  work git:(main) ✗ `.
static SIGN_FIRST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^➜(?:  \S+|\s+\S+ git:\([^)]*\))(?: git:\([^)]*\))?(?: [✗✔])?").ok());
/// The start of a command: a program, an assignment, or a sign of the shell's grammar.
static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^(?:[a-z_./~(\[{!:]|\w+=|\d\w*[a-z]|[A-Z]\w* -|["$]\w+/|R(?:script)?\b)"#).ok()
});
/// The second prompt, and the rest of a command. zsh names the open construct: `heredoc> `.
static CONTINUATION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:[a-z]+(?: [a-z]+)*)?>(?: (.*))?$").ok());

/// A line that was cut after a sign.
#[derive(Debug)]
struct Cut<'a> {
    /// Equal for all prompts of one kind.
    shape: Shape,
    prompt: &'a str,
    command: &'a str,
    /// Whether the terminal waited for input after the prompt.
    waited: bool,
}

/// The first word of a prompt, without the parts that change in a session; and the last sign.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape(String, char);

/// All cuts of a shape.
#[derive(Debug, Default)]
struct Found {
    /// The line of the first cut.
    first: usize,
    /// The length of its prompt.
    length: usize,
    lines: usize,
    commands: usize,
    plausible: usize,
    waited: usize,
}

/// The commands after the prompts of a transcript, with their continuation lines.
pub(super) fn prompted(lines: &[Line]) -> Vec<String> {
    let cuts: Vec<Vec<Cut<'_>>> = lines.iter().map(cuts).collect();
    let prompt = Prompt::of(&cuts);
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some(cuts) = cuts.get(at) {
        at += 1;
        let Some(cut) = cuts.iter().find(|cut| prompt.accepts(cut)) else { continue };
        let mut command = cut.command.to_owned();
        while let Some(more) = lines.get(at).filter(|_| is_incomplete(&command)).and_then(continuation) {
            command.push('\n');
            command.push_str(more);
            at += 1;
        }
        if !command.is_empty() {
            commands.push(command);
        }
    }
    commands
}

/// The prompt of a session.
struct Prompt {
    shape: Option<Shape>,
    /// Whether a line of this shape is output unless the terminal waited on it.
    waits: bool,
}

impl Prompt {
    fn of(cuts: &[Vec<Cut<'_>>]) -> Self {
        let mut shapes: BTreeMap<&Shape, Found> = BTreeMap::new();
        for (at, cuts) in cuts.iter().enumerate() {
            for (earlier, cut) in cuts.iter().enumerate() {
                // A line counts once for each shape.
                if cuts[..earlier].iter().any(|other| other.shape == cut.shape) {
                    continue;
                }
                let new = Found { first: at, length: cut.prompt.len(), ..Found::default() };
                shapes.entry(&cut.shape).or_insert(new).count(cut);
            }
        }
        let recurring = shapes.iter().filter(|(shape, found)| found.recurs(shape));
        let best = recurring.min_by_key(|(_, found)| {
            (found.waited < 2, found.first, usize::MAX - found.commands, found.length)
        });
        let waits = best.is_some_and(|(_, found)| found.waited >= 2 && found.waited * 2 >= found.commands);
        Self { shape: best.map(|(shape, _)| (*shape).clone()), waits }
    }

    fn accepts(&self, cut: &Cut<'_>) -> bool {
        let matches =
            |regex: &LazyLock<Option<Regex>>| regex.as_ref().is_some_and(|regex| regex.is_match(cut.prompt));
        let right = match &self.shape {
            Some(shape) => *shape == cut.shape || matches(&STRONG),
            None => !cut.command.is_empty() && (matches(&STRONG) || matches(&USUAL)),
        };
        right && (cut.waited || !self.waits)
    }
}

impl Found {
    fn count(&mut self, cut: &Cut<'_>) {
        self.lines += 1;
        self.waited += usize::from(cut.waited);
        self.commands += usize::from(!cut.command.is_empty());
        self.plausible += usize::from(COMMAND.as_ref().is_some_and(|regex| regex.is_match(cut.command)));
    }

    /// Whether this is the shape of a prompt.
    fn recurs(&self, shape: &Shape) -> bool {
        let plausible = self.commands > 0 && self.plausible * 100 >= self.commands * PLAUSIBLE;
        let least = match shape.0.as_str() {
            // The bare sign also begins comments, headings, quotations and lines of a diff.
            "#" => self.waited >= 2 || self.plausible >= 3 && self.plausible == self.commands,
            ">" => self.waited >= 2,
            _ => self.lines >= 2,
        };
        plausible && least
    }
}

/// The cuts of a line. The shortest prompt comes first.
fn cuts(line: &Line) -> Vec<Cut<'_>> {
    let text = line.text.as_str();
    if let Some(found) = SIGN_FIRST.as_ref().and_then(|regex| regex.find(text))
        && text[found.end()..].starts_with([' ']) | text[found.end()..].is_empty()
    {
        return vec![cut(line, found.end(), '➜')];
    }
    let mut cuts = Vec::new();
    let mut before = None;
    for (count, (at, character)) in text.char_indices().enumerate() {
        if count == LONGEST || cuts.len() == MOST_CUTS {
            break;
        }
        let end = at + character.len_utf8();
        let ends = text[end..].is_empty() || text[end..].starts_with(' ');
        // A percentage like `10%`, a REPL's `>>>`, or an arrow `->` ends no prompt.
        let other = match character {
            '%' => before.is_some_and(|before: char| before.is_ascii_digit()),
            '>' => before.is_some_and(|before| matches!(before, '>' | '-' | '=')),
            _ => false,
        };
        if ends && !other && (SIGNS.contains(&character) || RARE_SIGNS.contains(&character)) {
            cuts.push(cut(line, end, character));
        }
        before = Some(character);
    }
    cuts
}

fn cut(line: &Line, end: usize, sign: char) -> Cut<'_> {
    let (prompt, rest) = line.text.split_at(end);
    let command = rest.trim();
    let command = command.split_once(RIGHT_PROMPT).map_or(command, |(command, _)| command);
    let waited = line.waited.iter().any(|shown| shown == prompt);
    Cut { shape: shape(prompt, sign), prompt, command, waited }
}

fn shape(prompt: &str, sign: char) -> Shape {
    if RARE_SIGNS.contains(&sign) {
        return Shape(String::new(), sign);
    }
    let word = prompt.split_whitespace().next().unwrap_or_default();
    // The text after a colon changes during a session, e.g. the folder in `me@box:/srv`, or a
    // clock's minutes.
    let word = word.split_once(':').map_or(word, |(head, _)| head);
    let mut stable = String::new();
    if !word.starts_with(['/', '~']) {
        for character in word.chars() {
            match character {
                '0'..='9' if stable.ends_with('0') => {}
                '0'..='9' => stable.push('0'),
                other => stable.push(other),
            }
        }
    }
    Shape(stable, sign)
}

/// The rest of a command, on a line with the second prompt.
fn continuation(line: &Line) -> Option<&str> {
    let found = CONTINUATION.as_ref()?.captures(&line.text)?;
    Some(found.get(1).map_or("", |rest| rest.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: a transcript, and its commands. On a line with `|`, the terminal waited for input
    /// there.
    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let line = |text: &str| match text.split_once('|') {
            Some((shown, rest)) => Line {
                text: format!("{shown}{rest}").trim_end().to_owned(),
                waited: vec![shown.trim_end().to_owned()],
            },
            None => Line { text: text.trim_end().to_owned(), waited: Vec::new() },
        };
        let lines: Vec<_> = text.lines().map(line).collect();
        assert_eq!(prompted(&lines), expect, "{text}");
    }

    #[test]
    fn one_prompt_is_known_by_its_form() {
        check("$ ls -l", &["ls -l"]);
        check("root@box:/app# make test", &["make test"]);
        check("me@box:~/x (main) $ git log", &["git log"]);
        check("(venv) me@box:~$ python3 x.py", &["python3 x.py"]);
        check("[me@box data]$ wc -l a", &["wc -l a"]);
        check("~/src ❯ cargo test", &["cargo test"]);
        check("bash-5.2# id", &["id"]);
        check("# a comment in a file", &[]);
        check("total 12", &[]);
        check("it cost 5 $ yesterday", &[]);
        check("$ ", &[]);
    }

    #[test]
    fn a_prompt_of_any_form_recurs() {
        let four = ["make all", "sort -u a -o b", "./run b > c", "wc -l c"];
        // `…` stands for a part that changes, e.g. a folder or a time.
        for prompt in [
            "box% ",
            "me@box ~…> ",
            "~… ❯ ",
            "❯ ",
            "➜  work… ",
            "➜  work git:(main) ✗ ",
            "[12:3…] box % ",
            "12:3… $ ",
            "box:work… me$ ",
            "/work… # ",
            "└─$ ",
            "~…> ",
            "me in ~… λ ",
            "fish> ",
            "(env) box% ",
            "PS /work…> ",
            "# ",
            "work… (main) » ",
        ] {
            let mut text = String::new();
            for (at, command) in four.iter().enumerate() {
                let changing = if at < 2 { "/1" } else { "/25" };
                text += &prompt.replace('…', changing);
                text += &format!("{command}\nsome output: 10% done\n> 3 files\n");
            }
            check(&text, &four);
        }
    }

    #[test]
    fn output_that_looks_like_a_prompt() {
        check("me@box:~$ make\n$ of output\nme@box:~$ ls", &["make", "ls"]);
        check("$ cat a\n# Title\n# Other title\n$ ls", &["cat a", "ls"]);
        check(
            "$ sqlite3 a.db\nsqlite> .tables\nsqlite> .schema\nsqlite> .quit\n$ ls",
            &["sqlite3 a.db", "ls"],
        );
        check("$ python3\n>>> 1 + 1\n2\n>>> exit()\n$ ls", &["python3", "ls"]);
        check("# Title\ntext\n# Other title", &[]);
        check("a 10% of it\nb 20% of it", &[]);
        // The terminal waits at prompts, and not within output.
        check("$| cat a\n$ 5 due\n$ pay it\n$| ls\n$| exit", &["cat a", "ls", "exit"]);
        check("#| cat a\n# pay it\n#| ls\n#|", &["cat a", "ls"]);
    }

    #[test]
    fn other_shells_within_a_session() {
        check(
            "me@box:~$ sudo -i\nroot@box:~# make\nroot@box:~# exit\nme@box:~$ ls",
            &["sudo -i", "make", "exit", "ls"],
        );
        check("$ bash\nbash-5.2$ id\nbash-5.2$ exit\n$ ls", &["bash", "id", "exit", "ls"]);
    }

    #[test]
    fn commands_of_several_lines() {
        check("$ cat > a <<EOF\n> one\n>\n> EOF\n$ ls", &["cat > a <<EOF\none\n\nEOF", "ls"]);
        check("$ for i in 1 2; do\n> make $i\n> done\n1\n$ ls", &["for i in 1 2; do\nmake $i\ndone", "ls"]);
        check("box% echo 'a\nquote> b'\na\nb\nbox% ls", &["echo 'a\nb'", "ls"]);
        check("box% if true\nif> then\nthen> ls\nthen> fi\nbox% ls", &["if true\nthen\nls\nfi", "ls"]);
        // The output of `diff` is no part of the command.
        check("$ diff a b\n> one\n> two\n$ ls", &["diff a b", "ls"]);
        check("❯ ls          12:30:01\n❯ pwd          12:30:02", &["ls", "pwd"]);
    }
}
