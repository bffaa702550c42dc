//! The words for kinds and reasons.

use super::sentences::Words;
use crate::model::{DropReason, HoldReason};

/// Says what kind of thing happened, in people's words: `comment`, `CI failure`.
#[must_use]
pub fn kind_phrase(kind: &str) -> &str {
    match kind {
        "issue_comment" => "comment",
        "review_comment" => "review comment",
        "workflow_run" | "check_run" | "status" => "CI failure",
        "armed" => "label",
        other => other,
    }
}

/// `comment by @octocat`; empty where the record is about no event.
pub(super) fn act(w: &Words<'_>, by: &str) -> String {
    let kind = kind_phrase(w.get("kind"));
    if kind.is_empty() {
        String::new()
    } else {
        format!("{kind}{by}")
    }
}

/// Says why something is not delivered; a word of another version stays as it is.
#[must_use]
pub fn drop_phrase(word: &str) -> &str {
    let Ok(reason) = word.parse::<DropReason>() else {
        return word;
    };
    match reason {
        DropReason::UnauthorizedActor => "not in routing.authorizedUsers",
        DropReason::SelfAuthored => "written by the loop itself",
        DropReason::SpawnPolicy => "no session, and the item does not carry the label",
        DropReason::AwaitingStart => "no session; waits for the-loop start",
        DropReason::SessionPaused => "session is paused",
        DropReason::SessionStopped => "session was stopped",
        DropReason::ItemClosed => "item is closed",
        DropReason::SessionOccupied => "session name is occupied and cannot be cleared",
        DropReason::Superseded => "edited since; the newer version counts",
        DropReason::ControlAmbiguous => "two different control words",
        DropReason::NothingToResume => "nothing is paused",
        DropReason::EmptyReview => "review without text; its comments say it all",
        DropReason::AlreadyRunning => "its session runs already",
        DropReason::NoSession => "there is no session",
        DropReason::ByOperator => "the command failed, and no poller runs",
        DropReason::Reset => "item was reset",
    }
}

/// Says what a delivery waits for; a word of another version stays as it is.
#[must_use]
pub fn hold_phrase(word: &str) -> &str {
    let Ok(reason) = word.parse::<HoldReason>() else {
        return word;
    };
    match reason {
        HoldReason::TmuxSilent => "tmux does not answer",
        HoldReason::AgentOutlivesSession => "session is gone, but its agent still runs",
        HoldReason::Unsent => "typed, and waits for its Enter",
        HoldReason::EnterPending => "the message before it waits for its Enter",
        HoldReason::NoAgent => "pane runs a shell, not an agent",
        HoldReason::PaneInMode => "somebody scrolls the pane",
        HoldReason::InputOff => "input of the pane is switched off",
        HoldReason::Starting => "agent is still starting",
        HoldReason::SessionPaused => "session is paused",
        HoldReason::Rate => "comments answer each other too fast",
        HoldReason::MakingWay => "a command for the item goes first",
        HoldReason::Grouping => "the rest of the review is still coming in",
        HoldReason::StartRetry => "the start failed or waits, and is tried again",
        HoldReason::StartUnresolved => "an agent was started, and what became of it is not clear",
    }
}

/// Says why a session could not be started.
pub(super) fn spawn_phrase(word: &str) -> &str {
    match word {
        "name-taken-live" => "its name is taken by a live session that is not registered",
        "former-agent-live" => "the agent of its closed session still runs",
        "harness-ended" => "the agent ended at once",
        "tmux-unanswered" => "tmux did not answer",
        "tmux-refused" => "tmux refused",
        "not-prepared" => "could not be prepared",
        other => other,
    }
}
