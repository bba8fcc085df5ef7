//! The exported files, read back by Parquet's own reader.
//!
//! `tests/readers/check_parquet.py` runs other readers (pyarrow, DuckDB, pandas, `datasets`). For
//! it, the test `a_sample_for_other_readers` leaves a data folder in Cargo's
//! `target/tmp/export-sample`.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_json::WriterBuilder;
use arrow_json::writer::JsonArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::schema::printer::print_schema;
use serde_json::Value;
use termsmith::export::pairs::pairs;
use termsmith::export::phi::{Gamma, weights};
use termsmith::export::train::FailedTurns;
use termsmith::export::{
    Bounds, ConfigSummary, Excluded, ExportError, ExportOptions, ExportSummary, RowsError, SftFilter,
    Solutions, TaskRollouts, atif, export, pref_dmpo, pref_step, sft, sft_tools,
};
use termsmith::model::{
    self, Actor, AdversaryView, Arm, Exploit, FileTree, ModelActor, RelPath, Rollout, Shown, TaskMetadata,
    ToolCall,
};

use crate::fixture::{self, CHECKS, rollout};

/// The configs of an export.
const CONFIGS: [&str; 4] = ["sft", "sft_tools", "pref_dmpo", "pref_step"];

/// Text that has broken a reader or a quoting rule before.
const AWKWARD: &str = "quote \" backslash \\ newline\ntab\tNUL \0 escape \x1b[31m emoji 🦀 line separator \u{2028} ```bash\nls\n``` end";

/// Four attempts at each of `tasks` tasks in ten domains. Three pass, one of them with awkward text,
/// and another one with function calls. One fails a single check.
fn groups(tasks: u32) -> Vec<Vec<Rollout>> {
    const DOMAINS: [&str; 10] = [
        "ai_ml",
        "build_tools",
        "coding",
        "data_science",
        "games",
        "networking",
        "scientific_computing",
        "security",
        "system_admin",
        "version_control",
    ];
    let task = |index: u32| {
        let domain = DOMAINS[index as usize % DOMAINS.len()];
        let mut awkward = rollout(domain, index, 1, 4, CHECKS);
        awkward.shown[0] = vec![Shown::text(AWKWARD)];
        awkward.record.turns[1].content = format!("cat > /app/a <<'E'\n{AWKWARD}\nE");
        awkward.record.turns[2].reasoning = Some(AWKWARD.to_owned());
        awkward.record.turns[2].tool_calls =
            vec![ToolCall { id: "c".to_owned(), name: "bash".to_owned(), arguments: AWKWARD.to_owned() }];
        awkward.shown[2] = vec![Shown::result("c", AWKWARD)];
        // Fields that imported tasks do not declare are null in the rows.
        awkward.metadata = TaskMetadata { domain: domain.to_owned(), ..TaskMetadata::default() };
        let failing = rollout(domain, index, 2, 6, CHECKS - 1);
        let mut calling = fixture::calling(rollout(domain, index, 3, 4, CHECKS));
        calling.record.turns[1].tool_calls[0].arguments = AWKWARD.to_owned();
        calling.record.turns[2].reasoning = Some(AWKWARD.to_owned());
        vec![rollout(domain, index, 0, 5, CHECKS), awkward, failing, calling]
    };
    (0..tasks).map(task).collect()
}

fn run(data: &Path, groups: &[Vec<Rollout>], options: &ExportOptions) -> ExportSummary {
    export(data, groups.iter().cloned().map(Ok::<_, Infallible>), options).unwrap()
}

fn everything() -> ExportOptions {
    ExportOptions { sft: SftFilter::All, ..ExportOptions::default() }
}

fn config<'a>(summary: &'a ExportSummary, name: &str) -> &'a ConfigSummary {
    summary.configs.iter().find(|config| config.name == name).unwrap()
}

fn shards(data: &Path, summary: &ExportSummary, name: &str) -> Vec<PathBuf> {
    config(summary, name).files.iter().map(|file| data.join(&file.path)).collect()
}

fn shards_of(data: &Path, summary: &ExportSummary, name: &str, split: &str) -> Vec<PathBuf> {
    let files = config(summary, name).files.iter().filter(|file| file.split == split);
    files.map(|file| data.join(&file.path)).collect()
}

