//! One attempt to run a harness: ticket, tmux session, probe window.
//!
//! The ticket decides who wins. It is recorded before anything is made; the host takes it by a
//! rename, whoever gives up revokes it by another, and one rename wins. So a tmux that serves
//! `new-session` late, or a daemon that dies half-way, can never lead to two harnesses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::Shared;
use super::conclude::Conclusion;
use super::error::WorkError;
use super::fence::fence;
use crate::harness::{Harness, Launch};
use crate::model::{
    AfterEnd, BootId, DeliveryId, Ending, HoldReason, HostPaths, OwnerId, Phase, ProcessId,
    SessionName, Spec, TmuxSocket, TmuxTarget, WorkItemRef,
};
use crate::process::identity::{Life, life_in};
use crate::process::ticket::{self, Revoked};
use crate::runner::{
    Address, Machine, RunnerError, SpawnOutcome, SpawnPlan, SpawnedPane, Survival, TmuxServer,
    Unanswered,
};
use crate::store::{Claim, SessionFilter};

/// How long a ticket is good for: tmux may be slow, but a session that it makes later than this for
/// an attempt long given up helps nobody.
const TICKET_LIFE: TimeDelta = TimeDelta::minutes(2);

/// The terminal that an agent begins with.
const COLUMNS: u16 = 200;
const ROWS: u16 = 50;

/// What is to be run.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    /// The spawn intent.
    pub(super) owner: OwnerId,
    /// The session's name, and what is recorded of the agent that had it before.
    pub(super) address: Address,
    /// The work item whose ref the session's name is minted from.
    pub(super) minted: &'a WorkItemRef,
    /// The harness.
    pub(super) harness: &'a Harness,
    /// How it is started.
    pub(super) launch: Launch,
    /// Where.
    pub(super) cwd: PathBuf,
    /// The boot prompt.
    pub(super) prompt: String,
    /// The delivery that the prompt carries; its token is set with the session's creation.
    pub(super) boot: DeliveryId,
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Ran {
    /// The harness runs and survived its probe window.
    Up(TmuxTarget),
    /// It started and ended with exit 0 inside the window.
    EndedClean(Option<TmuxTarget>),
    /// It started and ended with an error inside the window; its last lines.
    Failed(String),
    /// A live session of another origin holds the name.
    Occupied,
    /// The name is held by something that is neither live nor clearable.
    Unclearable(String),
    /// Nothing ran, and nothing of it will.
    NotRun(Refusal),
    /// It was started, but nothing tells where; to be looked up again.
    Unresolved(Unresolved),
}

/// What keeps an attempt from being settled.
#[derive(Debug)]
pub(super) struct Unresolved {
    /// What is waited for.
    pub(super) reason: HoldReason,
    /// In words.
    pub(super) why: String,
}

impl Unresolved {
    fn ran(reason: HoldReason, why: impl Into<String>) -> Ran {
        Ran::Unresolved(Self {
            reason,
            why: why.into(),
        })
    }

    /// The conclusion of a claim that has to wait for it.
    pub(super) fn held(self, claim: &Claim) -> Conclusion {
        tracing::warn!(item = %claim.item.item, "a spawn is not settled yet: {}", self.why);
        Conclusion::Held {
            reason: self.reason,
            again: RESOLVE_AGAIN,
        }
    }
}

/// Why nothing ran.
#[derive(Debug)]
pub(super) enum Refusal {
    /// tmux gave no answer.
    Unanswered(String),
    /// Something answered, with this.
    Answered(String),
}

impl Refusal {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Unanswered(text) | Self::Answered(text) => text,
        }
    }
}

const HOST_ENDED: &str = "its host ended before it started the agent";

