//! One claim, from its guards to its conclusion.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::conclude::Conclusion;
use super::error::WorkError;
use super::fence::Lease;
use crate::model::{Class, DropReason, EventKind, HoldReason, SessionStatus};
use crate::routing::guard::{Verdict, judge};
use crate::runner::{Machine, TmuxServer};
use crate::store::{Claim, ItemRow, Release};

/// How long a delivery that waits for a person waits before it looks again by itself.
pub(super) const LOOK_AGAIN_SOON: Duration = Duration::from_secs(2);

/// How long a delivery of a paused session sleeps: a resume wakes it.
const WHILE_PAUSED: Duration = Duration::from_secs(600);

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Works a claim to its end, whatever that is.
    pub(super) async fn work(&self, claim: Arc<Claim>) {
        let _lease = Lease::keep(self.deduper.clone(), &claim);
        let ended = match self.decide(&claim).await {
            Ok(conclusion) => self.conclude(&claim, conclusion).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => {}
            Err(WorkError::Lost) => self.make_way(&claim).await,
            Err(WorkError::Store(error)) => tracing::error!(item = %claim.item.item, "{error}"),
        }
    }

    /// Gives the claim back where it is still ours: a command for the item goes first.
    async fn make_way(&self, claim: &Claim) {
        let release = Release::Held {
            reason: HoldReason::MakingWay,
            look_again_at: self.clock.now(),
        };
        // Refused where somebody else has taken the claim over, and then it is theirs to conclude.
        if let Err(error) = self.deduper.release(claim, release).await {
            tracing::debug!(item = %claim.item.item, "the claim was taken over: {error}");
        }
    }

    async fn decide(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        // The policy may have changed since the event was accepted: a login that was removed meanwhile
        // must not be heard.
        if let Some(reason) = self.refused(claim) {
            return Ok(Conclusion::Dropped(reason));
        }
        match claim.class {
            Class::Control => self.control(claim).await,
            Class::Event => self.event(claim).await,
        }
    }

    fn refused(&self, claim: &Arc<Claim>) -> Option<DropReason> {
        let policy = self.policy();
        // Where a start is asked for, the start is the act that must be somebody's; an armed item
        // only waits for it.
        if claim.first().event.kind == EventKind::Armed && policy.requires_start() {
            return None;
        }
        claim
            .rows
            .iter()
            .find_map(|row| match judge(&row.event, &policy) {
                Verdict::Drop(reason) => Some(reason),
                Verdict::Deliver | Verdict::Control(_) => None,
            })
    }

    pub(super) async fn event(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        let Some(session) = self.registry.open_session(claim.item.id).await? else {
            return self.first_event(claim).await;
        };
        match session.status {
            SessionStatus::Paused if claim.received_at > session.status_since => {
                Ok(Conclusion::Dropped(DropReason::SessionPaused))
            }
            SessionStatus::Paused => Ok(Conclusion::Held {
                reason: HoldReason::SessionPaused,
                again: WHILE_PAUSED,
            }),
            SessionStatus::Spawning => self.continue_spawn(claim, session).await,
            SessionStatus::Active if claim.first().event.kind == EventKind::Armed => {
                Ok(Conclusion::Dropped(DropReason::AlreadyRunning))
            }
            SessionStatus::Active => self.deliver(claim, session).await,
            SessionStatus::Closed => self.first_event(claim).await,
        }
    }

    /// An event of an item without a session: a spawn, if the item is armed and started.
    async fn first_event(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        match self.may_spawn(&claim.item) {
            Ok(()) => self.first_spawn(claim).await,
            Err(reason) => Ok(Conclusion::Dropped(reason)),
        }
    }

    /// Tells whether the item may get a session now, or why not.
    pub(super) fn may_spawn(&self, item: &ItemRow) -> Result<(), DropReason> {
        let config = self.config();
        if !item.open {
            return Err(DropReason::ItemClosed);
        }
        if !item.armed {
            return Err(DropReason::SpawnPolicy);
        }
        let control = &config.routing.control;
        let started = match item.control.as_ref() {
            // Stop and pause are remembered, even where no start is asked for.
            Some(last) => last.command.means_started(),
            None => !(control.enabled && control.require_start_command),
        };
        if started {
            Ok(())
        } else {
            Err(DropReason::AwaitingStart)
        }
    }
}
