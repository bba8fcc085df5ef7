//! Names of entries in an archive that an engine wrote from hostile files.
//!
//! The `tar` crate splits the records of PAX headers at line ends. A file's name may contain a line
//! end and, behind it, a forged record. So any file could pass for another one. Records are read
//! here by their lengths, as POSIX defines them (pax, "pax Extended Header").

use std::io::{Error, ErrorKind, Read};

use tar::{Entry, EntryType};

/// Maximum bytes of one extended header. It holds a path and a link's target of maximum length, and
/// attributes that are ignored.
const MAX_HEADER: u64 = 1 << 20;

/// The contents of extended headers about the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    /// Owners whose numbers do not fit into the plain header.
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
}

impl Names {
    /// Reads `entry` if it is an extended header. Returns whether it was one.
    pub(super) fn read<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<bool, Error> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::XHeader => self.records(&content(entry)?)?,
            EntryType::GNULongName => self.path = Some(text(content(entry)?)),
            EntryType::GNULongLink => self.link = Some(text(content(entry)?)),
            // A global header names no single entry.
            EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads records `LENGTH KEY=VALUE\n`. LENGTH counts the whole record.
    fn records(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            let (record, rest) =
                record(data).ok_or_else(|| damaged("a record of a PAX header is malformed"))?;
            match record {
                (b"path", value) => self.path = Some(value.to_vec()),
                (b"linkpath", value) => self.link = Some(value.to_vec()),
                (b"uid", value) => self.uid = Some(number(value)?),
                (b"gid", value) => self.gid = Some(number(value)?),
                // The plain header says 0 for such a file, so its content would be read as headers.
                // Archives of such files are refused earlier.
                (b"size", _) => return Err(damaged("a file of more than 8 GiB")),
                _ => {}
            }
            data = rest;
        }
        Ok(())
    }
}

type Record<'a> = (&'a [u8], &'a [u8]);

/// The first record of `data`, and the rest.
fn record(data: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let blank = data.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&data[..blank]).ok()?.parse().ok()?;
    let (record, rest) = data.split_at_checked(length)?;
    let record = record.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some(((&record[..equals], &record[equals + 1..]), rest))
}

fn number(value: &[u8]) -> Result<u64, Error> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| damaged("an owner of a PAX header is no number"))
}

fn content<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Error> {
    let size = entry.size();
    let mut content = Vec::new();
    entry.take(MAX_HEADER + 1).read_to_end(&mut content)?;
    if content.len() as u64 != size {
        return Err(damaged("an extended header is too long, or cut off"));
    }
    Ok(content)
}

/// A name without its final NUL.
fn text(mut content: Vec<u8>) -> Vec<u8> {
    while content.last() == Some(&0) {
        content.pop();
    }
    content
}

fn damaged(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_long_as_they_say() {
        type Read<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);
        let check = |data: &[u8], expect: Option<Read<'_>>| {
            let mut names = Names::default();
            let read = names.records(data).ok().map(|()| (names.path.as_deref(), names.link.as_deref()));
            assert_eq!(read, expect, "{}", data.escape_ascii());
        };
        check(b"", Some((None, None)));
        check(b"12 path=a/b\n", Some((Some(b"a/b"), None)));
        check(b"30 mtime=1700000000.123456789\n12 path=a/b\n", Some((Some(b"a/b"), None)));
        check(b"18 linkpath=../a\n\n", Some((None, Some(b"../a\n"))));
        // A record inside a name is part of the name.
        check(b"34 path=a\n24 path=tests/x.py\nzzzz\n", Some((Some(b"a\n24 path=tests/x.py\nzzzz"), None)));
        check(b"9 path=a/b\n", None);
        check(b"99 path=a/b\n", None);
        check(b"12 path\n", None);
        check(b"x path=a\n", None);
        check(b"0 path=a\n", None);
        check(b"20 size=10000000000\n", None);
        check(b"9 uid=-1\n", None);
        let mut names = Names::default();
        names.records(b"15 uid=3000000\n15 gid=3000001\n").unwrap();
        assert_eq!((names.uid, names.gid), (Some(3_000_000), Some(3_000_001)));
    }
}
