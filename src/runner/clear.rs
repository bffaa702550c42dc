//! Freeing a name whose every harness has ended.
//!
//! Killing is decided by tmux itself, on what is true in that moment; what was seen before only
//! chooses the command. A person's own pane is never killed: its session is renamed instead.

use crate::model::{Ending, Phase};

use super::command::{KeptName, Scope, Setting, Target, TmuxCommand};
use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::guard::Guard;
use super::parse::{SeenPane, fields_of, said};
use super::probe::{Company, Finding, Retained};
use super::server::{Answer, TmuxServer, Unanswered};
use super::{Address, Fence, Machine, TmuxRunner};

/// What became of a name that was to be freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleared {
    /// It is free; verified.
    Free,
    /// It is free: the session, with a person's live pane in it, has this name now.
    SetAside(String),
    /// A harness lives there; nothing was touched.
    LiveOccupant,
    /// tmux answered, and the name is still taken.
    Unclearable(String),
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Frees the session's name when every harness in the session has ended, and verifies it (AC4).
    ///
    /// # Errors
    /// When nothing certain is known; the name may then be freed late.
    pub async fn clear(&self, address: &Address, fence: Fence<'_>) -> Result<Cleared, RunnerError> {
        match self.look(address).await {
            Finding::Live(_) => Ok(Cleared::LiveOccupant),
            Finding::NameFree => Ok(Cleared::Free),
            Finding::Unknown(why) => Err(why.into()),
            Finding::Retained(retained) => self.clear_retained(address, &retained, fence).await,
        }
    }

    pub(super) async fn clear_retained(
        &self,
        address: &Address,
        retained: &Retained,
        fence: Fence<'_>,
    ) -> Result<Cleared, RunnerError> {
        let kept = match retained.company {
            Company::None => None,
            Company::Live => Some(free_kept_name(address, retained)),
        };
        let commands = self.clearing(retained, kept.as_ref());
        let invocation = self.invocation(self.socket_of(address), commands);
        let answer = self.change(&invocation, fence).await?;
        // Whatever was said: what is there now decides.
        match self.look(address).await {
            Finding::NameFree => Ok(match kept {
                Some(kept) if said(&answer, Marker::Done) => Cleared::SetAside(kept.to_string()),
                _ => Cleared::Free,
            }),
            Finding::Live(_) => Ok(Cleared::LiveOccupant),
            // Nobody was asked to clear it: its server had lost its socket in that moment.
            Finding::Retained(_) if answer.reached_nobody() || is_anothers(&answer, retained) => {
                let detail = format!("its server was not asked: {}", answer.words);
                Err(Unanswered::NoVerdict { detail }.into())
            }
            Finding::Retained(_) => Ok(Cleared::Unclearable(complaint(&answer))),
            Finding::Unknown(why) => Err(why.into()),
        }
    }

    fn clearing(&self, retained: &Retained, kept: Option<&KeptName>) -> Vec<TmuxCommand> {
        let mut commands = self.missing_exits(retained);
        let Some(session) = retained.panes.first().map(|pane| pane.session.clone()) else {
            return commands;
        };
        let (ended, action) = match kept {
            None => (
                Guard::EveryPaneEnded,
                TmuxCommand::KillSession(session.clone()),
            ),
            Some(kept) => (
                Guard::EveryHostEnded,
                TmuxCommand::RenameSession {
                    session: session.clone(),
                    to: kept.clone(),
                },
            ),
        };
        let print = |marker| TmuxCommand::DisplayMessage {
            target: None,
            marker,
            fields: vec![Field::ServerPid],
        };
        commands.push(TmuxCommand::IfShell {
            target: Target::Session(session.clone()),
            guard: Guard::All(vec![Guard::session(&session), ended]),
            then: vec![action, print(Marker::Done)],
            otherwise: vec![print(Marker::Refused)],
        });
        commands
    }

    /// Says in tmux what only the record knows, where a host could not: the guard reads tmux.
    fn missing_exits(&self, retained: &Retained) -> Vec<TmuxCommand> {
        retained
            .panes
            .iter()
            .filter(|pane| !pane.dead && !pane.ended)
            .filter_map(|pane| {
                let record = self.machine.record(pane.owner.as_ref()?)?;
                let Phase::Ended { ending, .. } = &record.phase else {
                    return None;
                };
                let host = pane.pid.filter(|pid| *pid == record.host.pid)?;
                Some(note_exit(pane, host, ending))
            })
            .collect()
    }
}

fn note_exit(pane: &SeenPane, host: i32, ending: &Ending) -> TmuxCommand {
    let target = Target::Pane(pane.session.clone(), pane.pane.clone());
    TmuxCommand::IfShell {
        target: target.clone(),
        guard: Guard::Is(Field::PanePid, host.to_string()),
        then: vec![TmuxCommand::SetOption {
            target,
            scope: Scope::Pane,
            setting: Setting::Ours(OptionName::Exit, format!("{host} {ending}")),
        }],
        otherwise: Vec::new(),
    }
}

/// Tells whether another server, which listened there for a moment, refused.
fn is_anothers(answer: &Answer, retained: &Retained) -> bool {
    let server = retained.snapshot.server.to_string();
    fields_of(answer, Marker::Refused, 1).any(|words| words != [server.as_str()])
}

fn free_kept_name(address: &Address, retained: &Retained) -> KeptName {
    let mut kept = KeptName {
        name: address.name.clone(),
        number: 1,
    };
    while retained
        .snapshot
        .panes
        .iter()
        .any(|pane| pane.name == kept.to_string())
    {
        kept.number += 1;
    }
    kept
}

fn complaint(answer: &Answer) -> String {
    if said(answer, Marker::Done) {
        "the session was ended, but one came back under its name at once".to_owned()
    } else if said(answer, Marker::Refused) {
        "a pane of the session is neither ended nor a live agent to tmux".to_owned()
    } else {
        format!("tmux says: {}", answer.words)
    }
}
