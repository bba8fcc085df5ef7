//! Reads files from a model's reply.

use crate::model::{File, FileTree, RelPath};

/// Bytes of all files of one reply. No stage asks for that much.
const MAX_BYTES: usize = 1 << 20;
/// The beginning of a block, up to the path.
const OPENING: &str = "<file path=\"";
/// The end of a block.
const CLOSING: &str = "</file>";

/// The files in blocks `<file path="…">`. Each block ends with `</file>` on a line of its own. Text
/// around blocks is ignored.
///
/// A file's name decides whether it is executable, e.g. a script is.
pub(super) fn files_in(reply: &str) -> Result<FileTree, String> {
    let mut files = FileTree::default();
    let mut lines = reply.lines();
    let mut bytes = 0;
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim().strip_prefix(OPENING) else { continue };
        let path = rest.strip_suffix("\">").filter(|path| !path.contains('"'));
        let path = path.ok_or_else(|| format!("`{line}` is not `{OPENING}PATH\">`"))?;
        let path = RelPath::new(path).map_err(|error| format!("the file `{path}`: {error}"))?;
        let mut content = String::new();
        loop {
            let line =
                lines.next().ok_or_else(|| format!("the block of `{path}` is not closed by `{CLOSING}`"))?;
            if line.trim_end() == CLOSING {
                break;
            }
            content.push_str(line);
            content.push('\n');
        }
        bytes += content.len();
        if bytes > MAX_BYTES {
            return Err(format!("the files are larger than {MAX_BYTES} bytes in all"));
        }
        let executable = path.as_str().ends_with(".sh") || path.as_str().ends_with(".py");
        if files.get(path.as_str()).is_some() {
            return Err(format!("`{path}` occurs twice"));
        }
        files.insert(path, File { bytes: content.into_bytes(), executable });
    }
    if files.is_empty() {
        return Err(format!("it has no block `{OPENING}PATH\">` … `{CLOSING}`"));
    }
    Ok(files)
}

/// The beginning of a block that edits a file of the former version.
const EDIT: &str = "<edit path=\"";
const EDIT_END: &str = "</edit>";
/// Markers around the old and the new text of an edit, as in a conflict of git.
const OLD: &str = "<<<<<<<";
const BETWEEN: &str = "=======";
const NEW_END: &str = ">>>>>>>";

/// The files of a reply that corrects `before`. Without blocks `<edit path="…">`, it is read like
/// [`files_in`]. With them, `before` is kept: whole files replace theirs, then edits apply. The old
/// text of an edit must occur exactly once.
pub(super) fn corrected(reply: &str, before: &FileTree) -> Result<FileTree, String> {
    let (rest, edits) = edits_in(reply)?;
    if edits.is_empty() {
        return files_in(reply);
    }
    let mut files = before.clone();
    if rest.contains(OPENING) {
        for (path, file) in files_in(&rest)?.iter() {
            files.insert(path.clone(), file.clone());
        }
    }
    for Edit { path, old, new } in edits {
        let file = files.get(path.as_str()).ok_or_else(|| format!("there is no `{path}` to edit"))?;
        let text = file.as_text().ok_or_else(|| format!("`{path}` is not text"))?;
        // The old text may end within a line.
        let within = |text: &str| text.strip_suffix('\n').map(str::to_owned);
        let (old, new) = match (text.contains(&old), within(&old), within(&new)) {
            (false, Some(old), Some(new)) => (old, new),
            _ => (old, new),
        };
        match text.matches(&old).count() {
            1 => {}
            0 => return Err(format!("`{path}` does not have the text that an edit replaces:\n{old}")),
            times => {
                return Err(format!(
                    "`{path}` has the text that an edit replaces {times} times; show more of it:\n{old}"
                ));
            }
        }
        let edited = File { bytes: text.replacen(&old, &new, 1).into_bytes(), ..file.clone() };
        files.insert(path, edited);
    }
    Ok(files)
}

/// An old text, and the new text in its place.
struct Edit {
    path: RelPath,
    old: String,
    new: String,
}

