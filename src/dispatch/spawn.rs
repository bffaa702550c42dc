//! The first session of a work item.

use std::sync::Arc;

use super::Shared;
use super::attempt::{Attempt, Ran, Refusal};
use super::conclude::{Conclusion, Delivered, FailedSpawn, Step};
use super::deliver::{earlier_repeat, every_attempt_failed};
use super::error::WorkError;
use super::{message, records};
use crate::eventlog::SpawnFailure;
use crate::harness::Harness;
use crate::model::{
    Class, HarnessSessionId, OwnerId, Session, SessionName, TmuxSocket, TmuxTarget, WorkItemRef,
};
use crate::process::identity::Life;
use crate::runner::{Address, Machine, TmuxServer, Unanswered};
use crate::store::{Claim, NewSession, Registered, SessionChange};
use crate::workspace;

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Spawns the item's first session, with the claimed event as its boot prompt.
    pub(super) async fn first_spawn(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        let config = self.config();
        if claim.is_spent(config.polling.max_retries) {
            return Ok(Conclusion::failed(
                Step::FirstSpawn,
                every_attempt_failed(claim),
            ));
        }
        self.deduper.begin_attempt(claim).await?;
        let name = match claim.item.item.session_name() {
            Ok(name) => name,
            Err(error) => return Ok(Conclusion::failed(Step::FirstSpawn, error)),
        };
        if let Some(error) = self.former_agent(claim).await? {
            let reason = SpawnFailure::FormerAgentLive;
            return Ok(Conclusion::spawn_failed(
                FailedSpawn { name, reason },
                error,
            ));
        }
        let not_prepared = |error: &dyn std::error::Error| {
            let failed = FailedSpawn {
                name: name.clone(),
                reason: SpawnFailure::NotPrepared,
            };
            Ok(Conclusion::spawn_failed(failed, error.to_string()))
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
        let text = self.prompts.spawn(
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
            argv: harness.fresh(&session.harness_session_id),
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

    /// Brings a spawn to its end whose own delivery is settled: nobody else would, and its item would
    /// wait for ever. Returns a conclusion where its end cannot be told yet.
    ///
    /// The claimed message is another one, so the agent has not read it.
    pub(super) async fn settle_orphan(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
    ) -> Result<Option<Conclusion>, WorkError> {
        let name = match session.minted_ref.session_name() {
            Ok(name) => name,
            Err(error) => return Ok(Some(Conclusion::failed(Step::FirstSpawn, error))),
        };
        tracing::warn!(item = %claim.item.item, "a spawn was left behind by its delivery; it is looked up");
        let target = match self.resolve_attempt(&name, &session.owner).await {
            Ran::Up(target) | Ran::EndedClean(target) => target,
            Ran::Unresolved(why) => return Ok(Some(Self::unresolved(claim, why))),
            _ => {
                self.registry.abandon_attempt(claim, session.id).await?;
                return Ok(None);
            }
        };
        let registered = Self::registration(session, target);
        let spawned = records::spawned(claim, session, &name);
        self.registry
            .register_saying(claim, &registered, || self.log.emit(&spawned))
            .await?;
        Ok(None)
    }

    fn registration(session: &Session, target: Option<TmuxTarget>) -> Registered {
        Registered {
            session: session.id,
            owner: session.owner.clone(),
            target,
            harness_session_id: session.harness_session_id.clone(),
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
            // One that ended in its window without an error read its prompt, as far as anybody can tell.
            Ran::Up(target) | Ran::EndedClean(target) => {
                return Ok(self.spawned(claim, session, name, target));
            }
            Ran::Unresolved(why) => return Ok(Self::unresolved(claim, why)),
            Ran::Unclearable(detail) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                return Ok(Conclusion::Skipped { detail });
            }
            Ran::Occupied => (SpawnFailure::NameTakenLive, self.name_taken(name)),
            Ran::Failed { error, reached } => {
                self.note_reading(claim, &session.owner, reached).await?;
                (SpawnFailure::HarnessEnded, error)
            }
            Ran::NotRun(Refusal::Unanswered(
                why @ (Unanswered::Silent { .. } | Unanswered::ViewOfAnother { .. }),
            )) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                return Ok(Self::unanswered(claim, &why));
            }
            Ran::NotRun(Refusal::Unanswered(why)) => {
                (SpawnFailure::TmuxUnanswered, why.to_string())
            }
            Ran::NotRun(Refusal::Answered(error)) => (SpawnFailure::TmuxRefused, error),
        };
        self.registry.abandon_attempt(claim, session.id).await?;
        let name = name.clone();
        Ok(Conclusion::spawn_failed(
            FailedSpawn { name, reason },
            error,
        ))
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
             not touched. Look at it: {tmux} attach -r -t '={name}:' - then give it another name: {tmux} \
             rename-session -t '={name}:' NAME, or end it: {tmux} kill-session -t '={name}:'. The next attempt \
             goes on by itself; after the last: the-loop sessions start {item} (the-loop sessions reset {item} \
             forgets only what is recorded, and leaves this session as it is)"
        )
    }

    /// Says that the agent of a closed session still runs, on whichever server that was, and what the
    /// operator can do: a second agent for the item is not started beside it.
    async fn former_agent(&self, claim: &Claim) -> Result<Option<String>, WorkError> {
        for session in self.registry.closed_sessions(claim.item.id).await? {
            let Some(target) = &session.target else {
                continue;
            };
            let runs = self.runner.life(&target.boot, &target.harness) != Life::Gone;
            if let (true, Ok(name)) = (runs, session.minted_ref.session_name()) {
                return Ok(Some(still_runs(target, &name, &claim.item.item)));
            }
        }
        Ok(None)
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
        let now = self.clock.now();
        said.extend(records::succeeded(claim, session, name, repeat, now));
        let change = SessionChange::Register(Self::registration(session, target));
        Conclusion::delivered(Delivered {
            repeat,
            change: Some(change),
            records: said,
        })
    }
}

fn still_runs(target: &TmuxTarget, name: &SessionName, item: &WorkItemRef) -> String {
    let tmux = match &target.socket {
        TmuxSocket::Default => "tmux".to_owned(),
        TmuxSocket::Name(socket) => format!("tmux -L {socket}"),
        TmuxSocket::Path(path) => format!("tmux -S '{}'", path.display()),
    };
    format!(
        "the agent of a closed session of the work item still runs (process {}). It was not touched. Look at it: \
         {tmux} attach -r -t '={name}:' - then end it yourself: {tmux} kill-session -t '={name}:', or forget what \
         is recorded: the-loop sessions reset {}",
        target.harness,
        item.short()
    )
}
