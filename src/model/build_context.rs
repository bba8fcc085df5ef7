//! The files that Docker's builders get from a build context: all but those that `.dockerignore`
//! excludes.

use regex::Regex;

use super::FileTree;

/// Names of ignore files, in order of precedence. BuildKit prefers the one that is named after the
/// Dockerfile.
const IGNORE_FILES: [&str; 2] = ["Dockerfile.dockerignore", ".dockerignore"];

/// Builders read these even if they are excluded. The engine itself hides excluded ones from COPY
/// and ADD.
const ALWAYS_SENT: [&str; 2] = ["Dockerfile", ".dockerignore"];

/// A pattern in an ignore file that Docker refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`, line {line}: `{pattern}` is not a valid pattern")]
pub struct IgnoreError {
    pub file: &'static str,
    /// From 1.
    pub line: usize,
    pub pattern: String,
}

/// The patterns of an ignore file, in the file's order.
#[derive(Debug, Default)]
pub struct IgnoreRules(Vec<IgnoreRule>);

#[derive(Debug)]
struct IgnoreRule {
    paths: Regex,
    effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Exclude,
    /// `!pattern`: includes again what an earlier pattern excluded.
    Include,
}

impl IgnoreRules {
    /// The rules of the ignore file in `context`. No rules if there is none.
    pub fn of(context: &FileTree) -> Result<Self, IgnoreError> {
        let found = IGNORE_FILES.into_iter().find_map(|file| Some((file, context.text(file)?)));
        found.map_or(Ok(Self::default()), |(file, text)| Self::parse(file, text))
    }

    fn parse(file: &'static str, text: &str) -> Result<Self, IgnoreError> {
        let mut rules = Vec::new();
        for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            if text.starts_with('#') || text.trim().is_empty() {
                continue;
            }
            let (effect, pattern) = match text.trim().strip_prefix('!') {
                Some(pattern) => (Effect::Include, pattern.trim()),
                None => (Effect::Exclude, text.trim()),
            };
            let refused = || IgnoreError { file, line, pattern: text.trim().to_owned() };
            let paths = Some(pattern).filter(|pattern| !pattern.is_empty());
            let paths = paths.and_then(|pattern| glob(&cleaned(pattern), Stars::CrossFolders));
            rules.push(IgnoreRule { paths: paths.ok_or_else(refused)?, effect });
        }
        Ok(Self(rules))
    }

    /// Whether `path` in the context is excluded. A match of a folder also holds for everything in
    /// it, until a later pattern says otherwise.
    pub fn excludes(&self, path: &str) -> bool {
        let mut matched = vec![false; self.0.len()];
        let mut excluded = false;
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for here in ends.map(|end| &path[..end]) {
            excluded = false;
            for (rule, matched) in self.0.iter().zip(&mut matched) {
                // Skip a pattern that would not change the result. A pattern that matched a parent
                // folder matches here too.
                let decides = (rule.effect == Effect::Include) == excluded;
                *matched |= decides && rule.paths.is_match(here);
                if *matched {
                    excluded = rule.effect == Effect::Exclude;
                }
            }
        }
        excluded
    }
}

impl FileTree {
    /// The part of a build context that a builder receives.
    pub fn sent_to_builder(&self) -> Result<Self, IgnoreError> {
        let rules = IgnoreRules::of(self)?;
        let mut sent = self.clone();
        sent.files.retain(|path, _| ALWAYS_SENT.contains(&path.as_str()) || !rules.excludes(path.as_str()));
        sent.empty_folders.retain(|path| !rules.excludes(path.as_str()));
        sent.links.retain(|path, _| !rules.excludes(path.as_str()));
        Ok(sent)
    }
}

/// Normalises a path: `/a/./b/../c/` becomes `a/c`. `..` at the root has no effect: `/../a` becomes
/// `a`. A relative path may begin with it: `../a` stays `../a`.
pub fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What a star in a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stars {
    /// `**` matches any number of folders.
    CrossFolders,
    /// No star matches a `/`, as in COPY.
    WithinFolder,
}

