//! The Enter after a paste, where tmux did not get to it: pressed again until it is done.
//!
//! The text is in the session and never sent again; only its submission is outstanding, and the
//! option `@loop_enter` says whether it is. Somebody who scrolls in the pane may take his time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::OwnerId;
use crate::runner::{Address, BoxFuture, EnterState, FenceLost, Machine, TmuxRunner, TmuxServer};

/// The pause before the second look; later ones double …
const AGAIN: Duration = Duration::from_secs(1);
/// … up to this.
const LONGEST: Duration = Duration::from_secs(8);

/// The sessions whose Enter is watched, with how many pastes asked for it: one task each, however
/// often it is asked.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<HashMap<OwnerId, u64>>);

impl Watched {
    /// Notes a paste; true where nobody watches its session yet.
    pub(super) fn begin(&self, owner: &OwnerId) -> bool {
        let mut pastes = self.lock();
        let count = pastes.entry(owner.clone()).or_default();
        *count += 1;
        *count == 1
    }

    fn pastes(&self, owner: &OwnerId) -> u64 {
        self.lock().get(owner).copied().unwrap_or_default()
    }

    /// Ends the watch, unless there was another paste since `seen`.
    fn ends(&self, owner: &OwnerId, seen: u64) -> bool {
        let mut pastes = self.lock();
        let ends = pastes.get(owner).is_none_or(|count| *count == seen);
        if ends {
            pastes.remove(owner);
        }
        ends
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OwnerId, u64>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits twice the gap between paste and Enter, then presses what is still outstanding, until it is
/// pressed or `ending` says that the process ends.
pub(super) async fn watch<T: TmuxServer, M: Machine>(
    runner: Arc<TmuxRunner<T, M>>,
    address: Address,
    owner: OwnerId,
    submit_gap: Duration,
    watched: Arc<Watched>,
    ending: CancellationToken,
) {
    // Whoever presses: the guarded Enter goes in once, so it needs no claim.
    let free = || -> BoxFuture<Result<(), FenceLost>> { Box::pin(async { Ok(()) }) };
    let mut pause = submit_gap * 2;
    let mut next = AGAIN;
    loop {
        tokio::select! {
            () = ending.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let seen = watched.pastes(&owner);
        match runner.settle_enter(&address, &free).await {
            Ok(EnterState::Settled) if watched.ends(&owner, seen) => return,
            Ok(EnterState::Settled) => {
                pause = submit_gap * 2;
                next = AGAIN;
                continue;
            }
            Ok(EnterState::Pending(reason)) => {
                tracing::debug!(session = %address.name, %reason, "an Enter is outstanding");
            }
            Err(error) => {
                tracing::debug!(session = %address.name, "an outstanding Enter was not settled: {error}");
            }
        }
        pause = next;
        next = (next * 2).min(LONGEST);
    }
}
