//! Packages of PyPI: pip resolves them with the layer's own Python, which also compiles them.
//!
//! Thus the host needs neither Python nor pip, and the result does not depend on what it has.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde::Deserialize;
use tokio::process::Command;

use super::fetch::Registries;
use super::lock::Part;
use super::packages::{PythonDecl, Registry, SdistDecl};
use crate::sandbox::LAYER_PATH;

/// Lines of a program's output that an error shows.
const SHOWN_LINES: usize = 15;

/// Why packages cannot be resolved or compiled.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    #[error("the layer's Python cannot be started: {0}")]
    Start(io::Error),
    #[error("{what} failed:\n{output}")]
    Failed { what: &'static str, output: String },
    #[error("the report of pip is malformed: {0}")]
    Report(String),
    #[error("failed to {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The Python of a layer, on this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerPython<'a> {
    /// Where the layer is being made.
    pub(super) root: &'a Path,
    /// The words that start it in a container.
    pub(super) command: &'a [String],
}

/// The archives of `declared` and everything that they need, in the order of their names.
pub(super) async fn resolve(
    python: LayerPython<'_>,
    pip: &Path,
    declared: &PythonDecl,
    agent_version: &str,
    registries: &Registries,
) -> Result<Vec<Part>, PythonError> {
    let work = tempfile::tempdir().map_err(io_error("make a folder in", &std::env::temp_dir()))?;
    let report = work.path().join("report.json");
    for sdist in &declared.sdists {
        let stub = work.path().join(format!("{}-{}-py3-none-any.whl", module(&sdist.name), sdist.version));
        fs::write(&stub, stub_wheel(sdist).map_err(io_error("pack", &stub))?)
            .map_err(io_error("write", &stub))?;
    }
    // pip is a module of its wheel.
    let entry = format!(
        "import sys; sys.path.insert(0, {:?}); import runpy; sys.argv[0] = 'pip'; \
         runpy.run_module('pip', run_name='__main__')",
        pip.display().to_string()
    );
    let mut command = python.command();
    command.args(["-c", &entry, "install", "--dry-run", "--ignore-installed", "--quiet"]);
    command.args(["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]);
    command.arg("--index-url").arg(&registries.pypi_index);
    command.arg("--find-links").arg(work.path());
    command.arg("--report").arg(&report);
    // Wheels on this host have no address that a lock could name.
    command.env_remove("PIP_FIND_LINKS");
    for requirement in &declared.requirements {
        command.arg(requirement.replace("{version}", agent_version));
    }
    run(command, "resolving the packages with pip").await?;
    let text = fs::read(&report).map_err(io_error("read", &report))?;
    let report: Report =
        serde_json::from_slice(&text).map_err(|error| PythonError::Report(error.to_string()))?;
    parts(report, declared)
}

/// Compiles all modules of `site`. Python loads this bytecode without a look at the source
/// (`unchecked-hash`), so equal sources give equal files.
pub(super) async fn compile(python: LayerPython<'_>, site: &str) -> Result<(), PythonError> {
    let mut command = python.command();
    let folder = python.root.join(site);
    // By one process and in one order: bytecode depends on which texts are in use already.
    command.args(["-m", "compileall", "-q", "-j", "1", "--invalidation-mode", "unchecked-hash"]);
    // Tracebacks name the place in the container.
    command.arg("-s").arg(python.root).args(["-p", LAYER_PATH]).arg(&folder);
    // It also reports files that are no modules, e.g. templates with the ending of Python.
    let _ = output(command).await?;
    Ok(())
}

impl LayerPython<'_> {
    fn command(&self) -> Command {
        let here = self.root.display().to_string();
        // Isolated mode would ignore the variables below.
        let words = self.command.iter().filter(|word| *word != "-I");
        let mut words = words.map(|word| word.replace("{layer}", &here)).collect::<Vec<_>>().into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).stdin(Stdio::null()).kill_on_drop(true);
        // Sets of strings are written to bytecode in an order that depends on it.
        command.env("PYTHONHASHSEED", "0").env("PYTHONSAFEPATH", "1").env("PYTHONNOUSERSITE", "1");
        for name in ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONPYCACHEPREFIX", "PYTHONOPTIMIZE"] {
            command.env_remove(name);
        }
        command
    }
}

