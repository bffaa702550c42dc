//! Going to the background: the parent returns when the daemon is ready, or with the reason why not.
//!
//! The parent starts the same program again in a session of its own, its output going to a log file,
//! and reads one line from a pipe: `ready`, or an error.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::detach::{Detached, renew_log, spawn_detached};

/// Why the daemon did not go to the background.
#[derive(Debug, thiserror::Error)]
pub enum DetachError {
    /// The second process could not be started.
    #[error("cannot start the daemon in the background: {0}")]
    NotStarted(#[source] std::io::Error),
    /// It ended before it was ready.
    #[error("the daemon did not come up: {reason}")]
    NotReady {
        /// Its own words.
        reason: String,
    },
    /// It neither became ready nor ended.
    #[error("the daemon did not report within {} s; its log is {}", waited.as_secs(), log.display())]
    Silent {
        /// How long was waited.
        waited: Duration,
        /// Where it logs to.
        log: PathBuf,
    },
}

/// How often a daemon in the background looks at the size of its log.
const LOOK_AT_LOG: Duration = Duration::from_secs(60);

/// The file that a daemon in the background writes its output to.
#[must_use]
pub fn log_path(state_root: &Path) -> PathBuf {
    state_root.join("logs").join("poll.out")
}

/// Keeps the log of this process, which runs in the background, from growing without end.
pub async fn keep_log_short(log: PathBuf) {
    loop {
        tokio::time::sleep(LOOK_AT_LOG).await;
        if let Err(error) = renew_log(&log) {
            tracing::warn!("cannot put {} aside: {error}", log.display());
        }
    }
}

const READY: &str = "ready";
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts this program again with `args` in the background and waits until it is ready.
///
/// Returns the pid of the daemon.
///
/// # Errors
/// With the daemon's own reason when it does not come up.
pub fn start(args: &[String], log: &Path) -> Result<i32, DetachError> {
    let Detached { pid, report } = spawn_detached(args, log).map_err(DetachError::NotStarted)?;
    let (sender, receiver) = std::sync::mpsc::channel();
    // A thread of its own, because a pipe cannot be read with a deadline; it ends with the pipe.
    std::thread::spawn(move || {
        let mut text = String::new();
        let mut reader = BufReader::new(report.take(64 * 1024));
        let first = reader.read_line(&mut text);
        if first.is_ok() && text.trim_end() != READY {
            // An error may have several lines; a pipe that breaks ends it.
            let _read = reader.read_to_string(&mut text);
        }
        // The receiver may have given up; then nobody wants the report.
        let _unheard = sender.send(text);
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(text) if text.trim_end() == READY => Ok(pid),
        Ok(text) if text.trim().is_empty() => Err(DetachError::NotReady {
            reason: format!("it ended without a word; see {}", log.display()),
        }),
        Ok(text) => Err(DetachError::NotReady {
            reason: text.trim().to_owned(),
        }),
        Err(_) => Err(DetachError::Silent {
            waited: PATIENCE,
            log: log.to_owned(),
        }),
    }
}
