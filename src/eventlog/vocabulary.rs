//! The vocabulary itself: one variant per event type, in the order in which the reference shows them.
//!
//! `poll.comment_failed`, `poll.spawn_failed`, `poll.rearmed`, `poll.provider_error`, `items_seen`,
//! `comments_forwarded` and `tmux_target` are names that existing tools read, so they stay as they are.
//! A field's name means the same in every type; [`FIELDS`](super::FIELDS) explains each once.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::Level;
use super::decision::{About, CloseReason, ControlOrigin, Effect, EventType, SpawnFailure};
use crate::model::{
    ControlCommand, DeliveryId, DropReason, EventKey, EventKind, HarnessName, HarnessSessionId,
    HoldReason, ItemKind, Login, Repeat, RepoRef, SessionName, WorkItemRef,
};

/// Tells whether a field has nothing to say, which leaves it out of the record.
fn absent<T: Serialize>(value: &T) -> bool {
    serde_json::to_value(value).is_ok_and(|value| value.is_null())
}

fn path<S: Serializer>(value: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&value.display())
}

macro_rules! vocabulary {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $($level:ident)|+ {
        $($(#[$meta:meta])* $field:ident: $type:ty),* $(,)?
    })+) => {
        /// One thing that the program decided or learned, with the fields that its type has.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Decision {
            $($(#[doc = $doc])+ $variant {
                $(
                    #[doc = concat!("The field `", stringify!($field), "`, as [`FIELDS`](super::FIELDS) explains it.")]
                    #[serde(skip_serializing_if = "absent")]
                    $(#[$meta])*
                    $field: $type,
                )*
            },)+
        }

        impl Decision {
            /// Returns the name of its type, `<subject>.<verb>`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }

            pub(super) fn usual_level(&self) -> Level {
                match self {
                    $(Self::$variant { .. } => [$(Level::$level),+][0],)+
                }
            }
        }

        /// Every event type that there is.
        pub const TYPES: &[EventType] = &[$(EventType {
            name: $name,
            levels: &[$(Level::$level),+],
            fields: &[$(stringify!($field)),*],
            description: concat!($($doc),+).trim_ascii(),
        },)+];
    };
}

