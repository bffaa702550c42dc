//! The fence: nothing outside the store is changed by one whose claim is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::runner::{BoxFuture, FenceLost};
use crate::store::{Claim, Deduper, Fence, StoreError};

/// Renews a claim's lease in the background until it is dropped.
#[derive(Debug)]
pub(super) struct Lease(pub(super) AbortHandle);

const RENEW_EVERY: Duration = Duration::from_secs(10);

impl Lease {
    pub(super) fn keep(deduper: Deduper, claim: &Claim) -> Self {
        let claim = claim.reference();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEW_EVERY).await;
                // A lost claim is noticed by the holder at its next fenced write.
                if let Err(error) = deduper.renew(&claim).await {
                    tracing::debug!("the lease of a claim was not renewed: {error}");
                }
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the question that the runner asks before each change in tmux.
pub(super) fn fence(
    deduper: &Deduper,
    claim: &Arc<Claim>,
) -> impl Fn() -> BoxFuture<Result<(), FenceLost>> + Send + Sync + use<> {
    let (deduper, claim) = (deduper.clone(), Arc::clone(claim));
    move || {
        let (deduper, claim) = (deduper.clone(), Arc::clone(&claim));
        Box::pin(async move {
            match deduper.hold_fence(&claim).await {
                Ok(Fence::Go) => Ok(()),
                // A command for the item waits: this work stops here and makes way.
                Ok(Fence::ControlWaits) | Err(StoreError::Lost { .. }) => Err(FenceLost::Taken),
                Err(error) => Err(FenceLost::Unchecked(error.to_string())),
            }
        })
    }
}
