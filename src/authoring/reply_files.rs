//! Files in a model's reply.

use crate::model::{File, FileTree, RelPath};

/// Bytes of all files of one reply. A larger one is not what any stage asks for.
const MAX_BYTES: usize = 1 << 20;
/// The beginning of a block, up to the path.
const OPENING: &str = "<file path=\"";
/// The end of a block.
const CLOSING: &str = "</file>";

/// The files of blocks `<file path="…">`, each closed by `</file>` on a line of its own. Text around blocks is ignored.
///
/// Scripts are executable by their name.
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
}
