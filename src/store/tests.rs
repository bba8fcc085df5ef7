use std::fs;
use std::path::Path;

use super::run_dir::builds_of;
use super::stage::key_of;
use super::*;
use crate::model::{File, FileTree, Key, RelPath};

const NUMBERS: Stage = Stage::computed("numbers");

fn open(root: &Path) -> Store {
    Store::new(RunDir::open(root).unwrap())
}

#[test]
fn records_and_observations_come_back() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    let key = key(NUMBERS, &[1, 2]).unwrap();
    assert_eq!(store.get::<Vec<u32>>(NUMBERS, &key).unwrap(), None);
    store.observe(&key, &"seen").unwrap();
    store.put(NUMBERS, &key, &vec![3]).unwrap();
    assert_eq!(store.get::<Vec<u32>>(NUMBERS, &key).unwrap(), Some(vec![3]));
    assert_eq!(store.observed::<String>(&key).unwrap().as_deref(), Some("seen"));
    assert_eq!(store.keys(NUMBERS).unwrap(), std::slice::from_ref(&key));
    // Notes can be added and removed. Clones see the same folder.
    let (first, second) = (super::key(NUMBERS, &[8]).unwrap(), super::key(NUMBERS, &[9]).unwrap());
    for noted in [&first, &second] {
        store.note(noted, &"started").unwrap();
    }
    store.clone().forget(&first).unwrap();
    store.forget(&first).unwrap();
    assert_eq!(store.notes::<String>().unwrap(), [(second.clone(), Some("started".to_owned()))]);
    assert_eq!(store.notes::<u32>().unwrap(), [(second, None)]);
}

/// Writes a result of another build.
fn put_by(store: &Store, build: &str, input: u32) -> Key {
    let key = key_of(build, NUMBERS, &input).unwrap();
    let text = format!("{{\"build\":\"{build}\",\"stage\":\"numbers\",\"value\":1}}\n");
    let path = format!("store/numbers/{}/{key}.json", &key.as_str()[..2]);
    store.dir().publish_file(&path, &File::text(text)).unwrap();
    key
}

#[test]
fn of_the_results_for_one_input_the_latest_counts() {
    // Each row: the builds that made a result, those that wrote to the folder in this order, and
    // the build whose result counts.
    let check = |made: &[&str], wrote: &[&str], expect: &str| {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path());
        let own = build_id();
        let named = |build: &str| if build == "own" { own.to_owned() } else { build.to_owned() };
        let info = RunInfo {
            format: RUN_FORMAT,
            tool: String::new(),
            builds: wrote.iter().map(|build| named(build)).collect(),
        };
        fs::write(root.path().join("run.json"), serde_json::to_string(&info).unwrap()).unwrap();
        for build in made {
            let key = put_by(&store, &named(build), 1);
            assert_eq!(store.get::<u32>(NUMBERS, &key).unwrap(), Some(1));
            assert_eq!(store.build(NUMBERS, &key).unwrap(), Some(named(build)));
        }
        let other = put_by(&store, "x", 2);
        let mut expect = vec![key_of(&named(expect), NUMBERS, &1).unwrap(), other];
        expect.sort();
        assert_eq!(store.latest(NUMBERS).unwrap(), expect, "{made:?}, {wrote:?}");
    };
    check(&["a"], &["a", "own"], "a");
    check(&["a", "own"], &["own", "a"], "own");
    check(&["a", "b"], &["a", "b"], "b");
    check(&["a", "b"], &["b", "a", "own"], "a");
    check(&["b", "c"], &["b"], "b");
    // Merged from elsewhere.
    check(&["b", "c"], &[], "c");
}

