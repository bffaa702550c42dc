//! Starting an agent under a name, over nobody.

use std::path::PathBuf;

use tokio::time::{Instant, sleep};

use crate::model::{
    BootId, DeliveryId, OwnerId, PaneId, ProcessId, Record, TmuxSessionId, TmuxSocket, TmuxTarget,
    WorkItemRef,
};
use crate::process::identity::Life;

use super::clear::Cleared;
use super::command::{Scope, Setting, Target, TmuxCommand};
use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::occupant::Occupant;
use super::parse::{MADE, MadePane, fields_of, made};
use super::probe::{Finding, Retained, TICK};
use super::server::{Answer, Invocation, Start, TmuxServer, Unanswered};
use super::{Address, Fence, Machine, Renamed, TmuxRunner};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnPlan {
    /// The name, and what is recorded of the agent that had it before.
    pub address: Address,
    /// The new spawn; its ticket is issued.
    pub owner: OwnerId,
    /// The work item, for people who look at the session's options.
    pub work_item: WorkItemRef,
    /// The delivery whose text the harness starts with.
    pub boot_delivery: Option<DeliveryId>,
    /// The absolute path of this program.
    pub host_binary: PathBuf,
    /// The absolute path of the ticket.
    pub ticket: PathBuf,
    /// The agent's folder, in which windows that a person opens start too.
    pub cwd: PathBuf,
    /// The terminal's width.
    pub columns: u16,
    /// The terminal's height.
    pub rows: u16,
    /// The servers that open sessions recorded on the runner's socket: while one of them runs,
    /// none is started, even where its socket is gone.
    pub recorded_servers: Vec<(BootId, ProcessId)>,
}

/// What became of a spawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnOutcome {
    /// The session is there; whether its harness survives is another question.
    Spawned(SpawnedPane),
    /// The name is held by a live agent, which was not touched (AC3).
    LiveOccupant,
    /// The name is held by something that is not live and would not go (AC8).
    Unclearable(String),
}

/// A session in the moment of its making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnedPane {
    /// The path of its server's socket.
    pub socket: PathBuf,
    /// Its server.
    pub server: ProcessId,
    /// Its id.
    pub session_id: TmuxSessionId,
    /// Its pane.
    pub pane: PaneId,
    /// The pane's process; none when it had ended already.
    pub host: Option<ProcessId>,
}

impl SpawnedPane {
    /// Returns what to register, once the host has recorded its harness.
    #[must_use]
    pub fn target(&self, record: &Record) -> Option<TmuxTarget> {
        Some(TmuxTarget {
            socket: TmuxSocket::Path(self.socket.clone()),
            server: self.server,
            session_id: self.session_id.clone(),
            pane: self.pane.clone(),
            host: record.host,
            harness: record.phase.harness()?,
            boot: record.boot.clone(),
        })
    }
}

/// An occupant that is ours after a crash stands where a spawned pane would.
impl From<&Occupant> for SpawnedPane {
    fn from(occupant: &Occupant) -> Self {
        let target = &occupant.target;
        let socket = match &target.socket {
            TmuxSocket::Path(path) => path.clone(),
            TmuxSocket::Default | TmuxSocket::Name(_) => PathBuf::new(),
        };
        Self {
            socket,
            server: target.server,
            session_id: target.session_id.clone(),
            pane: target.pane.clone(),
            host: Some(target.host),
        }
    }
}

/// What `new-session` came to.
enum Attempt {
    Made(SpawnedPane),
    /// Somebody holds the name, says tmux.
    Duplicate,
    /// The server ended before or while it was asked; nothing was made.
    ServerEnded(String),
}

/// Whether the way is free.
enum Way {
    Free(Start),
    Taken(SpawnOutcome),
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Starts the host of a ticket under the session's name.
    ///
    /// `renamed` hears of each session with a person's live pane that had to give the name up.
    ///
    /// A live occupant is never touched. `duplicate session` is tmux's own answer to a probe that
    /// missed: it is resolved once and retried once, in a straight line (AC5).
    ///
    /// # Errors
    /// When tmux refused, or did not answer: then the session may still be made, and only the ticket
    /// decides whether it starts a harness.
    pub async fn spawn(
        &self,
        plan: &SpawnPlan,
        fence: Fence<'_>,
        renamed: Renamed<'_>,
    ) -> Result<SpawnOutcome, RunnerError> {
        let here = self.here(plan);
        if self.lives_elsewhere(plan)
            && let Way::Taken(outcome) = self.way(&plan.address, plan, fence, renamed).await?
        {
            return Ok(outcome);
        }
        let start = match self.way(&here, plan, fence, renamed).await? {
            Way::Free(start) => start,
            Way::Taken(outcome) => return Ok(outcome),
        };
        let start = match self.attempt(plan, start, fence).await? {
            Attempt::Made(pane) => return Ok(SpawnOutcome::Spawned(pane)),
            Attempt::Duplicate => match self.way_of_taken(&here, fence, renamed).await? {
                Way::Free(_) => Start::Never,
                Way::Taken(outcome) => return Ok(outcome),
            },
            Attempt::ServerEnded(_) => {
                self.servers_end(plan).await;
                match self.way(&here, plan, fence, renamed).await? {
                    Way::Free(start) => start,
                    Way::Taken(outcome) => return Ok(outcome),
                }
            }
        };
        match self.attempt(plan, start, fence).await? {
            Attempt::Made(pane) => Ok(SpawnOutcome::Spawned(pane)),
            Attempt::Duplicate => self.after_second_duplicate(&here).await,
            Attempt::ServerEnded(words) => Err(self.server_ended(start, &words)),
        }
    }

