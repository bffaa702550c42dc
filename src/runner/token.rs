//! Whether a delivery was pasted: what decides after a time-out.

use crate::model::DeliveryId;
use crate::planted::{Planted, is_planted};
use crate::process::identity::Life;

use super::command::{Target, TmuxCommand};
use super::field::{Field, Marker, OptionName};
use super::parse::fields_of;
use super::server::{TmuxServer, Unanswered};
use super::{Address, Machine, TmuxRunner};

/// Whether a delivery was pasted into the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It was.
    Pasted,
    /// It was not, and never will be once its expiry has passed.
    NotPasted,
    /// The session is gone.
    NoSession,
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Tells whether a delivery was pasted into the registered session.
    ///
    /// # Errors
    /// When nothing certain is known.
    pub async fn read_token(
        &self,
        address: &Address,
        delivery: DeliveryId,
    ) -> Result<TokenState, Unanswered> {
        let (Some(target), Some(owner)) = (&address.target, &address.owner) else {
            return Ok(TokenState::NoSession);
        };
        let question = TmuxCommand::DisplayMessage {
            target: Some(Target::Session(target.session_id.clone())),
            marker: Marker::Is,
            fields: vec![
                Field::ServerPid,
                Field::SessionId,
                Field::Option(OptionName::Owner),
                Field::Option(OptionName::Token(delivery)),
            ],
        };
        let Some(answer) = self.ask_recorded(target, question).await? else {
            return Ok(TokenState::NoSession);
        };
        let line = fields_of(&answer, Marker::Is, 4).next();
        let Some([server, session, shown, token]) = line.as_deref() else {
            return Err(Unanswered::NoVerdict {
                detail: format!("status {}, {:?}", answer.status, answer.words),
            });
        };
        let is_recorded = *server == target.server.pid.to_string();
        if !is_recorded && self.machine.life(&target.boot, &target.server) != Life::Gone {
            return Err(Unanswered::AnotherServer {
                recorded: target.server,
                found: server.parse().unwrap_or_default(),
            });
        }
        if !is_recorded || *session != target.session_id.to_string() || *shown != owner.as_str() {
            return Ok(TokenState::NoSession);
        }
        Ok(if token.is_empty() || is_planted(Planted::NoTokens) {
            TokenState::NotPasted
        } else {
            TokenState::Pasted
        })
    }
}
