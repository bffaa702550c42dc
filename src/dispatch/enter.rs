//! The Enter after a paste, where tmux did not get to it: the delivery that waits for it presses it.
//!
//! A text counts as delivered when its Enter was pressed, so whoever takes its delivery up again, in
//! whichever process, finds its token in the session and presses the Enter alone. What a delivery
//! left that nobody takes up any more is pressed by the next text for the session.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::conclude::Conclusion;
use super::error::WorkError;
use super::fence::fence;
use super::work::LOOK_AGAIN_SOON;
use crate::model::{DeliveryId, HoldReason, Repeat, Session, SessionName};
use crate::planted::{Planted, is_planted};
use crate::runner::{EnterState, Machine, RunnerError, TmuxServer};
use crate::store::Claim;

/// Whether an Enter is still to come.
pub(super) enum Entered {
    /// It was pressed, or nobody is left to read it.
    Yes,
    /// What it waits for.
    NotYet(Conclusion),
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Sees that what is in the session was sent too: until its Enter is pressed it is only typed, and
    /// goes with the agent.
    ///
    /// tmux says yes to a paste that an ending harness never reads; its recorded process tells.
    pub(super) async fn submitted(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        repeat: Repeat,
    ) -> Result<Conclusion, WorkError> {
        if is_planted(Planted::NoEnter) {
            return Ok(self.arrived(claim, session, name, repeat));
        }
        let entered = self
            .press_enter(claim, session, name, claim.message())
            .await?;
        if self.harness_is_gone(session) {
            return Box::pin(self.respawn(claim, session.clone(), name.clone(), Repeat::Possible))
                .await;
        }
        match entered {
            Entered::Yes => Ok(self.arrived(claim, session, name, repeat)),
            Entered::NotYet(waits) => Ok(waits),
        }
    }

    /// Presses the Enter that another delivery's text was left without, so that the way is free when
    /// the claimed one looks again.
    pub(super) async fn make_room(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        other: DeliveryId,
    ) -> Result<Conclusion, WorkError> {
        match self.press_enter(claim, session, name, other).await? {
            Entered::Yes => Ok(Conclusion::held(HoldReason::EnterPending, LOOK_AGAIN_SOON)),
            Entered::NotYet(waits) => Ok(waits),
        }
    }

    /// Presses the Enter of a delivery's text once the text had time to arrive.
    async fn press_enter(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        due: DeliveryId,
    ) -> Result<Entered, WorkError> {
        // tmux presses it after the gap by itself.
        tokio::time::sleep(self.submit_gap(session) * 2).await;
        let address = Self::address(session, name);
        let fence = fence(&self.deduper, claim);
        let waits = match self.runner.settle_enter(&address, due, &fence).await {
            Ok(EnterState::Settled) => return Ok(Entered::Yes),
            Ok(EnterState::Pending(reason)) => Conclusion::held(reason, LOOK_AGAIN_SOON),
            Err(RunnerError::FenceLost(lost)) => return Err(lost.into()),
            Err(RunnerError::Unanswered(why)) => Self::waits_for(&why),
            Err(error) => {
                tracing::debug!(session = %name, "an Enter was not pressed: {error}");
                Conclusion::held(HoldReason::EnterPending, LOOK_AGAIN_SOON)
            }
        };
        Ok(Entered::NotYet(waits))
    }

    fn submit_gap(&self, session: &Session) -> Duration {
        let harness = self.harness(&session.harness);
        harness.map_or(Duration::ZERO, |harness| harness.submit_gap())
    }
}
