//! Reads the certificate in a task directory.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::folder::{LARGEST_TEXT, WalkError, read_file};
use crate::model::Certificate;

/// Name of the file. Harbor does not package it.
const CERTIFICATE: &str = "certificate.json";

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error("`{}` is not a certificate of termsmith: {message}\nhint: `termsmith screen` makes a new one", .path.display())]
    Malformed { path: PathBuf, message: String },
    #[error(
        "`{}` is a certificate of version {found}, but this termsmith reads version {}\nhint: use the termsmith that wrote it, or a newer one; \
         `termsmith screen` makes a new one",
        .path.display(),
        Certificate::VERSION
    )]
    Version { path: PathBuf, found: u32 },
}

/// The part that certificates of all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The certificate in the task directory `dir`. `None` if there is none.
pub fn read_certificate(dir: &Path) -> Result<Option<Certificate>, CertificateError> {
    let path = dir.join(CERTIFICATE);
    let Some(bytes) = read_file(&path, LARGEST_TEXT)? else { return Ok(None) };
    // The version is read first, because other fields of another version may be unreadable.
    let found = serde_json::from_slice::<Versioned>(&bytes).map(|certificate| certificate.version);
    match (found, serde_json::from_slice(&bytes)) {
        (Ok(found), _) if found > Certificate::VERSION => Err(CertificateError::Version { path, found }),
        (Ok(found), Err(_)) if found < Certificate::VERSION => Err(CertificateError::Version { path, found }),
        (_, Ok(certificate)) => Ok(Some(certificate)),
        (_, Err(error)) => Err(CertificateError::Malformed { path, message: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{FileTree, environment_digest, task_digest};

    /// A certificate with another value of `key`.
    fn with(key: &str, value: Value) -> String {
        let environment = environment_digest(&FileTree::default(), "");
        let certificate = Certificate::without_rows("a", task_digest(&FileTree::default()), environment);
        let mut certificate = serde_json::to_value(certificate).unwrap();
        certificate[key] = value;
        certificate.to_string()
    }

    #[test]
    fn certificates_are_read_by_their_version() {
        let check = |text: &str, expect: Result<(), &str>| {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(CERTIFICATE), text).unwrap();
            match (read_certificate(dir.path()), expect) {
                (Ok(Some(_)), Ok(())) => {}
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        let current = Certificate::VERSION;
        check(&with("version", json!(current)), Ok(()));
        // Certificates of former versions may lack other fields.
        check(&with("version", json!(current - 1)), Ok(()));
        check(r#"{"version": 1, "former": true}"#, Err("of version 1, but this termsmith reads version 4"));
        check(r#"{"version": 9, "new": true}"#, Err("of version 9"));
        check(&with("version", json!(current + 1)), Err("of version 5"));
        check(&with("new", json!(1)), Err("is not a certificate of termsmith: unknown field `new`"));
        check("{", Err("is not a certificate of termsmith"));
        check("{}", Err("missing field"));
    }

    #[test]
    fn only_files_of_their_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_certificate(dir.path()).unwrap(), None);
        let path = dir.path().join(CERTIFICATE);
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(read_certificate(dir.path()).unwrap_err().to_string().contains("is a symbolic link"));
        fs::remove_file(&path).unwrap();
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(
            read_certificate(dir.path()).unwrap_err().to_string().contains("is larger than 4194304 bytes")
        );
    }
}
