//! The first session of a work item.

use std::sync::Arc;

use super::Shared;
use super::attempt::{Attempt, RESOLVE_AGAIN, Ran, Refusal};
use super::conclude::{Conclusion, Delivered, Step};
use super::deliver::earlier_repeat;
use super::error::WorkError;
use super::{message, records};
use crate::eventlog::SpawnFailure;
use crate::harness::Harness;
use crate::model::{
    Class, HarnessSessionId, HoldReason, OwnerId, Session, SessionName, TmuxTarget,
};
use crate::runner::{Address, Machine, TmuxServer, Unanswered};
use crate::store::{Claim, NewSession, Registered, SessionChange};
use crate::workspace;

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Spawns the item's first session, with the claimed event as its boot prompt.
    pub(super) async fn first_spawn(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        self.deduper.begin_attempt(claim).await?;
        let config = self.config();
        let name = match claim.item.item.session_name() {
            Ok(name) => name,
            Err(error) => return Ok(Conclusion::failed(Step::FirstSpawn, error)),
        };
        let not_prepared = |error: &dyn std::error::Error| {
            let reason = SpawnFailure::NotPrepared;
            Ok(self.spawn_failed(claim, &name, reason, error.to_string()))
        };
        let harness = match self.harness(&config.routing.default_harness) {
            Ok(harness) => harness,
            Err(error) => return not_prepared(&error),
        };
        let cwd = match workspace::prepare(&config.routing.spawn_workdir).await {
            Ok(cwd) => cwd,
            Err(error) => return not_prepared(&error),
        };
        let session = NewSession {
            item: claim.item.id,
            owner: OwnerId::mint(),
            harness: harness.name().clone(),
            harness_session_id: HarnessSessionId::mint(),
            cwd,
            boot_delivery: claim.first().id,
        };
        let session = self.registry.begin_spawn(claim, &session).await?;
        let first = &claim.first().event;
        let text = self.prompts().spawn(
            &claim.item.item,
            first,
            &claim.others(),
            earlier_repeat(claim),
        );
        let prompt = match message::fit(&text, &session.cwd, claim.first().id).await {
            Ok(prompt) => prompt,
            Err(error) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                return not_prepared(&error);
            }
        };
        let attempt = self.attempt_of(claim, &session, &name, &harness, prompt);
        let ran = self.run_attempt(claim, attempt).await?;
        self.after_spawn(claim, &session, &name, ran).await
    }

    fn attempt_of<'a>(
        &self,
        claim: &Claim,
        session: &'a Session,
        name: &SessionName,
        harness: &'a Harness,
        prompt: String,
    ) -> Attempt<'a> {
        Attempt {
            owner: session.owner.clone(),
            address: Address {
                name: name.clone(),
                owner: None,
                target: None,
            },
            minted: &session.minted_ref,
            harness,
            launch: harness.fresh(&session.harness_session_id),
            cwd: session.cwd.clone(),
            prompt,
            boot: claim.message(),
        }
    }

    /// Goes on with a spawn that another process, or an earlier claim, left under way.
    pub(super) async fn continue_spawn(
        &self,
        claim: &Arc<Claim>,
        session: Session,
    ) -> Result<Conclusion, WorkError> {
        let name = match session.minted_ref.session_name() {
            Ok(name) => name,
            Err(error) => return Ok(Conclusion::failed(Step::FirstSpawn, error)),
        };
        match self.resolve_attempt(&name, &session.owner).await {
            // Nothing ran: the row goes, and a new attempt begins with a ticket of its own.
            Ran::NotRun(_) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                match claim.class {
                    Class::Control => Box::pin(self.first_spawn(claim)).await,
                    // The item may have been closed or stopped since.
                    Class::Event => Box::pin(self.first_event(claim)).await,
                }
            }
            ran => self.after_spawn(claim, &session, &name, ran).await,
        }
    }

    pub(super) async fn after_spawn(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        name: &SessionName,
        ran: Ran,
    ) -> Result<Conclusion, WorkError> {
        let (reason, error) = match ran {
            Ran::Up(target) => return Ok(self.spawned(claim, session, name, Some(target))),
            // Started and ended in its window: it read its prompt, as far as anybody can tell.
            Ran::EndedClean(target) => return Ok(self.spawned(claim, session, name, target)),
            Ran::Unresolved(why) => {
                tracing::warn!(item = %claim.item.item, "a spawn is not resolved yet: {why}");
                return Ok(Conclusion::Held {
                    reason: HoldReason::TmuxSilent,
                    again: RESOLVE_AGAIN,
                });
            }
            Ran::Unclearable(detail) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                return Ok(Conclusion::Skipped { detail });
            }
            Ran::Occupied => (SpawnFailure::NameTakenLive, self.name_taken(name)),
            Ran::Failed { error, told } => {
                self.note_reading(claim, &session.owner, told).await?;
                (SpawnFailure::HarnessEnded, error)
            }
            Ran::NotRun(Refusal::Unanswered(why @ Unanswered::Silent { .. })) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                return Ok(Self::unanswered(&why));
            }
            Ran::NotRun(Refusal::Unanswered(why)) => {
                (SpawnFailure::TmuxUnanswered, why.to_string())
            }
            Ran::NotRun(Refusal::Answered(error)) => (SpawnFailure::TmuxRefused, error),
        };
        self.registry.abandon_attempt(claim, session.id).await?;
        Ok(self.spawn_failed(claim, name, reason, error))
    }

    /// Says that a live session which nobody registered holds the name, and what the operator can do.
    fn name_taken(&self, name: &SessionName) -> String {
        let tmux = match &self.config().routing.tmux.socket_name {
            Some(socket) => format!("tmux -L {socket}"),
            None => "tmux".to_owned(),
        };
        let item = name
            .work_item()
            .map_or_else(String::new, |item| item.short());
        format!(
            "{name} exists and its program is still running, and no session is registered for the work item. It was \
             not touched. Look at it: {tmux} attach -r -t '={name}:' - then end it yourself: {tmux} kill-session -t \
             '={name}:', or forget what is recorded: the-loop sessions reset {item}"
        )
    }

    fn spawn_failed(
        &self,
        claim: &Claim,
        name: &SessionName,
        reason: SpawnFailure,
        error: String,
    ) -> Conclusion {
        let config = self.config();
        let will_retry = claim.attempts() < config.polling.max_retries;
        let harness = &config.routing.default_harness;
        self.log.emit(&records::spawn_failed(
            claim, harness, name, reason, &error, will_retry,
        ));
        Conclusion::failed(Step::FirstSpawn, error)
    }

    fn spawned(
        &self,
        claim: &Claim,
        session: &Session,
        name: &SessionName,
        target: Option<TmuxTarget>,
    ) -> Conclusion {
        let repeat = earlier_repeat(claim);
        let mut said = vec![records::spawned(claim, session, name)];
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
        let change = SessionChange::Register(Registered {
            session: session.id,
            owner: session.owner.clone(),
            target,
            harness_session_id: session.harness_session_id.clone(),
        });
        Conclusion::delivered(Delivered {
            repeat,
            change: Some(change),
            records: said,
        })
    }
}
