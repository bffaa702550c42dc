//! Telling a live session from a dead one, and both from what nobody knows.
//!
//! One question to tmux shows every pane; the host's record and the process table are the other
//! witnesses. Dead needs positive evidence from each; whatever lacks it is unknown.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::model::{Phase, Record, TmuxSocket, TmuxTarget};
use crate::planted::{Planted, is_planted};
use crate::process::identity::Life;
use crate::process::signal::Signal;

use super::command::TmuxCommand;
use super::parse::{SeenPane, Snapshot, snapshot, snapshot_question};
use super::server::{Answer, Listener, TmuxServer, Unanswered};
use super::{Address, Machine, TmuxRunner};

/// How often a file or socket that another process is about to make is looked for.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A harness runs in the session.
    Live,
    /// It is proved that none does.
    Dead(Remains),
    /// Nothing certain is known; neither spawn nor kill.
    Unknown(Unanswered),
}

/// What a dead session left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Nothing: the name is free.
    NameFree,
    /// The session, with every harness in it ended.
    Retained,
}

/// What a probe found, with what it takes to act on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    Live(Living),
    Retained(Retained),
    NameFree,
    Unknown(Unanswered),
}

/// A session in which a harness runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Living {
    pub(super) server: i32,
    pub(super) socket: std::path::PathBuf,
    pub(super) pane: SeenPane,
    pub(super) hosted: bool,
    pub(super) record: Option<Box<Record>>,
}

/// A session in which every harness has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Retained {
    pub(super) snapshot: Snapshot,
    pub(super) panes: Vec<SeenPane>,
    pub(super) company: Company,
}

/// Whether people's own panes still run beside an ended harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    None,
    Live,
}

/// A first look, which may need something done before it is a verdict.
enum Look {
    Finding(Finding),
    /// The recorded server runs, but nobody listens at its socket.
    SocketLost(TmuxTarget),
    /// An end that shows in a moment; why nothing is known should it not.
    EndPending(Unanswered),
}

/// Who answered.
enum Seen {
    Server(Snapshot),
    NoServer,
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Tells whether a harness runs in the session.
    ///
    /// [`Probe::Dead`] is proved by tmux itself, by the record of the host and by the process table;
    /// an answer that does not come is [`Probe::Unknown`] (AC1).
    pub async fn probe(&self, address: &Address) -> Probe {
        match self.look(address).await {
            Finding::Live(_) => Probe::Live,
            Finding::Retained(_) => Probe::Dead(Remains::Retained),
            Finding::NameFree => Probe::Dead(Remains::NameFree),
            Finding::Unknown(why) => Probe::Unknown(why),
        }
    }

    pub(super) async fn look(&self, address: &Address) -> Finding {
        match self.look_on(self.socket_of(address), address).await {
            Finding::Unknown(_) if is_planted(Planted::UnknownIsDead) => Finding::NameFree,
            finding => finding,
        }
    }

    pub(super) async fn look_on(&self, socket: &TmuxSocket, address: &Address) -> Finding {
        match self.look_once(socket, address).await {
            Look::Finding(verdict) => verdict,
            Look::SocketLost(target) => {
                if !self.socket_comes_back(&target).await {
                    return Finding::Unknown(self.socket_lost(&target));
                }
                match self.look_once(socket, address).await {
                    Look::Finding(verdict) => verdict,
                    Look::SocketLost(target) => Finding::Unknown(self.socket_lost(&target)),
                    Look::EndPending(why) => Finding::Unknown(why),
                }
            }
            Look::EndPending(why) => self.look_until_ended(socket, address, why).await,
        }
    }

    /// A host records the end of its harness within milliseconds, and ends as soon when it has none
    /// to start; until then the pane looks alive.
    async fn look_until_ended(
        &self,
        socket: &TmuxSocket,
        address: &Address,
        why: Unanswered,
    ) -> Finding {
        let give_up = Instant::now() + self.limits.record;
        while Instant::now() < give_up {
            sleep(TICK).await;
            match self.look_once(socket, address).await {
                Look::Finding(verdict) => return verdict,
                Look::EndPending(_) => {}
                Look::SocketLost(target) => return Finding::Unknown(self.socket_lost(&target)),
            }
        }
        Finding::Unknown(why)
    }

    async fn look_once(&self, socket: &TmuxSocket, address: &Address) -> Look {
        let answer = self.ask(socket, snapshot_question()).await;
        match answer.and_then(|answer| read(&answer)) {
            Err(why) => Look::Finding(Finding::Unknown(why)),
            Ok(Seen::NoServer) => self.without_server(address),
            Ok(Seen::Server(snapshot)) => self.with_server(address, snapshot),
        }
    }

