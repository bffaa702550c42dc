//! Pressing Enter after a paste, once per paste.
//!
//! Agents lose an Enter that arrives in the same read as the text, so tmux presses it later by
//! itself. `@loop_enter` stays set until it was pressed; nothing else is pasted before.

use std::time::Duration;

use crate::model::{DeliveryId, HoldReason};
use crate::process::identity::Life;

use super::command::{Scope, Setting, Target, TmuxCommand};

use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::guard::Guard;
use super::parse::{fields_of, said};
use super::paste::{Modes, Seat};
use super::server::{TmuxServer, Unanswered};
use super::{Address, Fence, Machine, TmuxRunner};

/// Whether the last text was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterState {
    /// No Enter is outstanding, or its agent has ended.
    Settled,
    /// It could not be pressed yet.
    Pending(HoldReason),
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
    guards.push(Guard::Is(
        Field::Option(OptionName::Enter),
        delivery.to_string(),
    ));
    let mut then = Vec::new();
    if matches!(modes, Modes::Leave { .. }) {
        then.push(TmuxCommand::LeaveModes(pane.clone()));
    }
    then.push(TmuxCommand::SendEnter(pane.clone()));
    then.push(TmuxCommand::SetOption {
        target: Target::Session(seat.target.session_id.clone()),
        scope: Scope::Session,
        setting: Setting::Unset(OptionName::Enter),
    });
    then.extend(done);
    TmuxCommand::IfShell {
        target: Target::Pane(pane.clone()),
        guard: Guard::All(guards),
        then,
        otherwise,
    }
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Presses an Enter that is still outstanding; to be called twice the submit gap after a paste,
    /// and again as long as it is [`EnterState::Pending`].
    ///
    /// # Errors
    /// When tmux does not answer or refuses.
    pub async fn settle_enter(
        &self,
        address: &Address,
        fence: Fence<'_>,
    ) -> Result<EnterState, RunnerError> {
        let (Some(target), Some(owner)) = (&address.target, &address.owner) else {
            return Ok(EnterState::Settled);
        };
        // Nobody is left to read it, and tmux may know no such pane any more.
        if self.machine.life(&target.boot, &target.harness) == Life::Gone {
            return Ok(EnterState::Settled);
        }
        let seat = Seat {
            target,
            owner,
            foreground: None,
        };
        let Some((delivery, in_mode)) = self.outstanding(&seat).await? else {
            return Ok(EnterState::Settled);
        };
        let modes = match in_mode {
            false => Modes::Refuse,
            true => match self.unattended(target).await? {
                Some(attached) => Modes::Leave { attached },
                None => return Ok(EnterState::Pending(HoldReason::PaneInMode)),
            },
        };
        let print = |marker| {
            vec![TmuxCommand::DisplayMessage {
                target: None,
                marker,
                fields: Vec::new(),
            }]
        };
        let command = press(
            &seat,
            delivery,
            modes,
            print(Marker::Done),
            print(Marker::Refused),
        );
        let invocation = self.changing(&target.socket, vec![command]);
        let answer = self.change(&invocation, fence).await?;
        if said(&answer, Marker::Done) {
            return Ok(EnterState::Settled);
        }
        if !said(&answer, Marker::Refused) {
            return Err(RunnerError::refused("press Enter", &answer));
        }
        // tmux may have pressed it in between.
        Ok(match self.outstanding(&seat).await? {
            None => EnterState::Settled,
            Some((_, true)) => EnterState::Pending(HoldReason::PaneInMode),
            Some((_, false)) => EnterState::Pending(HoldReason::EnterPending),
        })
    }

    /// Returns the delivery whose Enter is outstanding, and whether a mode lies over the pane.
    async fn outstanding(&self, seat: &Seat<'_>) -> Result<Option<(DeliveryId, bool)>, Unanswered> {
        let question = TmuxCommand::DisplayMessage {
            target: Some(Target::Pane(seat.target.pane.clone())),
            marker: Marker::Is,
            fields: vec![
                Field::SessionId,
                Field::Option(OptionName::Owner),
                Field::PaneInMode,
                Field::Option(OptionName::Enter),
            ],
        };
        let answer = self.ask(&seat.target.socket, vec![question]).await?;
        let line = fields_of(&answer, Marker::Is, 4).next();
        let Some([session, owner, in_mode, enter]) = line.as_deref() else {
            return Err(Unanswered::NoVerdict {
                detail: format!("status {}, {:?}", answer.status, answer.words),
            });
        };
        let ours = *session == seat.target.session_id.to_string() && *owner == seat.owner.as_str();
        Ok(enter
            .parse()
            .ok()
            .filter(|_| ours)
            .map(|delivery| (DeliveryId(delivery), *in_mode != "0")))
    }
}
