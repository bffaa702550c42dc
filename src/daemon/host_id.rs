//! Which host this is, for sessions and claims: an id of its own, because host names change.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Why the host has no id.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the host's id in {}: {problem}; if the file is damaged, remove it", path.display())]
pub struct HostIdError {
    path: PathBuf,
    problem: String,
}

/// Returns the id of this host in a state root; the first call makes it.
///
/// # Errors
/// When the file cannot be read or made, or holds no id.
pub(super) fn of(state_root: &Path) -> Result<String, HostIdError> {
    let path = state_root.join("host-id");
    let failed = |problem: String| HostIdError {
        path: path.clone(),
        problem,
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => match Uuid::try_parse(text.trim()) {
            Ok(id) => return Ok(id.to_string()),
            Err(error) => return Err(failed(error.to_string())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error.to_string())),
    }
    match make(&path) {
        Ok(id) => Ok(id),
        // Another process was faster: its id counts.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => of(state_root),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Writes a new id beside its place and links it there whole, so that nobody reads a half of it.
fn make(path: &Path) -> std::io::Result<String> {
    let id = Uuid::new_v4().to_string();
    let partial = path.with_extension(Uuid::new_v4().simple().to_string());
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&partial, path);
    std::fs::remove_file(&partial)?;
    linked.map(|()| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_made_once_and_read_by_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let ids: Vec<String> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| of(dir.path()).unwrap()))
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_id_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("host-id"), "x").unwrap();
        let error = of(dir.path()).unwrap_err().to_string();
        assert!(error.contains("host-id"), "{error}");
    }
}