    fn without_server(&self, address: &Address) -> Look {
        let Some(target) = &address.target else {
            return Look::Finding(self.unless_running(address, Finding::NameFree));
        };
        match self.machine.life(&target.boot, &target.server) {
            Life::Gone => Look::Finding(self.unless_running(address, Finding::NameFree)),
            Life::Running => Look::SocketLost(target.clone()),
            Life::Unknown => Look::Finding(Finding::Unknown(Unanswered::Undecidable {
                process: target.server,
            })),
        }
    }

    fn with_server(&self, address: &Address, snapshot: Snapshot) -> Look {
        if let Some(target) = &address.target
            && target.server.pid != snapshot.server
            && self.machine.life(&target.boot, &target.server) != Life::Gone
        {
            return Look::Finding(Finding::Unknown(Unanswered::AnotherServer {
                recorded: target.server,
                found: snapshot.server,
            }));
        }
        let is_named = |pane: &&SeenPane| pane.name == address.name.as_str();
        let named = || snapshot.panes.iter().filter(is_named);
        let Some(first) = named().next() else {
            return Look::Finding(self.unless_running(address, Finding::NameFree));
        };
        let is_its_own = |pane: &&SeenPane| snapshot.shown_from(pane).is_none();
        let panes: Vec<SeenPane> = named().filter(is_its_own).cloned().collect();
        match snapshot.shown_from(first) {
            Some(session) if panes.is_empty() => {
                let session = session.to_owned();
                Look::Finding(Finding::Unknown(Unanswered::ViewOfAnother { session }))
            }
            _ => self.judge(address, snapshot, panes),
        }
    }

    /// A name is not free, and a session not over, while the recorded harness runs.
    fn unless_running(&self, address: &Address, verdict: Finding) -> Finding {
        for (process, life) in self.harnesses(address) {
            match life {
                Life::Gone => {}
                Life::Running => {
                    return Finding::Unknown(Unanswered::AgentOutlivesSession { harness: process });
                }
                Life::Unknown => return Finding::Unknown(Unanswered::Undecidable { process }),
            }
        }
        verdict
    }

    /// Decides about a session that is there.
    ///
    /// A session made by us has a host's pane, and only that one can hold a harness, wherever a person
    /// has moved it. In any other session each living pane may be one, the recorded one before the one
    /// in front, unless the session is ours and its harness proved gone.
    fn judge(&self, address: &Address, snapshot: Snapshot, panes: Vec<SeenPane>) -> Look {
        let mut hosted = false;
        for pane in &panes {
            let record = pane.owner.as_ref().and_then(|o| self.machine.record(o));
            if !is_host(pane, record.as_ref()) {
                continue;
            }
            hosted = true;
            if let Some(look) = self.judge_host(&snapshot, pane, record) {
                return look;
            }
        }
        let made_by = panes
            .iter()
            .find_map(|pane| self.machine.record(pane.owner.as_ref()?));
        if let Some(record) = &made_by
            && !hosted
            && let Some(why) = self.runs_elsewhere(record)
        {
            return Look::Finding(Finding::Unknown(why));
        }
        // What a person started in the agent's own pane may be the agent again.
        let may_be_agent = |pane: &SeenPane| {
            !pane.dead
                && made_by
                    .as_ref()
                    .is_none_or(|record| record.pane == pane.pane)
        };
        let recorded = address.target.as_ref().map(|target| target.host.pid);
        let person = panes
            .iter()
            .filter(|pane| !hosted && may_be_agent(pane))
            .max_by_key(|pane| (recorded.is_some() && pane.pid == recorded, pane.in_front));
        if let Some(pane) = person
            && !self.is_ours_and_over(address, pane)
        {
            return Look::Finding(Finding::Live(Living {
                server: snapshot.server,
                socket: snapshot.socket,
                pane: pane.clone(),
                hosted: false,
                record: None,
            }));
        }
        let company = if panes.iter().any(|pane| !pane.dead && !self.hosts(pane)) {
            Company::Live
        } else {
            Company::None
        };
        Look::Finding(self.unless_running(
            address,
            Finding::Retained(Retained {
                snapshot,
                panes,
                company,
            }),
        ))
    }

    /// Tells what runs of a spawn whose host's pane is no longer in its session.
    fn runs_elsewhere(&self, record: &Record) -> Option<Unanswered> {
        let process = record.phase.harness().unwrap_or(record.host);
        match self.machine.life(&record.boot, &process) {
            Life::Gone => None,
            Life::Running => Some(Unanswered::AgentOutlivesSession { harness: process }),
            Life::Unknown => Some(Unanswered::Undecidable { process }),
        }
    }

    fn hosts(&self, pane: &SeenPane) -> bool {
        let record = pane.owner.as_ref().and_then(|o| self.machine.record(o));
        is_host(pane, record.as_ref())
    }

