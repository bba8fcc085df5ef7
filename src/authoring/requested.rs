//! Samples a request that can become a task and is no near-duplicate of an accepted one.

use super::anchor::{Anchor, anchor};
use super::near_duplicate::Words;
use super::stages::{Feasibility, Idea, Judgement, judged, sampled, shown};
use super::working::Working;
use super::{History, StageContext, StageError};
use crate::llm::AskError;

/// Number of requests that are sampled for a blueprint before it is given up.
const MAX_REQUESTS: u32 = 3;

/// Number of accepted titles that a sampler is shown. With more, the titles would be the longest
/// part of the prompt.
const SHOWN_TITLES: usize = 40;

/// Requests of the same domain that were accepted before, in order.
#[derive(Debug, Default)]
pub struct Accepted {
    titles: Vec<String>,
    words: Vec<Words>,
}

impl Accepted {
    fn near(&self, words: &Words) -> Option<&str> {
        let found = self.words.iter().position(|accepted| accepted.is_near(words))?;
        self.titles.get(found).map(String::as_str)
    }

    fn push(&mut self, title: &str, words: Words) {
        self.titles.push(title.to_owned());
        self.words.push(words);
    }

    /// The last titles, for a prompt.
    fn shown(&self) -> &[String] {
        &self.titles[self.titles.len().saturating_sub(SHOWN_TITLES)..]
    }
}

/// The request of one blueprint.
#[derive(Debug)]
pub struct Requested {
    pub(super) history: History,
    /// The start of the task. `Err` is the last request, if none was feasible and new.
    pub(super) working: Result<Box<Working>, String>,
}

/// Samples requests until one is feasible and no near-duplicate of one in `accepted`. That one is
/// added to `accepted`.
pub async fn requested(context: &StageContext<'_>, accepted: &mut Accepted) -> Result<Requested, StageError> {
    let mut history = History::default();
    let anchor = match context.recording {
        Some(_) => Anchor::default(),
        None => anchor(context).await?,
    };
    let mut last = String::new();
    for sample in 0..MAX_REQUESTS {
        let request = match context.recording {
            Some(recording) => shown(context, recording, sample).await?,
            None => sampled(context, &anchor, accepted.shown(), sample).await?,
        };
        history.started(&Idea);
        let words = Words::of(&request);
        if request.is_empty() {
            history.examined(&Idea, vec!["it is empty".to_owned()]);
            continue;
        }
        if let Some(title) = accepted.near(&words) {
            // This comes before the feasibility, which costs a call.
            history.examined(&Idea, vec![format!("it is nearly the request “{title}”")]);
            last = request;
            continue;
        }
        history.started(&Feasibility);
        let Judgement { feasible, reason, difficulty, title } = match judged(context, &request, sample).await
        {
            Ok(judged) => judged,
            Err(StageError::Ask(error @ AskError::Unusable { .. })) => {
                history.examined(&Feasibility, vec![error.to_string()]);
                last = request;
                continue;
            }
            Err(error) => return Err(error),
        };
        if feasible {
            accepted.push(&title, words);
            let working = Working::new(request, title, difficulty);
            return Ok(Requested { history, working: Ok(Box::new(working)) });
        }
        history.examined(&Feasibility, vec![reason]);
        last = request;
    }
    Ok(Requested { history, working: Err(last) })
}

/// The start of a task, if its request is feasible. The inner `Err` says why it is not.
pub(super) async fn feasible(
    context: &StageContext<'_>,
    request: String,
) -> Result<Result<Working, String>, StageError> {
    match judged(context, &request, 0).await {
        Ok(Judgement { feasible: true, difficulty, title, .. }) => {
            Ok(Ok(Working::new(request, title, difficulty)))
        }
        Ok(Judgement { reason, .. }) => Ok(Err(reason)),
        Err(StageError::Ask(error @ AskError::Unusable { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
