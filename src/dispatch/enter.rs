//! The Enter after a paste, where tmux did not get to it: pressed again until it is done.
//!
//! The text is in the session and never sent again; only its submission is outstanding, and the
//! option `@loop_enter` says whether it is.

use std::sync::Arc;
use std::time::Duration;

use crate::runner::{Address, BoxFuture, EnterState, FenceLost, Machine, TmuxRunner, TmuxServer};

/// How often a pending Enter is looked at before it is left to the next delivery.
const LOOKS: u32 = 5;

/// Waits twice the gap between paste and Enter, then presses what is still outstanding.
pub(super) async fn press<T: TmuxServer, M: Machine>(
    runner: Arc<TmuxRunner<T, M>>,
    address: Address,
    submit_gap: Duration,
) {
    // Whoever presses: the guarded Enter goes in once, so it needs no claim.
    let free = || -> BoxFuture<Result<(), FenceLost>> { Box::pin(async { Ok(()) }) };
    for look in 0..LOOKS {
        let pause = if look == 0 {
            submit_gap * 2
        } else {
            Duration::from_secs(1)
        };
        tokio::time::sleep(pause).await;
        match runner.settle_enter(&address, &free).await {
            Ok(EnterState::Settled) => return,
            Ok(EnterState::Pending(reason)) => {
                tracing::debug!(session = %address.name, %reason, "an Enter is outstanding");
            }
            Err(error) => {
                tracing::debug!(session = %address.name, "an outstanding Enter was not settled: {error}");
            }
        }
    }
}
