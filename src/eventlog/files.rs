//! The names of the log's files, and which file is which.
//!
//! `events.jsonl` is written to; a full one becomes `events.jsonl.<n>`, with numbers that only grow.
//! So a rotation is one rename, a rotated file never changes its name, and a reader that looks at
//! the current file first and at the numbered ones after it can miss none.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file, whatever it is called at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Returns which file stands at `path`, if any does.
    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Opens a file that may be gone.
pub(super) fn open_if_there(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    match File::open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            Ok(Some((file, metadata)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns `<path><suffix>`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the rotated files, the oldest first, with their numbers.
pub(super) fn rotated(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return Ok(Vec::new());
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let number = entry
            .file_name()
            .to_str()
            .and_then(|file| file.strip_prefix(name)?.strip_prefix('.')?.parse().ok());
        if let Some(number) = number {
            found.push((number, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}
