//! Digests of tasks and environments, and canonical JSON, from which every key is made.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{EnvironmentDigest, FileTree, TaskDigest};

/// JSON with sorted object keys and no blanks. Equal values give equal bytes, also after fields of
/// a type were reordered.
pub fn canonical_json<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut out = String::new();
    write_sorted(&serde_json::to_value(value)?, &mut out);
    Ok(out)
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_sorted(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Harbor's task digest: SHA-256 over `"{path}\0{sha256 of the file}\n"` in path order
/// (`publisher/packager.py` of harbor 0.25).
pub fn task_digest(files: &FileTree) -> TaskDigest {
    let mut outer = Sha256::new();
    for (path, file) in files.iter() {
        outer.update(path.as_str().as_bytes());
        outer.update(b"\0");
        outer.update(hex(&Sha256::digest(&file.bytes)).as_bytes());
        outer.update(b"\n");
    }
    TaskDigest::sha256(&hex(&outer.finalize()))
}

/// Digest of the starting state of a trial: Dockerfile, build context and base definition. Image
/// ids and installed versions are no part of it, because they differ between hosts.
pub fn environment_digest(environment: &FileTree, base_definition: &str) -> EnvironmentDigest {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(base_definition.as_bytes());
    // With a bad ignore file the build fails. Such a digest only has to differ from others.
    let sent = environment.sent_to_builder();
    let sent = sent.as_ref().unwrap_or(environment);
    for (path, file) in sent.iter() {
        part(path.as_str().as_bytes());
        part(if file.executable { b"x" } else { b"-" });
        part(&file.bytes);
    }
    for path in &sent.empty_folders {
        part(path.as_str().as_bytes());
        part(b"/");
    }
    for (path, target) in &sent.links {
        part(path.as_str().as_bytes());
        part(b"->");
        part(target.as_bytes());
    }
    EnvironmentDigest::blake3(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}
