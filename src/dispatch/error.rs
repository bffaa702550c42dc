//! What can go wrong around a dispatch; what goes wrong in one is a conclusion, not an error.

use crate::runner::FenceLost;
use crate::store::StoreError;

/// Why the dispatcher cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DispatchError {
    /// Tells whether it may go on by itself: somebody copies the database, or the disk is full for a
    /// while.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Store(error) => error.is_transient(),
        }
    }
}

/// Why the work on one claim ended without a conclusion.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    /// Somebody else holds the claim now; they go on with it.
    #[error("the claim is held by another process now")]
    Lost,
    /// The store did not say whether the claim is still ours, and nothing was changed since.
    #[error("the claim could not be checked: {0}")]
    Unchecked(String),
    /// The store failed; the claim runs out and is taken up again.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Lost { .. } => Self::Lost,
            other => Self::Store(other),
        }
    }
}

impl From<FenceLost> for WorkError {
    fn from(lost: FenceLost) -> Self {
        match lost {
            FenceLost::Taken => Self::Lost,
            FenceLost::Unchecked(why) => Self::Unchecked(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_heals_by_itself_is_waited_for() {
        let (path, doing) = ("loop.db".into(), "claiming");
        let full = StoreError::Full { path, doing };
        let damaged = StoreError::Corrupt {
            path: "loop.db".into(),
            doing,
            detail: "malformed".to_owned(),
        };

        assert!(DispatchError::from(full).is_transient());
        assert!(!DispatchError::from(damaged).is_transient());
    }
}
