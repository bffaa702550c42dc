//! The scripted agent: a small line editor that behaves on a terminal as a coding agent does.
//!
//! It takes bracketed pastes into its composer, submits on Enter, keeps conversations that it can
//! resume, and writes what it read to a log, so that the demo can show and tests can count what
//! reached it. Its script lets it be slow to start, ask, end early or refuse to die. It knows
//! nothing of the daemon and is started as `the-loop demo-agent`.

mod conversation;
mod journal;
mod keys;
mod options;
mod run;
mod screen;
mod signals;
mod terminal;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use options::{Options, Parsed};

pub use journal::{Counters, Entry, Record, heard, read};

/// Why the agent does not start, or cannot go on.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("No conversation found with session ID: {0}")]
    NoConversation(String),
    #[error("Session ID {0} is already in use")]
    InUse(String),
    #[error("session ID {0:?} cannot name a file")]
    BadSession(String),
    #[error("keeping the conversation in {path}")]
    Conversation { path: PathBuf, source: io::Error },
    #[error("writing the log {path}")]
    Log { path: PathBuf, source: io::Error },
    #[error("input is not a terminal: run the agent inside tmux or another terminal")]
    NoTerminal,
    #[error("using the terminal")]
    Terminal(#[source] io::Error),
}

/// Runs the agent to its end; `args` are those after `demo-agent`.
///
/// Ends with 0 when told to, with the script's code, with 1 when it could not start, with 2 for
/// wrong arguments, and with 128 and the number of the signal that asked it to end.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(args) {
        Parsed::Options(options) => *options,
        Parsed::Said(code) => return code,
    };
    match run::run(&options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn complain(error: &Error) {
    let mut message = format!("Error: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message.push_str(": ");
        message.push_str(&inner.to_string());
        cause = inner.source();
    }
    // Nobody is left to tell when even the error stream is closed.
    drop(writeln!(io::stderr(), "{message}"));
}
