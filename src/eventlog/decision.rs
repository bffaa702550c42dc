//! The types that the vocabulary is made of.

use serde::Serialize;

use super::{Decision, Level};
use crate::model::{
    DeliveryId, DropReason, Event, EventKey, EventKind, HoldReason, Login, WorkItemRef,
};

/// One row of the vocabulary: what `the-loop events --types` and the reference page show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EventType {
    /// The name, `<subject>.<verb>`.
    pub name: &'static str,
    /// The usual level first, then those that it takes where its fields say so.
    pub levels: &'static [Level],
    /// The fields that follow the envelope, in order; absent ones are left out of the record.
    pub fields: &'static [&'static str],
    /// What it means, in one line.
    pub description: &'static str,
}

/// The delivery that a decision is about; its fields stand in the record one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The work item whose session it is for.
    pub work_item: WorkItemRef,
    /// Its number in the inbox.
    pub delivery: DeliveryId,
    /// The event that it carries.
    pub key: EventKey,
    /// The event's kind.
    pub kind: EventKind,
    /// Who did the act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Login>,
}

impl About {
    /// The names of its fields, in order.
    pub const FIELDS: &'static [&'static str] = &["work_item", "delivery", "key", "kind", "actor"];

    /// Says it of a work item's delivery and the event that it carries.
    #[must_use]
    pub fn of(work_item: &WorkItemRef, delivery: DeliveryId, event: &Event) -> Self {
        Self {
            work_item: work_item.clone(),
            delivery,
            key: event.key.clone(),
            kind: event.kind,
            actor: event.actor.clone(),
        }
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
        }
    };
}

words! {
    /// Where a control command was given.
    ControlOrigin {
        /// In a comment or review.
        Comment,
        /// On the command line.
        Cli,
    }
}

words! {
    /// What a control command did.
    Effect {
        /// It started a session.
        Spawned,
        /// It let a paused session go on.
        Resumed,
        /// It paused the session.
        Paused,
        /// It ended the session.
        Stopped,
        /// It was remembered; nothing had to be done.
        Noop,
    }
}

words! {
    /// What ended a work item on GitHub.
    CloseReason {
        /// The issue was closed.
        IssueClosed,
        /// The pull request was merged.
        PrMerged,
        /// The pull request was closed without a merge.
        PrClosed,
    }
}

words! {
    /// Why a session could not be started.
    SpawnFailure {
        /// A session that is still live, and not ours to adopt, holds the name.
        NameTakenLive,
        /// The agent of a closed session of the work item still runs, under the name or elsewhere.
        FormerAgentLive,
        /// The harness ended inside its probe window.
        HarnessEnded,
        /// tmux did not answer.
        TmuxUnanswered,
        /// tmux answered with an error.
        TmuxRefused,
        /// The workspace or the harness could not be made ready.
        NotPrepared,
    }
}

impl Decision {
    /// Says that a delivery was decided against before its session was looked at.
    #[must_use]
    pub fn dropped(about: About, reason: DropReason, error: Option<String>) -> Self {
        Self::DispatchDropped {
            about,
            reason,
            harness: None,
            tmux_target: None,
            error,
        }
    }

    /// Returns how loud it is: the usual level of its type, unless its fields say otherwise.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::RoutingDropped { reason, .. } => match reason {
                DropReason::UnauthorizedActor => Level::Warning,
                DropReason::SelfAuthored | DropReason::EmptyReview => Level::Debug,
                _ => Level::Info,
            },
            Self::DispatchDropped {
                reason: DropReason::SessionOccupied,
                ..
            } => Level::Error,
            // A labelled item waits for its start as it should; a comment that is not said is news.
            Self::DispatchDropped {
                reason: DropReason::AwaitingStart | DropReason::AlreadyRunning,
                about,
                ..
            } if about.kind == EventKind::Armed => Level::Debug,
            // It passes by itself within seconds, as far as is known.
            Self::DispatchHeld {
                detail: None,
                reason:
                    HoldReason::Starting
                    | HoldReason::Unsent
                    | HoldReason::EnterPending
                    | HoldReason::MakingWay
                    | HoldReason::Grouping,
                ..
            } => Level::Debug,
            // The session's own line says it.
            Self::ControlCommand {
                effect: Effect::Spawned,
                ..
            } => Level::Debug,
            Self::PollerStopped { error: Some(_), .. } => Level::Error,
            Self::SessionHarnessTerminated { ok: false, .. } => Level::Warning,
            Self::PollCycle {
                failures, errors, ..
            } if *failures > 0 || !errors.is_empty() => Level::Warning,
            other => other.usual_level(),
        }
    }
}
