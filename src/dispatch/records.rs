//! The event log's words for what the dispatcher decided.

use chrono::{DateTime, Utc};

use super::conclude::FailedSpawn;
use crate::eventlog::{About, CloseReason, ControlOrigin, Decision, Effect};
use crate::model::{
    ControlCommand, Detail, DropReason, Ending, HarnessName, HoldReason, ItemKind, Repeat, Session,
    SessionName,
};
use crate::store::{Claim, ClaimedDelivery, Waiting};

/// The version that is running, as give-ups record it (AC11).
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a record says about the delivery that it is about.
pub(super) fn about(claim: &Claim, row: &ClaimedDelivery) -> About {
    About::of(&claim.item.item, row.id, &row.event)
}

/// The session that an unhappy end is about, where the item has one.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    harness: Option<HarnessName>,
    tmux_target: Option<SessionName>,
}

impl Place {
    pub(super) fn of(session: Option<&Session>) -> Self {
        Self {
            harness: session.map(|session| session.harness.clone()),
            tmux_target: session.and_then(|session| session.minted_ref.session_name().ok()),
        }
    }
}

pub(super) fn dropped(
    claim: &Claim,
    row: &ClaimedDelivery,
    place: &Place,
    reason: DropReason,
    error: Option<&str>,
) -> Decision {
    Decision::DispatchDropped {
        about: about(claim, row),
        reason,
        harness: place.harness.clone(),
        tmux_target: place.tmux_target.clone(),
        error: error.map(str::to_owned),
    }
}

pub(super) fn dropped_waiting(waiting: &Waiting, place: &Place, reason: DropReason) -> Decision {
    Decision::DispatchDropped {
        about: About::of(&waiting.item, waiting.delivery, &waiting.event),
        reason,
        harness: place.harness.clone(),
        tmux_target: place.tmux_target.clone(),
        error: None,
    }
}

pub(super) fn held(
    claim: &Claim,
    row: &ClaimedDelivery,
    place: &Place,
    reason: HoldReason,
    detail: Option<&str>,
) -> Decision {
    Decision::DispatchHeld {
        about: about(claim, row),
        reason,
        tmux_target: place.tmux_target.clone(),
        detail: detail.map(str::to_owned),
    }
}

pub(super) fn failed(
    claim: &Claim,
    row: &ClaimedDelivery,
    place: &Place,
    error: &str,
    max_attempts: u32,
    will_retry: bool,
) -> Decision {
    Decision::DispatchFailed {
        about: about(claim, row),
        harness: place.harness.clone(),
        tmux_target: place.tmux_target.clone(),
        error: error.to_owned(),
        attempt: claim.attempts(),
        max_attempts,
        will_retry,
    }
}

pub(super) fn broke_down(
    claim: &Claim,
    row: &ClaimedDelivery,
    error: &str,
    will_retry: bool,
) -> Decision {
    Decision::DispatchError {
        about: about(claim, row),
        error: error.to_owned(),
        will_retry,
    }
}

pub(super) fn gave_up_comment(claim: &Claim, error: &str) -> Decision {
    Decision::PollCommentFailed {
        about: about(claim, claim.first()),
        attempts: claim.attempts(),
        error: error.to_owned(),
        version: VERSION.to_owned(),
    }
}

pub(super) fn gave_up_spawn(claim: &Claim, error: &str) -> Decision {
    Decision::PollSpawnFailed {
        about: about(claim, claim.first()),
        attempts: claim.attempts(),
        error: error.to_owned(),
        version: VERSION.to_owned(),
    }
}

/// One record for each row of a claim whose message is in the session.
pub(super) fn succeeded(
    claim: &Claim,
    session: &Session,
    name: &SessionName,
    repeat: Repeat,
    now: DateTime<Utc>,
) -> impl Iterator<Item = Decision> {
    claim.rows.iter().map(move |row| {
        let waited = (now - row.accepted_at).num_milliseconds();
        Decision::DispatchSucceeded {
            about: about(claim, row),
            harness: session.harness.clone(),
            tmux_target: name.clone(),
            attempt: claim.attempts(),
            chars: row.event.body.chars().count() as u64,
            held_ms: claim.held_before.and_then(|_| u64::try_from(waited).ok()),
            possible_repeat: repeat,
        }
    })
}

pub(super) fn spawned(claim: &Claim, session: &Session, name: &SessionName) -> Decision {
    Decision::SessionSpawned {
        about: about(claim, claim.first()),
        harness: session.harness.clone(),
        harness_session_id: session.harness_session_id.clone(),
        tmux_target: name.clone(),
        cwd: session.cwd.clone(),
    }
}

