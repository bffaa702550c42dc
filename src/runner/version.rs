//! Which tmux this is, and whether it can be worked with.

use std::fmt;

use super::command::TmuxCommand;
use super::error::RunnerError;
use super::field::{Field, Marker};
use super::parse::fields_of;
use super::server::{Start, TmuxServer};
use super::{Machine, TmuxRunner};
use crate::model::TmuxSocket;

/// The oldest version with everything that the runner uses: pane options (3.0), `run-shell -C` (3.2).
pub const OLDEST: Version = Version { major: 3, minor: 2 };

/// The first version that survives a new window while the global `window-size` is `manual`: the ones
/// before end the whole server, with every session on it (measured on 3.3a to 3.6a).
const SURVIVES_MANUAL_SIZE: Version = Version { major: 3, minor: 7 };

/// A version of tmux; letters after the minor number are patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// Reads what `tmux -V` prints: `tmux 3.3a`, `tmux next-3.6`; none where it is none of these.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.trim().strip_prefix("tmux ")?;
        let number = word.strip_prefix("next-").unwrap_or(word);
        let (major, rest) = number.split_once('.')?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(Self {
            major: major.parse().ok()?,
            minor: digits.parse().ok()?,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Sees that a new session does not end the server, and with it every agent and every person's
    /// work on it.
    pub(super) async fn see_that_it_survives(&self) -> Result<(), RunnerError> {
        let version = TmuxCommand::DisplayMessage {
            target: None,
            marker: Marker::Is,
            fields: vec![Field::ServerVersion],
        };
        let question = vec![TmuxCommand::ShowWindowSize, version];
        let answer = self.ask(&self.socket, question).await?;
        let version = fields_of(&answer, Marker::Is, 1)
            .next()
            .and_then(|line| Version::parse(&format!("tmux {}", line.first()?)));
        let is_manual = answer.output.lines().next() == Some("manual");
        if is_manual && version < Some(SURVIVES_MANUAL_SIZE) {
            return Err(RunnerError::Refused {
                doing: "make the session",
                words:
                    "this server's global option window-size is manual, and tmux before 3.7 would \
                        crash; set it to another value: tmux set-option -gw window-size latest"
                        .to_owned(),
            });
        }
        Ok(())
    }

    /// Says that the server ended instead of making the session. One that was only just started could
    /// not be asked for its options before: it has read them in the person's configuration.
    pub(super) fn server_ended(&self, start: Start, words: &str) -> RunnerError {
        let hint = if start == Start::Allowed && self.socket == TmuxSocket::Default {
            "; if its configuration (~/.tmux.conf) sets the global option window-size to manual, tmux \
             before 3.7 crashes as it starts: set another value there, such as latest"
        } else {
            ""
        };
        RunnerError::Refused {
            doing: "make the session",
            words: format!("{words}{hint}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_tmux_prints_them() {
        let version = |major, minor| Some(Version { major, minor });
        assert_eq!(Version::parse("tmux 3.3a\n"), version(3, 3));
        assert_eq!(Version::parse("tmux 3.10"), version(3, 10));
        assert_eq!(Version::parse("tmux next-3.7"), version(3, 7));
        assert_eq!(Version::parse("tmux master"), None);
        assert_eq!(Version::parse(""), None);
        assert!(Version::parse("tmux 2.9a") < Some(OLDEST));
        assert!(Version::parse("tmux 3.10") > Some(OLDEST));
        assert_eq!(version(3, 10).unwrap().to_string(), "3.10");
    }
}