#[test]
fn a_run_folder_lists_the_builds_that_wrote_to_it() {
    let root = tempfile::tempdir().unwrap();
    let check = |before: &str, expect: &[&str]| {
        fs::write(root.path().join("run.json"), before).unwrap();
        drop(open(root.path()));
        let builds: Vec<_> = expect.iter().map(|build| build.replace("own", build_id())).collect();
        assert_eq!(builds_of(root.path()).unwrap(), builds, "{before}");
    };
    check(r#"{"format":1,"tool":"0"}"#, &["own"]);
    check(r#"{"format":1,"tool":"0","builds":["a"]}"#, &["a", "own"]);
    check(&format!(r#"{{"format":1,"tool":"0","builds":["{}","a"]}}"#, build_id()), &["a", "own"]);
}

#[test]
fn what_is_no_record_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    let key = key(NUMBERS, &1).unwrap();
    store.put(NUMBERS, &key, &1).unwrap();
    let check = |path: &str| {
        let path = root.path().join("store/numbers").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(store.keys(NUMBERS).unwrap(), std::slice::from_ref(&key), "{}", path.display());
    };
    check(".DS_Store");
    check(&format!("{key}.json"));
    check("ab/.DS_Store");
    check("ab/not-a-key.json");
    check("other/notes.txt");
}

/// A run folder may come from elsewhere, with anything in place of a file.
#[test]
fn entries_that_are_no_files_are_refused() {
    use std::os::unix::fs::symlink;

    let check = |relative: &str, act: fn(&Path) -> Result<(), StoreError>| {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let private = elsewhere.path().join("private");
        fs::write(&private, "private").unwrap();
        let record = key(NUMBERS, &1).unwrap();
        open(root.path()).put(NUMBERS, &record, &1).unwrap();
        let entry = root.path().join(relative.replace("KEY", &format!("{}/{record}", &record.as_str()[..2])));
        for target in [private.as_path(), Path::new("/dev/zero")] {
            let _ = fs::remove_file(&entry);
            symlink(target, &entry).unwrap();
            let error = act(root.path()).unwrap_err().to_string();
            assert!(error.contains(entry.to_str().unwrap()), "{error}");
        }
        assert_eq!(fs::read_to_string(&private).unwrap(), "private", "{relative}");
    };
    check("store/numbers/KEY.json", |root| {
        ReadStore::open(root)?.get::<u32>(NUMBERS, &key(NUMBERS, &1)?).map(drop)
    });
    check("run.json", |root| ReadStore::open(root).map(drop));
    // The lock file is emptied before the process id is written to it.
    check(".lock", |root| RunDir::open(root).map(drop));
    // These folders are replaced as a whole.
    for folder in ["data", "report", "store/sft"] {
        check(folder, |root| RunDir::open(root).map(drop));
        check(folder, |root| RunDir::open_existing(root).map(drop));
    }
}

#[test]
fn keys_depend_on_stage_and_value_and_not_on_field_order() {
    let base = key(NUMBERS, &serde_json::json!({ "a": 1, "b": [true, null] })).unwrap();
    let same =
        key(NUMBERS, &serde_json::from_str::<serde_json::Value>(r#"{"b":[true,null],"a":1}"#).unwrap())
            .unwrap();
    assert_eq!(base, same);
    for (stage, value) in [
        (Stage::computed("other"), serde_json::json!({ "a": 1, "b": [true, null] })),
        (Stage::given("numbers"), serde_json::json!({ "a": 1, "b": [true, null] })),
        (NUMBERS, serde_json::json!({ "a": 2, "b": [true, null] })),
    ] {
        assert_ne!(key(stage, &value).unwrap(), base);
    }
}

#[test]
fn only_scratch_files_of_killed_writers_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let key = Key::parse("ab".repeat(32)).unwrap();
    open(root.path()).put(NUMBERS, &key, &1).unwrap();
    let scratch = root.path().join(".scratch");
    fs::create_dir_all(scratch.join("123-0/half")).unwrap();
    let store = open(root.path());
    assert!(!scratch.exists());
    assert_eq!(store.get::<u32>(NUMBERS, &key).unwrap(), Some(1));
}

#[test]
fn one_writer_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let first = open(root.path());
    let message = RunDir::open(root.path()).unwrap_err().to_string();
    assert!(
        message.contains(&format!("in use by another termsmith (process {})", std::process::id())),
        "{message}"
    );
    let existing = RunDir::open_existing(root.path()).unwrap_err();
    assert!(matches!(existing, StoreError::Locked { .. }), "{existing}");
    drop(first);
    drop(open(root.path()));
    RunDir::open_existing(root.path()).unwrap();
}

#[test]
fn readers_need_no_lock_and_leave_scratch_files_of_a_writer_alone() {
    let root = tempfile::tempdir().unwrap();
    let writer = open(root.path());
    let half_written = writer.dir().scratch().join("1-0");
    fs::create_dir_all(&half_written).unwrap();
    let reader = ReadStore::open(root.path()).unwrap();
    let key = key(NUMBERS, &7).unwrap();
    assert_eq!(reader.get::<u32>(NUMBERS, &key).unwrap(), None);
    writer.put(NUMBERS, &key, &7).unwrap();
    assert_eq!(reader.get::<u32>(NUMBERS, &key).unwrap(), Some(7));
    drop(reader);
    assert!(half_written.exists());
    assert!(RunDir::open_existing(root.path()).is_err());
}

#[test]
fn parents_of_new_folders_are_synced() {
    let root = tempfile::tempdir().unwrap();
    let check = |folder: &str, expect: &[&str]| {
        let synced = super::atomic::create_folder(&root.path().join(folder)).unwrap();
        let expect: Vec<_> = expect.iter().map(|folder| root.path().join(folder)).collect();
        assert_eq!(synced, expect, "{folder}");
        assert!(root.path().join(folder).is_dir());
    };
    check("store/numbers/ab", &["store/numbers", "store", ""]);
    check("store/numbers/ab", &[]);
    check("store/numbers/cd", &["store/numbers"]);
}

#[test]
fn folders_of_others_do_not_become_run_folders() {
    // A name with a final `/` is a folder.
    let check = |entries: &[&str], occupied: Option<&str>| {
        let root = tempfile::tempdir().unwrap();
        for entry in entries {
            let path = root.path().join(entry);
            if entry.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::write(path, "").unwrap();
            }
        }
        match (RunDir::open(root.path()), occupied) {
            (Ok(_), None) => {}
            (Err(StoreError::Occupied { entry, .. }), Some(expect)) => {
                assert_eq!(entry, expect);
                // Nothing was written.
                assert_eq!(fs::read_dir(root.path()).unwrap().count(), entries.len());
            }
            (opened, _) => panic!("{entries:?}: {opened:?}"),
        }
    };
    check(&[], None);
    // Leftovers of a killed first start.
    check(&[".lock"], None);
    check(&[".lock", ".scratch/"], None);
    // Records of other run folders, and a log.
    check(&["store/", "observed/", "started/", "log.jsonl"], None);
    check(&["tasks/"], Some("tasks"));
    check(&["README.md", ".git/"], Some(".git"));
    check(&["store/", "rejected/"], Some("rejected"));
    // Other entries of a run folder are fine.
    let root = tempfile::tempdir().unwrap();
    drop(open(root.path()));
    fs::create_dir(root.path().join("tasks")).unwrap();
    drop(open(root.path()));
}

#[test]
fn errors_name_the_position_and_a_hint() {
    let root = tempfile::tempdir().unwrap();
    let check = |error: StoreError, parts: &[&str]| {
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{text:?} lacks {part:?}");
        }
    };
    let newer = root.path().join("newer");
    fs::create_dir_all(&newer).unwrap();
    fs::write(newer.join("run.json"), r#"{"format":99,"tool":"9.9.9"}"#).unwrap();
    check(
        RunDir::open(&newer).unwrap_err(),
        &["newer", "99", "9.9.9", "hint: use the termsmith that wrote it"],
    );
    let other = root.path().join("other");
    check(RunDir::open_existing(&other).unwrap_err(), &["other", "not a termsmith run folder", "hint:"]);
    check(ReadStore::open(&other).unwrap_err(), &["other", "not a termsmith run folder", "hint:"]);
    let full = root.path().join("full");
    fs::create_dir_all(full.join("src")).unwrap();
    check(RunDir::open(&full).unwrap_err(), &["full", "`src`", "hint: give a new or an empty folder"]);
    let file = root.path().join("file");
    fs::write(&file, "x").unwrap();
    check(RunDir::open(&file).unwrap_err(), &["failed to create folder", "file"]);
    let broken = root.path().join("broken");
    let store = open(&broken);
    let key = Key::parse("cd".repeat(32)).unwrap();
    store.put(NUMBERS, &key, &"text").unwrap();
    check(
        store.get::<u32>(NUMBERS, &key).unwrap_err(),
        &["numbers", "cdcd", "hint: another build", "or give a new one as --out"],
    );
}

#[test]
fn publishing_the_same_again_touches_nothing() {
    let root = tempfile::tempdir().unwrap();
    let dir = RunDir::open(root.path()).unwrap();
    let mut tree = FileTree::default();
    tree.insert(RelPath::new("a/run.sh").unwrap(), File::script("true\n"));
    tree.insert(RelPath::new("b").unwrap(), File { bytes: vec![0, 255], executable: false });
    assert_eq!(dir.publish_tree("tasks/x", &tree).unwrap(), FileChange::Written);
    let written = fs::metadata(root.path().join("tasks/x/b")).unwrap().modified().unwrap();
    assert_eq!(dir.publish_tree("tasks/x", &tree).unwrap(), FileChange::Unchanged);
    assert_eq!(fs::metadata(root.path().join("tasks/x/b")).unwrap().modified().unwrap(), written);

    tree.insert(RelPath::new("b").unwrap(), File::text("new"));
    assert_eq!(dir.publish_tree("tasks/x", &tree).unwrap(), FileChange::Written);
    fs::write(root.path().join("tasks/x/stray"), "").unwrap();
    assert_eq!(dir.publish_tree("tasks/x", &tree).unwrap(), FileChange::Written);
    assert!(!root.path().join("tasks/x/stray").exists());
    assert_eq!(fs::read_dir(dir.scratch()).unwrap().count(), 0, "the former folder was left behind");
}

#[test]
fn folders_are_replaced_in_two_steps_where_they_cannot_be_swapped() {
    let dir = tempfile::tempdir().unwrap();
    let [staged, target, aside] = ["staged", "target", "aside"].map(|name| dir.path().join(name));
    for (folder, content) in [(&staged, "new"), (&target, "old")] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("a"), content).unwrap();
    }
    super::atomic::replace_in_two_steps(&staged, &target, &aside).unwrap();
    assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "new");
    assert_eq!(fs::read_to_string(aside.join("a")).unwrap(), "old");

    // Nothing is staged, so the former folder is put back.
    fs::remove_dir_all(&aside).unwrap();
    assert!(super::atomic::replace_in_two_steps(&staged, &target, &aside).is_err());
    assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "new");
}
