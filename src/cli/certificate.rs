//! `verify-certificate`: whether certificates are about the files beside them.

use std::path::Path;

use super::args_tasks::VerifyCertificateArgs;
use super::config::{Config, Format};
use super::exit::Status;
use super::failure::{Failure, Outcome};
use super::{paths, say};
use crate::harbor::read_task;
use crate::model::Certificate;

pub(super) fn verify_certificate(config: &Config, args: &VerifyCertificateArgs) -> Outcome {
    let mut good = 0;
    let dirs = paths::tasks(&args.tasks)?;
    for dir in &dirs {
        let verdict = certificate_of(dir)?;
        good += usize::from(verdict.is_ok());
        let text = match &verdict {
            Ok(certificate) => {
                format!("certified by termsmith {} ({:?})", certificate.tool, certificate.rigor)
            }
            Err(why) => why.clone(),
        };
        match config.format {
            Format::Json => say::json(&serde_json::json!({
                "task": dir, "certified": verdict.is_ok(), "says": text,
            }))?,
            Format::Text => say::line(format!("{}: {text}", dir.display()))?,
        }
    }
    Ok(if good == dirs.len() { Status::Ok } else { Status::Failed })
}

/// The certificate in a task directory, if it matches the files of the directory.
fn certificate_of(dir: &Path) -> Result<Result<Certificate, String>, Failure> {
    let task = read_task(dir)?;
    let path = dir.join("certificate.json");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err("no certificate.json".to_owned()));
        }
        Err(error) => {
            let message = format!("failed to read `{}`: {error}", path.display());
            return Err(Failure::message(Status::Io, message));
        }
    };
    let certificate: Certificate = serde_json::from_slice(&text).map_err(|error| {
        Failure::message(
            Status::BadInput,
            format!(
                "`{}` is not a certificate of termsmith: {error}\nhint: `termsmith screen` makes a new one",
                path.display()
            ),
        )
    })?;
    Ok(if certificate.version > Certificate::VERSION {
        Err(format!("certificate of version {}, newer than this termsmith reads", certificate.version))
    } else if certificate.task_digest != task.digest() {
        Err("edited since it was certified: the files differ from those of the certificate".to_owned())
    } else if !certificate.certified {
        Err("screened and rejected".to_owned())
    } else if let Some(why) = super::rollout::revocation(dir) {
        Err(why)
    } else {
        Ok(certificate)
    })
}
