//! Delivering into a session that has one: the ordinary case, said exactly once.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Shared;
use super::conclude::{Conclusion, Delivered, Step};
use super::error::WorkError;
use super::fence::fence;
use super::work::LOOK_AGAIN_SOON;
use super::{message, records};
use crate::harness::Harness;
use crate::model::{HoldReason, Repeat, Session, SessionName};
use crate::process::identity::Life;
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

/// How a delivery came to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// Straight into the recorded session.
    Straight,
    /// A respawn was about to start, and the session was live after all (AC6); none follows.
    AvertedRespawn,
    /// A respawn found another live session under the name (AC7).
    IntoOccupant,
}

/// What became of an earlier attempt's paste.
pub(super) enum Earlier {
    /// It arrived.
    Said,
    /// It did not, and will not.
    Unsaid,
    /// It arrived, and the agent ended before it was confirmed: maybe read, maybe not.
    Lost,
    /// It has not yet.
    MayArrive(Unanswered),
    /// Nobody says.
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
        let spent = claim.is_spent(self.config().polling.max_retries);
        let name = match session.minted_ref.session_name() {
            Ok(name) => name,
            Err(error) => return Ok(Conclusion::failed(Step::Delivery, error)),
        };
        let address = Self::address(&session, &name);
        match self.earlier_paste(claim, &session, &address).await {
            Earlier::Said => {
                let repeat = repeat_in(claim, &session);
                let road = Road::Straight;
                return self.submitted(claim, &session, &name, repeat, road).await;
            }
            // The last attempt did type it, so that what follows is still that one.
            Earlier::Lost => {
                claim.set_typed(true);
                if !spent {
                    self.deduper.begin_attempt(claim).await?;
                }
                return Box::pin(self.respawn(claim, session, name, Repeat::Possible)).await;
            }
            Earlier::Unsaid if spent => {
                return Ok(Conclusion::failed(
                    Step::Delivery,
                    every_attempt_failed(claim),
                ));
            }
            Earlier::Unsaid => {}
            // It can still be sent again: the token lets one of the two in.
            Earlier::MayArrive(_) if claim.attempts() < self.config().polling.max_retries => {}
            // Whether the text is in cannot be told: nothing is sent, and nothing given up.
            Earlier::MayArrive(why) | Earlier::Unknown(why) => return Ok(Self::waits_for(&why)),
        }
        if session.target.is_none() {
            // Registered by an agent that came and went: there is nothing to type into.
            self.deduper.begin_attempt(claim).await?;
            let repeat = earlier_repeat(claim);
            return Box::pin(self.respawn(claim, session, name, repeat)).await;
        }
        let repeat = repeat_in(claim, &session);
        self.say(claim, &session, &name, repeat, Road::Straight)
            .await
    }

    /// Looks whether an earlier attempt's paste arrived after all.
    ///
    /// Until its expiry has passed it may still be served late, so that a delivery whose attempts are
    /// spent is not given up before.
    pub(super) async fn earlier_paste(
        &self,
        claim: &Claim,
        session: &Session,
        address: &Address,
    ) -> Earlier {
        let Some(intent) = claim
            .intent()
            .filter(|intent| intent.owner == session.owner)
        else {
            return Earlier::Unsaid;
        };
        match self.runner.read_token(address, claim.message()).await {
            Ok(TokenState::Pasted) if self.harness_is_gone(session) => Earlier::Lost,
            Ok(TokenState::Pasted) => Earlier::Said,
            // It was typed when it was looked at last.
            Ok(TokenState::NoSession) if claim.is_typed() => Earlier::Lost,
            // The session is gone: the respawn says it again and marks it.
            Ok(TokenState::NoSession) => Earlier::Unsaid,
            Ok(TokenState::NotPasted) if self.clock.now() > intent.expires_at => Earlier::Unsaid,
            Ok(TokenState::NotPasted) => {
                let next = (intent.expires_at - self.clock.now())
                    .to_std()
                    .unwrap_or_default();
                Earlier::MayArrive(Unanswered::Silent { next })
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
        repeat: Repeat,
        road: Road,
    ) -> Result<Conclusion, WorkError> {
        let address = &Self::address(session, name);
        let harness = match self.harness(&session.harness) {
            Ok(harness) => harness,
            Err(error) => return Ok(Conclusion::failed(Step::Delivery, error)),
        };
        // An occupant of another origin is not starting because it was registered just now.
        if road != Road::IntoOccupant
            && let Some(rest) = self.until_ready(session, harness.ready_delay())
        {
            return Ok(Conclusion::held(HoldReason::Starting, rest));
        }
        let said = match self.to_paste(claim, session, &harness, repeat).await? {
            Ok(said) => said,
            Err(conclusion) => return Ok(conclusion),
        };
        let expires_at = said.expires_at;
        let outcome = self
            .runner
            .deliver(address, &said, &fence(&self.deduper, claim))
            .await;
        match outcome {
            Ok(DeliverOutcome::Delivered) => {
                self.submitted(claim, session, name, repeat, road).await
            }
            Ok(DeliverOutcome::AlreadyDelivered) => {
                tracing::debug!(item = %claim.item.item, "an earlier paste had arrived after all");
                self.submitted(claim, session, name, repeat, road).await
            }
            Ok(DeliverOutcome::SessionDead(_)) if road == Road::Straight => {
                Box::pin(self.respawn(claim, session.clone(), name.clone(), earlier_repeat(claim)))
                    .await
            }
            // A paste that fails never turns into another respawn.
            Ok(DeliverOutcome::SessionDead(_)) => Ok(Self::ended_too_soon()),
            Ok(DeliverOutcome::Held(reason)) => Ok(Conclusion::held(reason, LOOK_AGAIN_SOON)),
            Ok(DeliverOutcome::EnterPending(other)) => {
                self.make_room(claim, session, name, other).await
            }
            Err(RunnerError::Changed { .. } | RunnerError::NotAdopted { .. })
                if road == Road::Straight =>
            {
                Box::pin(self.say_to_occupant(claim, session, name, earlier_repeat(claim))).await
            }
            Err(RunnerError::FenceLost(lost)) => Err(lost.into()),
            Err(RunnerError::Unanswered(why)) => {
                Ok(Self::unanswered(claim, &why).undecided_until(after(expires_at)))
            }
            Err(error @ RunnerError::Expired) => Ok(Conclusion::failed(Step::Delivery, error)),
            Err(error) => {
                Ok(Conclusion::failed(Step::Delivery, error).undecided_until(after(expires_at)))
            }
        }
    }

    pub(super) fn ended_too_soon() -> Conclusion {
        Conclusion::failed(
            Step::Delivery,
            "the session ended before the message was in",
        )
    }

    /// Renders the message and stores that it is about to be pasted, or says why it cannot be.
    async fn to_paste(
        &self,
        claim: &Claim,
        session: &Session,
        harness: &Harness,
        repeat: Repeat,
    ) -> Result<Result<Message, Conclusion>, WorkError> {
        let text = self.prompts.message(
            &claim.item.item,
            &claim.first().event,
            &claim.others(),
            repeat,
        );
        let text = match message::fit(&text, &session.cwd, claim.first().id).await {
            Ok(text) => text,
            Err(error) => return Ok(Err(Conclusion::failed(Step::Delivery, error))),
        };
        let expires_at = self.clock.now() + self.paste_life();
        let intent = Intent {
            owner: session.owner.clone(),
            expires_at,
        };
        // Counts the attempt too: one write to the disk before the paste instead of two.
        self.deduper.store_intent(claim, &intent).await?;
        Ok(Ok(Message {
            delivery: claim.message(),
            attempt: claim.attempts(),
            text,
            submit_gap: harness.submit_gap(),
            expires_at,
        }))
    }

    /// How long a paste may still take effect once tmux was asked for it.
    pub(super) fn paste_life(&self) -> Duration {
        (self.runner.limits().answer * LATE_ANSWERS).max(SHORTEST_LIFE)
    }

    pub(super) fn harness_is_gone(&self, session: &Session) -> bool {
        session
            .target
            .as_ref()
            .is_some_and(|target| self.runner.life(&target.boot, &target.harness) == Life::Gone)
    }

    /// The conclusion of a message that is in the session.
    pub(super) fn arrived(
        &self,
        claim: &Claim,
        session: &Session,
        name: &SessionName,
        repeat: Repeat,
    ) -> Conclusion {
        Conclusion::delivered(self.arrival(claim, session, name, repeat))
    }

    /// What is written down about a message that is in the session.
    pub(super) fn arrival(
        &self,
        claim: &Claim,
        session: &Session,
        name: &SessionName,
        repeat: Repeat,
    ) -> Delivered {
        let now = self.clock.now();
        Delivered {
            repeat,
            change: Some(SessionChange::Touch(session.id)),
            records: records::succeeded(claim, session, name, repeat, now).collect(),
        }
    }

    /// What an unanswered question comes to: a failure that is retried (AC2), or a hold where it is
    /// known what is waited for, which costs nothing. A text that is typed is given up by none.
    pub(super) fn unanswered(claim: &Claim, why: &Unanswered) -> Conclusion {
        match why {
            _ if claim.is_typed() => Self::waits_for(why),
            Unanswered::Silent { .. }
            | Unanswered::AgentOutlivesSession { .. }
            | Unanswered::ViewOfAnother { .. } => Self::waits_for(why),
            other => Conclusion::failed(Step::Delivery, other),
        }
    }

    /// A hold until what was asked can be answered.
    pub(super) fn waits_for(why: &Unanswered) -> Conclusion {
        let (reason, again, detail) = match why {
            Unanswered::Silent { next } => (HoldReason::TmuxSilent, *next, None),
            Unanswered::AgentOutlivesSession { .. } => {
                let which = Some(why.to_string());
                (HoldReason::AgentOutlivesSession, SILENCE, which)
            }
            Unanswered::ViewOfAnother { .. } => {
                (HoldReason::NoAgent, SILENCE, Some(why.to_string()))
            }
            other => (HoldReason::TmuxSilent, SILENCE, Some(other.to_string())),
        };
        Conclusion::Held {
            reason,
            again: again.clamp(LOOK_AGAIN_SOON, SILENCE),
            detail,
        }
    }

    fn until_ready(&self, session: &Session, ready_delay: Duration) -> Option<Duration> {
        // One that has ended does not become ready.
        if self.harness_is_gone(session) {
            return None;
        }
        let started = session.registered_at?;
        let now = self.clock.now();
        // A clock that was put back must not make an agent young again.
        (started + ready_delay - now)
            .to_std()
            .ok()
            .filter(|rest| !rest.is_zero() && now >= started)
    }
}

/// What a give-up says: the cause is that of the last attempt, which is known already.
pub(super) fn every_attempt_failed(claim: &Claim) -> String {
    let last = claim.last_error.as_deref();
    last.unwrap_or("every attempt failed; no agent has the message")
        .to_owned()
}

/// The guard of a paste counts whole seconds.
pub(super) fn after(expiry: DateTime<Utc>) -> DateTime<Utc> {
    expiry + TimeDelta::seconds(1)
}

/// Whether an agent that died may have read the message: in a session, or as its boot prompt.
pub(super) fn earlier_repeat(claim: &Claim) -> Repeat {
    if claim.first().maybe_read || claim.intent().is_some() {
        Repeat::Possible
    } else {
        Repeat::No
    }
}

/// Whether a message that goes into this session may have been read in an earlier one; whether this
/// one has it is told by its token.
pub(super) fn repeat_in(claim: &Claim, session: &Session) -> Repeat {
    let elsewhere = |intent: &Intent| intent.owner != session.owner;
    if claim.first().maybe_read || claim.intent().is_some_and(elsewhere) {
        Repeat::Possible
    } else {
        Repeat::No
    }
}
