use tar::{Builder, EntryType, Header};

use super::*;

const ROOT: &str = "/app";

struct Entry {
    path: &'static str,
    kind: EntryType,
    link: &'static str,
    content: &'static str,
    mode: u32,
    owner: (u64, u64),
}

fn file(path: &'static str, content: &'static str) -> Entry {
    Entry { path, kind: EntryType::Regular, link: "", content, mode: 0o644, owner: (0, 0) }
}

fn link(path: &'static str, kind: EntryType, link: &'static str) -> Entry {
    Entry { path, kind, link, content: "", mode: 0o777, owner: (0, 0) }
}

/// An archive as an engine would send it. Names are written raw, also `..` and absolute paths.
fn archive(entries: &[Entry]) -> Vec<(String, Spooled)> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(entry.kind);
        header.set_mode(entry.mode);
        header.set_uid(entry.owner.0);
        header.set_gid(entry.owner.1);
        header.set_size(entry.content.len() as u64);
        let name = entry.path.as_bytes();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        let target = entry.link.as_bytes();
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target);
        header.set_cksum();
        builder.append(&header, entry.content.as_bytes()).unwrap();
    }
    vec![(ROOT.to_owned(), builder.into_inner().unwrap().into())]
}

/// The accepted entries, as `path kind mode link-or-content`.
fn listed(files: Packing) -> Vec<String> {
    let mut archive = Archive::new(files.finish().unwrap().reader());
    let mut lines = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mode = entry.header().mode().unwrap();
        let link = entry.link_name().unwrap().map(|link| link.display().to_string());
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        lines.push(format!("{path} {mode:o} {}", link.unwrap_or(content)));
    }
    lines
}

#[test]
fn hostile_entries_are_dropped() {
    let check = |entries: &[Entry], through: &[&str], dropped: &[&str]| {
        let submission = check_archives("subject", &archive(entries), &SubmissionLimits::default()).unwrap();
        assert_eq!(listed(submission.files), through);
        assert_eq!(submission.state.dropped.len(), dropped.len(), "{:?}", submission.state.dropped);
        for (have, want) in submission.state.dropped.iter().zip(dropped) {
            assert!(have.contains(want), "{have:?} lacks {want:?}");
        }
    };
    check(&[file("app/a", "x")], &["subject/app/a 644 x"], &[]);
    check(&[file("app/../../etc/passwd", "x")], &[], &["not a plain relative path"]);
    check(&[file("/etc/passwd", "x")], &[], &["not a plain relative path"]);
    check(&[link("app/l", EntryType::Symlink, "/etc/shadow")], &["subject/app/l 777 /etc/shadow"], &[]);
    check(&[link("app/h", EntryType::Link, "app/nothing")], &[], &["hard link to nothing"]);
    check(&[link("app/h", EntryType::Link, "../../etc/shadow")], &[], &["hard link to nothing"]);
    check(
        &[file("app/a", "x"), link("app/h", EntryType::Link, "app/a")],
        &["subject/app/a 644 x", "subject/app/h 777 subject/app/a"],
        &[],
    );
    check(
        &[
            link("app/d", EntryType::Symlink, "/tests"),
            file("app/d/test_outputs.py", "x"),
            file("app/d/e/f", "x"),
        ],
        &["subject/app/d 777 /tests"],
        &["below something that is no folder", "below something that is no folder"],
    );
    check(
        &[link("app/__pycache__", EntryType::Symlink, "/tests"), file("app/__pycache__/f", "x")],
        &["subject/app/__pycache__ 777 /tests"],
        &["below something that is no folder"],
    );
    check(&[file("app/a", "x"), file("app/a/b", "x")], &["subject/app/a 644 x"], &["below something"]);
    check(&[link("app/f", EntryType::Fifo, "")], &[], &["FIFO"]);
    check(
        &[link("app/d", EntryType::Block, ""), link("app/c", EntryType::Char, "")],
        &[],
        &["device", "device"],
    );
    check(&[Entry { mode: 0o6755, ..file("app/su", "x") }], &["subject/app/su 755 x"], &[]);
    check(&[file("app/with space\nand line", "x")], &["subject/app/with space\nand line 644 x"], &[]);
}

