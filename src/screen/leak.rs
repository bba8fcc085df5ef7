//! Whether the answer is in the image, visible or in a lower layer.

use std::collections::BTreeMap;

use super::table::Table;
use super::target::ScreeningTarget;
use crate::model::{FileTree, RowKind};
use crate::verify::{Outline, TrialError, TrialRunner};

/// Shorter files can be equal by chance: `0\n`, `ok`, an empty list.
const MIN_BYTES: u64 = 12;

/// The files that `useradd` copies into every home.
const SKELETON: &str = "etc/skel/";

/// Looks for the reference's results, its script and the tests in every layer of the image.
pub(super) async fn leak(
    runner: &TrialRunner<'_>,
    target: &ScreeningTarget<'_>,
    reference: &Outline,
    untouched: &Outline,
    table: &mut Table,
) -> Result<(), TrialError> {
    let mut secrets: BTreeMap<String, String> = BTreeMap::new();
    let mut sizes = std::collections::BTreeSet::new();
    let mut add = |hash: String, size: u64, what: String| {
        if size >= MIN_BYTES {
            sizes.insert(size);
            secrets.entry(hash).or_insert(what);
        }
    };
    // The names of commits occur in many files of a repository; the content is in its objects.
    let is_pointer = |path: &str| path.contains("/.git/") && !path.contains("/.git/objects/");
    let made =
        reference.iter().filter(|(path, trace)| untouched.get(*path) != Some(trace) && !is_pointer(path));
    for (path, trace) in made {
        add(trace.hash.clone(), trace.size, format!("what the reference writes to `{path}`"));
    }
    let given = FileTree::default();
    for (folder, files) in [("solution", target.solution.unwrap_or(&given)), ("tests", target.tests)] {
        let secret = files.iter().filter(|(path, _)| !path.as_str().starts_with("pristine/"));
        for (path, file) in secret {
            let hash = blake3::hash(&file.bytes).to_hex().to_string();
            add(hash, file.bytes.len() as u64, format!("`{folder}/{path}`"));
        }
    }
    let image = target.evaluation.image(runner).await?;
    let files = runner.engine.get().await?.layer_files(&image, &sizes).await?;
    let told = files.iter().filter(|file| !file.path.trim_start_matches(['.', '/']).starts_with(SKELETON));
    let found = told.into_iter().find_map(|file| {
        let what = secrets.get(blake3::hash(&file.bytes).to_hex().as_str())?;
        Some(format!("a layer of the image holds {what}, as `{}`", file.path))
    });
    match found {
        None => table.row(RowKind::Leak, "layers", true, ""),
        Some(note) => table.row(RowKind::Leak, "layers", false, &note),
    }
    Ok(())
}
