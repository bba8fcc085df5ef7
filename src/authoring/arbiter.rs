//! Asks a model who is at fault if a solution fails checks: the solution, the checks or the
//! instruction. The model sees no solution.

use minijinja::context;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::question::question;
use super::working::Working;
use super::{StageContext, StageError};
use crate::llm::{AskError, CallSite, ChatMessage, ChatRequest, ModelRole, ask_checked};
use crate::model::squeeze;

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    Solution,
    Checks,
    Instruction,
    Environment,
}

/// A judgement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Judged {
    pub(super) fault: Fault,
    /// The words of the instruction that decide it.
    #[serde(default)]
    words: String,
    pub(super) reason: String,
}

/// Asks about `failures` of a solution. `changed` lists the files that it changed.
pub(super) async fn judged(
    context: &StageContext<'_>,
    working: &Working,
    changed: Option<&str>,
    failures: &[String],
) -> Result<Judged, StageError> {
    let texts = &context.texts.arbiter;
    let Working { instruction, checks, .. } = working;
    let files = &working.machine_text();
    let request = ChatRequest::of(vec![
        ChatMessage::system(texts.text("system.md")?),
        ChatMessage::user(texts.render(
            "task.md.j2",
            context! { instruction, files, checks, changed, failures => failures.to_vec() },
        )?),
    ]);
    let shown = json!({
        "instruction": instruction, "files": files, "checks": checks, "changed": changed,
        "failures": failures,
    });
    let site = CallSite {
        role: ModelRole::Judge,
        unit: context.unit.to_owned(),
        stage: format!("author-arbiter/{}", question(&shown)?),
        round: context.evolution,
        step: 0,
        sample: 0,
    };
    let whole = squeeze(instruction);
    let judged = ask_checked(context.models, &site, &request, |judged: &Judged| {
        let quoted = !judged.words.trim().is_empty() && whole.contains(&squeeze(&judged.words));
        // A solution is at fault only if words of the instruction demand what it lacks.
        if judged.fault == Fault::Solution && !quoted {
            return Err(
                "`words` must quote the instruction verbatim where the solution is at fault".to_owned()
            );
        }
        Ok(())
    });
    match judged.await {
        Ok(judged) => Ok(judged),
        // Without a judgement, nothing shows that the solution is wrong. Its author never saw the
        // checks, so the checks are blamed.
        Err(AskError::Unusable { .. }) => Ok(Judged {
            fault: Fault::Checks,
            words: String::new(),
            reason: "nobody could say which words of the instruction demand it".to_owned(),
        }),
        Err(error) => Err(error.into()),
    }
}