#[test]
fn reading_stops_at_the_bounds() {
    let many: Vec<_> = (0..5).map(|_| file("app/a", "12345678")).collect();
    let check = |limits: SubmissionLimits, expect: &str| {
        let error = check_archives("subject", &archive(&many), &limits).unwrap_err().to_string();
        assert!(error.contains(expect), "{error:?} lacks {expect:?}");
    };
    check(SubmissionLimits { bytes: 39, ..SubmissionLimits::default() }, "more than 39 bytes");
    check(SubmissionLimits { entries: 4, ..SubmissionLimits::default() }, "more than 4 entries");
    check(SubmissionLimits { depth: 1, ..SubmissionLimits::default() }, "more than 1 components");
    check(SubmissionLimits { names: 60, ..SubmissionLimits::default() }, "have more than 60 bytes");
    assert!(
        check_archives(
            "subject",
            &archive(&many),
            &SubmissionLimits { bytes: 40, entries: 5, depth: 2, names: 1000 }
        )
        .is_ok()
    );
    let mut cut = archive(&many);
    cut[0].1 = cut[0].1.bytes().unwrap()[..700].to_vec().into();
    assert!(matches!(
        check_archives("s", &cut, &SubmissionLimits::default()),
        Err(CheckError::Submission(SubmissionError::Damaged { .. }))
    ));
}

#[test]
fn equal_states_have_equal_hashes() {
    let state = |entries: &[Entry]| {
        check_archives("subject", &archive(entries), &SubmissionLimits::default())
            .unwrap()
            .state
            .hashes
            .unwrap()
    };
    let base = state(&[file("app/a", "x"), file("app/b", "y")]);
    assert_eq!(base, state(&[file("app/b", "y"), file("app/a", "x")]), "order");
    assert_eq!(
        base,
        state(&[file("app/a", "x"), file("app/b", "y"), file("app/__pycache__/m.pyc", "t")]),
        "cache"
    );
    let owned = |owner| Entry { owner, ..file("app/a", "x") };
    let to = |target| link("app/b", EntryType::Symlink, target);
    assert_ne!(state(&[to("a")]).exact, state(&[to("c")]).exact, "link target");
    for (what, other) in [
        ("content", state(&[file("app/a", "x"), file("app/b", "z")])),
        ("missing", state(&[file("app/a", "x")])),
        ("mode", state(&[Entry { mode: 0o600, ..file("app/a", "x") }, file("app/b", "y")])),
        ("kind", state(&[file("app/a", "x"), to("a")])),
        ("user", state(&[owned((1000, 0)), file("app/b", "y")])),
        ("group", state(&[owned((0, 1000)), file("app/b", "y")])),
    ] {
        assert_ne!(base.exact, other.exact, "{what}");
        assert_ne!(base.canonical_form, other.canonical_form, "{what}");
    }
}

#[test]
fn states_with_equal_canonical_form_differ_in_nothing_but_the_form_of_files() {
    let state = |entries: &[Entry]| {
        check_archives("subject", &archive(entries), &SubmissionLimits::default())
            .unwrap()
            .state
            .hashes
            .unwrap()
    };
    let folder = |path| Entry { kind: EntryType::Directory, ..file(path, "") };
    let base = [file("app/a.json", "{\"a\": 1, \"b\": 2}"), link("app/l", EntryType::Symlink, "a.json")];
    let check = |what: &str, other: &[Entry], expect: bool| {
        let (one, other) = (state(&base), state(other));
        assert_ne!(one.exact, other.exact, "{what}");
        assert_eq!(one.canonical_form == other.canonical_form, expect, "{what}");
    };
    let reordered = || file("app/a.json", "{\"b\":2,\"a\":1}\n");
    let linked = || link("app/l", EntryType::Symlink, "a.json");
    check("form", &[reordered(), linked()], true);
    check("value", &[file("app/a.json", "{\"a\": 1, \"b\": 3}"), linked()], false);
    check("mode", &[Entry { mode: 0o600, ..reordered() }, linked()], false);
    check("owner", &[Entry { owner: (5, 5), ..reordered() }, linked()], false);
    check("target", &[reordered(), link("app/l", EntryType::Symlink, "b.json")], false);
    check("folder", &[reordered(), linked(), folder("app/d")], false);
    check("deleted", &[reordered()], false);
}

#[test]
fn a_second_name_of_a_file_has_the_fingerprint_of_the_first() {
    let fingerprint = |entries: &[Entry]| {
        check_archives("subject", &archive(entries), &SubmissionLimits::default()).unwrap().state.fingerprint
    };
    let two = fingerprint(&[file("app/a", "x"), file("app/b", "x")]);
    assert_eq!(fingerprint(&[file("app/a", "x"), link("app/b", EntryType::Link, "app/a")]), two);
    assert_eq!(fingerprint(&[file("app/b", "x"), link("app/a", EntryType::Link, "app/b")]), two);
    let cache = fingerprint(&[file("app/a", "x"), link("app/__pycache__/b", EntryType::Link, "app/a")]);
    assert_eq!(cache.into_keys().collect::<Vec<_>>(), ["/app/a"]);
}