/// Compiles a Docker pattern (Go's `filepath.Match`) to an expression for whole paths. Returns
/// `None` if Docker refuses the pattern.
pub fn glob(pattern: &str, stars: Stars) -> Option<Regex> {
    let mut expression = String::from("(?s)^");
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(char) = chars.next() {
        let literal = match char {
            '\\' => chars.next()?,
            ']' if in_class => {
                in_class = false;
                expression.push(']');
                continue;
            }
            '^' | '-' if in_class => {
                expression.push(char);
                continue;
            }
            other if in_class => other,
            '[' => {
                in_class = true;
                expression.push('[');
                continue;
            }
            '*' if stars == Stars::CrossFolders && chars.next_if_eq(&'*').is_some() => {
                // `**/` is one token.
                let folder = chars.next_if_eq(&'/').is_some();
                let at_start = expression.len() == "(?s)^".len();
                let whole = chars.peek().is_none() || (at_start && !folder);
                expression.push_str(if whole { ".*" } else { "(.*/)?" });
                continue;
            }
            '*' => {
                expression.push_str("[^/]*");
                continue;
            }
            '?' => {
                expression.push_str("[^/]");
                continue;
            }
            other => other,
        };
        expression.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
    }
    expression.push('$');
    if in_class { None } else { Regex::new(&expression).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{File, RelPath};

    #[test]
    fn ignore_files_exclude_as_docker_does() {
        let check = |ignore: &str, path: &str, expect: bool| {
            let rules = IgnoreRules::parse(".dockerignore", ignore).unwrap();
            assert_eq!(rules.excludes(path), expect, "{ignore:?} {path}");
        };
        check("", "a", false);
        check("data", "data", true);
        check("data", "data/a/b.txt", true);
        check("data", "x/data", false);
        check("data", "database", false);
        // Written with a slash, or from the root of the context.
        check("/data/", "data/a", true);
        check("./data/../b", "b", true);
        check("/../b", "b", true);
        check("../b", "b", false);
        check("# data", "# data", false);
        check(" # data", "# data", true);
        check("\u{feff}data\r\n\r\n b ", "data", true);
        check("\u{feff}data\r\n\r\n b ", "b", true);
        check("*.txt", "a.txt", true);
        check("*.txt", "b/a.txt", false);
        check("*/*.txt", "b/a.txt", true);
        check("**/*.txt", "b/c/a.txt", true);
        check("**/*.txt", "a.txt", true);
        check("**/node_modules", "a/node_modules/x", true);
        check("a/**/z", "a/z", true);
        check("a/**/z", "a/b/c/z", true);
        check("a/**", "a/b/c", true);
        check("a/**", "a", false);
        check("**", "a/b", true);
        check("**.log", "a/b.log", true);
        check("a?c", "abc", true);
        check("a?c", "a/c", false);
        check("[a-c]x", "bx", true);
        check("[^a-c]x", "bx", false);
        check("a\\*", "a*", true);
        check("a\\*", "ab", false);
        check("a.c", "abc", false);
        // The last pattern that matches decides.
        check("*\n!keep", "keep", false);
        check("*\n!keep", "keep/a", false);
        check("!keep\n*", "keep", true);
        check("*\n!a/keep", "a/keep", false);
        check("*\n!a/keep", "a/other", true);
        check("*\n!**/*.py", "a/b.py", false);
        check("*\n!a\na/secret", "a/secret", true);
        check("*\n!a\na/secret", "a/b", false);
        check("*.md\n!README*.md\nREADME-secret.md", "README-secret.md", true);
        check("a\n! b", "b", false);
    }

    #[test]
    fn patterns_that_docker_refuses() {
        let check = |ignore: &str, line: usize, pattern: &str| {
            let error = IgnoreRules::parse(".dockerignore", ignore).unwrap_err();
            assert_eq!((error.line, error.pattern.as_str()), (line, pattern), "{ignore:?}");
        };
        check("a\n[b", 2, "[b");
        check("!", 1, "!");
        check("a\\", 1, "a\\");
    }

    #[test]
    fn builders_receive_the_rest() {
        let check = |files: &[&str], folders: &[&str], ignore: &[(&str, &str)], expect: &[&str]| {
            let path = |path: &&str| RelPath::new(*path).unwrap();
            let mut tree: FileTree = files.iter().map(|name| (path(name), File::text(""))).collect();
            tree.empty_folders = folders.iter().map(path).collect();
            for (name, text) in ignore {
                tree.insert(path(name), File::text(*text));
            }
            let sent = tree.sent_to_builder().unwrap();
            let got: Vec<_> = sent.files.keys().chain(&sent.empty_folders).map(RelPath::as_str).collect();
            assert_eq!(got, expect);
        };
        check(&["Dockerfile", "a"], &["in"], &[], &["Dockerfile", "a", "in"]);
        check(
            &["Dockerfile", "a", "b/c"],
            &["in", "out"],
            &[(".dockerignore", "*\n!b\n!in")],
            &[".dockerignore", "Dockerfile", "b/c", "in"],
        );
        check(
            &["Dockerfile", "a", "b"],
            &[],
            &[(".dockerignore", "a"), ("Dockerfile.dockerignore", "b")],
            &[".dockerignore", "Dockerfile", "Dockerfile.dockerignore", "a"],
        );
    }
}
