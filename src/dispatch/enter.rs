//! The Enter after a paste, where tmux did not get to it: pressed again until it is done.
//!
//! The text is in the session and never sent again; only its submission is outstanding, and the
//! option `@loop_enter` says whether it is. Somebody who scrolls in the pane may take his time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::{DeliveryId, OwnerId};
use crate::runner::{Address, BoxFuture, EnterState, FenceLost, Machine, TmuxRunner, TmuxServer};

/// The pause before an Enter that could not be pressed is tried again; later ones double …
const AGAIN: Duration = Duration::from_secs(1);
/// … up to this.
const LONGEST: Duration = Duration::from_secs(8);

/// The sessions whose Enter is watched: one task each, however often it is asked.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<HashSet<OwnerId>>);

impl Watched {
    /// Begins a watch; false where there is one already.
    pub(super) fn begin(&self, owner: &OwnerId) -> bool {
        self.lock().insert(owner.clone())
    }

    /// Ends it, so that the next paste begins another.
    fn end(&self, owner: &OwnerId) {
        self.lock().remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<OwnerId>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Presses an Enter that was outstanding twice the gap between paste and Enter ago, until none is or
/// `ending` says that the process ends.
///
/// `due` is the delivery that was pasted just now, if it is known; any other is looked for first.
pub(super) async fn watch<T: TmuxServer, M: Machine>(
    runner: Arc<TmuxRunner<T, M>>,
    address: Address,
    owner: OwnerId,
    (mut due, submit_gap): (Option<DeliveryId>, Duration),
    watched: Arc<Watched>,
    ending: CancellationToken,
) {
    // Whoever presses: the guarded Enter goes in once, so it needs no claim.
    let free = || -> BoxFuture<Result<(), FenceLost>> { Box::pin(async { Ok(()) }) };
    let arrival = submit_gap * 2;
    let mut pause = due.map_or(Duration::ZERO, |_| arrival);
    let mut next = AGAIN.max(arrival);
    loop {
        tokio::select! {
            () = ending.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        // What is pasted from here on this look may miss, so it begins a watch of its own.
        watched.end(&owner);
        let state = runner.settle_enter(&address, due, &free).await;
        if state == Ok(EnterState::Settled) || !watched.begin(&owner) {
            return;
        }
        match state {
            Ok(EnterState::Pending { delivery, .. }) if due != Some(delivery) => {
                due = Some(delivery);
                pause = arrival;
                next = AGAIN.max(arrival);
                continue;
            }
            Ok(state) => {
                tracing::debug!(session = %address.name, ?state, "an Enter is outstanding");
            }
            Err(error) => {
                tracing::debug!(session = %address.name, "an outstanding Enter was not settled: {error}");
            }
        }
        pause = next;
        next = (next * 2).min(LONGEST.max(arrival));
    }
}