/// The rows of Parquet files, as JSON.
fn rows(files: &[PathBuf]) -> Vec<Value> {
    let mut rows = Vec::new();
    for file in files {
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap().build().unwrap();
        for batch in reader {
            let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(Vec::new());
            writer.write(&batch.unwrap()).unwrap();
            writer.finish().unwrap();
            let Value::Array(batch) = serde_json::from_slice(&writer.into_inner()).unwrap() else { panic!() };
            rows.extend(batch);
        }
    }
    rows
}

fn metadata(file: &Path) -> ParquetMetaData {
    ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&File::open(file).unwrap())
        .unwrap()
}

/// Every file below `folder` by its relative path.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// `row` converted to JSON text and back, as [`rows`] reads it.
fn as_read<T: serde::Serialize>(row: T) -> Value {
    serde_json::from_slice(&serde_json::to_vec(&row).unwrap()).unwrap()
}

/// Asserts that the rows of `config` are `expect`. Those of held-out groups come last, and no group
/// is in both splits.
#[track_caller]
fn assert_rows(data: &Path, summary: &ExportSummary, config: &str, mut expect: Vec<Value>) {
    let groups = |split: &str| -> BTreeSet<String> {
        let rows = rows(&shards_of(data, summary, config, split));
        rows.iter().map(|row| row["split_group"].as_str().unwrap().to_owned()).collect()
    };
    let held_out = groups("test");
    assert!(!held_out.is_empty() && held_out.is_disjoint(&groups("train")), "{held_out:?}");
    expect.sort_by_key(|row| held_out.contains(row["split_group"].as_str().unwrap()));
    let found = rows(&shards(data, summary, config));
    assert_eq!(found.len(), expect.len());
    for (at, (found, expect)) in found.iter().zip(&expect).enumerate() {
        assert_eq!(found, expect, "row {at}");
    }
}

#[test]
fn written_records_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut groups = groups(20);
    let lost = fixture::unmeasured(rollout("games", 99, 0, 2, 0));
    groups.push(vec![lost]);
    let options = everything();
    let summary = run(dir.path(), &groups, &options);

    let flags = options.failed_turns;
    let (calling, texts): (Vec<&Rollout>, Vec<&Rollout>) =
        groups.iter().flatten().partition(|rollout| !rollout.record.tools.is_empty());
    let texts = texts.iter().flat_map(|rollout| sft::Row::all(rollout, flags).unwrap());
    assert_rows(dir.path(), &summary, "sft", texts.map(as_read).collect());
    let calling = calling.iter().flat_map(|rollout| sft_tools::Row::all(rollout, flags).unwrap());
    assert_rows(dir.path(), &summary, "sft_tools", calling.map(as_read).collect());

    let mut expect = Vec::new();
    for group in &groups {
        for pair in pairs(group, &options.pairs).unwrap() {
            expect.push(as_read(pref_dmpo::Row::new(&pair, &options).unwrap()));
        }
    }
    assert_eq!(expect.len(), 40);
    assert_rows(dir.path(), &summary, "pref_dmpo", expect);
}

#[test]
fn weights_come_back_to_the_last_bit() {
    let dir = tempfile::tempdir().unwrap();
    let summary = run(dir.path(), &groups(1), &ExportOptions::default());
    let file = File::open(&shards(dir.path(), &summary, "pref_dmpo")[0]).unwrap();
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batch = reader.next().unwrap().unwrap();
    for (name, turns) in [("phi_chosen", 6), ("phi_rejected", 7)] {
        let phi = batch.column_by_name(name).unwrap().as_list::<i32>().value(0);
        assert_eq!(phi.as_primitive::<Float64Type>().values().to_vec(), weights(Gamma::DEFAULT, turns));
    }
}

#[test]
fn schemas_are_fixed() {
    let dir = tempfile::tempdir().unwrap();
    let summary = run(dir.path(), &groups(1), &ExportOptions::default());
    let mut text = Vec::new();
    for name in CONFIGS {
        let metadata = metadata(&shards(dir.path(), &summary, name)[0]);
        let file = metadata.file_metadata();
        print_schema(&mut text, file.schema());
        for pair in
            file.key_value_metadata().unwrap().iter().filter(|pair| pair.key.starts_with("termsmith."))
        {
            let value = pair.value.as_deref().unwrap().replace(env!("CARGO_PKG_VERSION"), "<version>");
            text.extend(format!("{} = {value}\n", pair.key).into_bytes());
        }
    }
    insta::assert_snapshot!(String::from_utf8(text).unwrap());
}

