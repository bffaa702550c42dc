//! A live session where a dead one was expected: the message goes into it (AC6, AC7).

use std::sync::Arc;

use super::Shared;
use super::conclude::{Conclusion, Step};
use super::deliver::{Road, repeat_in};
use super::error::WorkError;
use super::fence::fence;
use super::records;
use crate::model::{OwnerId, Repeat, Session, SessionName};
use crate::runner::{Address, Machine, Occupant, RunnerError, TmuxServer};
use crate::store::{Claim, Registered};

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Delivers into whatever live session holds the name of a recorded one.
    ///
    /// An occupant that is not the recorded session is registered first, from one answer of tmux, so
    /// that the delivery's guards name the session that they guard. Into it the message goes with
    /// the mark `repeat`: no token there tells what an earlier agent has read.
    pub(super) async fn say_to_occupant(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        repeat: Repeat,
    ) -> Result<Conclusion, WorkError> {
        let occupant = match self.find_occupant(claim, session, name).await {
            Ok(Some(occupant)) => occupant,
            Ok(None) => {
                return Ok(Conclusion::failed(
                    Step::Delivery,
                    "the session that held the name is gone again",
                ));
            }
            Err(conclusion) => return Ok(conclusion),
        };
        let known = occupant.owner.as_ref() == Some(&session.owner)
            && session
                .target
                .as_ref()
                .is_some_and(|target| target.is_same_place(&occupant.target));
        if known {
            let repeat = repeat_in(claim, session);
            // Said now, because the message itself may have to wait, and then goes straight in.
            self.log
                .emit(&records::respawn_averted(claim, session, name, false));
            return self
                .say(claim, session, name, repeat, Road::AvertedRespawn)
                .await;
        }
        let session = match self
            .register_occupant(claim, session, name, occupant)
            .await?
        {
            Ok(session) => session,
            Err(conclusion) => return Ok(conclusion),
        };
        self.say(claim, &session, name, repeat, Road::IntoOccupant)
            .await
    }

    /// Looks on the recorded server first, then on the one that new sessions live on.
    async fn find_occupant(
        &self,
        claim: &Claim,
        session: &Session,
        name: &SessionName,
    ) -> Result<Option<Occupant>, Conclusion> {
        let recorded = Self::address(session, name);
        match self.runner.occupant(&recorded).await {
            Ok(Some(occupant)) => return Ok(Some(occupant)),
            Ok(None) => {}
            Err(why) => return Err(Self::unanswered(claim, &why)),
        }
        let here = Address {
            target: None,
            ..recorded
        };
        self.runner
            .occupant(&here)
            .await
            .map_err(|why| Self::unanswered(claim, &why))
    }

    async fn register_occupant(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        occupant: Occupant,
    ) -> Result<Result<Session, Conclusion>, WorkError> {
        let owner = match &occupant.owner {
            Some(owner) => owner.clone(),
            // Made by a person or an older program: it is given our options before anything goes in,
            // and an owner of its own, since nothing that went to the earlier agent is in it.
            None => {
                let owner = OwnerId::mint();
                let fence = fence(&self.deduper, claim);
                match self
                    .runner
                    .adopt_options(&occupant, &owner, &session.minted_ref, &fence)
                    .await
                {
                    Ok(()) => owner,
                    Err(RunnerError::FenceLost(lost)) => return Err(lost.into()),
                    Err(RunnerError::Unanswered(why)) => {
                        return Ok(Err(Self::unanswered(claim, &why)));
                    }
                    Err(error) => return Ok(Err(Conclusion::failed(Step::Delivery, error))),
                }
            }
        };
        let registered = Registered {
            session: session.id,
            owner,
            target: Some(occupant.target),
            harness_session_id: session.harness_session_id.clone(),
        };
        // Said now, because the message itself may have to wait, and then finds an ordinary session.
        let averted = records::respawn_averted(claim, session, name, true);
        self.registry
            .register_saying(claim, &registered, || self.log.emit(&averted))
            .await?;
        let open = self.registry.open_session(claim.item.id).await?;
        Ok(open
            .ok_or_else(|| Conclusion::failed(Step::Delivery, "the session was closed meanwhile")))
    }
}
