//! Delivering into a session that has one: the ordinary case, said exactly once.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::conclude::{Conclusion, Delivered, Step};
use super::error::WorkError;
use super::fence::fence;
use super::work::LOOK_AGAIN_SOON;
use super::{message, records};
use crate::eventlog::Repeat;
use crate::model::{HoldReason, Session, SessionName};
use crate::process::identity::{Life, life_in};
use crate::runner::{
    Address, DeliverOutcome, Machine, Message, RunnerError, TmuxServer, TokenState, Unanswered,
};
use crate::store::{Claim, Intent, SessionChange};

/// A paste may be served late by tmux for so many times the wait for an answer, before its guard
/// refuses it.
const LATE_ANSWERS: u32 = 2;

/// The shortest time after which a guard may refuse; tmux compares whole seconds.
const SHORTEST_LIFE: Duration = Duration::from_secs(2);

/// How long a delivery waits for a silent tmux before it asks whether it still is.
const SILENCE: Duration = Duration::from_secs(10);

/// What to log beside the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// Straight into the recorded session.
    Straight,
    /// A respawn was about to start, and the session was live after all (AC6).
    AvertedRespawn,
    /// A respawn found another live session under the name (AC7).
    IntoOccupant,
}

/// What became of an earlier attempt's paste.
enum Earlier {
    Said,
    Unsaid,
    Unknown(Unanswered),
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Returns where a recorded session is looked for.
    pub(super) fn address(session: &Session, name: &SessionName) -> Address {
        Address {
            name: name.clone(),
            owner: Some(session.owner.clone()),
            target: session.target.clone(),
        }
    }

    /// Delivers the claimed message into its session, or respawns it.
    pub(super) async fn deliver(
        &self,
        claim: &Arc<Claim>,
        session: Session,
    ) -> Result<Conclusion, WorkError> {
        let session = match self.settle_attempt(claim, session).await? {
            Ok(session) => session,
            Err(conclusion) => return Ok(conclusion),
        };
        let name = match session.minted_ref.session_name() {
            Ok(name) => name,
            Err(error) => return Ok(Conclusion::failed(Step::Delivery, error)),
        };
        let address = Self::address(&session, &name);
        match self.earlier_paste(claim, &session, &address).await {
            Earlier::Said => {
                return Ok(self.arrived(claim, &session, &name, Repeat::No, Road::Straight));
            }
            // Whether the text is in cannot be told: nothing is sent, and nothing given up.
            Earlier::Unknown(why) => return Ok(Self::waits_for(&why)),
            Earlier::Unsaid if claim.attempts() >= self.config().polling.max_retries => {
                return Ok(Conclusion::failed(
                    Step::Delivery,
                    "every attempt failed; the message is not in the session",
                ));
            }
            Earlier::Unsaid => {}
        }
        if session.target.is_none() {
            // Registered by an agent that came and went: there is nothing to type into.
            self.deduper.begin_attempt(claim).await?;
            return Box::pin(self.respawn(claim, session, name, Repeat::No)).await;
        }
        self.say(claim, &session, &name, &address, Road::Straight)
            .await
    }

    /// Looks whether an earlier attempt's paste arrived after all.
    ///
    /// Until its expiry has passed it may still be served late, so that a delivery whose attempts are
    /// spent is not given up before.
    async fn earlier_paste(&self, claim: &Claim, session: &Session, address: &Address) -> Earlier {
        let Some(intent) = claim
            .intent()
            .filter(|intent| intent.owner == session.owner)
        else {
            return Earlier::Unsaid;
        };
        match self.runner.read_token(address, claim.first().id).await {
            Ok(TokenState::Pasted) => Earlier::Said,
            // The session is gone: the respawn says it again and marks it.
            Ok(TokenState::NoSession) => Earlier::Unsaid,
            Ok(TokenState::NotPasted) if self.clock.now() > intent.expires_at => Earlier::Unsaid,
            // It can still be sent again: the token lets one of the two in.
            Ok(TokenState::NotPasted) if claim.attempts() < self.config().polling.max_retries => {
                Earlier::Unsaid
            }
            Ok(TokenState::NotPasted) => {
                let next = (intent.expires_at - self.clock.now())
                    .to_std()
                    .unwrap_or_default();
                Earlier::Unknown(Unanswered::Silent { next })
            }
            Err(why) => Earlier::Unknown(why),
        }
    }

