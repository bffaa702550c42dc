//! Respawning a session that ended, with its conversation resumed where the harness can (AC12).

use std::sync::Arc;

use super::Shared;
use super::attempt::{Attempt, Ran, Reached, Refusal};
use super::conclude::{Conclusion, Step};
use super::deliver::earlier_repeat;
use super::error::WorkError;
use super::{message, records};
use crate::harness::Harness;
use crate::model::{
    Ending, HarnessSessionId, OwnerId, Repeat, RespawnAttempt, Session, SessionName, TmuxTarget,
};
use crate::runner::{Machine, Probe, TmuxServer};
use crate::store::{Claim, NewAttempt, Registered, SessionChange};
use crate::workspace;

/// Whether an attempt goes on with the recorded conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversation {
    /// It is resumed.
    Resumed,
    /// A new one begins.
    Fresh,
}

impl Conversation {
    /// Which one an attempt that was left under way went on with.
    fn of(attempt: &RespawnAttempt, session: &Session) -> Self {
        if attempt.harness_session_id == session.harness_session_id {
            Self::Resumed
        } else {
            Self::Fresh
        }
    }

    /// What came of an attempt, where it is known whether a conversation was to be resumed: an agent
    /// that finds none may say so and exit with 0, and the message would be lost with it.
    fn judge(self, ran: Ran) -> Ran {
        match (self, ran) {
            (Self::Resumed, Ran::EndedClean(_)) => Ran::Failed {
                error:
                    "it ended at once with exit code 0 instead of going on with the conversation"
                        .to_owned(),
                reached: Reached::ItsOwnEnd,
            },
            (_, ran) => ran,
        }
    }
}