#[test]
fn shards_and_row_groups_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = Bounds { batch: 8 << 10, row_group: 32 << 10, shard: 128 << 10 };
    let options = ExportOptions { bounds, ..everything() };
    let summary = run(dir.path(), &groups(200), &options);
    let splits = CONFIGS.map(|name| [(name, "train"), (name, "test")]);
    for (name, split) in splits.into_iter().flatten() {
        let files = shards_of(dir.path(), &summary, name, split);
        assert!(files.len() > usize::from(split == "train"), "{files:?}");
        for (number, file) in files.iter().enumerate() {
            let expect = format!("{name}/{split}-{number:05}-of-{:05}.parquet", files.len());
            assert_eq!(file.strip_prefix(dir.path()).unwrap(), Path::new(&expect));
            let metadata = metadata(file);
            // The last shard contains the remaining rows.
            assert!(number + 1 == files.len() || metadata.num_row_groups() > 1);
            let sizes: Vec<_> = metadata.row_groups().iter().map(RowGroupMetaData::total_byte_size).collect();
            // The estimated size of a row is an upper bound. A group ends with the batch that fills
            // it.
            assert!(sizes.iter().all(|&size| size <= (bounds.row_group + bounds.batch) as i64), "{sizes:?}");
            assert!(sizes.iter().sum::<i64>() <= bounds.shard as i64);
        }
        let counted = config(&summary, name).files.iter().filter(|file| file.split == split);
        assert_eq!(rows(&files).len() as u64, counted.map(|file| file.rows).sum::<u64>());
    }
    assert_eq!(config(&summary, "sft").rows, 600);
}

#[test]
fn pages_are_indexed_and_no_message_is_copied_into_the_footer() {
    let dir = tempfile::tempdir().unwrap();
    let summary = run(dir.path(), &groups(10), &ExportOptions::default());
    for name in CONFIGS {
        let metadata = metadata(&shards(dir.path(), &summary, name)[0]);
        for column in metadata.row_group(0).columns() {
            let path = column.column_path().string();
            let json = ["messages.list.element", "tools.list.element"].contains(&path.as_str());
            let message = json || path.ends_with(".content") || path.ends_with(".role");
            assert!(column.offset_index_offset().is_some(), "{path}");
            assert_eq!(column.statistics().is_none(), message, "{path}");
            assert_eq!(column.column_index_offset().is_none(), message, "{path}");
        }
    }
}

#[test]
fn equal_rollouts_give_equal_bytes_and_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let groups = groups(20);
    assert!(run(&one, &groups, &ExportOptions::default()).changed);
    run(&two, &groups, &ExportOptions::default());
    assert_eq!(tree(&one), tree(&two));

    let inodes =
        || tree(&one).into_keys().map(|path| one.join(path).metadata().unwrap().ino()).collect::<Vec<_>>();
    let before = inodes();
    assert!(!run(&one, &groups, &ExportOptions::default()).changed);
    assert_eq!(inodes(), before);
    assert!(run(&one, &groups[1..], &ExportOptions::default()).changed);
    assert_ne!(tree(&one), tree(&two));
}