    /// Pastes the message into a session and sees that it took.
    pub(super) async fn say(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        address: &Address,
        road: Road,
    ) -> Result<Conclusion, WorkError> {
        let harness = match self.harness(&session.harness) {
            Ok(harness) => harness,
            Err(error) => return Ok(Conclusion::failed(Step::Delivery, error)),
        };
        // An occupant of another origin is not starting because it was registered just now.
        if road != Road::IntoOccupant
            && let Some(rest) = self.until_ready(session, harness.ready_delay())
        {
            return Ok(Conclusion::Held {
                reason: HoldReason::Starting,
                again: rest,
            });
        }
        let text = self.prompts().message(
            &claim.item.item,
            &claim.first().event,
            &claim.others(),
            Repeat::No,
        );
        let text = match message::fit(&text, &session.cwd, claim.first().id) {
            Ok(text) => text,
            Err(error) => return Ok(Conclusion::failed(Step::Delivery, error)),
        };
        self.deduper.begin_attempt(claim).await?;
        let life = (self.runner.limits().answer * LATE_ANSWERS).max(SHORTEST_LIFE);
        let expires_at = self.clock.now() + life;
        let intent = Intent {
            owner: session.owner.clone(),
            expires_at,
        };
        self.deduper.store_intent(claim, &intent).await?;
        let submit_gap = harness.submit_gap();
        let said = Message {
            delivery: claim.first().id,
            attempt: claim.attempts(),
            text,
            submit_gap,
            expires_at,
        };
        match self
            .runner
            .deliver(address, &said, &fence(&self.deduper, claim))
            .await
        {
            Ok(DeliverOutcome::Delivered)
                if Self::ended_under_the_paste(session, submit_gap).await =>
            {
                Box::pin(self.respawn(claim, session.clone(), name.clone(), Repeat::Possible)).await
            }
            Ok(DeliverOutcome::Delivered | DeliverOutcome::AlreadyDelivered) => {
                self.press_enter_later(address, submit_gap);
                Ok(self.arrived(claim, session, name, Repeat::No, road))
            }
            Ok(DeliverOutcome::SessionDead(_)) if road == Road::Straight => {
                Box::pin(self.respawn(
                    claim,
                    session.clone(),
                    name.clone(),
                    earlier_repeat(claim, session),
                ))
                .await
            }
            // A paste that fails never turns into another respawn.
            Ok(DeliverOutcome::SessionDead(_)) => Ok(Conclusion::failed(
                Step::Delivery,
                "the session ended before the message was in",
            )),
            Ok(DeliverOutcome::Held(reason)) => {
                if reason == HoldReason::EnterPending {
                    self.press_enter_later(address, Duration::ZERO);
                }
                Ok(Conclusion::Held {
                    reason,
                    again: LOOK_AGAIN_SOON,
                })
            }
            Err(RunnerError::Changed { .. } | RunnerError::NotAdopted { .. })
                if road == Road::Straight =>
            {
                Box::pin(self.say_to_occupant(claim, session, name)).await
            }
            Err(RunnerError::FenceLost(_)) => Err(WorkError::Lost),
            // Nothing was sent.
            Err(RunnerError::Unanswered(why)) if Self::is_waited_for(&why) => {
                Ok(Self::waits_for(&why))
            }
            Err(error) => Ok(Conclusion::failed_paste(expires_at, error)),
        }
    }

    /// Tells whether the harness ended while the text was on its way to it.
    ///
    /// tmux says yes to a paste that an ending harness never reads; its recorded process tells.
    async fn ended_under_the_paste(session: &Session, gap: Duration) -> bool {
        let Some(target) = &session.target else {
            return false;
        };
        tokio::time::sleep(gap).await;
        life_in(&target.boot, &target.harness) == Life::Gone
    }

    /// The conclusion of a message that is in the session.
    fn arrived(
        &self,
        claim: &Claim,
        session: &Session,
        name: &SessionName,
        repeat: Repeat,
        road: Road,
    ) -> Conclusion {
        Conclusion::delivered(self.arrival(claim, session, name, repeat, road))
    }

    /// What is written down about a message that is in the session.
    pub(super) fn arrival(
        &self,
        claim: &Claim,
        session: &Session,
        name: &SessionName,
        repeat: Repeat,
        road: Road,
    ) -> Delivered {
        let mut said = Vec::new();
        if road != Road::Straight {
            said.push(records::respawn_averted(
                claim,
                session,
                name,
                road == Road::IntoOccupant,
            ));
        }
        for row in &claim.rows {
            said.push(records::succeeded(
                claim,
                row,
                &session.harness,
                name,
                repeat,
                self.clock.now(),
            ));
        }
        Delivered {
            repeat,
            change: Some(SessionChange::Touch(session.id)),
            records: said,
        }
    }

    /// What an unanswered question comes to: a failure that is retried (AC2), or a hold where it is
    /// known what is waited for, which costs nothing.
    pub(super) fn unanswered(why: &Unanswered) -> Conclusion {
        if Self::is_waited_for(why) {
            Self::waits_for(why)
        } else {
            Conclusion::failed(Step::Delivery, why)
        }
    }

    fn is_waited_for(why: &Unanswered) -> bool {
        matches!(
            why,
            Unanswered::Silent { .. } | Unanswered::AgentOutlivesSession { .. }
        )
    }

    /// A hold until what was asked can be answered.
    pub(super) fn waits_for(why: &Unanswered) -> Conclusion {
        let (reason, again) = match why {
            Unanswered::Silent { next } => (HoldReason::TmuxSilent, *next),
            Unanswered::AgentOutlivesSession { .. } => (HoldReason::AgentOutlivesSession, SILENCE),
            _ => (HoldReason::TmuxSilent, SILENCE),
        };
        Conclusion::Held {
            reason,
            again: again.clamp(LOOK_AGAIN_SOON, SILENCE),
        }
    }

    fn until_ready(&self, session: &Session, ready_delay: Duration) -> Option<Duration> {
        let target = session.target.as_ref()?;
        // One that has ended does not become ready.
        if life_in(&target.boot, &target.harness) == Life::Gone {
            return None;
        }
        let ready_at = session.registered_at? + ready_delay;
        (ready_at - self.clock.now())
            .to_std()
            .ok()
            .filter(|rest| !rest.is_zero())
    }
}

/// Whether the agent may have read the message in the session that died.
fn earlier_repeat(claim: &Claim, session: &Session) -> Repeat {
    match claim.intent() {
        Some(intent) if intent.owner == session.owner => Repeat::Possible,
        _ => Repeat::No,
    }
}
