//! The configs (tables) of the dataset. A new config is a file with a [`Row`] and a line in
//! [`CONFIGS`].

use std::path::{Path, PathBuf};

use super::error::{RowsError, WriteError};
use super::parquet::{Shards, name_shards};
use super::row::{Column, Row};
use super::{Bounds, ConfigSummary, ExportOptions, FileSummary, pref_dmpo, pref_step, sft, sft_tools, split};
use crate::model::Rollout;

/// The configs that an export writes. Loaders take the first one by default.
pub const CONFIGS: [ExportConfig; 4] = [
    ExportConfig::of::<sft::Row>(),
    ExportConfig::of::<sft_tools::Row>(),
    ExportConfig::of::<pref_dmpo::Row>(),
    ExportConfig::of::<pref_step::Row>(),
];

/// Opens the writer of a config in a folder.
pub(super) type CreateWriter = fn(&Path, Bounds) -> Result<Box<dyn ConfigWriter>, WriteError>;

/// A config as card and writer see it, without its row type.
#[derive(Clone, Copy, Debug)]
pub struct ExportConfig {
    pub name: &'static str,
    pub tags: &'static [&'static str],
    pub(super) columns: fn() -> Vec<Column>,
    pub(super) about: fn(&ExportOptions) -> String,
    pub(super) create: CreateWriter,
}

impl ExportConfig {
    /// The config whose rows are `R`.
    pub const fn of<R: Row>() -> Self {
        Self { name: R::CONFIG, tags: R::TAGS, columns: R::columns, about: R::about, create: create::<R> }
    }
}

/// Writes one config.
pub(super) trait ConfigWriter {
    /// Writes the rows of one task's rollouts, and returns their number.
    fn push_task(&mut self, rollouts: &[Rollout], options: &ExportOptions) -> Result<u64, RowsError>;

    /// Closes the files. With `hold_out`, the rows of held-out groups become the split `test`.
    fn finish(self: Box<Self>, hold_out: bool) -> Result<ConfigSummary, WriteError>;
}

/// The rows of one config, in two splits. At the end the splits are joined if there are too few
/// groups to hold any out.
struct Splits<R> {
    folder: PathBuf,
    train: Shards<R>,
    held_out: Shards<R>,
}

fn create<R: Row>(folder: &Path, bounds: Bounds) -> Result<Box<dyn ConfigWriter>, WriteError> {
    Ok(Box::new(Splits::<R> {
        folder: folder.to_owned(),
        train: Shards::create(folder, split::TRAIN, bounds)?,
        held_out: Shards::create(folder, split::TEST, bounds)?,
    }))
}

impl<R: Row> ConfigWriter for Splits<R> {
    fn push_task(&mut self, rollouts: &[Rollout], options: &ExportOptions) -> Result<u64, RowsError> {
        let mut rows = 0;
        for row in R::of_task(rollouts, options)? {
            let shards =
                if split::is_held_out(row.split_group()) { &mut self.held_out } else { &mut self.train };
            shards.push(row)?;
            rows += 1;
        }
        Ok(rows)
    }

    fn finish(self: Box<Self>, hold_out: bool) -> Result<ConfigSummary, WriteError> {
        let Self { folder, train, held_out } = *self;
        let mut held_out = held_out.finish()?;
        let mut train =
            if hold_out || held_out.is_empty() { train.finish_with_schema()? } else { train.finish()? };
        if !hold_out {
            train.append(&mut held_out);
        }
        let mut files = Vec::new();
        for (name, shards) in [(split::TRAIN, train), (split::TEST, held_out)] {
            files.extend(name_shards(&folder, name, shards)?.into_iter().map(|shard| FileSummary {
                path: Path::new(R::CONFIG).join(shard.name),
                split: name,
                rows: shard.rows,
                bytes: shard.bytes,
            }));
        }
        Ok(ConfigSummary {
            name: R::CONFIG,
            rows: files.iter().map(|file| file.rows).sum(),
            bytes: files.iter().map(|file| file.bytes).sum(),
            files,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fs::{self, File};

    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::RowAccessor as _;
    use serde::Serialize;

    use super::*;
    use crate::export::row::text;
    use crate::export::{export_configs, fixture};

    /// One row for each task.
    #[derive(Serialize)]
    struct TaskRow {
        task_id: String,
    }

    impl Row for TaskRow {
        const CONFIG: &'static str = "toy_tasks";
        const SCHEMA_VERSION: u32 = 1;
        const TAGS: &'static [&'static str] = &["toy"];

        fn columns() -> Vec<Column> {
            vec![text("task_id", "a column that only the toy has")]
        }

        fn about(_: &ExportOptions) -> String {
            "Names of tasks.".to_owned()
        }

        fn of_task(rollouts: &[Rollout], _: &ExportOptions) -> Result<Vec<Self>, RowsError> {
            Ok(rollouts
                .first()
                .map(|rollout| Self { task_id: rollout.record.task.to_string() })
                .into_iter()
                .collect())
        }

        fn split_group(&self) -> &str {
            &self.task_id
        }

        fn weight(&self) -> usize {
            self.task_id.len()
        }
    }

    #[test]
    fn a_config_is_its_row_type_and_one_entry_in_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let configs = [CONFIGS[0], CONFIGS[2], ExportConfig::of::<TaskRow>()];
        let groups = [0, 1].map(|task| Ok::<_, Infallible>(vec![fixture::rollout("games", task, 0, 2, 8)]));
        let summary = export_configs(dir.path(), groups, &ExportOptions::default(), &configs).unwrap();
        let toy = summary.configs.last().unwrap();
        assert_eq!((toy.name, toy.rows, summary.domains["games"].rows["toy_tasks"]), ("toy_tasks", 2, 2));

        let mut tasks: Vec<String> = Vec::new();
        for file in &toy.files {
            let file = File::open(dir.path().join(&file.path)).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            let columns = reader.metadata().file_metadata().schema_descr().columns();
            assert_eq!(columns.iter().map(|column| column.name()).collect::<Vec<_>>(), ["task_id"]);
            let rows = reader.get_row_iter(None).unwrap();
            tasks.extend(rows.map(|row| row.unwrap().get_string(0).unwrap().clone()));
        }
        // Rows of groups that may be held out are written last.
        tasks.sort();
        assert_eq!(tasks, ["games-roll-up-0", "games-roll-up-1"]);

        let card = fs::read_to_string(dir.path().join("README.md")).unwrap();
        let (_, section) = card.split_once("## Config `toy_tasks`\n").unwrap();
        assert!(section.starts_with("\nNames of tasks.\n\n| column | type | meaning |\n"), "{section}");
        assert!(section.contains("| `task_id` | `string` | a column that only the toy has |"), "{section}");
        for part in ["- config_name: toy_tasks", "\n- toy\n", "| `toy_tasks` | 2 |", "`toy_tasks` rows |"] {
            assert!(card.contains(part), "no {part:?} in {card}");
        }
        assert_eq!(card.matches("a column that only the toy has").count(), 1);
    }
}