#[test]
fn a_failed_export_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &groups(3), &ExportOptions::default());
    let before = tree(dir.path());

    let torn = [Ok(groups(1).remove(0)), Err(io::Error::other("torn"))];
    let error = export(dir.path(), torn, &ExportOptions::default()).unwrap_err();
    assert!(matches!(error, ExportError::Source(_)), "{error:?}");
    assert_eq!(tree(dir.path()), before);

    let mut damaged = groups(1);
    damaged[0][0].shown.clear();
    let damaged = damaged.into_iter().map(Ok::<_, Infallible>);
    let error = export(dir.path(), damaged, &ExportOptions::default()).unwrap_err();
    assert!(matches!(error, ExportError::Rows(RowsError::Conversation(_))), "{error:?}");
    assert_eq!(tree(dir.path()), before);

    let template =
        ExportOptions { card_template: Some("{{ nothing }}".to_owned()), ..ExportOptions::default() };
    let error = export(dir.path(), groups(1).into_iter().map(Ok::<_, Infallible>), &template).unwrap_err();
    assert!(matches!(error, ExportError::Card(_)), "{error:?}");
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn filters_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let mut groups = groups(2);
    let mut silent = rollout("ai_ml", 0, 3, 0, 0);
    silent.record.turns.clear();
    silent.shown.clear();
    groups[0].push(silent);
    let mut empty = rollout("ai_ml", 0, 4, 2, CHECKS);
    empty.record.turns[1].content.clear();
    groups[0].push(empty);
    let mut cheat = rollout("ai_ml", 0, 5, 2, CHECKS);
    cheat.record.actor = Actor::Model(ModelActor {
        model: "m".to_owned(),
        endpoint: "e".to_owned(),
        arm: Arm::Base,
        adversary: Some(AdversaryView::Blind),
        program: None,
    });
    groups[0].push(cheat);
    let mut caught = rollout("ai_ml", 0, 6, 2, CHECKS);
    caught.record.exploits = vec![Exploit {
        thread: 0,
        turn: 0,
        attack: "D-12".to_owned(),
        message: "looks for tests".to_owned(),
    }];
    groups[0].push(caught);
    groups.push(Vec::new());
    let check = |options: &ExportOptions, sft: u64, excluded: Excluded| {
        let summary = run(dir.path(), &groups, options);
        assert_eq!(config(&summary, "sft").rows, sft);
        assert_eq!(summary.excluded, excluded);
        let total: u64 = summary.domains.values().map(|counts| counts.rollouts.total()).sum();
        assert_eq!((total, summary.domains.len()), (12, 2));
    };
    let excluded = |not_passing, without_turns| Excluded {
        not_passing,
        without_turns,
        with_empty_message: 1,
        adversarial: 1,
        with_failed_turns: 0,
        near_duplicates: 0,
    };
    check(&ExportOptions::default(), 4, excluded(4, 0));
    check(&everything(), 7, excluded(0, 1));
}

/// Two passes with the same commands are one row. A trajectory's faulty messages are not trained
/// on.
#[test]
fn near_duplicates_and_failed_turns() {
    let dir = tempfile::tempdir().unwrap();
    let mut again = rollout("games", 0, 1, 3, CHECKS);
    again.record.turns = rollout("games", 0, 0, 3, CHECKS).record.turns;
    again.record.turns[0].content.insert_str(0, "In other words. ");
    let mut slipped = rollout("games", 0, 2, 3, CHECKS);
    let failed = model::Act::Command {
        command: "sed -n 1p /app/acces.log".to_owned(),
        outcome: Some(model::ShellOutcome::Exited(2)),
    };
    slipped.record.turns[1].acts = vec![failed];
    let groups = [vec![rollout("games", 0, 0, 3, CHECKS), again, slipped]];
    let check = |failed_turns, rows_expected: usize, near_duplicates, with_failed_turns, train: &[bool]| {
        let options = ExportOptions { failed_turns, ..ExportOptions::default() };
        let summary = run(dir.path(), &groups, &options);
        let excluded = summary.excluded;
        assert_eq!(
            (excluded.near_duplicates, excluded.with_failed_turns),
            (near_duplicates, with_failed_turns)
        );
        let rows = rows(&shards(dir.path(), &summary, "sft"));
        assert_eq!(rows.len(), rows_expected);
        assert_eq!(rows.last().unwrap()["train"], serde_json::json!(train), "{failed_turns:?}");
    };
    check(FailedTurns::Mask, 2, 1, 0, &[true, false, true, true]);
    check(FailedTurns::All, 2, 1, 0, &[true; 4]);
    check(FailedTurns::Drop, 1, 1, 1, &[true; 4]);
    // If failures are rows too, leaving out a pass would change the share of passes.
    let summary = run(dir.path(), &groups, &everything());
    assert_eq!((config(&summary, "sft").rows, summary.excluded.near_duplicates), (3, 0));
}