#[derive(Deserialize)]
struct Report {
    install: Vec<Install>,
}

#[derive(Deserialize)]
struct Install {
    download_info: DownloadInfo,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct DownloadInfo {
    url: String,
    archive_info: Option<ArchiveInfo>,
}

#[derive(Deserialize)]
struct ArchiveInfo {
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

fn parts(report: Report, declared: &PythonDecl) -> Result<Vec<Part>, PythonError> {
    let mut parts = Vec::new();
    for Install { download_info, metadata: Metadata { name, version } } in report.install {
        let sdist = declared.sdists.iter().find(|sdist| module(&sdist.name) == module(&name));
        let (path, hash) = match sdist {
            Some(sdist) => (sdist.path.clone(), sdist.hash.clone()),
            None => {
                let DownloadInfo { url, archive_info } = download_info;
                let hash = archive_info.and_then(|info| info.hashes.get("sha256").cloned());
                let path = url.find("/packages/").and_then(|at| url.get(at + 1..));
                match (path, hash) {
                    (Some(path), Some(hash)) => (path.to_owned(), format!("sha256:{hash}")),
                    _ => return Err(PythonError::Report(format!("`{name}` comes from `{url}`"))),
                }
            }
        };
        parts.push(Part { registry: Registry::Pypi, name, version, path, hash });
    }
    parts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(parts)
}

/// A wheel with a name and a version and nothing else, so that pip need not build the real package.
fn stub_wheel(sdist: &SdistDecl) -> io::Result<Vec<u8>> {
    let (name, version) = (&sdist.name, &sdist.version);
    let folder = format!("{}-{version}.dist-info", module(name));
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (file, text) in [
        ("METADATA", format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")),
        (
            "WHEEL",
            "Wheel-Version: 1.0\nGenerator: termsmith\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
        ),
        ("RECORD", String::new()),
    ] {
        zip.start_file(format!("{folder}/{file}"), zip::write::SimpleFileOptions::default())?;
        zip.write_all(text.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

/// The name of a package in its files' names.
fn module(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '.'], "_")
}

async fn run(command: Command, what: &'static str) -> Result<(), PythonError> {
    let output = output(command).await?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
    Err(PythonError::Failed { what, output: shown })
}

async fn output(mut command: Command) -> Result<Output, PythonError> {
    command.output().await.map_err(PythonError::Start)
}

fn io_error<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> PythonError + 'a {
    move |source| PythonError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_pip_become_parts() {
        let declared = PythonDecl {
            requirements: vec!["a".to_owned()],
            sdists: vec![SdistDecl {
                name: "old-one".to_owned(),
                version: "1".to_owned(),
                package: "old_one".to_owned(),
                path: "packages/o/old-one-1.tar.gz".to_owned(),
                hash: "sha256:00".to_owned(),
            }],
            drop: Vec::new(),
        };
        let check = |name: &str, url: &str, hashes: &str, expect: Option<(&str, &str)>| {
            let text = format!(
                r#"{{"install": [{{"metadata": {{"name": "{name}", "version": "1"}}, "download_info": {{"url": "{url}",
                "archive_info": {{"hashes": {hashes}}}}}}}]}}"#
            );
            let found = parts(serde_json::from_str(&text).unwrap(), &declared).ok();
            let found = found.as_ref().map(|parts| (parts[0].path.as_str(), parts[0].hash.as_str()));
            assert_eq!(found, expect, "{name} {url}");
        };
        let url = "https://mirror.example/pypi/packages/a/a-1-py3-none-any.whl";
        check("a", url, r#"{"sha256": "ab"}"#, Some(("packages/a/a-1-py3-none-any.whl", "sha256:ab")));
        check("a", url, "{}", None);
        check("a", "file:///opt/a.whl", r#"{"sha256": "ab"}"#, None);
        check("Old_One", "file:///stub.whl", "{}", Some(("packages/o/old-one-1.tar.gz", "sha256:00")));
        let stub = stub_wheel(&declared.sdists[0]).unwrap();
        let zip = zip::ZipArchive::new(io::Cursor::new(stub)).unwrap();
        let names: Vec<_> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
        assert!(names.contains(&"old_one-1.dist-info/METADATA".to_owned()), "{names:?}");
    }
}
