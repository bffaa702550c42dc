//! The port to a tmux server: one invocation, one answer or none.

use std::path::PathBuf;
use std::time::Duration;

use crate::model::{PaneId, ProcessId, TmuxSocket};

use super::command::TmuxCommand;

/// One run of the tmux client: a sequence of commands that the server does in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Which server.
    pub socket: TmuxSocket,
    /// Whether one may be started.
    pub start: Start,
    /// What to do; a command that fails skips the rest.
    pub commands: Vec<TmuxCommand>,
    /// What [`TmuxCommand::LoadBuffer`] reads.
    pub input: Option<String>,
    /// The folder that windows which a person opens in a new session start in.
    pub folder: Option<PathBuf>,
    /// How long an answer may take.
    pub deadline: Duration,
}

impl Invocation {
    /// Tells whether nothing is changed by it.
    #[must_use]
    pub fn is_question(&self) -> bool {
        self.commands.iter().all(TmuxCommand::is_question)
    }
}

/// Whether an invocation may start a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Only a running server may answer.
    Never,
    /// A server is started when none runs.
    Allowed,
}

/// What the client said when it ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its exit status.
    pub status: i32,
    /// What it printed.
    pub output: String,
    /// tmux's own words, when it complained.
    pub words: String,
    /// Who listens at the socket; looked up only when the client failed and printed nothing.
    pub listener: Listener,
}

impl Answer {
    /// Tells whether the client reached nobody, though somebody listens by now: a server that was
    /// about to be started, or ended and has a successor.
    #[must_use]
    pub fn came_too_early(&self) -> bool {
        self.status != 0 && self.output.is_empty() && self.listener == Listener::Present
    }

    /// Tells whether no server took the commands: tmux's own words for a server that was not there, or
    /// that ended before it did anything.
    #[must_use]
    pub fn reached_nobody(&self) -> bool {
        self.listener == Listener::Absent
            || self.words.starts_with("no server running on ")
            || self.words.starts_with("error connecting to ")
            || self.words.contains("server exited unexpectedly")
    }
}

/// Who listens at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// Somebody, as far as is known.
    Present,
    /// Nobody: the path does not exist, or the system refuses a connection to it.
    Absent,
}

/// Why nothing certain is known; never to be taken for an absence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The server did not answer in time; the command may still take effect later.
    #[error("tmux did not answer within {after:?}")]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The client could not be run.
    #[error("tmux could not be run: {reason}")]
    NotRun {
        /// Why.
        reason: String,
    },
    /// The client ended without an answer that is one of ours.
    #[error("tmux ended without an answer: {detail}")]
    NoVerdict {
        /// How.
        detail: String,
    },
    /// The server did not answer the last questions, and is not asked again yet.
    #[error("tmux is silent; it is asked again in {next:?}")]
    Silent {
        /// When.
        next: Duration,
    },
    /// Nobody listens at the socket, but the recorded server still runs.
    #[error("the tmux server (process {server}) still runs, but its socket {socket} is gone", socket = socket.display())]
    SocketLost {
        /// The server.
        server: ProcessId,
        /// The socket's path.
        socket: PathBuf,
    },
    /// Another server answers at the socket of the recorded one, which still runs.
    #[error(
        "the tmux server (process {recorded}) still runs, but process {found} answers at its socket; end one of the two"
    )]
    AnotherServer {
        /// The recorded server.
        recorded: ProcessId,
        /// The one that answers.
        found: i32,
    },
    /// The session is gone or ended, but its recorded harness still runs.
    #[error("the agent (process {harness}) still runs without its session")]
    AgentOutlivesSession {
        /// The harness.
        harness: ProcessId,
    },
    /// The session shows windows of another one only: a person looks on, and tmux named it so.
    #[error("the session only shows the windows of {session}; rename or close it")]
    ViewOfAnother {
        /// Whose windows they are.
        session: String,
    },
    /// The harness is gone, but its host, which still runs, did not say so.
    #[error("the agent (process {harness}) is gone, but its end is not recorded")]
    EndUnrecorded {
        /// The harness.
        harness: ProcessId,
    },
    /// tmux served a creation that was given up; its host starts nothing, and has not ended yet.
    #[error("a session that was given up (pane {pane}) has not ended yet")]
    GivenUp {
        /// Its host's.
        pane: PaneId,
    },
    /// The system did not tell whether a recorded process runs.
    #[error("the system does not tell whether process {process} still runs")]
    Undecidable {
        /// Which.
        process: ProcessId,
    },
    /// tmux answered, but the socket cannot be used.
    #[error("tmux cannot reach its server: {words}")]
    Unreachable {
        /// tmux's words.
        words: String,
    },
}

impl Unanswered {
    /// Tells whether tmux was asked and nothing at all came back, so that a command which tmux
    /// itself decides (a `new-session` under a taken name) may still be tried.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. } | Self::NoVerdict { .. } | Self::NotRun { .. }
        )
    }
}

/// A tmux server, real or modelled.
pub trait TmuxServer: Send + Sync {
    /// Runs one command sequence and returns what tmux said.
    ///
    /// # Errors
    /// When no answer came; a mutation may then still take effect later.
    fn call(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = Result<Answer, Unanswered>> + Send;

    /// Returns the version of the client, `tmux 3.3a`.
    ///
    /// # Errors
    /// When the client cannot be run.
    fn version(&self) -> impl Future<Output = Result<String, Unanswered>> + Send;

    /// Returns the path of a socket.
    fn path_of(&self, socket: &TmuxSocket) -> PathBuf;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_failed_without_a_word_came_too_early() {
        let answer = |status, output: &str, listener| Answer {
            status,
            output: output.to_owned(),
            words: "error connecting to /s".to_owned(),
            listener,
        };

        assert!(answer(1, "", Listener::Present).came_too_early());
        assert!(!answer(0, "", Listener::Present).came_too_early());
        assert!(!answer(1, "loop-server|41||/s", Listener::Present).came_too_early());
        assert!(!answer(1, "", Listener::Absent).came_too_early());
    }
}