    /// Decides about a host's pane; `None` when its harness has ended for sure.
    fn judge_host(
        &self,
        snapshot: &Snapshot,
        pane: &SeenPane,
        record: Option<Record>,
    ) -> Option<Look> {
        let recorded_end = record
            .as_ref()
            .is_some_and(|record| matches!(record.phase, Phase::Ended { .. }));
        let ended = pane.dead || pane.ended || recorded_end;
        let harness = record.as_ref().and_then(|record| {
            let harness = record.phase.harness()?;
            Some((harness, self.machine.life(&record.boot, &harness)))
        });
        match (ended, harness) {
            (true, None | Some((_, Life::Gone))) => None,
            (true, Some((harness, Life::Running))) => Some(Look::Finding(Finding::Unknown(
                Unanswered::AgentOutlivesSession { harness },
            ))),
            (true, Some((process, Life::Unknown))) => {
                Some(Look::Finding(Finding::Unknown(Unanswered::Undecidable {
                    process,
                })))
            }
            (false, Some((harness, Life::Gone))) => {
                Some(Look::EndPending(Unanswered::EndUnrecorded { harness }))
            }
            (false, None) if self.starts_nothing(pane) => {
                Some(Look::EndPending(Unanswered::GivenUp {
                    pane: pane.pane.clone(),
                }))
            }
            (false, _) => Some(Look::Finding(Finding::Live(Living {
                server: snapshot.server,
                socket: snapshot.socket.clone(),
                pane: pane.clone(),
                hosted: true,
                record: record.map(Box::new),
            }))),
        }
    }

    /// Tells whether a host without a record has no ticket to take either.
    fn starts_nothing(&self, pane: &SeenPane) -> bool {
        let owner = pane.owner.as_ref();
        owner.is_some_and(|owner| {
            self.machine.record(owner).is_none() && self.machine.is_given_up(owner)
        })
    }

    fn is_ours_and_over(&self, address: &Address, pane: &SeenPane) -> bool {
        let harnesses = self.harnesses(address);
        pane.owner.is_some()
            && pane.owner == address.owner
            // What was adopted has no host of ours: its pane is its harness.
            && !harnesses.iter().any(|(harness, _)| Some(harness.pid) == pane.pid)
            && !harnesses.is_empty()
            && harnesses.iter().all(|(_, life)| *life == Life::Gone)
    }

    /// Asks the recorded server to make its socket again, and waits until somebody listens there, or
    /// the server has ended.
    ///
    /// Only while nobody does: tmux would take the path away from another server.
    async fn socket_comes_back(&self, target: &TmuxTarget) -> bool {
        if self.machine.boot() != target.boot {
            return false;
        }
        if let Err(error) = self.machine.signal(&target.server, Signal::User1) {
            tracing::debug!(%error, "asking a tmux server for its socket");
            return false;
        }
        let give_up = Instant::now() + self.limits.socket;
        while Instant::now() < give_up {
            sleep(TICK).await;
            let answer = self.ask(&target.socket, snapshot_question()).await;
            match answer.and_then(|answer| read(&answer)) {
                Ok(Seen::Server(_)) => return true,
                // It may have been about to end.
                Ok(Seen::NoServer) => {
                    if self.machine.life(&target.boot, &target.server) == Life::Gone {
                        return true;
                    }
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Asks the recorded server; nothing where it is gone. One that lost its socket is asked to make it
    /// again.
    ///
    /// # Errors
    /// When it does not answer, or cannot be reached.
    pub(super) async fn ask_recorded(
        &self,
        target: &TmuxTarget,
        question: TmuxCommand,
    ) -> Result<Option<Answer>, Unanswered> {
        let ask = || self.ask(&target.socket, vec![question.clone()]);
        let is_gone = || self.machine.life(&target.boot, &target.server) == Life::Gone;
        let mut answer = ask().await?;
        if answer.listener == Listener::Absent && !is_gone() && self.socket_comes_back(target).await
        {
            answer = ask().await?;
        }
        match answer.listener {
            Listener::Present => Ok(Some(answer)),
            Listener::Absent if is_gone() => Ok(None),
            Listener::Absent => Err(self.socket_lost(target)),
        }
    }

    fn socket_lost(&self, target: &TmuxTarget) -> Unanswered {
        Unanswered::SocketLost {
            server: target.server,
            socket: self.tmux.path_of(&target.socket),
        }
    }
}

/// The record decides where there is one; a pane option of a hook's making cannot contradict it.
fn is_host(pane: &SeenPane, record: Option<&Record>) -> bool {
    record.map_or(pane.hosted, |record| Some(record.host.pid) == pane.pid)
}

fn read(answer: &Answer) -> Result<Seen, Unanswered> {
    if answer.listener == Listener::Absent {
        return Ok(Seen::NoServer);
    }
    if answer.status != 0 && answer.output.is_empty() {
        return Err(Unanswered::Unreachable {
            words: answer.words.clone(),
        });
    }
    snapshot(answer).map(Seen::Server)
}
