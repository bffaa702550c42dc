//! Pressing Enter after a paste, once per paste.
//!
//! Agents lose an Enter that arrives in the same read as the text, so tmux presses it later by
//! itself. `@loop_enter` stays set until it was pressed; nothing else is pasted before. For a
//! person's pane `@loop_enter_program` says what was pasted into: nothing else gets the Enter.

use std::time::Duration;

use crate::model::{DeliveryId, HoldReason, OwnerId, TmuxTarget};
use crate::process::identity::Life;

use super::command::{Scope, Setting, Target, TmuxCommand};

use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::guard::Guard;
use super::parse::{fields_of, said};
use super::paste::{Modes, Seat};
use super::server::{TmuxServer, Unanswered};
use super::{Address, Fence, Machine, TmuxRunner};

/// Whether the text of a delivery was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterState {
    /// Its Enter is not outstanding, or whoever it is for has ended.
    Settled,
    /// Its Enter is outstanding, and this is what it waits for.
    Pending(HoldReason),
}

/// An Enter that tmux has not pressed yet.
struct Outstanding {
    in_mode: bool,
    /// What was pasted into, where that is a person's program.
    program: Option<String>,
    /// What runs there now.
    foreground: String,
}

/// Presses Enter in a while, whatever becomes of us, if nothing has changed by then.
pub(super) fn delayed_enter(seat: &Seat<'_>, delivery: DeliveryId, delay: Duration) -> TmuxCommand {
    TmuxCommand::RunShellDelayed {
        delay,
        commands: vec![press(seat, delivery, Modes::Refuse, Vec::new(), Vec::new())],
    }
}

fn press(
    seat: &Seat<'_>,
    delivery: DeliveryId,
    modes: Modes,
    done: Vec<TmuxCommand>,
    otherwise: Vec<TmuxCommand>,
) -> TmuxCommand {
    let pane = &seat.target.pane;
    let mut guards = seat.guards(modes);
    guards.push(is_outstanding(delivery));
    let mut then = Vec::new();
    if matches!(modes, Modes::Leave { .. }) {
        then.push(TmuxCommand::LeaveModes(pane.clone()));
    }
    then.push(TmuxCommand::SendEnter(pane.clone()));
    then.extend(forget(seat.target));
    then.extend(done);
    TmuxCommand::IfShell {
        target: Target::Pane(pane.clone()),
        guard: Guard::All(guards),
        then,
        otherwise,
    }
}

/// Gives an Enter up: its program has left the pane, so that nobody can be asked for it.
fn give_up(target: &TmuxTarget, owner: &OwnerId, delivery: DeliveryId) -> TmuxCommand {
    let mut then = Vec::from(forget(target));
    then.push(print(Marker::Done));
    TmuxCommand::IfShell {
        target: Target::Session(target.session_id.clone()),
        guard: Guard::All(vec![
            Guard::session(&target.session_id),
            Guard::owner(owner),
            is_outstanding(delivery),
        ]),
        then,
        otherwise: vec![print(Marker::Refused)],
    }
}

fn is_outstanding(delivery: DeliveryId) -> Guard {
    Guard::Is(Field::Option(OptionName::Enter), delivery.to_string())
}

fn forget(target: &TmuxTarget) -> [TmuxCommand; 2] {
    [OptionName::Enter, OptionName::EnterProgram].map(|option| TmuxCommand::SetOption {
        target: Target::Session(target.session_id.clone()),
        scope: Scope::Session,
        setting: Setting::Unset(option),
    })
}

fn print(marker: Marker) -> TmuxCommand {
    TmuxCommand::DisplayMessage {
        target: None,
        marker,
        fields: Vec::new(),
    }
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Presses the Enter of `due` if it is still outstanding, and no other: `due` was pasted at least
    /// twice the submit gap ago, so that its text has arrived.
    ///
    /// # Errors
    /// When tmux does not answer or refuses.
    pub async fn settle_enter(
        &self,
        address: &Address,
        due: DeliveryId,
        fence: Fence<'_>,
    ) -> Result<EnterState, RunnerError> {
        let (Some(target), Some(owner)) = (&address.target, &address.owner) else {
            return Ok(EnterState::Settled);
        };
        // Nobody is left to read it, and tmux may know no such pane any more.
        if self.machine.life(&target.boot, &target.harness) == Life::Gone {
            return Ok(EnterState::Settled);
        }
        let Some(seen) = self.outstanding(target, owner, due).await? else {
            return Ok(EnterState::Settled);
        };
        let left = seen.program.as_ref().is_some_and(|p| *p != seen.foreground);
        let command = if left {
            tracing::warn!(
                session = %address.name,
                delivery = %due,
                "what was pasted into has left the pane before its Enter, which is not pressed"
            );
            give_up(target, owner, due)
        } else {
            let modes = match seen.in_mode {
                false => Modes::Refuse,
                true => match self.unattended(target).await? {
                    Some(attached) => Modes::Leave { attached },
                    None => return Ok(EnterState::Pending(HoldReason::PaneInMode)),
                },
            };
            let seat = Seat {
                target,
                owner,
                foreground: seen.program.as_deref(),
            };
            let (done, refused) = (print(Marker::Done), print(Marker::Refused));
            press(&seat, due, modes, vec![done], vec![refused])
        };
        let invocation = self.invocation(&target.socket, vec![command]);
        let answer = self.change(&invocation, fence).await?;
        if said(&answer, Marker::Done) {
            return Ok(EnterState::Settled);
        }
        if !said(&answer, Marker::Refused) {
            return Err(RunnerError::refused("press Enter", &answer));
        }
        // tmux may have pressed it in between.
        Ok(match self.outstanding(target, owner, due).await? {
            None => EnterState::Settled,
            Some(seen) if seen.in_mode => EnterState::Pending(HoldReason::PaneInMode),
            Some(_) => EnterState::Pending(HoldReason::EnterPending),
        })
    }

    /// Returns the Enter of `due` if it is outstanding in the session; none as well where that is gone.
    async fn outstanding(
        &self,
        target: &TmuxTarget,
        owner: &OwnerId,
        due: DeliveryId,
    ) -> Result<Option<Outstanding>, Unanswered> {
        let question = TmuxCommand::DisplayMessage {
            target: Some(Target::Pane(target.pane.clone())),
            marker: Marker::Is,
            fields: vec![
                Field::SessionId,
                Field::Option(OptionName::Owner),
                Field::PaneInMode,
                Field::Option(OptionName::Enter),
                Field::Option(OptionName::EnterProgram),
                Field::Foreground,
            ],
        };
        let Some(answer) = self.ask_recorded(target, question).await? else {
            return Ok(None);
        };
        let line = fields_of(&answer, Marker::Is, 6).next();
        let Some([session, shown, in_mode, enter, program, foreground]) = line.as_deref() else {
            return Err(Unanswered::NoVerdict {
                detail: format!("status {}, {:?}", answer.status, answer.words),
            });
        };
        let ours = *session == target.session_id.to_string() && *shown == owner.as_str();
        let is_due = ours && *enter == due.to_string();
        Ok(is_due.then(|| Outstanding {
            in_mode: *in_mode != "0",
            program: (!target.is_hosted()).then(|| (*program).to_owned()),
            foreground: (*foreground).to_owned(),
        }))
    }
}
