//! The one-daemon-per-state-root lock.
//!
//! The kernel's lock on the open file is the truth: it is freed when the holder ends, however it
//! ends. What the file says about the holder is information, and is believed only while the lock is
//! held and the process it names is the one that wrote it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::model::{BootId, ProcessId};
use crate::process::identity::{Life, boot_id, life_in, own};

/// How often the lock is tried while nobody proves to hold it, and the pause in between.
const LOOKS: u32 = 10;
const LOOK_LASTS: Duration = Duration::from_millis(10);

/// Why the lock could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon holds it.
    #[error("{} is held by a running daemon{}", path.display(), named(holder.as_ref()))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, where the file says so and the process proves it.
        holder: Option<Holder>,
    },
    /// The file could not be opened, read or written.
    #[error("cannot use the lock file {}: {source}; check the permissions of its folder", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn named(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| {
        format!(
            " (pid {}, since {})",
            holder.process,
            holder.since.to_rfc3339_opts(SecondsFormat::Secs, true)
        )
    })
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Its process.
    pub process: ProcessId,
    /// The boot it runs in.
    pub boot: BootId,
    /// Its version.
    pub version: String,
    /// When it took the lock.
    pub since: DateTime<Utc>,
}

/// The held lock; dropping it lets it go.
#[derive(Debug)]
pub struct InstanceLock {
    _file: File,
}

impl InstanceLock {
    /// Takes the lock, and writes who took it.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process has it; the file is not touched then.
    pub fn acquire(path: &Path, since: DateTime<Utc>) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = open(path).map_err(io)?;
        match try_for_a_moment(&mut file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    path: path.to_owned(),
                    holder: proven_holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let holder = Holder {
            process: own(),
            boot: boot_id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since,
        };
        let text = serde_json::to_vec(&holder).map_err(|error| io(error.into()))?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&text))
            .map_err(io)?;
        Ok(Self { _file: file })
    }

    /// Tells who holds the lock, without taking it.
    ///
    /// # Errors
    /// [`LockError::Io`] when the file exists and cannot be read.
    pub fn state(path: &Path) -> Result<LockState, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(LockState::Free);
            }
            Err(source) => return Err(io(source)),
        };
        // A shared lock is refused exactly while somebody holds the exclusive one.
        match file.try_lock_shared() {
            Ok(()) => Ok(LockState::Free),
            Err(TryLockError::WouldBlock) => Ok(LockState::Held(proven_holder(&mut file))),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }
}

/// Whether somebody holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// Nobody does.
    Free,
    /// Somebody does: who, where the process proves it.
    Held(Option<Holder>),
}

/// Takes the lock; waits a moment where nobody proves to hold it: a look at it takes it too.
fn try_for_a_moment(file: &mut File) -> Result<(), TryLockError> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if proven_holder(file).is_none() => {
                std::thread::sleep(LOOK_LASTS);
            }
            settled => return settled,
        }
    }
    file.try_lock()
}

fn open(path: &Path) -> std::io::Result<File> {
    // Close-on-exec is the standard library's default: a tmux server started by the daemon must not
    // inherit the file, or it would hold the lock for as long as it lives.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn proven_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind()
        .and_then(|()| file.take(4096).read_to_string(&mut text))
        .ok()?;
    let holder: Holder = serde_json::from_str(&text).ok()?;
    (life_in(&holder.boot, &holder.process) == Life::Running).then_some(holder)
}

#[cfg(test)]
#[expect(clippy::panic, reason = "how a test of a variant fails")]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_is_refused_and_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("poll.lock");
        let held = InstanceLock::acquire(&path, Utc::now()).unwrap();

        let refused = InstanceLock::acquire(&path, Utc::now()).unwrap_err();
        let LockError::Held {
            holder: Some(holder),
            ..
        } = refused
        else {
            panic!("{refused}")
        };
        assert_eq!(holder.process, own());
        assert!(matches!(
            InstanceLock::state(&path).unwrap(),
            LockState::Held(Some(_))
        ));

        drop(held);
        assert_eq!(InstanceLock::state(&path).unwrap(), LockState::Free);
        InstanceLock::acquire(&path, Utc::now()).unwrap();
    }

    #[test]
    fn a_file_that_names_another_process_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("poll.lock");
        let held = InstanceLock::acquire(&path, Utc::now()).unwrap();
        let foreign = serde_json::json!({"process": {"pid": 1, "start": 1}, "boot": boot_id(), "version": "0", "since": Utc::now()});
        std::fs::write(&path, foreign.to_string()).unwrap();

        assert_eq!(InstanceLock::state(&path).unwrap(), LockState::Held(None));
        drop(held);
    }
}
