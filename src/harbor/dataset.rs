//! `dataset.toml` and `registry.json`: lists of task directories that Harbor can run as one.

use serde::Serialize;
use serde_json::json;

use super::ORGANISATION;
use super::manifest::Author;
use crate::model::{TaskDigest, TaskName};

/// One task of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetEntry {
    pub name: TaskName,
    /// `sha256:…`, as [`crate::model::task_digest`] gives it.
    pub digest: TaskDigest,
}

#[derive(Serialize)]
struct Dataset<'a> {
    schema_version: &'static str,
    dataset: Info<'a>,
    tasks: Vec<TaskRef<'a>>,
}

#[derive(Serialize)]
struct Info<'a> {
    name: String,
    description: &'a str,
    authors: [Author; 1],
}

#[derive(Serialize)]
struct TaskRef<'a> {
    name: String,
    digest: &'a str,
}

/// `dataset.toml` (schema 1.0): pins each task by content.
pub fn dataset_toml(
    name: &str,
    description: &str,
    entries: &[DatasetEntry],
) -> Result<String, toml::ser::Error> {
    let task = |entry: &'_ DatasetEntry| format!("{ORGANISATION}/{}", entry.name);
    toml::to_string(&Dataset {
        schema_version: "1.0",
        dataset: Info {
            name: format!("{ORGANISATION}/{name}"),
            description,
            authors: [Author { name: ORGANISATION.to_owned(), email: None }],
        },
        tasks: entries
            .iter()
            .map(|entry| TaskRef { name: task(entry), digest: entry.digest.as_str() })
            .collect(),
    })
}

/// `registry.json`, the older form: `folder` is where the task directories lie, relative to where Harbor runs.
pub fn registry_json(name: &str, description: &str, folder: &str, entries: &[DatasetEntry]) -> String {
    let tasks: Vec<_> = entries
        .iter()
        .map(|entry| json!({ "name": entry.name, "path": format!("{folder}/{}", entry.name) }))
        .collect();
    let dataset = json!({ "name": name, "version": "1.0", "description": description, "tasks": tasks });
    format!("{:#}\n", json!([dataset]))
}
