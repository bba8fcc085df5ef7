//! The stage that runs the certificate's trials. A model judges which surviving mutants violate
//! nothing.

use std::collections::BTreeMap;

use futures_util::future::{FutureExt as _, LocalBoxFuture};

use crate::authoring::at_fault::{Rejection, survived};
use crate::authoring::examine::Examination;
use crate::authoring::stage::{Asks, AuthorStage, Examined};
use crate::authoring::working::Working;
use crate::authoring::{StageContext, StageError, equivalence, quotes};
use crate::harbor::{Publication, write_task};
use crate::lint::lint_draft;
use crate::model::Certificate;
use crate::screen::{Ends, Extent, Material, Only, screen};

/// The stage that screens a draft.
pub const SCREENING: &str = "screening";

#[derive(Debug)]
pub(in crate::authoring) struct Screening;

impl AuthorStage for Screening {
    fn name(&self) -> &'static str {
        SCREENING
    }

    fn asks(&self) -> Asks {
        Asks::Nobody
    }

    fn examine<'a>(&'a self, draft: &'a mut Examination<'_>) -> LocalBoxFuture<'a, Examined> {
        screened(draft).boxed_local()
    }
}

/// Screens the draft. If too many mutants survive, a model judges them. Those that violate nothing
/// are set aside.
async fn screened(draft: &mut Examination<'_>) -> Examined {
    let mut violated = BTreeMap::new();
    loop {
        let certificate = certificate(draft).await?;
        let open = equivalence::open(&certificate, &draft.working.solution, &violated);
        if open.is_empty() {
            let clauses = &draft.working.clauses;
            let rejection = Rejection { certificate: &certificate, clauses, violated: &violated };
            let found = rejection.found(draft.survivors);
            draft.working.clauses = quotes::noticed(draft.working.clauses.clone(), &certificate.clauses);
            return Ok(found);
        }
        let judged = equivalence::judged(draft.context, draft.working, &open).await?;
        draft.working.clauses.equivalent.extend(judged.equivalent);
        violated.extend(judged.violated);
    }
}

/// Screens the draft up to the first group of rows that rejects it. Violations that passed an
/// earlier version come first: if the changed checks still miss one, the other rows need no trial.
/// The pipeline's own screening makes the same trials. At a lower rigor it may draw other
/// violations.
async fn certificate(draft: &Examination<'_>) -> Result<Certificate, StageError> {
    let missed = survived(&draft.working.clauses, draft.survivors);
    if !missed.is_empty() {
        let certificate = some_rows(draft.context, draft.working, &Only::Rows(missed)).await?;
        if !certificate.certified {
            return Ok(certificate);
        }
    }
    some_rows(draft.context, draft.working, &Only::All).await
}

/// Screens these rows of the draft, up to the first group that rejects it.
async fn some_rows(
    context: &StageContext<'_>,
    working: &Working,
    only: &Only,
) -> Result<Certificate, StageError> {
    let draft = working.draft(context)?;
    let hashed = context.hashed(&draft.task)?;
    let directory = write_task(&draft.task, &Publication::default())?;
    let findings = lint_draft(context.rules, &directory, &draft);
    let extent = Extent { ends: Ends::Rejected, ..Extent::of(context.rigor) };
    let material = Material::of_draft(&draft, &hashed, &directory);
    let screening = screen(context.runner, context.suite, &material, &findings, extent, only).await?;
    let (certificate, _) = screening.conclusive()?;
    Ok(certificate)
}
