//! Reads sessions that asciinema 1.4, 2.4 and 3 recorded in a container.

use std::path::Path;

use termsmith::assets::Assets;
use termsmith::recording::{Filters, Recording};

#[test]
fn recordings_of_three_versions() {
    let filters = Filters::load(&Assets::embedded()).unwrap();
    let mut text = String::new();
    let names = [
        "access-log.json",
        "archive-logs.cast",
        "merge-scales.json",
        "notes-release.cast",
        "recover-branch.cast",
        "shop-import.cast",
    ];
    for name in names {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name);
        let recording = Recording::read(&path).unwrap();
        assert_eq!(filters.refusal(&recording), None, "{name}");
        let commands = recording.commands.join("\n");
        text.push_str(&format!("== {name}\n{commands}\n-- shown\n{}\n", recording.excerpt()));
    }
    insta::assert_snapshot!(text);
}