    /// The name on the server where the new session is to live.
    fn here(&self, plan: &SpawnPlan) -> Address {
        let mut here = plan.address.clone();
        if self.lives_elsewhere(plan) {
            here.target = None;
        }
        here
    }

    fn lives_elsewhere(&self, plan: &SpawnPlan) -> bool {
        plan.address.target.as_ref().is_some_and(|target| {
            self.tmux.path_of(&target.socket) != self.tmux.path_of(&self.socket)
        })
    }

    /// Looks whether the name is free, and frees it from what has ended.
    async fn way(
        &self,
        address: &Address,
        plan: &SpawnPlan,
        fence: Fence<'_>,
        renamed: Renamed<'_>,
    ) -> Result<Way, RunnerError> {
        match self.look(address).await {
            Finding::NameFree => Ok(Way::Free(self.may_start(plan))),
            Finding::Live(_) => Ok(Way::Taken(SpawnOutcome::LiveOccupant)),
            Finding::Retained(retained) => {
                let taken = self.freed(address, &retained, fence, renamed).await?;
                Ok(taken.map_or_else(|| Way::Free(self.may_start(plan)), Way::Taken))
            }
            // tmux refuses a taken name by itself, so a running server may decide. An agent that
            // was recorded before must be proved gone, which silence does not do.
            Finding::Unknown(why) if why.is_silence() && plan.address.target.is_none() => {
                Ok(Way::Free(Start::Never))
            }
            Finding::Unknown(why) => Err(why.into()),
        }
    }

    /// The same after tmux said that the name is taken: now the unknown counts as live, unless it is
    /// what a creation that was given up left behind.
    async fn way_of_taken(
        &self,
        address: &Address,
        fence: Fence<'_>,
        renamed: Renamed<'_>,
    ) -> Result<Way, RunnerError> {
        match self.look(address).await {
            Finding::NameFree => Ok(Way::Free(Start::Never)),
            Finding::Unknown(why @ Unanswered::GivenUp { .. }) => Err(why.into()),
            Finding::Live(_) | Finding::Unknown(_) => Ok(Way::Taken(SpawnOutcome::LiveOccupant)),
            Finding::Retained(retained) => {
                let taken = self.freed(address, &retained, fence, renamed).await?;
                Ok(taken.map_or(Way::Free(Start::Never), Way::Taken))
            }
        }
    }

    /// Frees the name from what has ended; what holds it where that is not possible.
    async fn freed(
        &self,
        address: &Address,
        retained: &Retained,
        fence: Fence<'_>,
        renamed: Renamed<'_>,
    ) -> Result<Option<SpawnOutcome>, RunnerError> {
        Ok(match self.clear_retained(address, retained, fence).await? {
            Cleared::Free => None,
            Cleared::SetAside(to) => {
                renamed(&to);
                None
            }
            Cleared::LiveOccupant => Some(SpawnOutcome::LiveOccupant),
            Cleared::Unclearable(why) => Some(SpawnOutcome::Unclearable(why)),
        })
    }

    async fn after_second_duplicate(&self, here: &Address) -> Result<SpawnOutcome, RunnerError> {
        match self.look(here).await {
            Finding::Unknown(why @ Unanswered::GivenUp { .. }) => Err(why.into()),
            Finding::Live(_) | Finding::Unknown(_) => Ok(SpawnOutcome::LiveOccupant),
            Finding::Retained(_) => Ok(SpawnOutcome::Unclearable(
                "a session came back under the name twice".to_owned(),
            )),
            Finding::NameFree => Err(RunnerError::Refused {
                doing: "make the session",
                words: "duplicate session, twice, under a name that is free now".to_owned(),
            }),
        }
    }

