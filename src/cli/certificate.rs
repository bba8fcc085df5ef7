//! `verify-certificate`: checks that certificates describe the files beside them.

use std::path::Path;

use super::args_tasks::VerifyCertificateArgs;
use super::config::{Config, Format};
use super::exit::Status;
use super::failure::Outcome;
use super::{open, paths, rollout, say};
use crate::folder::{Fault, WalkError};
use crate::harbor::{CertificateError, read_certificate, read_task};
use crate::model::Certificate;

pub(super) fn verify_certificate(config: &Config, args: &VerifyCertificateArgs) -> Outcome {
    let mut statuses = Vec::new();
    for dir in paths::tasks(&args.tasks)? {
        // An unreadable directory does not stop the others.
        let checked = certificate_of(&dir);
        let text = match &checked {
            Ok(certificate) => {
                format!("certified by termsmith {} ({:?})", certificate.tool, certificate.rigor)
            }
            Err((_, why)) => why.clone(),
        };
        match config.format {
            Format::Json => say::json(&serde_json::json!({
                "task": dir, "certified": checked.is_ok(), "says": text,
            }))?,
            Format::Text => say::line(format!("{}: {text}", dir.display()))?,
        }
        statuses.push(checked.err().map_or(Status::Ok, |(status, _)| status));
    }
    Ok(open::combined(statuses.into_iter()))
}

/// The certificate in a task directory, if it matches the directory's files. Otherwise the reason,
/// and the exit status for it.
fn certificate_of(dir: &Path) -> Result<Certificate, (Status, String)> {
    let not = |why: &str| (Status::Failed, why.to_owned());
    let task = read_task(dir).map_err(|error| (Status::BadInput, error.to_string()))?;
    let certificate = read_certificate(dir).map_err(|error| (status(&error), error.to_string()))?;
    let certificate = certificate.ok_or_else(|| not("no certificate.json"))?;
    if certificate.task_digest != task.digest() {
        Err(not("edited since it was certified: the files differ from those of the certificate"))
    } else if !certificate.certified {
        Err(not("screened and rejected"))
    } else if let Some(why) = rollout::revocation(dir) {
        Err(not(&why))
    } else {
        Ok(certificate)
    }
}

fn status(error: &CertificateError) -> Status {
    match error {
        CertificateError::Walk(WalkError { fault: Fault::Io(_), .. }) => Status::Io,
        CertificateError::Walk(_) | CertificateError::Malformed { .. } => Status::BadInput,
        // Another version of termsmith wrote it, so it cannot be checked here. The certificate
        // itself may be fine.
        CertificateError::Version { .. } => Status::Failed,
    }
}
