//! A request that can become a task, and is not nearly one that was accepted before.

use super::anchor::{Anchor, anchor};
use super::near_duplicate::Words;
use super::stages::{Feasibility, Idea, Judgement, judged, sampled, shown};
use super::working::Working;
use super::{History, StageContext, StageError};
use crate::llm::AskError;

/// Requests that are sampled before a blueprint is given up.
const MAX_REQUESTS: u32 = 3;

/// Accepted titles that a sampler is shown. More would make the prompt longer than what it asks
/// for.
const SHOWN_TITLES: usize = 40;

/// Requests that were accepted before in the same cell of the plan, in order.
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
    /// The last request, if none is feasible and new.
    pub(super) working: Result<Box<Working>, String>,
}

/// The first request that is feasible and not nearly one of `accepted`, to which it is added.
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
        history.begun(&Idea);
        let words = Words::of(&request);
        if request.is_empty() {
            history.examined(&Idea, vec!["it is empty".to_owned()]);
            continue;
        }
        if let Some(title) = accepted.near(&words) {
            // Before its feasibility is paid for.
            history.examined(&Idea, vec![format!("it is nearly the request “{title}”")]);
            last = request;
            continue;
        }
        history.begun(&Feasibility);
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
            let working = Working::begun(request, title, difficulty);
            return Ok(Requested { history, working: Ok(Box::new(working)) });
        }
        history.examined(&Feasibility, vec![reason]);
        last = request;
    }
    Ok(Requested { history, working: Err(last) })
}

/// The beginning of a task, if its request is feasible. `Err` inside: why it is not.
pub(super) async fn feasible(
    context: &StageContext<'_>,
    request: String,
) -> Result<Result<Working, String>, StageError> {
    match judged(context, &request, 0).await {
        Ok(Judgement { feasible: true, difficulty, title, .. }) => {
            Ok(Ok(Working::begun(request, title, difficulty)))
        }
        Ok(Judgement { reason, .. }) => Ok(Err(reason)),
        Err(StageError::Ask(error @ AskError::Unusable { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
