//! How a command ends: its exit code and its one clear message.

use std::fmt::Display;
use std::process::ExitCode;

use super::output;
use crate::config::ConfigError;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it did what was asked.
    Success,
    /// 1: it failed, or the answer is no.
    Failure,
    /// 2: the command line or the configuration is wrong; nothing was done.
    Usage,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Failure => Self::from(1),
            Exit::Usage => Self::from(2),
        }
    }
}

/// A command's failure: what to print, and with which code to end.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// Wraps an error that happened while doing what was asked.
    pub(super) fn of(error: impl Display) -> Self {
        Self {
            exit: Exit::Failure,
            message: error.to_string(),
        }
    }

    /// Wraps an error in what was asked for, or in the configuration.
    pub(super) fn usage(error: impl Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: error.to_string(),
        }
    }

    /// Wraps an error in the configuration, with what to do about it.
    pub(super) fn config(error: &ConfigError) -> Self {
        let advice = error.advice().map_or_else(String::new, |advice| {
            format!("\n\nnothing was started. {advice}")
        });
        Self::usage(format!("{error}{advice}"))
    }

    /// Adds what was done all the same.
    pub(super) fn adding(self, words: impl Display) -> Self {
        Self {
            message: format!("{}; {words}", self.message),
            ..self
        }
    }

    /// Prints the message on stderr, after `error:`, and returns the code.
    pub(super) fn print(&self) -> Exit {
        output::error(&self.message);
        self.exit
    }
}

/// Lets `?` turn every error of the modules below into a failed command.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Most errors say their cause themselves; a cause is never printed twice.
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self {
            exit: Exit::Failure,
            message,
        }
    }
}