    fn may_start(&self, plan: &SpawnPlan) -> Start {
        let gone =
            |(boot, server): &(BootId, ProcessId)| self.machine.life(boot, server) == Life::Gone;
        if plan.recorded_servers.iter().all(gone) {
            Start::Allowed
        } else {
            Start::Never
        }
    }

    /// Waits a moment for recorded servers that nobody reaches any more to end.
    async fn servers_end(&self, plan: &SpawnPlan) {
        let give_up = Instant::now() + self.limits.socket;
        while self.may_start(plan) == Start::Never && Instant::now() < give_up {
            sleep(TICK).await;
        }
    }

    async fn attempt(
        &self,
        plan: &SpawnPlan,
        start: Start,
        fence: Fence<'_>,
    ) -> Result<Attempt, RunnerError> {
        self.see_that_it_survives().await?;
        let answer = self.change(&self.creating(plan, start), fence).await?;
        if let Some(pane) = made(&answer) {
            return self.verified(plan, &answer, pane).map(Attempt::Made);
        }
        if answer.words.starts_with("duplicate session") {
            return Ok(Attempt::Duplicate);
        }
        // A server ends with its last session, so clearing a name may take it away; another process
        // may have started its successor by now.
        if answer.reached_nobody() {
            return Ok(Attempt::ServerEnded(answer.words));
        }
        if answer.status == 0 {
            return Err(RunnerError::Unanswered(Unanswered::NoVerdict {
                detail: format!("no session was printed: {:?}", answer.words),
            }));
        }
        Err(RunnerError::refused("make the session", &answer))
    }

    /// The session and its options in one go, so that none is ever seen without the others.
    fn creating(&self, plan: &SpawnPlan, start: Start) -> Invocation {
        let name = Target::Name(plan.address.name.clone());
        let set = |scope, setting| TmuxCommand::SetOption {
            target: name.clone(),
            scope,
            setting,
        };
        let ours = |option, value: String| set(Scope::Session, Setting::Ours(option, value));
        let mut commands = vec![
            TmuxCommand::NewSession {
                name: plan.address.name.clone(),
                columns: plan.columns,
                rows: plan.rows,
                print: MADE.to_vec(),
                program: vec![
                    plan.host_binary.clone().into(),
                    "host".into(),
                    plan.ticket.clone().into(),
                ],
            },
            // A delivery needs both: what has an owner has a clock.
            ours(OptionName::Epoch, "%s".to_owned()),
            ours(OptionName::Owner, plan.owner.to_string()),
            set(
                Scope::Pane,
                Setting::Shown(OptionName::Host, Field::PanePid),
            ),
            // A person's configuration must not end the session for having no client.
            set(Scope::Session, Setting::Native("destroy-unattached", "off")),
            set(Scope::Server, Setting::Native("exit-unattached", "off")),
            // Pasting into a dead pane, and attaching to one, crash tmux 3.3a: the host keeps the
            // screen instead.
            set(Scope::Window, Setting::Native("remain-on-exit", "off")),
            // A full-screen program leaves its last screen, and a small client does not reflow it.
            set(Scope::Window, Setting::Native("alternate-screen", "off")),
            set(Scope::Window, Setting::Native("window-size", "manual")),
            ours(OptionName::WorkItem, plan.work_item.to_string()),
        ];
        if let Some(delivery) = plan.boot_delivery {
            commands.push(ours(OptionName::Token(delivery), "boot".to_owned()));
        }
        commands.push(TmuxCommand::DisplayMessage {
            target: Some(name.clone()),
            marker: Marker::Ready,
            fields: vec![Field::Option(OptionName::Owner), Field::SessionName],
        });
        Invocation {
            start,
            folder: Some(plan.cwd.clone()),
            ..self.invocation(&self.socket, commands)
        }
    }

    /// tmux may keep a name differently than it was given, or end a session at once: both are read
    /// back before the session counts as made.
    fn verified(
        &self,
        plan: &SpawnPlan,
        answer: &Answer,
        pane: MadePane,
    ) -> Result<SpawnedPane, RunnerError> {
        let ready = fields_of(answer, Marker::Ready, 2).next();
        if ready != Some(vec![plan.owner.as_str(), plan.address.name.as_str()]) {
            return Err(RunnerError::refused("set up the session", answer));
        }
        let server = self.machine.identify(pane.server);
        Ok(SpawnedPane {
            socket: pane.socket,
            server: server.ok_or_else(|| Unanswered::NoVerdict {
                detail: "the server ended in this moment".to_owned(),
            })?,
            session_id: pane.session,
            pane: pane.pane,
            host: self.machine.identify(pane.pid),
        })
    }
}
