//! The control words of a work item.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a person may tell the loop about a work item, in a comment or on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlCommand {
    /// Let the item have a session: spawn one, or resume a paused one.
    Start,
    /// End the session and drop what is queued for it.
    Stop,
    /// Keep the session, deliver nothing.
    Pause,
    /// Deliver again into a paused session.
    Resume,
}

impl ControlCommand {
    /// Every command, in the order in which help and schema show them.
    pub const ALL: [Self; 4] = [Self::Start, Self::Stop, Self::Pause, Self::Resume];

    /// Returns the command's word: `start`, `stop`, `pause` or `resume`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    /// Tells whether an item whose last command this is counts as started.
    #[must_use]
    pub fn means_started(self) -> bool {
        matches!(self, Self::Start | Self::Resume)
    }
}

/// What an operator may do to a work item's session from the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum OperatorCommand {
    /// [`ControlCommand::Start`], which also arms the item.
    Start,
    /// [`ControlCommand::Stop`].
    Stop,
    /// [`ControlCommand::Pause`].
    Pause,
    /// [`ControlCommand::Resume`].
    Resume,
    /// Ends the session as the end of its work item would, and leaves the control word alone.
    Close {
        /// What becomes of the tmux session.
        tmux: TmuxFate,
    },
}

impl OperatorCommand {
    /// Returns the command's word, as it is typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Close { .. } => "close",
        }
    }
}

impl fmt::Display for OperatorCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What becomes of a tmux session whose session is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TmuxFate {
    /// What `routing.tmux.keepSessionOnClose` says.
    AsConfigured,
    /// It stays, readable.
    Keep,
    /// It ends too.
    Kill,
}

impl fmt::Display for ControlCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ControlCommand {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|command| command.as_str() == word)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_started_by_a_start_and_by_a_resume() {
        let started = ControlCommand::ALL.map(ControlCommand::means_started);
        assert_eq!(started, [true, false, false, true]);
    }

    #[test]
    fn an_operator_types_the_words_that_a_comment_says() {
        let close = OperatorCommand::Close {
            tmux: TmuxFate::Keep,
        };
        for (command, word) in [
            (OperatorCommand::Start, "start"),
            (OperatorCommand::Stop, "stop"),
            (OperatorCommand::Pause, "pause"),
            (OperatorCommand::Resume, "resume"),
            (close, "close"),
        ] {
            assert_eq!(command.to_string(), word);
        }
    }
}