/// What is to be respawned, and what it is to be told.
struct Respawn<'a> {
    claim: &'a Arc<Claim>,
    session: Session,
    name: SessionName,
    repeat: Repeat,
    /// How the former agent ended, where its host recorded that.
    ended: Option<Ending>,
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Respawns a session that was found dead; its boot prompt is the claimed message.
    pub(super) async fn respawn(
        &self,
        claim: &Arc<Claim>,
        session: Session,
        name: SessionName,
        repeat: Repeat,
    ) -> Result<Conclusion, WorkError> {
        // Asked once more: a session that seemed dead a moment ago may be live after all (AC6).
        match self.runner.probe(&Self::address(&session, &name)).await {
            Probe::Live => {
                return Box::pin(self.say_to_occupant(claim, &session, &name, repeat)).await;
            }
            Probe::Unknown(why) => return Ok(Self::unanswered(claim, &why)),
            Probe::Dead(_) => {}
        }
        let harness = match self.harness(&session.harness) {
            Ok(harness) => harness,
            Err(error) => return Ok(Conclusion::failed(Step::Delivery, error)),
        };
        if let Err(error) = workspace::prepare(&session.cwd).await {
            return Ok(Conclusion::failed(Step::Delivery, error));
        }
        let ended = self.ending_of(&session.owner).await;
        let mut respawn = Respawn {
            claim,
            session,
            name,
            repeat,
            ended,
        };
        if let Some(argv) = self.resumption(&respawn, &harness) {
            let (owner, ran) = self
                .respawn_once(&respawn, &harness, argv, Conversation::Resumed)
                .await?;
            // Only a harness that gave up by itself says that it cannot resume. After anything else the
            // conversation is kept for the next attempt.
            let Ran::Failed {
                error,
                reached: reached @ Reached::ItsOwnEnd,
            } = ran
            else {
                return self
                    .after_respawn(respawn, owner, ran, Conversation::Resumed)
                    .await;
            };
            self.note_reading(claim, &owner, reached).await?;
            respawn.repeat = Repeat::Possible;
            self.log
                .emit(&records::resume_failed(claim, &respawn.session, &error));
        }
        respawn.session.harness_session_id = HarnessSessionId::mint();
        let argv = harness.fresh(&respawn.session.harness_session_id);
        let (owner, ran) = self
            .respawn_once(&respawn, &harness, argv, Conversation::Fresh)
            .await?;
        self.after_respawn(respawn, owner, ran, Conversation::Fresh)
            .await
    }

    /// Returns how to resume the session's conversation, or says why it cannot be.
    fn resumption(&self, respawn: &Respawn<'_>, harness: &Harness) -> Option<Vec<String>> {
        if !self.config().routing.tmux.resume_on_respawn {
            return None;
        }
        let argv = harness.resume(&respawn.session.harness_session_id);
        if argv.is_none() {
            let error = format!(
                "{} cannot resume a conversation; a fresh one begins",
                harness.name()
            );
            self.log.emit(&records::resume_failed(
                respawn.claim,
                &respawn.session,
                &error,
            ));
        }
        argv
    }

    async fn respawn_once(
        &self,
        respawn: &Respawn<'_>,
        harness: &Harness,
        argv: Vec<String>,
        conversation: Conversation,
    ) -> Result<(OwnerId, Ran), WorkError> {
        let Respawn {
            claim,
            session,
            name,
            repeat,
            ..
        } = respawn;
        let owner = OwnerId::mint();
        let boot = claim.message();
        let text = self.prompts.message(
            &claim.item.item,
            &claim.first().event,
            &claim.others(),
            *repeat,
        );
        let prompt = match message::fit(&text, &session.cwd, boot).await {
            Ok(prompt) => prompt,
            Err(error) => return Ok((owner, Ran::NotRun(Refusal::Answered(error.to_string())))),
        };
        let attempt = NewAttempt {
            owner: owner.clone(),
            harness_session_id: session.harness_session_id.clone(),
            boot_delivery: boot,
        };
        self.registry
            .begin_respawn(claim, session.id, &attempt)
            .await?;
        let attempt = Attempt {
            owner: owner.clone(),
            address: Self::address(session, name),
            minted: &session.minted_ref,
            harness,
            argv,
            cwd: session.cwd.clone(),
            prompt,
            boot,
        };
        let ran = self.run_attempt(claim, attempt).await?;
        Ok((owner, conversation.judge(ran)))
    }

    async fn after_respawn(
        &self,
        respawn: Respawn<'_>,
        owner: OwnerId,
        ran: Ran,
        conversation: Conversation,
    ) -> Result<Conclusion, WorkError> {
        let (claim, id) = (respawn.claim, respawn.session.id);
        match ran {
            Ran::Up(target) => Ok(self.respawned(&respawn, owner, target, conversation)),
            // A fresh one started and ended in its window: it read the message, as far as anybody can tell.
            Ran::EndedClean(target) => {
                let respawn = Respawn {
                    repeat: Repeat::Possible,
                    ..respawn
                };
                Ok(self.respawned(&respawn, owner, target, conversation))
            }
            Ran::Occupied => {
                self.registry.abandon_attempt(claim, id).await?;
                match self.registry.open_session(claim.item.id).await? {
                    Some(session) => {
                        let Respawn { name, repeat, .. } = respawn;
                        Box::pin(self.say_to_occupant(claim, &session, &name, repeat)).await
                    }
                    None => Ok(Conclusion::failed(
                        Step::Delivery,
                        "the session was closed meanwhile",
                    )),
                }
            }
            Ran::Unclearable(detail) => {
                self.registry.abandon_attempt(claim, id).await?;
                Ok(Conclusion::Skipped { detail })
            }
            Ran::Failed { error, reached } => {
                self.note_reading(claim, &owner, reached).await?;
                self.registry.abandon_attempt(claim, id).await?;
                Ok(Conclusion::failed(Step::Delivery, error))
            }
            Ran::NotRun(Refusal::Unanswered(why)) => {
                self.registry.abandon_attempt(claim, id).await?;
                Ok(Self::unanswered(claim, &why))
            }
            Ran::NotRun(Refusal::Answered(error)) => {
                self.registry.abandon_attempt(claim, id).await?;
                Ok(Conclusion::failed(Step::Delivery, error))
            }
            Ran::Unresolved(why) => Ok(Self::unresolved(claim, why)),
        }
    }

    fn respawned(
        &self,
        respawn: &Respawn<'_>,
        owner: OwnerId,
        target: Option<TmuxTarget>,
        conversation: Conversation,
    ) -> Conclusion {
        let Respawn {
            claim,
            session,
            name,
            repeat,
            ended,
        } = respawn;
        let mut delivered = self.arrival(claim, session, name, *repeat);
        delivered.change = Some(SessionChange::Register(Registered {
            session: session.id,
            owner,
            target,
            harness_session_id: session.harness_session_id.clone(),
        }));
        let resumed = conversation == Conversation::Resumed;
        delivered.records.insert(
            0,
            records::respawned(claim, session, name, resumed, ended.as_ref()),
        );
        Conclusion::delivered(delivered)
    }

    /// Brings an attempt that was left under way to its end before anything new begins.
    ///
    /// Returns the session as it is then, or a conclusion where it cannot be told yet.
    pub(super) async fn settle_attempt(
        &self,
        claim: &Arc<Claim>,
        session: Session,
    ) -> Result<Result<Session, Conclusion>, WorkError> {
        let Some(attempt) = session.attempt.clone() else {
            return Ok(Ok(session));
        };
        let Ok(name) = session.minted_ref.session_name() else {
            return Ok(Ok(session));
        };
        let ran = self.resolve_attempt(&name, &attempt.owner).await;
        let ran = Conversation::of(&attempt, &session).judge(ran);
        // What it carried is said with its prompt, or may have been.
        let carried = attempt.boot_delivery == claim.message();
        match ran {
            Ran::Up(target) if carried => {
                let repeat = earlier_repeat(claim);
                let settled = self.settled(claim, session, name, attempt, target, repeat);
                return Ok(Err(settled.await));
            }
            Ran::Up(target) => {
                self.register_attempt(claim, &session, &name, attempt, target)
                    .await?;
            }
            Ran::EndedClean(target) if carried => {
                let repeat = Repeat::Possible;
                let settled = self.settled(claim, session, name, attempt, target, repeat);
                return Ok(Err(settled.await));
            }
            Ran::Failed { error, reached } if carried => {
                self.note_reading(claim, &attempt.owner, reached).await?;
                self.registry.abandon_attempt(claim, session.id).await?;
                return Ok(Err(Conclusion::failed(Step::Delivery, error)));
            }
            Ran::Unresolved(why) => return Ok(Err(Self::unresolved(claim, why))),
            _ => self.registry.abandon_attempt(claim, session.id).await?,
        }
        let open = self.registry.open_session(claim.item.id).await?;
        Ok(open.ok_or_else(|| {
            Conclusion::failed(
                Step::Delivery,
                "the session was closed while its respawn was looked up",
            )
        }))
    }

    /// Registers an agent that an attempt left under way has started, and that was told something else
    /// than the claimed message.
    async fn register_attempt(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        attempt: RespawnAttempt,
        target: Option<TmuxTarget>,
    ) -> Result<(), WorkError> {
        let resumed = Conversation::of(&attempt, session) == Conversation::Resumed;
        let ended = self.ending_of(&session.owner).await;
        let respawned = Session {
            harness_session_id: attempt.harness_session_id.clone(),
            ..session.clone()
        };
        let respawned = records::respawned(claim, &respawned, name, resumed, ended.as_ref());
        let registered = Registered {
            session: session.id,
            owner: attempt.owner,
            target,
            harness_session_id: attempt.harness_session_id,
        };
        self.registry
            .register_saying(claim, &registered, || self.log.emit(&respawned))
            .await?;
        Ok(())
    }

    /// The conclusion of a message that an attempt left under way has told.
    async fn settled(
        &self,
        claim: &Arc<Claim>,
        session: Session,
        name: SessionName,
        attempt: RespawnAttempt,
        target: Option<TmuxTarget>,
        repeat: Repeat,
    ) -> Conclusion {
        let conversation = Conversation::of(&attempt, &session);
        let ended = self.ending_of(&session.owner).await;
        let respawn = Respawn {
            claim,
            session: Session {
                harness_session_id: attempt.harness_session_id,
                ..session
            },
            name,
            repeat,
            ended,
        };
        self.respawned(&respawn, attempt.owner, target, conversation)
    }
}
