//! Pressing Enter after a paste, once per paste.
//!
//! Agents lose an Enter that arrives in the same read as the text, so tmux presses it later by
//! itself. `@loop_enter` stays set until it was pressed; nothing else is pasted before. For a
//! person's pane `@loop_enter_program` says what was pasted into: nothing else gets the Enter.

use std::time::Duration;

use crate::model::{DeliveryId, HoldReason, OwnerId, TmuxTarget};
use crate::process::identity::Life;

use super::command::{Scope, Setting, Target, TmuxCommand, pane_of};

use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::guard::Guard;
use super::parse::said;
use super::paste::{Modes, Seat};
use super::server::{TmuxServer, Unanswered};
use super::{Address, Fence, Machine, TmuxRunner};

/// What became of the Enter of a delivery's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterState {
    /// It was pressed.
    Pressed,
    /// It is outstanding; this keeps it out, where anything is seen to.
    Pending(Option<HoldReason>),
    /// It is outstanding, and the person's program that it is for has left its pane: it is not pressed
    /// into what follows.
    Left,
    /// The agent has ended, or is not in its session any more: whether it was pressed nobody knows.
    Gone,
}

/// An Enter that tmux has not pressed yet.
struct Outstanding {
    in_mode: bool,
    input_off: bool,
    /// What was pasted into, where that was noted: a person's program.
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
        target: pane_of(seat.target),
        guard: Guard::All(guards),
        then,
        otherwise,
    }
}

/// Forgets an Enter, and that its text was typed.
fn give_up(target: &TmuxTarget, owner: &OwnerId, delivery: DeliveryId) -> TmuxCommand {
    let mut then = Vec::from(forget(target));
    then.push(unset(target, OptionName::Token(delivery)));
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
    [OptionName::Enter, OptionName::EnterProgram].map(|option| unset(target, option))
}

fn unset(target: &TmuxTarget, option: OptionName) -> TmuxCommand {
    TmuxCommand::SetOption {
        target: Target::Session(target.session_id.clone()),
        scope: Scope::Session,
        setting: Setting::Unset(option),
    }
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
            return Ok(EnterState::Gone);
        };
        // Nobody is left to read it, and tmux may know no such pane any more.
        if self.machine.life(&target.boot, &target.harness) == Life::Gone {
            return Ok(EnterState::Gone);
        }
        let seen = match self.outstanding(target, owner, due).await? {
            Ok(seen) => seen,
            Err(state) => return Ok(state),
        };
        if seen.program.as_ref().is_some_and(|p| *p != seen.foreground) {
            return Ok(EnterState::Left);
        }
        if seen.input_off {
            return Ok(EnterState::Pending(Some(HoldReason::InputOff)));
        }
        let modes = match seen.in_mode {
            false => Modes::Refuse,
            true => match self.unattended(target).await? {
                Some(attached) => Modes::Leave { attached },
                None => return Ok(EnterState::Pending(Some(HoldReason::PaneInMode))),
            },
        };
        let seat = Seat {
            target,
            owner,
            foreground: seen.program.as_deref(),
        };
        let (done, refused) = (print(Marker::Done), print(Marker::Refused));
        let command = press(&seat, due, modes, vec![done], vec![refused]);
        let invocation = self.invocation(&target.socket, vec![command]);
        let answer = self.change(&invocation, fence).await?;
        if said(&answer, Marker::Done) {
            return Ok(EnterState::Pressed);
        }
        if !said(&answer, Marker::Refused) {
            return Err(RunnerError::refused("press Enter", &answer));
        }
        // tmux may have pressed it in between.
        Ok(match self.outstanding(target, owner, due).await? {
            Err(state) => state,
            Ok(seen) if seen.input_off => EnterState::Pending(Some(HoldReason::InputOff)),
            Ok(seen) if seen.in_mode => EnterState::Pending(Some(HoldReason::PaneInMode)),
            Ok(_) => EnterState::Pending(None),
        })
    }

    /// Gives up the Enter of `due` if it is outstanding, and with it its text, which can be typed again.
    ///
    /// # Errors
    /// When tmux does not answer or refuses.
    pub async fn give_up_enter(
        &self,
        address: &Address,
        due: DeliveryId,
        fence: Fence<'_>,
    ) -> Result<(), RunnerError> {
        let (Some(target), Some(owner)) = (&address.target, &address.owner) else {
            return Ok(());
        };
        let command = give_up(target, owner, due);
        let invocation = self.invocation(&target.socket, vec![command]);
        let answer = self.change(&invocation, fence).await?;
        // Refused where it was pressed in between, or the session has gone: the next look tells.
        if said(&answer, Marker::Done) || said(&answer, Marker::Refused) {
            return Ok(());
        }
        Err(RunnerError::refused("give up an Enter", &answer))
    }

    /// Returns the Enter of `due` if it is outstanding, else what became of it.
    async fn outstanding(
        &self,
        target: &TmuxTarget,
        owner: &OwnerId,
        due: DeliveryId,
    ) -> Result<Result<Outstanding, EnterState>, Unanswered> {
        let pane = pane_of(target);
        let shown = [
            Field::PaneInMode,
            Field::PaneInputOff,
            Field::Option(OptionName::Enter),
            Field::Option(OptionName::EnterProgram),
            Field::Foreground,
        ];
        let Some([in_mode, input_off, enter, program, foreground]) =
            self.ask_session(target, owner, pane, shown).await?
        else {
            return Ok(Err(EnterState::Gone));
        };
        if enter != due.to_string() {
            return Ok(Err(EnterState::Pressed));
        }
        Ok(Ok(Outstanding {
            in_mode: in_mode != "0",
            input_off: input_off != "0",
            program: Some(program).filter(|program| !program.is_empty()),
            foreground,
        }))
    }
}
