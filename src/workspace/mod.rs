//! Where an agent works: the directory that its harness starts in.
//!
//! Never falls back to another directory: without the right one there is no spawn.

use std::path::{Path, PathBuf};

use crate::process::blocking;

/// Why there is no directory to work in.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The directory is missing or is not one.
    #[error("{} is not a directory that the agent could work in: create it, or correct routing.spawnWorkdir", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Checks that `dir` can be worked in and returns its real path.
///
/// Respawns resume a conversation by its directory, so what is recorded must not change its meaning
/// with the caller's own directory or a moved link.
///
/// # Errors
/// When it does not exist, is no directory, or cannot be entered.
pub async fn prepare(dir: &Path) -> Result<PathBuf, WorkspaceError> {
    // Beside the runtime: the directory may lie on a disk that takes its time.
    let path = dir.to_owned();
    let checked = blocking(move || Ok(check(&path))).await;
    checked.unwrap_or_else(|source| {
        Err(WorkspaceError::Io {
            path: dir.to_owned(),
            source,
        })
    })
}

fn check(dir: &Path) -> Result<PathBuf, WorkspaceError> {
    let io = |source| WorkspaceError::Io {
        path: dir.to_owned(),
        source,
    };
    let real = match dir.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(WorkspaceError::NotADirectory {
                path: dir.to_owned(),
            });
        }
        Err(source) => return Err(io(source)),
    };
    if !real.is_dir() {
        return Err(WorkspaceError::NotADirectory {
            path: dir.to_owned(),
        });
    }
    std::fs::read_dir(&real).map_err(io)?;
    Ok(real)
}
