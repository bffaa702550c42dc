//! The folder that the whole demo lives in, removed when it is dropped.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A socket's path may have 104 bytes on macOS and 108 on Linux, its end included.
const MAX_SOCKET_PATH: usize = 100;

/// The folders that the demo's parts expect.
const PARTS: [&str; 5] = ["home", "tmux", "state", "work", "conversations"];

/// A folder that is removed with everything in it when it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Makes it below the system's folder for temporary files, or in `/tmp` where that one is
    /// missing or so deep that tmux could not bind its socket.
    pub(super) fn make(socket: &Path) -> io::Result<Self> {
        Self::make_in(&[std::env::temp_dir(), PathBuf::from("/tmp")], socket)
    }

    fn make_in(places: &[PathBuf], socket: &Path) -> io::Result<Self> {
        let mut refused = io::Error::other("no folder for temporary files is short enough");
        for place in places {
            let place = match place.canonicalize() {
                Ok(place) => place,
                Err(error) => {
                    refused = error;
                    continue;
                }
            };
            let id = uuid::Uuid::new_v4().simple().to_string();
            let root = place.join(format!("the-loop-demo-{}", id.get(..8).unwrap_or(&id)));
            if root.join(socket).as_os_str().len() > MAX_SOCKET_PATH {
                continue;
            }
            match Self::fill(root) {
                Ok(folder) => return Ok(folder),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn fill(root: PathBuf) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        // Fails where somebody has taken the name: what lies there is not ours.
        builder.create(&root)?;
        let folder = Self { root };
        for part in PARTS {
            builder.create(folder.root.join(part))?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.root
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.root) {
            tracing::warn!("cannot remove {}: {error}", self.root.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKET: &str = "tmux/tmux-1000/s";

    #[test]
    fn a_folder_for_temporary_files_that_is_too_deep_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(90));
        std::fs::create_dir(&deep).unwrap();

        let folder = Folder::make_in(&[deep, dir.path().to_owned()], Path::new(SOCKET)).unwrap();

        let place = dir.path().canonicalize().unwrap();
        assert_eq!(folder.path().parent(), Some(place.as_path()));
        assert!(folder.path().join("tmux").is_dir());
    }

    #[test]
    fn a_missing_folder_for_temporary_files_is_passed_over_and_nothing_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let places = [dir.path().join("missing"), dir.path().to_owned()];

        let folder = Folder::make_in(&places, Path::new(SOCKET)).unwrap();
        let root = folder.path().to_owned();
        drop(folder);

        assert!(!root.exists());
        assert!(Folder::make_in(&places[..1], Path::new(SOCKET)).is_err());
    }
}