/// The edits of a reply, and the rest of the text.
fn edits_in(reply: &str) -> Result<(String, Vec<Edit>), String> {
    let (mut rest, mut edits) = (String::new(), Vec::new());
    let mut lines = reply.lines();
    let mut in_file = false;
    while let Some(line) = lines.next() {
        let opening = line.trim().strip_prefix(EDIT).filter(|_| !in_file);
        let Some(path) = opening else {
            in_file = (in_file || line.trim().starts_with(OPENING)) && line.trim_end() != CLOSING;
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let path = path.strip_suffix("\">").ok_or_else(|| format!("`{line}` is not `{EDIT}PATH\">`"))?;
        let path = RelPath::new(path).map_err(|error| format!("the file `{path}`: {error}"))?;
        loop {
            let incomplete =
                || format!("the edit of `{path}` is incomplete: {OLD}, {BETWEEN}, {NEW_END}, {EDIT_END}");
            let line = lines.next().ok_or_else(incomplete)?;
            match line.trim_end() {
                EDIT_END => break,
                OLD => {
                    let mut until = |end: &str| -> Result<String, String> {
                        let mut text = String::new();
                        loop {
                            let line = lines.next().ok_or_else(incomplete)?;
                            if line.trim_end() == end {
                                return Ok(text);
                            }
                            text.push_str(line);
                            text.push('\n');
                        }
                    };
                    let (old, new) = (until(BETWEEN)?, until(NEW_END)?);
                    if old.is_empty() {
                        return Err(format!("an edit of `{path}` replaces nothing"));
                    }
                    edits.push(Edit { path: path.clone(), old, new });
                }
                "" => {}
                _ => return Err(incomplete()),
            }
        }
    }
    Ok((rest, edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found() {
        let check = |reply: &str, expect: Result<&[(&str, &str)], &str>| match (files_in(reply), expect) {
            (Ok(files), Ok(expect)) => {
                let found: Vec<_> =
                    files.iter().map(|(path, file)| (path.as_str(), file.as_text().unwrap())).collect();
                assert_eq!(found, expect, "{reply}");
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (found, expect) => panic!("{found:?} where {expect:?} was expected"),
        };
        check("Here:\n<file path=\"a\">\nx\n</file>\nDone.", Ok(&[("a", "x\n")]));
        check(
            "<file path=\"app/b.txt\">\n</file>\n<file path=\"a.sh\">\n\n</file>",
            Ok(&[("a.sh", "\n"), ("app/b.txt", "")]),
        );
        check("```\n<file path=\"a\">\n<file path=\"b\">\n</file>\n```", Ok(&[("a", "<file path=\"b\">\n")]));
        check("<file path=\"a\">\n  </file>\n</file>", Ok(&[("a", "  </file>\n")]));
        check("<file path=\"a\">\nx\n", Err("not closed"));
        check("<file path=\"a\">\n</file>\n<file path=\"a\">\n</file>", Err("twice"));
        check("<file path=\"../a\">\n</file>", Err("../a"));
        check("<file path=\"/etc/passwd\">\n</file>", Err("/etc/passwd"));
        check("<file path=\"a\" mode=\"1\">\n</file>", Err("is not"));
        check("no files", Err("has no block"));
    }

    #[test]
    fn corrections_may_be_edits() {
        let file = |text: &str| File { bytes: text.as_bytes().to_vec(), executable: false };
        let path = |path: &str| RelPath::new(path).unwrap();
        let before = FileTree::from_iter([(path("a"), file("1\n2\n3\n")), (path("b"), file("x\n"))]);
        let check =
            |reply: &str, expect: Result<&[(&str, &str)], &str>| match (corrected(reply, &before), expect) {
                (Ok(files), Ok(expect)) => {
                    let found: Vec<_> =
                        files.iter().map(|(path, file)| (path.as_str(), file.as_text().unwrap())).collect();
                    assert_eq!(found, expect, "{reply}");
                }
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, expect) => panic!("{found:?} where {expect:?} was expected"),
            };
        let edit = |old: &str, new: &str| format!("<<<<<<<\n{old}=======\n{new}>>>>>>>\n");
        let block = |edits: &str| format!("So:\n<edit path=\"a\">\n{edits}</edit>\n");
        check(&block(&edit("2\n", "two\n")), Ok(&[("a", "1\ntwo\n3\n"), ("b", "x\n")]));
        check(&block(&(edit("1\n", "") + &edit("3\n", "3\n4\n"))), Ok(&[("a", "2\n3\n4\n"), ("b", "x\n")]));
        let whole = "<file path=\"b\">\n<edit path=\"a\">\n</file>\n";
        check(
            &format!("{whole}{}", block(&edit("1\n", "0\n"))),
            Ok(&[("a", "0\n2\n3\n"), ("b", "<edit path=\"a\">\n")]),
        );
        check("<file path=\"c\">\ny\n</file>", Ok(&[("c", "y\n")]));
        check(&block(&edit("1\n2\n", "1\ntwo\n")), Ok(&[("a", "1\ntwo\n3\n"), ("b", "x\n")]));
        let longer = FileTree::from_iter([(path("a"), file("x = [1,\n  2]\n"))]);
        let part = corrected(&block(&edit("x =\n", "y =\n")), &longer).unwrap();
        assert_eq!(part.text("a"), Some("y = [1,\n  2]\n"));
        check(&block(&edit("4\n", "")), Err("does not have the text"));
        check(&block(&edit("", "0\n")), Err("replaces nothing"));
        check(&block("<<<<<<<\n1\n=======\n"), Err("incomplete"));
        check(&block("1\n"), Err("incomplete"));
        check("<edit path=\"z\">\n<<<<<<<\n1\n=======\n>>>>>>>\n</edit>", Err("no `z` to edit"));
        check("<edit path=\"../a\">\n</edit>", Err("../a"));
        check("nothing", Err("has no block"));
    }
}
