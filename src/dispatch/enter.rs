//! The Enter after a paste, where tmux did not get to it: the delivery that waits for it presses it.
//!
//! A text counts as delivered when its Enter was pressed, so whoever takes its delivery up again, in
//! whichever process, finds its token in the session and presses the Enter alone. What a delivery
//! left that nobody takes up any more is pressed by the next text for the session.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::conclude::{Conclusion, Step};
use super::deliver::{Earlier, Road, repeat_in};
use super::error::WorkError;
use super::fence::fence;
use super::work::LOOK_AGAIN_SOON;
use crate::eventlog::hold_phrase;
use crate::model::{DeliveryId, HoldReason, Repeat, Session, SessionName};
use crate::planted::{Planted, is_planted};
use crate::runner::{EnterState, FenceLost, Machine, RunnerError, TmuxServer};
use crate::store::{Claim, StoreError};

/// What became of an Enter.
enum Entered {
    /// It was pressed.
    Yes,
    /// It was given up, and its text can be typed again.
    GivenUp,
    /// The agent has ended, or is not in its session any more.
    Gone,
    /// It is still to come, and waits like this.
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
        road: Road,
    ) -> Result<Conclusion, WorkError> {
        if is_planted(Planted::NoEnter) {
            return Ok(self.arrived(claim, session, name, repeat));
        }
        match self
            .press_enter(claim, session, name, claim.message())
            .await?
        {
            Entered::Yes => Ok(self.arrived(claim, session, name, repeat)),
            Entered::Gone if road == Road::Straight => {
                Box::pin(self.respawn(claim, session.clone(), name.clone(), Repeat::Possible)).await
            }
            // tmux may say of one session that it is gone and that it lives, time and again.
            Entered::Gone => Ok(Self::ended_too_soon()),
            // It costs an attempt: programs that take turns in front would have it typed without end.
            Entered::GivenUp => Ok(Conclusion::failed(
                Step::Delivery,
                "another program came in front before the text was sent",
            )),
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
            Entered::Yes | Entered::GivenUp | Entered::Gone => {
                Ok(Conclusion::held(HoldReason::EnterPending, LOOK_AGAIN_SOON))
            }
            Entered::NotYet(waits) => Ok(waits),
        }
    }

    /// Sends the text of a claim that is to go no further, where an agent has it already: it cannot be
    /// taken back. Returns what that came to; nothing where no agent has it.
    pub(super) async fn own_paste(
        &self,
        claim: &Arc<Claim>,
    ) -> Result<Option<Conclusion>, WorkError> {
        let Some(session) = self.registry.open_session(claim.item.id).await? else {
            return Ok(None);
        };
        let Ok(name) = session.minted_ref.session_name() else {
            return Ok(None);
        };
        let address = Self::address(&session, &name);
        match self.earlier_paste(claim, &session, &address).await {
            Earlier::Said => {}
            Earlier::Unsaid | Earlier::Lost => return Ok(None),
            Earlier::MayArrive(why) | Earlier::Unknown(why) => {
                return Ok(Some(Self::waits_for(&why)));
            }
        }
        let entered = self.press_enter(claim, &session, &name, claim.message());
        Ok(match entered.await? {
            Entered::Yes => {
                let repeat = repeat_in(claim, &session);
                Some(self.arrived(claim, &session, &name, repeat))
            }
            Entered::NotYet(waits) => Some(waits),
            Entered::GivenUp | Entered::Gone => None,
        })
    }

    /// Presses the Enter of a delivery's text once the text had time to arrive.
    async fn press_enter(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        due: DeliveryId,
    ) -> Result<Entered, WorkError> {
        let is_own = due == claim.message();
        let (waits_as, is_long_ago) = if is_own {
            (HoldReason::Unsent, claim.is_typed())
        } else {
            let waits_as = HoldReason::EnterPending;
            (waits_as, claim.held_before == Some(waits_as))
        };
        // tmux presses it after the gap by itself, and a text that waits has arrived long ago.
        if !is_long_ago {
            tokio::time::sleep(self.submit_gap(session) * 2).await;
        }
        let settled = self.settle_enter(claim, session, name, due).await;
        if is_own {
            claim.set_typed(!matches!(settled, Ok(EnterState::Left)));
        }
        if let Err(RunnerError::FenceLost(lost @ FenceLost::Taken)) = settled {
            return Err(lost.into());
        }
        if self.harness_is_gone(session) {
            return Ok(Entered::Gone);
        }
        let waits = |detail| {
            Entered::NotYet(Conclusion::Held {
                reason: waits_as,
                again: LOOK_AGAIN_SOON,
                detail,
            })
        };
        Ok(match settled {
            Ok(EnterState::Pressed) => Entered::Yes,
            Ok(EnterState::Left) => Entered::GivenUp,
            Ok(EnterState::Gone) => Entered::Gone,
            Ok(EnterState::Pending(what)) => {
                waits(what.map(|what| hold_phrase(what.as_str()).to_owned()))
            }
            Err(RunnerError::Unanswered(why)) => Entered::NotYet(Self::waits_for(&why)),
            // The text is in the session: a claim that cannot be checked costs no attempt either.
            Err(error) => waits(Some(error.to_string())),
        })
    }

    /// Presses an Enter, or gives it up where its program has left; what waits then for its text to be
    /// typed again is a possible repeat, since a person may have sent it.
    async fn settle_enter(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        due: DeliveryId,
    ) -> Result<EnterState, RunnerError> {
        let address = Self::address(session, name);
        let fence = fence(&self.deduper, claim);
        let state = self.runner.settle_enter(&address, due, &fence).await?;
        if state == EnterState::Left {
            tracing::warn!(
                session = %name,
                delivery = %due,
                "what was typed into has left the pane before its Enter, which is not pressed"
            );
            if due == claim.message() {
                self.note_repeat(claim).await?;
            }
            self.runner.give_up_enter(&address, due, &fence).await?;
        }
        Ok(state)
    }

    async fn note_repeat(&self, claim: &Claim) -> Result<(), FenceLost> {
        match self.deduper.note_maybe_read(claim).await {
            Ok(()) => Ok(()),
            Err(StoreError::Lost { .. }) => Err(FenceLost::Taken),
            Err(error) => Err(FenceLost::Unchecked(error.to_string())),
        }
    }

    fn submit_gap(&self, session: &Session) -> Duration {
        let harness = self.harness(&session.harness);
        harness.map_or(Duration::ZERO, |harness| harness.submit_gap())
    }
}
