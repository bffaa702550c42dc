//! Why the runner could not do what it was asked.

use super::render::TooLong;
use super::server::{Answer, Unanswered};
use crate::process::signal::SignalError;

/// The work is no longer ours, or the store could not say whether it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FenceLost {
    /// Somebody else holds the claim, or a control command ended it.
    #[error("somebody else took the work over")]
    Taken,
    /// The store did not answer.
    #[error("the claim could not be checked: {0}")]
    Unchecked(String),
}

/// Why the runner could not do what it was asked.
///
/// [`Unanswered`](Self::Unanswered) is kept apart from everything that tmux said: after it, the
/// change may still happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// Nothing certain is known.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// tmux refused, in its own words.
    #[error("tmux refused to {doing}: {words}")]
    Refused {
        /// What it was asked.
        doing: &'static str,
        /// Its words.
        words: String,
    },
    /// The change was not made, because the work is no longer ours.
    #[error(transparent)]
    FenceLost(#[from] FenceLost),
    /// The message's time was over before tmux came to it; nothing was pasted.
    #[error("the message expired before tmux came to it")]
    Expired,
    /// The session is not the one that is registered: look again, register, then deliver.
    #[error("the session changed meanwhile: {detail}")]
    Changed {
        /// What is different.
        detail: String,
    },
    /// The occupant does not carry our options yet.
    #[error("the session {name} was not made by the-loop: give it our options first")]
    NotAdopted {
        /// The session.
        name: String,
    },
    /// The command is longer than tmux takes.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The process was not signalled.
    #[error("the agent's host was not asked to end")]
    Signal(#[from] SignalError),
}

impl RunnerError {
    pub(super) fn refused(doing: &'static str, answer: &Answer) -> Self {
        let words = if answer.words.is_empty() {
            format!("exit status {}", answer.status)
        } else {
            answer.words.clone()
        };
        Self::Refused { doing, words }
    }
}
