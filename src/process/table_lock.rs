//! One process table at a time on a state root.
//!
//! Pids and start times prove who is dead only among processes that see each other. Two containers,
//! or two machines that share the folder, do not, and each would call the other's agents dead. So
//! whoever works on a state root, the hosts in their panes too, holds a shared lock of the kernel on a
//! file that names its process table; another name is written only while nobody holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::identity::process_table;

const FILE: &str = "process-table.lock";

/// How often the file is tried while somebody else holds it, and the pause in between: another that
/// joins holds it for a moment too.
const LOOKS: u32 = 50;
const LOOK_LASTS: Duration = Duration::from_millis(20);

/// Why a process may not work on a state root.
#[derive(Debug, thiserror::Error)]
pub enum TableLockError {
    /// Processes of another process table work on it, or their agents run.
    #[error(
        "{} is held by processes that this one cannot see, in another container or on another machine, so it \
         cannot tell whether their agents run; stop them, or give each a state.root of its own",
        path.display()
    )]
    Elsewhere {
        /// The lock file.
        path: PathBuf,
    },
    /// The file could not be opened, read or written.
    #[error("cannot use the lock file {}: {source}; check the permissions of its folder", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The held lock; dropping it lets it go.
#[derive(Debug)]
pub struct TableLock {
    _file: File,
}

impl TableLock {
    /// Joins those of this process table that work on the state root.
    ///
    /// Waits up to a second for others to let go.
    ///
    /// # Errors
    /// [`TableLockError::Elsewhere`] while others hold it.
    pub fn join(state_root: &Path) -> Result<Self, TableLockError> {
        Self::join_as(state_root, &process_table())
    }

    fn join_as(state_root: &Path, table: &str) -> Result<Self, TableLockError> {
        let path = state_root.join(FILE);
        for _ in 0..LOOKS {
            let tried = attempt(&path, table).map_err(|source| TableLockError::Io {
                path: path.clone(),
                source,
            })?;
            match tried {
                Some(file) => return Ok(Self { _file: file }),
                None => std::thread::sleep(LOOK_LASTS),
            }
        }
        Err(TableLockError::Elsewhere { path })
    }
}

/// Returns the file, locked, where it names this table by now.
fn attempt(path: &Path, table: &str) -> io::Result<Option<File>> {
    let mut file = open(path)?;
    if is_taken(file.try_lock_shared())? {
        return Ok(None);
    }
    if names(&mut file, table)? {
        return Ok(Some(file));
    }
    file.unlock()?;
    if is_taken(file.try_lock())? {
        return Ok(None);
    }
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(table.as_bytes())?;
    // The kernel may let another in when one lock becomes the other: whose name stands is read again.
    file.lock_shared()?;
    Ok(names(&mut file, table)?.then_some(file))
}

fn is_taken(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn names(file: &mut File, table: &str) -> io::Result<bool> {
    let mut text = String::new();
    file.rewind()?;
    file.take(4096).read_to_string(&mut text)?;
    Ok(text == table)
}

fn open(path: &Path) -> io::Result<File> {
    // Close-on-exec is the standard library's default: neither a tmux server nor an agent inherits it.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_see_each_other_work_on_one_state_root_together() {
        let dir = tempfile::tempdir().unwrap();
        let all = std::thread::scope(|scope| {
            let joining: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| TableLock::join(dir.path())))
                .collect();
            joining
                .into_iter()
                .filter_map(|one| one.join().unwrap().ok())
                .count()
        });
        assert_eq!(all, 8);
    }

    #[test]
    fn another_process_table_is_refused_until_nobody_of_the_first_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let daemon = TableLock::join_as(dir.path(), "one").unwrap();
        let host = TableLock::join_as(dir.path(), "one").unwrap();
        drop(daemon);

        let refused = TableLock::join_as(dir.path(), "two").unwrap_err();

        assert!(matches!(refused, TableLockError::Elsewhere { .. }));
        let text = refused.to_string();
        assert!(text.contains("state.root of its own"), "{text}");
        TableLock::join_as(dir.path(), "one").unwrap();
        drop(host);
        let successor = TableLock::join_as(dir.path(), "two").unwrap();
        TableLock::join_as(dir.path(), "one").unwrap_err();
        drop(successor);
    }

    #[test]
    fn a_torn_name_is_nobodys() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "on").unwrap();
        TableLock::join_as(dir.path(), "one").unwrap();
    }
}
