//! Deliveries: one event on its way into one work item's session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number of a delivery in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub i64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The proof of holding a claim; every write of the holder names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimToken(String);

impl ClaimToken {
    /// Mints a token for a new claim.
    #[must_use]
    pub fn mint() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// Returns the token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which queue of the item a delivery stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Control words, closures and CLI commands: claimed first, never behind a held event.
    Control,
    /// All that is for the agent to read, in order.
    Event,
}

impl Class {
    /// Returns the class as the store writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Event => "event",
        }
    }
}

/// A state in a row that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a delivery state")]
pub struct UnknownState(pub String);

/// A reason in a row that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a reason")]
pub struct UnknownReason(pub String);

macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $error:ident { $($(#[$doc:meta])* $variant:ident => $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the word used in the store, the log and the documentation.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| $error(text.to_owned()))
            }
        }
    };
}

words! {
    /// How far a delivery has come.
    DeliveryState, UnknownState {
        /// Waits for its turn, or for its next attempt.
        Pending => "pending",
        /// Somebody works on it.
        Claimed => "claimed",
        /// Waits for a condition; costs no attempt.
        Held => "held",
        /// Its text is in the session, or its command was executed.
        Delivered => "delivered",
        /// Decided against, for a reason; its key is kept.
        Dropped => "dropped",
        /// No progress was possible; never tried again (AC8).
        Skipped => "skipped",
        /// Its attempts are spent (AC11 may re-arm it).
        Abandoned => "abandoned",
        /// Older than the first sight of its item; known, never said.
        Baselined => "baselined",
    }
}

impl DeliveryState {
    /// Tells whether nothing more will happen to the delivery by itself.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Claimed | Self::Held)
    }
}

words! {
    /// Why a delivery waits.
    HoldReason, UnknownReason {
        /// The tmux server does not answer; its first answer lets it go on.
        TmuxSilent => "tmux-silent",
        /// The session is gone but its recorded harness still runs.
        AgentOutlivesSession => "agent-outlives-session",
        /// Its text is typed, and the Enter is still to come.
        Unsent => "unsent",
        /// The text before it is typed, and the Enter of that is still to come.
        EnterPending => "enter-pending",
        /// The pane runs a shell, not an agent.
        NoAgent => "no-agent",
        /// Somebody scrolls the pane (copy mode, or another tmux mode).
        PaneInMode => "pane-in-mode",
        /// Input of the pane is switched off.
        InputOff => "input-off",
        /// The harness is still starting.
        Starting => "starting",
        /// The session is paused.
        SessionPaused => "session-paused",
        /// The agent was told more than people write; comments seem to answer each other.
        Rate => "rate",
        /// A command for the work item goes first.
        MakingWay => "making-way",
        /// The rows of one review are still coming in.
        Grouping => "grouping",
        /// A start failed and is tried again; no later command waits for it.
        StartRetry => "start-retry",
        /// What became of an agent that was started cannot be told yet.
        StartUnresolved => "start-unresolved",
    }
}

words! {
    /// Why an event is not delivered.
    DropReason, UnknownReason {
        /// The one who did the act is not in `routing.authorizedUsers`.
        UnauthorizedActor => "unauthorized-actor",
        /// The text carries our own marker.
        SelfAuthored => "self-authored",
        /// The item is not armed.
        SpawnPolicy => "spawn-policy",
        /// The item is armed, but nobody said start.
        AwaitingStart => "awaiting-start",
        /// The session is paused.
        SessionPaused => "session-paused",
        /// The session was stopped after the event came in.
        SessionStopped => "session-stopped",
        /// The work item was closed.
        ItemClosed => "item-closed",
        /// The name is held by something that is neither live nor clearable (AC8).
        SessionOccupied => "session-occupied",
        /// A newer version of the same text replaced it.
        Superseded => "superseded",
        /// Two different control words in one comment.
        ControlAmbiguous => "control-ambiguous",
        /// A resume where nothing is paused.
        NothingToResume => "nothing-to-resume",
        /// A review without a text whose inline comments say it all.
        EmptyReview => "empty-review",
        /// The item was armed, and its session runs already.
        AlreadyRunning => "already-running",
        /// A command for a session that is not there.
        NoSession => "no-session",
        /// A command on this machine failed, and no poller runs that would try it again.
        ByOperator => "by-operator",
        /// Its work item is reset.
        Reset => "reset",
    }
}
/// Whether a message may have been said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// It was said once.
    No,
    /// The session died between paste and confirmation, so the agent may have read it twice.
    Possible,
}
