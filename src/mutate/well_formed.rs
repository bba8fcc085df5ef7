//! Whether a mutant's outputs are there and can be read. One whose outputs cannot is killed by any check at all, and says
//! nothing about these.

use super::language::Language;

/// How an output differs in form from the reference's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("`{0}` is missing")]
    Missing(String),
    #[error("`{0}` is empty")]
    Empty(String),
    #[error("`{path}` is no {form}")]
    Form { path: String, form: &'static str },
    #[error("`{0}` has another header")]
    Header(String),
}

/// Ok when every file that the reference created or changed is there, is not empty unless the reference's is, and can be read
/// as what the reference's is. Both lists are absolute paths with contents.
pub fn well_formed(changed: &[(String, Vec<u8>)], reference: &[(String, Vec<u8>)]) -> Result<(), Malformed> {
    for (path, expected) in reference {
        let Some((_, got)) = changed.iter().find(|(have, _)| have == path) else {
            return Err(Malformed::Missing(path.clone()));
        };
        if got.is_empty() && !expected.is_empty() {
            return Err(Malformed::Empty(path.clone()));
        }
        if got == expected || expected.is_empty() {
            continue;
        }
        let form = Form::of(path, expected);
        if !form.fits(got) {
            return Err(Malformed::Form { path: path.clone(), form: form.name() });
        }
        if form == Form::Table && first_line(got) != first_line(expected) {
            return Err(Malformed::Header(path.clone()));
        }
    }
    Ok(())
}

/// What a file is. A form is only asked of a mutant's file if the reference's file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    JsonLines,
    Toml,
    Table,
    Python,
    Shell,
    Markup,
    Sqlite,
    Gzip,
    Zip,
    Elf,
    Text,
    Binary,
}

const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZIP_MAGIC: &[u8] = b"PK";
const ELF_MAGIC: &[u8] = b"\x7fELF";

impl Form {
    fn of(path: &str, bytes: &[u8]) -> Self {
        let ending =
            path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
        let by_name = match ending {
            "json" | "geojson" | "ipynb" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "toml" => Some(Self::Toml),
            "csv" | "tsv" => Some(Self::Table),
            "py" => Some(Self::Python),
            "sh" | "bash" => Some(Self::Shell),
            "xml" | "html" | "htm" | "svg" => Some(Self::Markup),
            _ => None,
        };
        let by_shebang = || {
            let text = std::str::from_utf8(bytes).ok()?;
            match Language::of_shebang(text)? {
                Language::Python => Some(Self::Python),
                Language::Bash => Some(Self::Shell),
                _ => None,
            }
        };
        let by_magic = [Self::Sqlite, Self::Gzip, Self::Zip, Self::Elf].into_iter();
        by_name
            .into_iter()
            .chain(by_shebang())
            .chain(by_magic)
            .find(|form| form.fits(bytes))
            .unwrap_or(if is_text(bytes) { Self::Text } else { Self::Binary })
    }

    fn fits(self, bytes: &[u8]) -> bool {
        let text = || std::str::from_utf8(bytes).ok();
        let parses = |language: Language| text().is_some_and(|text| language.faults(text) == 0);
        match self {
            Self::Json => serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok(),
            Self::JsonLines => text().is_some_and(|text| {
                let mut lines = text.lines().filter(|line| !line.trim().is_empty());
                lines.all(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok())
            }),
            Self::Toml => text().is_some_and(|text| toml::from_str::<toml::Table>(text).is_ok()),
            Self::Python => parses(Language::Python),
            Self::Shell => parses(Language::Bash),
            Self::Markup => text().is_some_and(|text| {
                let text = text.trim();
                text.starts_with('<')
                    && text.ends_with('>')
                    && text.matches('<').count() == text.matches('>').count()
            }),
            Self::Sqlite => bytes.starts_with(SQLITE_MAGIC),
            Self::Gzip => bytes.starts_with(GZIP_MAGIC),
            Self::Zip => bytes.starts_with(ZIP_MAGIC),
            Self::Elf => bytes.starts_with(ELF_MAGIC),
            Self::Text | Self::Table => is_text(bytes),
            Self::Binary => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::JsonLines => "JSON lines",
            Self::Toml => "TOML",
            Self::Table => "table",
            Self::Python => "Python program",
            Self::Shell => "shell script",
            Self::Markup => "markup",
            Self::Sqlite => "SQLite database",
            Self::Gzip => "gzip file",
            Self::Zip => "zip archive",
            Self::Elf => "program",
            Self::Text => "text",
            Self::Binary => "binary file",
        }
    }
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, reference: &[u8], got: &[u8], expect: Result<(), &str>) {
        let files = |bytes: &[u8]| vec![(path.to_owned(), bytes.to_vec())];
        let result = well_formed(&files(got), &files(reference)).map_err(|error| error.to_string());
        assert_eq!(result, expect.map_err(str::to_owned), "{path}: {}", String::from_utf8_lossy(got));
    }

    #[test]
    fn outputs_are_read_as_what_the_reference_wrote() {
        for (path, reference, got, expect) in [
            ("/a", "x\n", "y\n", Ok(())),
            ("/a", "x\n", "", Err("`/a` is empty")),
            ("/a", "", "y", Ok(())),
            ("/a", "", "", Ok(())),
            ("/a", "x\n", "y\0", Err("`/a` is no text")),
            ("/a.json", "{\"a\": 1}", "{\"a\": 2}", Ok(())),
            ("/a.json", "{\"a\": 1}", "{\"a\": ", Err("`/a.json` is no JSON")),
            ("/a.json", "// of no consequence", "{", Ok(())),
            ("/a.jsonl", "1\n2\n", "1\n\n3\n", Ok(())),
            ("/a.jsonl", "1\n2\n", "1\nx\n", Err("`/a.jsonl` is no JSON lines")),
            ("/a.csv", "a,b\n1,2\n", "a,b\n", Ok(())),
            ("/a.csv", "a,b\n1,2\n", "b,a\n1,2\n", Err("`/a.csv` has another header")),
            ("/a.toml", "a = 1\n", "a =\n", Err("`/a.toml` is no TOML")),
            ("/a.py", "a = 1\n", "a = (\n", Err("`/a.py` is no Python program")),
            ("/tool", "#!/bin/bash\ntrue\n", "#!/bin/bash\nif\n", Err("`/tool` is no shell script")),
            ("/a.html", "<p>x</p>\n", "<p>y</p>\n", Ok(())),
            ("/a.html", "<p>x</p>\n", "<p>y</p\n", Err("`/a.html` is no markup")),
            ("/db", "SQLite format 3\0xx", "SQLite format 3\0yy", Ok(())),
            ("/db", "SQLite format 3\0xx", "yy", Err("`/db` is no SQLite database")),
        ] {
            check(path, reference.as_bytes(), got.as_bytes(), expect);
        }
        check("/a.gz", &[0x1f, 0x8b, 1], &[0x1f, 0x8b, 2], Ok(()));
        check("/a.gz", &[0x1f, 0x8b, 1], b"text", Err("`/a.gz` is no gzip file"));
    }

    #[test]
    fn every_output_must_be_there() {
        let reference = [("/a".to_owned(), b"1".to_vec()), ("/b".to_owned(), b"1".to_vec())];
        assert_eq!(well_formed(&reference[..1], &reference), Err(Malformed::Missing("/b".to_owned())));
        assert_eq!(well_formed(&reference, &reference[..1]), Ok(()));
    }
}
