//! Executes recorded turns again, in a new container.

use tracing::Instrument as _;

use super::conversation::{Conversation, is_judged_submission};
use super::ended::{Ended, lost};
use super::error::AgentError;
use super::scaffold::{AssistantMessage, EpisodeContext, Protocol, ScaffoldError, Session};
use crate::model::{Act, End, ShellOutcome, TurnKind};
use crate::sandbox::ExecLimit;

/// Executes the recorded turns again. If the last of them ended the episode, it ends again.
pub(super) async fn replay_recorded<'p>(
    protocol: &'p dyn Protocol,
    session: &mut Box<dyn Session + 'p>,
    conversation: &Conversation,
    episode: &'p EpisodeContext<'_>,
) -> Result<Option<Ended>, AgentError> {
    let recorded = conversation.turns.iter().zip(&conversation.seen).enumerate().skip(conversation.done);
    for (number, (turn, seen)) in recorded {
        if turn.kind == TurnKind::Asked {
            continue;
        }
        let span = tracing::info_span!("turn", number = number + 1, recorded = true);
        let step = match session.execute(&AssistantMessage::recorded(turn), episode).instrument(span).await {
            Ok(step) => step,
            Err(error) => return lost(error, episode).map(|(ended, _)| Some(ended)),
        };
        if step.kind != turn.kind || step.acts != turn.acts {
            let cause = format!(
                "turn {}: {:?} was recorded, {:?} is the result now",
                number + 1,
                turn.acts,
                step.acts
            );
            let limit_differs = met_a_limit(&step.acts) != met_a_limit(&turn.acts);
            let diverged = Ended::because(End::ResumeDiverged, cause);
            return Ok(Some(Ended { limit_differs, ..diverged }));
        }
        if is_judged_submission(turn, seen) {
            match new_round(protocol, episode).await {
                Ok(opened) => *session = opened,
                Err(error) => return lost(error, episode).map(|(ended, _)| Some(ended)),
            }
            episode.deadline.restart(conversation.left_in_round(episode.limits.total, number + 1));
        } else if step.kind == TurnKind::Submitted {
            return Ok(Some(Ended::by(End::Submitted)));
        }
        if step.shell_ended {
            return Ok(Some(Ended::by(End::ShellEnded)));
        }
    }
    Ok(None)
}

/// Whether a command met the scaffold's time limit.
fn met_a_limit(acts: &[Act]) -> bool {
    acts.iter().any(|act| matches!(act, Act::Command { outcome: Some(ShellOutcome::TimedOut), .. }))
}

/// Opens the session of a further round. A round that is not executed again begins in a new
/// container, where no process of the one before it is left.
async fn new_round<'p>(
    protocol: &'p dyn Protocol,
    episode: &'p EpisodeContext<'_>,
) -> Result<Box<dyn Session + 'p>, ScaffoldError> {
    let unusable = |error| ScaffoldError::of(error, Vec::new());
    episode.sandbox.end_processes().await.map_err(unusable)?;
    // The end of the shell becomes the result of this command, not of the round's first one.
    episode.sandbox.shell("exit 0", &ExecLimit::default()).await.map_err(unusable)?;
    protocol.open(episode, "").await.map(|(session, _)| session)
}