/// How long to wait before an unresolved attempt is looked at again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(5);

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Runs an attempt to its end.
    pub(super) async fn run_attempt(
        &self,
        claim: &Arc<Claim>,
        attempt: Attempt<'_>,
    ) -> Result<Ran, WorkError> {
        let paths = HostPaths::new(&self.config().state.root, &attempt.owner);
        let recorded_servers = self.recorded_servers().await?;
        let spec = self.spec(&attempt);
        let plan = SpawnPlan {
            address: attempt.address.clone(),
            owner: attempt.owner.clone(),
            work_item: attempt.minted.clone(),
            boot_delivery: Some(attempt.boot),
            host_binary: self.program.clone(),
            spec: paths.spec(),
            cwd: attempt.cwd.clone(),
            columns: COLUMNS,
            rows: ROWS,
            recorded_servers,
        };
        self.deduper.hold_fence(claim).await?;
        if let Err(error) = issue(paths.clone(), spec, attempt.prompt).await {
            return Ok(Ran::NotRun(Refusal::Answered(error)));
        }
        let outcome = self.runner.spawn(&plan, &fence(&self.deduper, claim)).await;
        let given_up = match outcome {
            Ok(SpawnOutcome::Spawned(pane)) => return Ok(self.watch(&attempt.owner, &pane).await),
            Ok(SpawnOutcome::LiveOccupant) => Ran::Occupied,
            Ok(SpawnOutcome::Unclearable(detail)) => Ran::Unclearable(detail),
            // Whoever goes on with the claim finds the ticket and settles it.
            Err(RunnerError::FenceLost(_)) => return Err(WorkError::Lost),
            Err(RunnerError::Unanswered(why)) => Ran::NotRun(Refusal::Unanswered(why.to_string())),
            Err(error) => Ran::NotRun(Refusal::Answered(error.to_string())),
        };
        match revoke(paths).await {
            Ok(Revoked::Won | Revoked::Absent) => Ok(given_up),
            // The host was faster: whatever tmux answered, the harness is ours and runs.
            Ok(Revoked::AlreadyTaken) => Ok(self
                .see_through(&attempt.address.name, &attempt.owner)
                .await),
            Err(error) => Ok(Unresolved::ran(HoldReason::Starting, error)),
        }
    }

    fn spec(&self, attempt: &Attempt<'_>) -> Spec {
        let tmux = &self.config().routing.tmux;
        Spec {
            v: Spec::VERSION,
            owner: attempt.owner.clone(),
            work_item: attempt.minted.clone(),
            socket: TmuxSocket::Path(self.tmux.socket.clone()),
            tmux: self.tmux.binary.clone(),
            cwd: attempt.cwd.clone(),
            argv: attempt.launch.argv.clone(),
            env: attempt
                .harness
                .environment(&self.around, attempt.minted, &attempt.address.name),
            prompt: attempt.launch.prompt,
            not_after_ms: (self.clock.now() + TICKET_LIFE).timestamp_millis(),
            grace_ms: u64::try_from(tmux.harness_kill_grace.as_millis()).unwrap_or(u64::MAX),
            after_end: if tmux.remain_on_exit {
                AfterEnd::KeepScreen
            } else {
                AfterEnd::CloseSession
            },
        }
    }

    /// Returns the servers that open sessions are recorded on: while one of them runs, none is
    /// started in its place.
    async fn recorded_servers(&self) -> Result<Vec<(BootId, ProcessId)>, WorkError> {
        let open = self.registry.list(SessionFilter::Open).await?;
        let mut servers: Vec<(BootId, ProcessId)> = open
            .into_iter()
            .filter_map(|session| session.target)
            .map(|target| (target.boot, target.server))
            .collect();
        servers.sort_by_key(|(_, server)| (server.pid, server.start));
        servers.dedup();
        Ok(servers)
    }

    /// Watches a started harness through its probe window.
    async fn watch(&self, owner: &OwnerId, pane: &SpawnedPane) -> Ran {
        let window = self.config().routing.tmux.resume_probe;
        match self.runner.survives(owner, pane, window).await {
            Survival::Alive(target) => Ran::Up(target),
            Survival::EndedClean(target) => Ran::EndedClean(Some(target)),
            Survival::Failed { ending, screen } => Ran::Failed(explain(&ending, &screen)),
            Survival::Unknown(why) => Unresolved::ran(HoldReason::Starting, why),
        }
    }

    /// Finds a harness that took its ticket, wherever it runs, and watches it through its window.
    async fn see_through(&self, name: &SessionName, owner: &OwnerId) -> Ran {
        let address = Address {
            name: name.clone(),
            owner: Some(owner.clone()),
            target: None,
        };
        match self.runner.occupant(&address).await {
            Ok(Some(occupant)) if occupant.owner.as_ref() == Some(owner) => {
                self.watch(owner, &SpawnedPane::from(&occupant)).await
            }
            Ok(_) => self.read_record(owner).await,
            Err(why @ Unanswered::AgentOutlivesSession { .. }) => {
                Unresolved::ran(HoldReason::AgentOutlivesSession, why.to_string())
            }
            Err(why) => Unresolved::ran(HoldReason::TmuxSilent, why.to_string()),
        }
    }

    /// Reads from its record how a harness ended that no session shows any more.
    async fn read_record(&self, owner: &OwnerId) -> Ran {
        let paths = HostPaths::new(&self.config().state.root, owner);
        let record =
            blocking(move || ticket::record(&paths).map_err(|error| error.to_string())).await;
        let record = match record {
            Ok(Some(record)) => record,
            // Taken, and its host ended before it could record anything: nothing was started.
            Ok(None) => return Ran::Failed(HOST_ENDED.to_owned()),
            Err(error) => return Unresolved::ran(HoldReason::Starting, error),
        };
        let is_gone = |process| life_in(&record.boot, process) == Life::Gone;
        match &record.phase {
            Phase::Ended {
                ending: Ending::Code(0),
                ..
            } => Ran::EndedClean(None),
            Phase::Ended { ending, .. } => Ran::Failed(explain(ending, &[])),
            // Its host was killed with it, or before it: nobody is left to record the end.
            Phase::Running { harness } if is_gone(harness) && is_gone(&record.host) => {
                Ran::Failed("it ended, and so did its host before it recorded how".to_owned())
            }
            Phase::Starting if is_gone(&record.host) => Ran::Failed(HOST_ENDED.to_owned()),
            Phase::Starting | Phase::Running { .. } => Unresolved::ran(
                HoldReason::AgentOutlivesSession,
                "the agent runs, but its session is not found",
            ),
        }
    }

    /// Finds out what became of an attempt that another process, or an earlier claim, left behind.
    pub(super) async fn resolve_attempt(&self, name: &SessionName, owner: &OwnerId) -> Ran {
        match revoke(HostPaths::new(&self.config().state.root, owner)).await {
            Ok(Revoked::Won | Revoked::Absent) => {
                Ran::NotRun(Refusal::Answered("its ticket was never taken".to_owned()))
            }
            Ok(Revoked::AlreadyTaken) => self.see_through(name, owner).await,
            Err(error) => Unresolved::ran(HoldReason::Starting, error),
        }
    }
}

fn explain(ending: &Ending, screen: &[String]) -> String {
    let how = match ending {
        Ending::Code(code) => format!("it ended at once with exit code {code}"),
        Ending::Signal(signal) => format!("it was ended at once by signal {signal}"),
        Ending::Failed(why) => format!("it could not be started: {why}"),
    };
    if screen.is_empty() {
        how
    } else {
        format!("{how}; its screen: {}", screen.join(" | "))
    }
}

async fn issue(paths: HostPaths, spec: Spec, prompt: String) -> Result<(), String> {
    blocking(move || ticket::issue(&paths, &spec, &prompt).map_err(|error| error.to_string())).await
}

async fn revoke(paths: HostPaths) -> Result<Revoked, String> {
    blocking(move || ticket::revoke(&paths).map_err(|error| error.to_string())).await
}

/// Runs file work beside the runtime.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, String> + Send + 'static,
) -> Result<R, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| error.to_string())?
}
