//! Whether a delivery was pasted: what decides after a time-out.

use crate::model::{DeliveryId, OwnerId, TmuxTarget};
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
        let at = Target::Session(target.session_id.clone());
        let shown = [Field::Option(OptionName::Token(delivery))];
        let Some([token]) = self.ask_session(target, owner, at, shown).await? else {
            return Ok(TokenState::NoSession);
        };
        Ok(if token.is_empty() || is_planted(Planted::NoTokens) {
            TokenState::NotPasted
        } else {
            TokenState::Pasted
        })
    }

    /// Asks for something of the registered session; nothing where that is gone, or `at` is not in it.
    pub(super) async fn ask_session<const N: usize>(
        &self,
        target: &TmuxTarget,
        owner: &OwnerId,
        at: Target,
        shown: [Field; N],
    ) -> Result<Option<[String; N]>, Unanswered> {
        let mut fields = vec![
            Field::ServerPid,
            Field::SessionId,
            Field::PaneId,
            Field::Option(OptionName::Owner),
        ];
        fields.extend(shown);
        let count = fields.len();
        let question = TmuxCommand::DisplayMessage {
            target: Some(at.clone()),
            marker: Marker::Is,
            fields,
        };
        let Some(answer) = self.ask_recorded(target, question).await? else {
            return Ok(None);
        };
        let no_verdict = || Unanswered::NoVerdict {
            detail: format!("status {}, {:?}", answer.status, answer.words),
        };
        let line = fields_of(&answer, Marker::Is, count).next();
        let Some([server, session, pane, found, values @ ..]) = line.as_deref() else {
            return Err(no_verdict());
        };
        let is_recorded = *server == target.server.pid.to_string();
        if !is_recorded && self.machine.life(&target.boot, &target.server) != Life::Gone {
            return Err(Unanswered::AnotherServer {
                recorded: target.server,
                found: server.parse().unwrap_or_default(),
            });
        }
        let is_there = match &at {
            // For a pane that is nowhere, the active one is shown.
            Target::Pane(_, wanted) => *pane == wanted.to_string(),
            Target::Name(_) | Target::Session(_) => true,
        };
        let is_session = *session == target.session_id.to_string() && *found == owner.as_str();
        if !is_recorded || !is_session || !is_there {
            return Ok(None);
        }
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        values.try_into().map(Some).map_err(|_| no_verdict())
    }
}
