//! Who is in a session, and giving an occupant that is not ours what a delivery needs.

use crate::model::{OwnerId, TmuxSocket, TmuxTarget, WorkItemRef};

use super::command::{Scope, Setting, Target, TmuxCommand, pane_of};
use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::guard::Guard;
use super::parse::{SeenPane, said, snapshot, snapshot_question};
use super::probe::{Finding, Living};
use super::server::{Listener, TmuxServer, Unanswered};
use super::{Address, Fence, Machine, TmuxRunner};

/// The one who runs in a session; everything is from one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// Where it runs, ready to be registered.
    pub target: TmuxTarget,
    /// The spawn that made it; none when it was not made by us.
    pub owner: Option<OwnerId>,
    /// What it is.
    pub kind: OccupantKind,
    /// The pane's foreground program.
    pub foreground: String,
}

/// What an occupant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccupantKind {
    /// A harness of a host of ours.
    Hosted,
    /// A program that a person, or something else, started.
    Foreign,
}

/// A session of ours, as `list` found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name; with `+kept` when it was moved aside.
    pub name: String,
    /// Its work item, when the name is one that we mint.
    pub work_item: Option<WorkItemRef>,
    /// The spawn that made it.
    pub owner: Option<OwnerId>,
    /// How many clients look at it.
    pub attached: u32,
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Returns who lives in the session; none when it is proved dead.
    ///
    /// # Errors
    /// When nothing certain is known.
    pub async fn occupant(&self, address: &Address) -> Result<Option<Occupant>, Unanswered> {
        self.occupant_on(self.socket_of(address), address).await
    }

    /// Returns who lives in the session on this server, whatever the configuration names now.
    ///
    /// # Errors
    /// When nothing certain is known.
    pub async fn occupant_on(
        &self,
        socket: &TmuxSocket,
        address: &Address,
    ) -> Result<Option<Occupant>, Unanswered> {
        match self.look_on(socket, address).await {
            Finding::Live(living) => self.occupant_of(living).map(Some),
            Finding::Retained(_) | Finding::NameFree => Ok(None),
            Finding::Unknown(why) => Err(why),
        }
    }

    pub(super) fn occupant_of(&self, living: Living) -> Result<Occupant, Unanswered> {
        let vanished = |what: &str| Unanswered::NoVerdict {
            detail: format!("{what} ended in this moment"),
        };
        let server = self.machine.identify(living.server);
        let server = server.ok_or_else(|| vanished("the server"))?;
        let host = living.pane.pid.and_then(|pid| self.machine.identify(pid));
        let host = host.ok_or_else(|| vanished("the pane's process"))?;
        let harness = match &living.record {
            Some(record) => record
                .phase
                .harness()
                .ok_or_else(|| Unanswered::NoVerdict {
                    detail: "its agent is about to be started".to_owned(),
                })?,
            None => host,
        };
        Ok(Occupant {
            target: TmuxTarget {
                socket: TmuxSocket::Path(living.socket),
                server,
                session_id: living.pane.session,
                pane: living.pane.pane,
                host,
                harness,
                boot: self.machine.boot(),
            },
            owner: living.pane.owner,
            kind: if living.hosted {
                OccupantKind::Hosted
            } else {
                OccupantKind::Foreign
            },
            foreground: living.pane.foreground,
        })
    }

    /// Gives an occupant without our options the ones that a delivery needs.
    ///
    /// # Errors
    /// [`RunnerError::Changed`] when it has an owner by now, or is another one.
    pub async fn adopt_options(
        &self,
        occupant: &Occupant,
        owner: &OwnerId,
        work_item: &WorkItemRef,
        fence: Fence<'_>,
    ) -> Result<(), RunnerError> {
        let target = &occupant.target;
        let session = Target::Session(target.session_id.clone());
        let set = |name, value: String| TmuxCommand::SetOption {
            target: session.clone(),
            scope: Scope::Session,
            setting: Setting::Ours(name, value),
        };
        let print = |marker| TmuxCommand::DisplayMessage {
            target: Some(session.clone()),
            marker,
            fields: vec![Field::Option(OptionName::Owner)],
        };
        let adopt = TmuxCommand::IfShell {
            target: pane_of(target),
            guard: Guard::All(vec![
                Guard::session(&target.session_id),
                Guard::Is(Field::PanePid, target.host.pid.to_string()),
                Guard::Unset(OptionName::Owner),
            ]),
            then: vec![
                set(OptionName::Epoch, "%s".to_owned()),
                set(OptionName::WorkItem, work_item.to_string()),
                set(OptionName::Owner, owner.to_string()),
                print(Marker::Done),
            ],
            otherwise: vec![print(Marker::Refused)],
        };
        let invocation = self.invocation(&target.socket, vec![adopt]);
        let answer = self.change(&invocation, fence).await?;
        if said(&answer, Marker::Done) {
            return Ok(());
        }
        if said(&answer, Marker::Refused) {
            return Err(RunnerError::Changed {
                detail: "it has another owner or another program by now".to_owned(),
            });
        }
        Err(RunnerError::refused("adopt a session", &answer))
    }

    /// Lists the sessions on a server whose names begin with `loop-`; none without a server.
    ///
    /// # Errors
    /// When nothing certain is known.
    pub async fn list(&self, socket: &TmuxSocket) -> Result<Vec<Listed>, Unanswered> {
        let answer = self.ask(socket, snapshot_question()).await?;
        if answer.listener == Listener::Absent {
            return Ok(Vec::new());
        }
        let mut all: Vec<Listed> = Vec::new();
        for pane in snapshot(&answer)?.panes {
            let known = all.iter().any(|listed| listed.name == pane.name);
            if pane.name.starts_with("loop-") && !known {
                all.push(listed(pane));
            }
        }
        Ok(all)
    }
}

fn listed(pane: SeenPane) -> Listed {
    Listed {
        work_item: WorkItemRef::of_session(&pane.name),
        name: pane.name,
        owner: pane.owner,
        attached: pane.attached,
    }
}
