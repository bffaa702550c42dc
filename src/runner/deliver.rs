//! Typing a text into an agent exactly once.
//!
//! A client whose time is up is served later by tmux, so sending again must be harmless: one token
//! per delivery is checked and set by tmux itself, in the same sequence as the paste.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::{DeliveryId, HoldReason, TmuxTarget, text};
use crate::process::identity::Life;

use super::command::{Target, TmuxCommand};
use super::error::RunnerError;
use super::field::{Field, Marker};
use super::occupant::{Occupant, OccupantKind};
use super::parse::{fields_of, said};
use super::paste::{Modes, Paste, Pasted, Refusal, Seat};
use super::probe::{Finding, Remains};
use super::server::{Invocation, Listener, TmuxServer, Unanswered};
use super::{Address, Fence, Machine, TmuxRunner};

/// A text for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its delivery; one is pasted at most once per session.
    pub delivery: DeliveryId,
    /// Which attempt this is.
    pub attempt: u32,
    /// The text; cleaned here once more, and not empty.
    pub text: String,
    /// How long after the paste Enter follows; never in the same read of the agent.
    pub submit_gap: Duration,
    /// When tmux must not paste it any more, in whole seconds.
    pub expires_at: DateTime<Utc>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliverOutcome {
    /// It is pasted, and its Enter is on its way.
    Delivered,
    /// An earlier attempt had pasted it.
    AlreadyDelivered,
    /// The session is proved dead; nothing was pasted.
    SessionDead(Remains),
    /// It has to wait; nothing was pasted.
    Held(HoldReason),
    /// It has to wait for the Enter of this other delivery, which is outstanding; nothing was pasted.
    EnterPending(DeliveryId),
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Pastes the text into the agent and presses Enter a little later, once, whoever calls however
    /// often.
    ///
    /// An error never means that it was not pasted, but for [`RunnerError::FenceLost`] and
    /// [`RunnerError::Expired`]: read the token, or send the same delivery again.
    ///
    /// # Errors
    /// When tmux does not answer, refuses, or shows another session than the registered one.
    pub async fn deliver(
        &self,
        address: &Address,
        message: &Message,
        fence: Fence<'_>,
    ) -> Result<DeliverOutcome, RunnerError> {
        let text = text::clean(&message.text);
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return Err(RunnerError::Refused {
                doing: "paste a message",
                words: "it has no text".to_owned(),
            });
        }
        let found;
        let seat = match (&address.target, &address.owner) {
            // A host that is recorded is checked by tmux, so nothing has to be asked before.
            (Some(target), Some(owner)) if self.may_paste_unseen(address, target) => Seat {
                target,
                owner,
                foreground: None,
            },
            _ => match self.look(address).await {
                Finding::NameFree => return Ok(DeliverOutcome::SessionDead(Remains::NameFree)),
                Finding::Retained(_) => return Ok(DeliverOutcome::SessionDead(Remains::Retained)),
                Finding::Unknown(why) => return Err(why.into()),
                Finding::Live(living) => {
                    found = self.occupant_of(living)?;
                    if is_shell_of_a_person(&found) {
                        return Ok(DeliverOutcome::Held(HoldReason::NoAgent));
                    }
                    seat_of(address, &found)?
                }
            },
        };
        let paste = Paste {
            seat: &seat,
            message,
            text,
        };
        match self.paste(&paste, Modes::Refuse, fence).await? {
            Pasted::Done => Ok(DeliverOutcome::Delivered),
            Pasted::Refused(refusal) => self.after_refusal(address, &paste, &refusal, fence).await,
            Pasted::NoServer => self.after_loss(address).await,
        }
    }

    /// Tells whether tmux may be given the paste at once: a host's pane, its harness running, the
    /// server answering.
    fn may_paste_unseen(&self, address: &Address, target: &TmuxTarget) -> bool {
        target.is_hosted()
            && !self.is_silent(address)
            && self.machine.life(&target.boot, &target.harness) == Life::Running
    }

    async fn paste(
        &self,
        paste: &Paste<'_>,
        modes: Modes,
        fence: Fence<'_>,
    ) -> Result<Pasted, RunnerError> {
        let invocation = Invocation {
            input: Some(paste.text.to_owned()),
            ..self.invocation(&paste.seat.target.socket, paste.commands(modes))
        };
        let answer = self.change(&invocation, fence).await?;
        if said(&answer, Marker::Done) {
            return Ok(Pasted::Done);
        }
        if answer.listener == Listener::Absent {
            return Ok(Pasted::NoServer);
        }
        match paste.refusal(&answer) {
            Some(refusal) => Ok(Pasted::Refused(refusal)),
            None => Err(RunnerError::refused("paste a message", &answer)),
        }
    }

    async fn after_refusal(
        &self,
        address: &Address,
        paste: &Paste<'_>,
        refusal: &Refusal,
        fence: Fence<'_>,
    ) -> Result<DeliverOutcome, RunnerError> {
        if let Some(outcome) = refusal.outcome() {
            return Ok(outcome);
        }
        if !refusal.same_pane || refusal.over {
            return self.after_loss(address).await;
        }
        if !refusal.in_mode {
            return Err(paste.unexplained(self.machine.now()));
        }
        let Some(attached) = self.unattended(paste.seat.target).await? else {
            return Ok(DeliverOutcome::Held(HoldReason::PaneInMode));
        };
        match self.paste(paste, Modes::Leave { attached }, fence).await? {
            Pasted::Done => Ok(DeliverOutcome::Delivered),
            Pasted::NoServer => self.after_loss(address).await,
            Pasted::Refused(again) => match again.outcome() {
                Some(outcome) => Ok(outcome),
                None if !again.same_pane || again.over => self.after_loss(address).await,
                // Somebody attached in this moment: it is his mode now.
                None => Ok(DeliverOutcome::Held(HoldReason::PaneInMode)),
            },
        }
    }

    /// The pane was not the one to paste into: says what is there instead.
    async fn after_loss(&self, address: &Address) -> Result<DeliverOutcome, RunnerError> {
        match self.look(address).await {
            Finding::NameFree => Ok(DeliverOutcome::SessionDead(Remains::NameFree)),
            Finding::Retained(_) => Ok(DeliverOutcome::SessionDead(Remains::Retained)),
            Finding::Unknown(why) => Err(why.into()),
            Finding::Live(living) => Err(RunnerError::Changed {
                detail: format!(
                    "something else runs in {} of {}",
                    living.pane.pane, living.pane.session
                ),
            }),
        }
    }

    /// Returns how many clients look at the session when none of them can type.
    pub(super) async fn unattended(&self, target: &TmuxTarget) -> Result<Option<u32>, Unanswered> {
        let question = vec![
            TmuxCommand::DisplayMessage {
                target: Some(Target::Session(target.session_id.clone())),
                marker: Marker::Is,
                fields: vec![Field::SessionAttached],
            },
            TmuxCommand::ListClients {
                session: Target::Session(target.session_id.clone()),
                fields: vec![Field::ClientReadOnly],
            },
        ];
        let answer = self.ask(&target.socket, question).await?;
        let attached = fields_of(&answer, Marker::Is, 1)
            .next()
            .and_then(|line| line.first()?.parse().ok());
        let typing = fields_of(&answer, Marker::Client, 1).any(|line| line != ["1"]);
        Ok(attached.filter(|_| answer.status == 0 && !typing))
    }
}

fn is_shell_of_a_person(occupant: &Occupant) -> bool {
    const SHELLS: &[&str] = &[
        "sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "csh", "tcsh", "nu", "pwsh",
        "xonsh", "elvish", "busybox", "login", "su", "sudo",
    ];
    let program = occupant.foreground.trim_start_matches('-');
    occupant.kind == OccupantKind::Foreign && (program.is_empty() || SHELLS.contains(&program))
}

fn seat_of<'a>(address: &Address, occupant: &'a Occupant) -> Result<Seat<'a>, RunnerError> {
    let Some(owner) = &occupant.owner else {
        return Err(RunnerError::NotAdopted {
            name: address.name.to_string(),
        });
    };
    if address.owner.as_ref().is_some_and(|known| known != owner) {
        return Err(RunnerError::Changed {
            detail: format!("it belongs to the spawn {owner}"),
        });
    }
    Ok(Seat {
        target: &occupant.target,
        owner,
        foreground: (occupant.kind == OccupantKind::Foreign)
            .then_some(occupant.foreground.as_str()),
    })
}
