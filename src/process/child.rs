//! Starting a child that its owner reaps, and replacing this process; without a runtime.
//!
//! For the process in a pane, which reaps every child by one wait of its own. All else uses `run`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What to start.
#[derive(Debug)]
pub struct Child<'a> {
    /// The program's path.
    pub program: &'a Path,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What it sees of this process's environment.
    pub env: Environment<'a>,
    /// Its standard streams.
    pub streams: Streams,
}

/// The environment of a child.
#[derive(Debug, Clone, Copy)]
pub enum Environment<'a> {
    /// These variables and no others.
    Exactly(&'a BTreeMap<OsString, OsString>),
    /// This process's own, without these.
    Without(&'a [&'a str]),
}

/// The standard streams of a child.
#[derive(Debug)]
pub enum Streams {
    /// All of them null.
    Null,
    /// Input from this descriptor, output and errors to this process's own.
    InputFrom(OwnedFd),
}

/// Starts a child as the leader of a process group of its own and returns its pid.
///
/// The caller reaps it with a wait for any child. The child inherits the calling thread's signal
/// mask, and the calling thread is the parent whose death a child may ask to be told.
///
/// # Errors
///
/// The system's error when the child could not be made or its program not be executed.
pub fn start(child: Child<'_>) -> io::Result<i32> {
    let mut command = new_command(child.program);
    command.args(child.args).process_group(0);
    match child.env {
        Environment::Exactly(variables) => {
            command.env_clear().envs(variables);
        }
        Environment::Without(names) => {
            for name in names {
                command.env_remove(name);
            }
        }
    }
    match child.streams {
        Streams::Null => {
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        }
        Streams::InputFrom(input) => {
            command.stdin(Stdio::from(input));
        }
    }
    let child = command.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// Replaces this process with a program, in the same directory and environment; returns only the
/// reason why that failed.
#[must_use]
pub fn replace(program: &OsStr, args: &[OsString]) -> io::Error {
    new_command(Path::new(program)).args(args).exec()
}

#[expect(
    clippy::disallowed_methods,
    reason = "one of the few places of the module that may start processes"
)]
fn new_command(program: &Path) -> Command {
    Command::new(program)
}

/// What a system tool answered.
#[cfg(not(target_os = "linux"))]
pub(super) enum Answer {
    Text(String),
    Nothing,
    Silence,
}

/// Asks a system tool that answers in a few milliseconds; blocks until it did.
#[cfg(not(target_os = "linux"))]
pub(super) fn ask(program: &str, args: &[&str]) -> Answer {
    let answer = new_command(Path::new(program))
        .args(args)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match answer {
        Ok(output) => match String::from_utf8(output.stdout) {
            Ok(text) if !text.trim().is_empty() => Answer::Text(text),
            // `ps` found no such process: no line and status 1.
            Ok(_) if output.status.code() == Some(1) => Answer::Nothing,
            Ok(_) | Err(_) => Answer::Silence,
        },
        Err(_) => Answer::Silence,
    }
}

/// Processes for the tests of this module.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A child in a group of its own, which is killed and reaped at the end of the test.
    pub(in crate::process) struct Sleeper(std::process::Child);

    impl Sleeper {
        pub(in crate::process) fn start() -> Self {
            let child = new_command(Path::new("/bin/sleep"))
                .arg("600")
                .process_group(0)
                .stdin(Stdio::null())
                .spawn()
                .expect("sleep starts");
            Self(child)
        }

        pub(in crate::process) fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).expect("pids are small")
        }

        pub(in crate::process) fn reap(self) {
            drop(self);
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }
}