pub(super) fn spawn_failed(
    claim: &Claim,
    harness: &HarnessName,
    spawn: &FailedSpawn,
    error: &str,
    will_retry: bool,
) -> Decision {
    Decision::SessionSpawnFailed {
        about: about(claim, claim.first()),
        harness: harness.clone(),
        tmux_target: spawn.name.clone(),
        reason: spawn.reason,
        error: error.to_owned(),
        attempt: claim.attempts(),
        will_retry,
    }
}

pub(super) fn respawned(
    claim: &Claim,
    session: &Session,
    name: &SessionName,
    resumed: bool,
    ended: Option<&Ending>,
) -> Decision {
    Decision::SessionRespawned {
        about: about(claim, claim.first()),
        harness: session.harness.clone(),
        harness_session_id: session.harness_session_id.clone(),
        tmux_target: name.clone(),
        resumed,
        ended: ended.map(ToString::to_string),
    }
}

pub(super) fn respawn_averted(
    claim: &Claim,
    session: &Session,
    name: &SessionName,
    adopted: bool,
) -> Decision {
    Decision::SessionRespawnAverted {
        about: about(claim, claim.first()),
        harness: session.harness.clone(),
        tmux_target: name.clone(),
        adopted,
    }
}

pub(super) fn resume_failed(claim: &Claim, session: &Session, error: &str) -> Decision {
    Decision::SessionResumeFailed {
        about: about(claim, claim.first()),
        harness: session.harness.clone(),
        harness_session_id: session.harness_session_id.clone(),
        error: error.to_owned(),
    }
}

pub(super) fn terminated(
    claim: &Claim,
    session: &Session,
    name: &SessionName,
    error: Option<String>,
) -> Decision {
    Decision::SessionHarnessTerminated {
        work_item: claim.item.item.clone(),
        harness: session.harness.clone(),
        tmux_target: name.clone(),
        ok: error.is_none(),
        error,
    }
}

pub(super) fn retained(claim: &Claim, name: &SessionName) -> Decision {
    Decision::SessionRetained {
        work_item: claim.item.item.clone(),
        tmux_target: name.clone(),
    }
}

pub(super) fn set_aside(claim: &Claim, name: &SessionName, renamed_to: &str) -> Decision {
    Decision::SessionSetAside {
        work_item: claim.item.item.clone(),
        tmux_target: name.clone(),
        renamed_to: renamed_to.to_owned(),
    }
}

pub(super) fn closed(claim: &Claim, session: &Session) -> Decision {
    Decision::SessionClosed {
        work_item: claim.item.item.clone(),
        harness: session.harness.clone(),
        harness_session_id: session.harness_session_id.clone(),
        via: origin(claim),
        actor: claim.first().event.actor.clone(),
    }
}

pub(super) fn autoclosed(claim: &Claim) -> Decision {
    let merged = matches!(claim.first().event.detail, Detail::Closed { merged: true });
    let reason = match (claim.item.kind, merged) {
        (ItemKind::Issue, _) => CloseReason::IssueClosed,
        (ItemKind::PullRequest, true) => CloseReason::PrMerged,
        (ItemKind::PullRequest, false) => CloseReason::PrClosed,
    };
    Decision::SessionAutoclosed {
        work_item: claim.item.item.clone(),
        reason,
        merged,
        delivery: Some(claim.first().id),
    }
}

pub(super) fn command(claim: &Claim, command: ControlCommand, effect: Effect) -> Decision {
    let row = claim.first();
    Decision::ControlCommand {
        work_item: claim.item.item.clone(),
        command,
        via: origin(claim).unwrap_or(ControlOrigin::Comment),
        effect,
        actor: row.event.actor.clone(),
        delivery: Some(row.id),
        key: Some(row.event.key.clone()),
    }
}

pub(super) fn rejected(claim: &Claim, command: ControlCommand, reason: DropReason) -> Decision {
    let row = claim.first();
    Decision::ControlRejected {
        work_item: claim.item.item.clone(),
        command,
        via: origin(claim).unwrap_or(ControlOrigin::Comment),
        reason,
        actor: row.event.actor.clone(),
        delivery: Some(row.id),
        key: Some(row.event.key.clone()),
    }
}

/// Where a command was given; none where the work item's end is none.
fn origin(claim: &Claim) -> Option<ControlOrigin> {
    match claim.first().event.detail {
        Detail::Command { .. } => Some(ControlOrigin::Cli),
        Detail::Closed { .. } => None,
        _ => Some(ControlOrigin::Comment),
    }
}
