//! The sequence that pastes one text under one guard, and what a refusal of it means.

use chrono::{DateTime, Utc};

use crate::model::{DeliveryId, HoldReason, OwnerId, TmuxTarget};
use crate::planted::{Planted, is_planted};

use super::command::{BufferName, Scope, Setting, Target, TmuxCommand, pane_of};
use super::deliver::{DeliverOutcome, Message};
use super::enter::delayed_enter;
use super::error::RunnerError;
use super::field::{Field, Marker, OptionName};
use super::guard::Guard;
use super::parse::fields_of;
use super::server::Answer;

/// Where exactly to paste.
pub(super) struct Seat<'a> {
    pub(super) target: &'a TmuxTarget,
    pub(super) owner: &'a OwnerId,
    /// The foreground program that must still be there, where the pane is not a host's.
    pub(super) foreground: Option<&'a str>,
}

/// What lies over the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modes {
    /// Nothing may.
    Refuse,
    /// A mode that nobody looks at is left first, while this many clients are attached.
    Leave { attached: u32 },
}

/// What a guard saw when it refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) same_session: bool,
    pub(super) same_pane: bool,
    pub(super) over: bool,
    pub(super) input_off: bool,
    pub(super) in_mode: bool,
    pub(super) pasted: bool,
    pub(super) enter_pending: Option<DeliveryId>,
}

pub(super) const REFUSAL: &[Field] = &[
    Field::SessionId,
    Field::Option(OptionName::Owner),
    Field::PanePid,
    Field::PaneDead,
    Field::HarnessEnded,
    Field::PaneInputOff,
    Field::PaneInMode,
    Field::Option(OptionName::Enter),
];

pub(super) enum Pasted {
    Done,
    Refused(Refusal),
    NoServer,
}

/// One text for one seat.
pub(super) struct Paste<'a> {
    pub(super) seat: &'a Seat<'a>,
    pub(super) message: &'a Message,
    pub(super) text: &'a str,
}

impl Paste<'_> {
    pub(super) fn commands(&self, modes: Modes) -> Vec<TmuxCommand> {
        let message = self.message;
        let target = self.seat.target;
        let session = Target::Session(target.session_id.clone());
        let buffer = BufferName {
            delivery: message.delivery,
            attempt: message.attempt,
        };
        let set = |option, value: String| TmuxCommand::SetOption {
            target: session.clone(),
            scope: Scope::Session,
            setting: Setting::Ours(option, value),
        };
        let mut then = Vec::new();
        if matches!(modes, Modes::Leave { .. }) {
            then.push(TmuxCommand::LeaveModes(target.pane.clone()));
        }
        then.extend([
            TmuxCommand::PasteBuffer {
                buffer: buffer.clone(),
                pane: target.pane.clone(),
            },
            // A paste that fails ends the sequence here, so a token is never set without its text.
            set(
                OptionName::Token(message.delivery),
                message.attempt.to_string(),
            ),
            set(OptionName::Enter, message.delivery.to_string()),
        ]);
        if self.seat.foreground.is_some() {
            // Of the pane, not of the session: a person's other pane may be in front.
            then.push(TmuxCommand::SetOption {
                target: pane_of(target),
                scope: Scope::Session,
                setting: Setting::Shown(OptionName::EnterProgram, Field::Foreground),
            });
        }
        then.extend([
            delayed_enter(self.seat, message.delivery, message.submit_gap),
            TmuxCommand::DisplayMessage {
                target: Some(session.clone()),
                marker: Marker::Done,
                fields: vec![Field::Option(OptionName::Token(message.delivery))],
            },
        ]);
        let mut shown = REFUSAL.to_vec();
        shown.push(Field::Option(OptionName::Token(message.delivery)));
        vec![
            TmuxCommand::LoadBuffer(buffer.clone()),
            TmuxCommand::IfShell {
                target: pane_of(target),
                guard: self.guard(modes),
                then,
                otherwise: vec![
                    TmuxCommand::DisplayMessage {
                        target: Some(pane_of(target)),
                        marker: Marker::Refused,
                        fields: shown,
                    },
                    TmuxCommand::DeleteBuffer(buffer),
                ],
            },
        ]
    }

    fn guard(&self, modes: Modes) -> Guard {
        let mut all = self.seat.guards(modes);
        if !is_planted(Planted::NoTokens) {
            all.push(Guard::Unset(OptionName::Token(self.message.delivery)));
        }
        all.extend([
            Guard::Unset(OptionName::Enter),
            Guard::Before(self.message.expires_at.timestamp()),
        ]);
        Guard::All(all)
    }

    pub(super) fn refusal(&self, answer: &Answer) -> Option<Refusal> {
        let words = fields_of(answer, Marker::Refused, REFUSAL.len() + 1).next()?;
        let [
            session,
            owner,
            pid,
            dead,
            ended,
            input_off,
            in_mode,
            enter,
            token,
        ] = words[..]
        else {
            return None;
        };
        let target = self.seat.target;
        let same_session =
            session == target.session_id.to_string() && owner == self.seat.owner.as_str();
        Some(Refusal {
            same_session,
            same_pane: same_session && pid == target.host.pid.to_string(),
            over: dead == "1" || ended == "1",
            input_off: input_off == "1",
            in_mode: in_mode != "0",
            pasted: !token.is_empty(),
            enter_pending: enter.parse().ok().map(DeliveryId),
        })
    }

    /// Nothing that was printed explains the refusal, so its time was over, or the foreground
    /// program of a person's pane changed.
    pub(super) fn unexplained(&self, now: DateTime<Utc>) -> RunnerError {
        if now >= self.message.expires_at {
            RunnerError::Expired
        } else {
            RunnerError::Changed {
                detail: "what tmux refused to paste into is free by now".to_owned(),
            }
        }
    }
}

impl Seat<'_> {
    /// What must hold for anything to be typed here.
    pub(super) fn guards(&self, modes: Modes) -> Vec<Guard> {
        let zero = |field| Guard::Is(field, "0".to_owned());
        let mut all = vec![
            Guard::session(&self.target.session_id),
            Guard::pane(&self.target.pane),
            Guard::Is(Field::PanePid, self.target.host.pid.to_string()),
            Guard::owner(self.owner),
            zero(Field::PaneDead),
            zero(Field::HarnessEnded),
            zero(Field::PaneInputOff),
        ];
        match modes {
            Modes::Refuse => all.push(zero(Field::PaneInMode)),
            Modes::Leave { attached } => {
                all.push(Guard::Is(Field::SessionAttached, attached.to_string()));
            }
        }
        if let Some(program) = self.foreground {
            all.push(Guard::Is(Field::Foreground, program.to_owned()));
        }
        all
    }
}

impl Refusal {
    /// What the refusal means by itself; none when it needs another look.
    pub(super) fn outcome(&self) -> Option<DeliverOutcome> {
        if self.same_session && self.pasted {
            return Some(DeliverOutcome::AlreadyDelivered);
        }
        if !self.same_pane || self.over {
            return None;
        }
        if let Some(delivery) = self.enter_pending {
            return Some(DeliverOutcome::EnterPending(delivery));
        }
        self.input_off
            .then_some(DeliverOutcome::Held(HoldReason::InputOff))
    }
}
