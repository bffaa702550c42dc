//! Control: start, stop, pause, resume, close, and the end of a work item.
//!
//! A control delivery is claimed before the item's events and runs under the item's claim, so
//! nothing is delivered or spawned beside it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Shared;
use super::conclude::{Conclusion, Delivered, Step};
use super::error::WorkError;
use super::fence::fence;
use super::records;
use crate::eventlog::{Decision, Effect, hold_phrase};
use crate::model::{
    ControlCommand, Detail, DropReason, Event, EventKind, HoldReason, OperatorCommand, Repeat,
    Session, SessionStatus, TmuxFate,
};
use crate::routing::guard::{Verdict, judge};
use crate::runner::{Cleared, EndOutcome, Machine, RunnerError, TmuxServer};
use crate::store::{Claim, SessionChange, Waiting};

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Executes a control delivery.
    pub(super) async fn control(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        if let Some(session) = self.registry.open_session(claim.item.id).await?
            && session.status == SessionStatus::Spawning
            && session.boot_delivery != Some(claim.first().id)
            && let Some(conclusion) = self.settle_orphan(claim, &session).await?
        {
            return Ok(conclusion);
        }
        let event = &claim.first().event;
        match (&event.kind, &event.detail) {
            (EventKind::Closed, _) => self.item_ended(claim).await,
            (_, Detail::Command { command }) => match *command {
                OperatorCommand::Start => self.start(claim, Origin::Operator).await,
                OperatorCommand::Stop => self.stop(claim).await,
                OperatorCommand::Pause => self.pause(claim).await,
                OperatorCommand::Resume => self.resume(claim).await,
                OperatorCommand::Close { tmux } => self.close(claim, tmux).await,
            },
            _ => match judge(event, &self.policy()) {
                Verdict::Control(ControlCommand::Start) => self.start(claim, Origin::Comment).await,
                Verdict::Control(ControlCommand::Stop) => self.stop(claim).await,
                Verdict::Control(ControlCommand::Pause) => self.pause(claim).await,
                Verdict::Control(ControlCommand::Resume) => self.resume(claim).await,
                // The keyword is none any more: what is left is a comment.
                Verdict::Deliver => self.event(claim).await,
                Verdict::Drop(reason) => Ok(Conclusion::Dropped(reason)),
            },
        }
    }

    async fn start(&self, claim: &Arc<Claim>, origin: Origin) -> Result<Conclusion, WorkError> {
        if let Some(reason) = self.refuses_start(claim, origin) {
            // An agent that it has started already is nobody else's.
            return match self.own_spawn(claim).await? {
                Some(ended) => Ok(Self::of_start(claim, ended)),
                None => Ok(self.rejected(claim, ControlCommand::Start, reason)),
            };
        }
        self.ledger
            .set_control(
                claim,
                ControlCommand::Start,
                claim.first().event.actor.as_ref(),
            )
            .await?;
        match self.registry.open_session(claim.item.id).await? {
            None => {
                let spawned = self.first_spawn(claim).await?;
                Ok(Self::of_start(claim, spawned))
            }
            Some(session) if session.status == SessionStatus::Spawning => {
                let spawned = self.continue_spawn(claim, session).await?;
                Ok(Self::of_start(claim, spawned))
            }
            Some(session) if session.status == SessionStatus::Paused => {
                self.go_on(claim, ControlCommand::Start, &session).await
            }
            Some(_) => {
                let noop = records::command(claim, ControlCommand::Start, Effect::Noop);
                Ok(Self::executed(None, vec![noop]))
            }
        }
    }

    fn refuses_start(&self, claim: &Claim, origin: Origin) -> Option<DropReason> {
        let armed = claim.item.armed || origin == Origin::Operator;
        if !claim.item.open {
            Some(DropReason::ItemClosed)
        } else if !armed || !self.policy().spawns() {
            Some(DropReason::SpawnPolicy)
        } else {
            None
        }
    }

    async fn pause(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        self.ledger
            .set_control(
                claim,
                ControlCommand::Pause,
                claim.first().event.actor.as_ref(),
            )
            .await?;
        let open = self.registry.open_session(claim.item.id).await?;
        let change = open
            .as_ref()
            .filter(|session| session.status == SessionStatus::Active)
            .map(|session| SessionChange::Pause(session.id));
        let effect = match change {
            Some(_) => Effect::Paused,
            None => Effect::Noop,
        };
        let command = records::command(claim, ControlCommand::Pause, effect);
        let unsaid = self
            .drop_earlier_starts(claim, DropReason::SessionPaused, Some(command))
            .await?;
        if open.is_none() {
            // Written down for the next session, and no more.
            unsaid.iter().for_each(|command| self.log.emit(command));
            return Ok(Conclusion::Dropped(DropReason::NoSession));
        }
        Ok(Self::executed(change, unsaid.into_iter().collect()))
    }

    async fn resume(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        match self.registry.open_session(claim.item.id).await? {
            Some(session) if session.status == SessionStatus::Paused => {
                self.ledger
                    .set_control(
                        claim,
                        ControlCommand::Resume,
                        claim.first().event.actor.as_ref(),
                    )
                    .await?;
                self.go_on(claim, ControlCommand::Resume, &session).await
            }
            _ => Ok(self.rejected(claim, ControlCommand::Resume, DropReason::NothingToResume)),
        }
    }

    /// Resumes a paused session. The command overtook what came in during the pause, and that is
    /// not replayed.
    async fn go_on(
        &self,
        claim: &Arc<Claim>,
        command: ControlCommand,
        session: &Session,
    ) -> Result<Conclusion, WorkError> {
        let since = Some(session.status_since);
        let said = [records::command(claim, command, Effect::Resumed)];
        self.drop_queued_since(claim, DropReason::SessionPaused, since, &said)
            .await?;
        let change = Some(SessionChange::Resume(session.id));
        Ok(Self::executed(change, Vec::new()))
    }

    async fn stop(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        self.ledger
            .set_control(
                claim,
                ControlCommand::Stop,
                claim.first().event.actor.as_ref(),
            )
            .await?;
        let command = |effect| records::command(claim, ControlCommand::Stop, effect);
        let Some(session) = self.registry.open_session(claim.item.id).await? else {
            // Written down for the next session, and no more.
            let said = [command(Effect::Noop)];
            self.drop_queued(claim, DropReason::SessionStopped, &said)
                .await?;
            return Ok(Conclusion::Dropped(DropReason::NoSession));
        };
        let ended = self
            .end_session(claim, &session, TmuxFate::AsConfigured)
            .await?;
        let (mut said, ended) = match ended {
            Ok(ended) => ended,
            Err(conclusion) => return Ok(conclusion),
        };
        said.insert(0, command(Effect::Stopped));
        self.drop_queued(claim, DropReason::SessionStopped, &said)
            .await?;
        Ok(Self::executed(Some(ended), Vec::new()))
    }

    async fn close(&self, claim: &Arc<Claim>, fate: TmuxFate) -> Result<Conclusion, WorkError> {
        let Some(session) = self.registry.open_session(claim.item.id).await? else {
            self.drop_earlier_starts(claim, DropReason::SessionStopped, None)
                .await?;
            return Ok(Conclusion::Dropped(DropReason::NoSession));
        };
        match self.end_session(claim, &session, fate).await? {
            Ok((said, ended)) => {
                self.drop_queued(claim, DropReason::SessionStopped, &said)
                    .await?;
                Ok(Self::executed(Some(ended), Vec::new()))
            }
            Err(conclusion) => Ok(conclusion),
        }
    }

    /// Drops what waited for the session that has ended, each with its line in the event log, below
    /// those of what caused it.
    async fn drop_queued(
        &self,
        claim: &Claim,
        reason: DropReason,
        cause: &[Decision],
    ) -> Result<(), WorkError> {
        self.drop_queued_since(claim, reason, None, cause).await
    }

    async fn drop_queued_since(
        &self,
        claim: &Claim,
        reason: DropReason,
        since: Option<DateTime<Utc>>,
        cause: &[Decision],
    ) -> Result<(), WorkError> {
        let place = self.place(claim).await;
        let say = |dropped: Vec<Waiting>| {
            self.write_down(cause);
            for waiting in dropped {
                let record = records::dropped_waiting(&waiting, &place, reason);
                self.log.emit(&record);
            }
        };
        self.deduper.drop_queued(claim, reason, since, say).await?;
        Ok(())
    }

    /// Drops the starts that failed before this command came: it says what is wanted now. Where a
    /// stop drops all that is queued, they are among it.
    ///
    /// Their lines in the event log stand below that of the cause, which is handed back where there
    /// are none.
    async fn drop_earlier_starts(
        &self,
        claim: &Claim,
        reason: DropReason,
        mut cause: Option<Decision>,
    ) -> Result<Option<Decision>, WorkError> {
        let place = self.place(claim).await;
        for earlier in self.deduper.earlier_commands(claim).await? {
            if self.is_start(&earlier.event) {
                let record = records::dropped_waiting(&earlier, &place, reason);
                let say = || {
                    let cause = cause.take();
                    let said = cause.iter().chain([&record]);
                    said.for_each(|record| self.log.emit(record));
                };
                self.deduper
                    .drop_waiting(claim, earlier.delivery, reason, say)
                    .await?;
            }
        }
        Ok(cause)
    }

    fn is_start(&self, event: &Event) -> bool {
        match &event.detail {
            Detail::Command { command } => *command == OperatorCommand::Start,
            _ => judge(event, &self.policy()) == Verdict::Control(ControlCommand::Start),
        }
    }

    /// The work item was closed or merged: its session ends with it.
    async fn item_ended(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        let (said, ended) = match self.registry.open_session(claim.item.id).await? {
            None => (Vec::new(), None),
            Some(session) => match self
                .end_session(claim, &session, TmuxFate::AsConfigured)
                .await?
            {
                Ok((mut said, ended)) => {
                    said.insert(0, records::autoclosed(claim));
                    (said, Some(ended))
                }
                Err(conclusion) => return Ok(conclusion),
            },
        };
        self.drop_queued(claim, DropReason::ItemClosed, &said)
            .await?;
        self.ledger.clear_control(claim).await?;
        Ok(Self::executed(ended, Vec::new()))
    }

    /// Ends a session as configured and returns what to write down and to change, or why it has to
    /// wait.
    async fn end_session(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        fate: TmuxFate,
    ) -> Result<Result<(Vec<Decision>, SessionChange), Conclusion>, WorkError> {
        let session = match self.settle_attempt(claim, session.clone()).await? {
            Ok(session) => session,
            Err(conclusion) => return Ok(Err(conclusion)),
        };
        let mut said = Vec::new();
        if session.target.is_some() {
            match self.end_in_tmux(claim, &session, fate).await? {
                Ok(more) => said = more,
                Err(conclusion) => return Ok(Err(conclusion)),
            }
        }
        said.push(records::closed(claim, &session));
        Ok(Ok((said, SessionChange::Close(session.id))))
    }

    async fn end_in_tmux(
        &self,
        claim: &Arc<Claim>,
        session: &Session,
        fate: TmuxFate,
    ) -> Result<Result<Vec<Decision>, Conclusion>, WorkError> {
        let Ok(name) = session.minted_ref.session_name() else {
            return Ok(Ok(Vec::new()));
        };
        let tmux = &self.config().routing.tmux;
        let keep = match fate {
            TmuxFate::AsConfigured => tmux.keep_session_on_close,
            TmuxFate::Keep => true,
            TmuxFate::Kill => false,
        };
        if keep && !tmux.kill_harness_on_close {
            return Ok(Ok(vec![records::retained(claim, &name)]));
        }
        let address = Self::address(session, &name);
        let fence = fence(&self.deduper, claim);
        let ended = match self
            .runner
            .end(&address, tmux.harness_kill_grace, &fence)
            .await
        {
            Ok(ended) => ended,
            Err(error) => return Self::not_ended(error),
        };
        // Reported, never forced: a live agent is nobody's to kill by other means.
        let still = match ended {
            EndOutcome::StillRunning(process) => Some(format!("process {process} did not end")),
            EndOutcome::NotOurs => {
                Some("it was not started by the-loop, so it is not ended by it".to_owned())
            }
            EndOutcome::Ended => None,
        };
        let mut said = vec![records::terminated(claim, session, &name, still.clone())];
        if keep || still.is_some() {
            said.push(records::retained(claim, &name));
            return Ok(Ok(said));
        }
        match self.runner.clear(&address, &fence).await {
            Ok(Cleared::Free) => Ok(Ok(said)),
            Ok(Cleared::SetAside(to)) => {
                said.push(records::set_aside(claim, &name, &to));
                Ok(Ok(said))
            }
            Ok(Cleared::LiveOccupant | Cleared::Unclearable(_)) => {
                said.push(records::retained(claim, &name));
                Ok(Ok(said))
            }
            Err(error) => Self::not_ended(error),
        }
    }

    /// Ending waits for a tmux that does not answer: an agent must not be forgotten while it may run.
    fn not_ended<R>(error: RunnerError) -> Result<Result<R, Conclusion>, WorkError> {
        match error {
            RunnerError::FenceLost(lost) => Err(lost.into()),
            RunnerError::Unanswered(why) => Ok(Err(Self::waits_for(&why))),
            other => Ok(Err(Conclusion::failed(Step::Delivery, other))),
        }
    }

    fn executed(change: Option<SessionChange>, records: Vec<Decision>) -> Conclusion {
        Conclusion::executed(Delivered {
            repeat: Repeat::No,
            change,
            records,
        })
    }

    /// What a spawn means for the start that asked for it.
    fn of_start(claim: &Arc<Claim>, spawned: Conclusion) -> Conclusion {
        match spawned {
            Conclusion::Delivered(mut delivered) => {
                let record = records::command(claim, ControlCommand::Start, Effect::Spawned);
                delivered.records.insert(0, record);
                Conclusion::Delivered(delivered)
            }
            // A later stop need not wait for a start that waits.
            Conclusion::Held {
                reason,
                again,
                detail,
            } => Conclusion::Held {
                reason: HoldReason::StartRetry,
                again,
                detail: detail.or_else(|| Some(hold_phrase(reason.as_str()).to_owned())),
            },
            other => other,
        }
    }

    fn rejected(
        &self,
        claim: &Arc<Claim>,
        command: ControlCommand,
        reason: DropReason,
    ) -> Conclusion {
        self.log.emit(&records::rejected(claim, command, reason));
        Conclusion::Dropped(reason)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Comment,
    Operator,
}