vocabulary! {
    /// An event was decided against as soon as it was seen.
    RoutingDropped = "routing.dropped", Info | Debug | Warning {
        reason: DropReason,
        key: EventKey,
        kind: EventKind,
        work_items: Vec<WorkItemRef>,
        actor: Option<Login>,
        url: Option<String>,
    }
    /// An event is stored; from here on it cannot be lost.
    InboxAccepted = "inbox.accepted", Debug {
        key: EventKey,
        kind: EventKind,
        work_items: Vec<WorkItemRef>,
        deliveries: Vec<DeliveryId>,
        actor: Option<Login>,
        url: Option<String>,
        gh_delivery: Option<String>,
    }
    /// The same version of the same object had been stored before.
    InboxDuplicate = "inbox.duplicate", Debug {
        key: EventKey,
        kind: EventKind,
        work_items: Vec<WorkItemRef>,
        gh_delivery: Option<String>,
    }
    /// A work item was seen for the first time; what was said before is known and will not be said again.
    InboxBaselined = "inbox.baselined", Debug { work_item: WorkItemRef, count: u64 }
    /// Payloads past their retention were removed; their keys stay.
    InboxPruned = "inbox.pruned", Debug { count: u64 }

    /// A work item carries the label, so that a start may give it a session.
    ItemArmed = "item.armed", Debug { work_item: WorkItemRef, actor: Option<Login>, count: u64 }
    /// A work item no longer carries the label.
    ItemDisarmed = "item.disarmed", Info { work_item: WorkItemRef, actor: Option<Login> }
    /// A work item was opened again.
    ItemReopened = "item.reopened", Info { work_item: WorkItemRef, actor: Option<Login> }

    /// The text is in the session, exactly once unless it says otherwise.
    DispatchSucceeded = "dispatch.succeeded", Info {
        #[serde(flatten)] about: About,
        harness: HarnessName,
        tmux_target: SessionName,
        attempt: u32,
        chars: u64,
        held_ms: Option<u64>,
        possible_repeat: Repeat,
    }
    /// A delivery was decided against; it will not be tried again.
    DispatchDropped = "dispatch.dropped", Info | Debug | Error {
        #[serde(flatten)] about: About,
        reason: DropReason,
        harness: Option<HarnessName>,
        tmux_target: Option<SessionName>,
        error: Option<String>,
    }
    /// A delivery waits for a condition; waiting costs no attempt.
    DispatchHeld = "dispatch.held", Info | Debug {
        #[serde(flatten)] about: About,
        reason: HoldReason,
        tmux_target: Option<SessionName>,
        detail: Option<String>,
    }
    /// An attempt failed.
    DispatchFailed = "dispatch.failed", Error {
        #[serde(flatten)] about: About,
        harness: Option<HarnessName>,
        tmux_target: Option<SessionName>,
        error: String,
        attempt: u32,
        max_attempts: u32,
        will_retry: bool,
    }
    /// The work on a delivery broke down in the middle; a defect of this program.
    DispatchError = "dispatch.error", Error { #[serde(flatten)] about: About, error: String, will_retry: bool }

    /// A control command was carried out, or remembered.
    ControlCommand = "control.command", Info | Debug {
        work_item: WorkItemRef,
        command: ControlCommand,
        via: ControlOrigin,
        effect: Effect,
        actor: Option<Login>,
        delivery: Option<DeliveryId>,
        key: Option<EventKey>,
    }
    /// A control command was refused; nothing of it is remembered.
    ControlRejected = "control.rejected", Warning {
        work_item: WorkItemRef,
        command: ControlCommand,
        via: ControlOrigin,
        reason: DropReason,
        actor: Option<Login>,
        delivery: Option<DeliveryId>,
        key: Option<EventKey>,
    }

    /// An agent was started for a work item that had none.
    SessionSpawned = "session.spawned", Info {
        #[serde(flatten)] about: About,
        harness: HarnessName,
        harness_session_id: HarnessSessionId,
        tmux_target: SessionName,
        #[serde(serialize_with = "path")] cwd: PathBuf,
    }
    /// An agent could not be started.
    SessionSpawnFailed = "session.spawn_failed", Error {
        #[serde(flatten)] about: About,
        harness: HarnessName,
        tmux_target: SessionName,
        reason: SpawnFailure,
        error: String,
        attempt: u32,
        will_retry: bool,
    }
    /// A session that had ended was started again.
    SessionRespawned = "session.respawned", Info {
        #[serde(flatten)] about: About,
        harness: HarnessName,
        harness_session_id: HarnessSessionId,
        tmux_target: SessionName,
        resumed: bool,
        ended: Option<String>,
    }
    /// A session that seemed to have ended is live; the delivery went into it.
    SessionRespawnAverted = "session.respawn_averted", Info {
        #[serde(flatten)] about: About,
        harness: HarnessName,
        tmux_target: SessionName,
        adopted: bool,
    }
    /// The recorded conversation could not be resumed; a fresh one begins.
    SessionResumeFailed = "session.resume_failed", Warning {
        #[serde(flatten)] about: About,
        harness: HarnessName,
        harness_session_id: HarnessSessionId,
        error: String,
    }
    /// A session was closed; nothing more is delivered into it.
    SessionClosed = "session.closed", Info {
        work_item: WorkItemRef,
        harness: HarnessName,
        harness_session_id: HarnessSessionId,
        via: Option<ControlOrigin>,
        actor: Option<Login>,
    }
    /// A closed session's tmux session stays readable, with its agent where that was not ended.
    SessionRetained = "session.retained", Info {
        work_item: WorkItemRef,
        tmux_target: SessionName,
    }
    /// A harness was asked to end.
    SessionHarnessTerminated = "session.harness_terminated", Info | Warning {
        work_item: WorkItemRef,
        harness: HarnessName,
        tmux_target: SessionName,
        ok: bool,
        error: Option<String>,
    }
    /// A session holds a person's own pane beside an ended harness; it was given another name.
    SessionSetAside = "session.set_aside", Warning {
        work_item: WorkItemRef,
        tmux_target: SessionName,
        renamed_to: String,
    }
    /// A session was closed because its work item was.
    SessionAutoclosed = "session.autoclosed", Info {
        work_item: WorkItemRef,
        reason: CloseReason,
        merged: bool,
        delivery: Option<DeliveryId>,
    }
    /// Sessions, last command and queue of a work item were forgotten; what was said stays known.
    SessionReset = "session.reset", Info {
        work_item: WorkItemRef,
        via: ControlOrigin,
        actor: Option<Login>,
        removed: Vec<String>,
        was_live: bool,
    }

    /// One look at every watched repository is over.
    PollCycle = "poll.cycle", Debug | Warning {
        items_seen: u64,
        comments_forwarded: u64,
        closures: u64,
        failures: u64,
        errors: Vec<String>,
        requests: u64,
        unchanged: u64,
        duration_ms: u64,
        interrupted: bool,
    }
    /// A work item was found closed, merged, deleted or moved.
    PollClosureDetected = "poll.closure_detected", Info {
        work_item: WorkItemRef,
        item_kind: ItemKind,
        merged: bool,
    }
    /// A repository could not be read; the others were.
    PollProviderError = "poll.provider_error", Error { repo: RepoRef, error: String, will_retry: bool }
    /// One work item could not be read; the others were.
    PollItemError = "poll.item_error", Error { work_item: WorkItemRef, error: String, will_retry: bool }
    /// GitHub asks for patience; polling goes on afterwards.
    PollRateLimited = "poll.rate_limited", Warning { until: String, remaining: Option<u64> }
    /// The attempts of a delivery are spent; another version of this program tries once more, unless it is a command.
    PollCommentFailed = "poll.comment_failed", Error {
        #[serde(flatten)] about: About,
        attempts: u32,
        error: String,
        version: String,
    }
    /// The attempts of a first spawn are spent; `the-loop start` begins again.
    PollSpawnFailed = "poll.spawn_failed", Error {
        #[serde(flatten)] about: About,
        attempts: u32,
        error: String,
        version: String,
    }
    /// This version tries deliveries again that another one had given up.
    PollRearmed = "poll.rearmed", Info {
        work_item: WorkItemRef,
        deliveries: Vec<DeliveryId>,
        version: String,
    }

    /// A poller watches.
    PollerStarted = "poller.started", Info { version: String, interval_seconds: u64, repos: Vec<RepoRef>, once: bool }
    /// A poller ended.
    PollerStopped = "poller.stopped", Info | Error { cycles: u64, error: Option<String> }
    /// Another poller holds this state; this one did not start.
    PollerBlocked = "poller.blocked", Warning { holder: Option<i32>, lock: String }
}
