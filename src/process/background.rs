//! A child that runs beside this process and is ended by it.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::detach::open_log;
use super::identity::identify;
use super::signal::{Signal, signal};

/// A running child; dropping it lets it run.
#[derive(Debug)]
pub struct Background {
    child: Child,
}

impl Background {
    /// Starts a program without input, in a process group of its own, all its output appended to `log`.
    ///
    /// `env` is set on top of this process's own environment.
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be started.
    pub fn start(
        program: &Path,
        args: &[&str],
        env: &[(String, String)],
        log: &Path,
    ) -> io::Result<Self> {
        let log = open_log(log)?;
        #[expect(clippy::disallowed_methods, reason = "this is the process module")]
        let child = Command::new(program)
            .args(args)
            .envs(env.iter().cloned())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { child })
    }

    /// Tells whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, waits, and kills it if it does not end within `patience`.
    pub async fn end(mut self, patience: Duration) {
        let process = self
            .child
            .id()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(identify);
        if let Some(process) = process {
            // One that ended in this moment is what is wanted.
            let _ended = signal(&process, Signal::Terminate);
        }
        if tokio::time::timeout(patience, self.child.wait())
            .await
            .is_err()
            && let Err(error) = self.child.kill().await
        {
            tracing::warn!("a child could not be killed: {error}");
        }
    }
}