/// A strict export is refused if a surface feature tells the sides apart. It changes nothing then.
#[test]
fn strict_exports() {
    let dir = tempfile::tempdir().unwrap();
    let strict = ExportOptions { strict: true, ..ExportOptions::default() };
    run(dir.path(), &groups(2), &strict);
    let before = tree(dir.path());
    // In each pair the rejected side is the longer one.
    let error = export(dir.path(), groups(20).into_iter().map(Ok::<_, Infallible>), &strict).unwrap_err();
    let ExportError::Separable(error) = error else { panic!("{error:?}") };
    assert!(
        error.pairs == 40 && error.to_string().contains("`turns` over the whole side has an AUC of 0.00")
    );
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn the_dataset_card() {
    let dir = tempfile::tempdir().unwrap();
    // The solution reads one line that some rollout reads too.
    let solution = FileTree::from_iter([(
        RelPath::new("solve.sh").unwrap(),
        model::File::text("sed -n '0p' /app/access.log\n"),
    )]);
    let tasks = groups(3).into_iter().map(|rollouts| {
        Ok::<_, Infallible>(TaskRollouts { rollouts, solutions: Solutions::of([&solution]) })
    });
    export(dir.path(), tasks, &ExportOptions::default()).unwrap();
    insta::assert_snapshot!(card(dir.path()));
}

/// The card without file sizes, which depend on the compressor.
fn card(data: &Path) -> String {
    let card = fs::read_to_string(data.join("README.md")).unwrap();
    let stable = card.replace(env!("CARGO_PKG_VERSION"), "<version>");
    let sizes = regex::Regex::new(r"(?m)^(\| `\w+` \| \d+ \| \d+ \|) \d+ \|$").unwrap();
    sizes.replace_all(&stable, "$1 … |").into_owned()
}

/// The card says whether a model was sampled, and claims no licence for the work of others.
#[test]
fn the_card_with_models_and_imported_rollouts() {
    let dir = tempfile::tempdir().unwrap();
    let by_model = |mut rollout: Rollout| {
        rollout.record.actor = Actor::Model(ModelActor {
            model: "some-model".to_owned(),
            endpoint: "local".to_owned(),
            arm: Arm::Plan,
            adversary: None,
            program: None,
        });
        rollout
    };
    let of_others = |mut rollout: Rollout| {
        rollout.metadata = TaskMetadata { domain: "unknown".to_owned(), ..TaskMetadata::default() };
        rollout
    };
    let groups = [
        vec![rollout("games", 0, 0, 2, CHECKS), by_model(rollout("games", 0, 1, 2, 5))],
        vec![of_others(by_model(rollout("games", 1, 0, 2, CHECKS)))],
    ];
    let summary = run(dir.path(), &groups, &everything());
    let card = card(dir.path());
    assert!(card.contains("license: other\n") && !card.contains("No model was sampled"), "{card}");
    let told: Vec<_> = card.split("\n## ").filter(|part| !part.contains("| column |")).collect();
    insta::assert_snapshot!(told.join("\n## "));
    let rows = rows(&shards(dir.path(), &summary, "sft"));
    let mut licences: Vec<_> = rows.iter().map(|row| row["license"].as_str()).collect();
    licences.sort();
    assert_eq!(licences, [None, None, Some("CC-BY-4.0")]);
}

#[test]
fn an_export_of_nothing_still_has_its_schemas() {
    let dir = tempfile::tempdir().unwrap();
    let summary = run(dir.path(), &[], &ExportOptions::default());
    for name in CONFIGS {
        let files = shards(dir.path(), &summary, name);
        assert_eq!(files.len(), 1);
        assert!(rows(&files).is_empty());
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&files[0]).unwrap()).unwrap();
        let expect = match name {
            "sft" => termsmith::export::schema::<sft::Row>(),
            "sft_tools" => termsmith::export::schema::<sft_tools::Row>(),
            "pref_dmpo" => termsmith::export::schema::<pref_dmpo::Row>(),
            _ => termsmith::export::schema::<pref_step::Row>(),
        };
        assert_eq!(Arc::clone(reader.schema()).fields(), expect.fields());
    }
}

#[test]
fn a_sample_for_other_readers() {
    let run_folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export-sample");
    let bounds = Bounds { batch: 8 << 10, row_group: 32 << 10, shard: 64 << 10 };
    let groups = groups(40);
    let trajectories = run_folder.join("trajectories");
    fs::create_dir_all(&trajectories).unwrap();
    for rollout in groups.iter().flatten() {
        let documents = atif::documents(rollout, "t", None, atif::Calls::Parsed, |_| None).unwrap();
        let document = &documents[0].trajectory;
        fs::write(trajectories.join(format!("{}.json", rollout.id)), document.to_json()).unwrap();
    }
    let options = ExportOptions { bounds, ..ExportOptions::default() };
    let summary = run(&run_folder.join("data"), &groups, &options);
    let counts = ["sft", "sft_tools", "pref_dmpo"].map(|name| config(&summary, name).rows);
    assert_eq!(counts, [80, 40, 80]);
}
