//! Appends lines to a file that several processes share and that is rotated by size.
//!
//! A line is one `write` on a file opened for appending, so lines of different processes never mix.
//! Writers share a lock while they write and a rotation needs it alone, so a file that was rotated
//! is complete: its readers may go on to the next. No lock is waited for long; a stopped process
//! delays a rotation, never a line.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::files::{FileId, beside, rotated};

/// When a log file is full, and how many full ones are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The size in bytes above which a file is rotated.
    pub max_bytes: u64,
    /// How many rotated files stay beside the current one.
    pub keep_files: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            max_bytes: 10 * 1024 * 1024,
            keep_files: 5,
        }
    }
}

/// A rotation takes some hundred microseconds; a writer waits for one this often, then writes anyway.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_micros(200);

#[derive(Debug)]
pub(super) struct Appender {
    path: PathBuf,
    rotation: Rotation,
    open: Option<Open>,
    lock: Option<File>,
}

#[derive(Debug)]
struct Open {
    file: File,
    id: FileId,
    /// The last byte is not a line's end: a write was cut short, by a full disk or a killed machine.
    torn: bool,
}

impl Appender {
    pub(super) fn new(path: PathBuf, rotation: Rotation) -> Self {
        Self {
            path,
            rotation,
            open: None,
            lock: None,
        }
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Appends one line, which ends with a newline and holds no other.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        let outcome = self.rotate_if_full().and_then(|()| {
            let locked = self.lock_shared()?;
            let outcome = self.write(line);
            if locked {
                self.unlock()?;
            }
            outcome
        });
        if outcome.is_err() {
            self.open = None;
        }
        outcome
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let open = self.current()?;
        // The torn line is ended in the same write, so that only it is lost.
        let repaired = open.torn.then(|| format!("\n{line}"));
        let bytes = repaired.as_deref().unwrap_or(line).as_bytes();
        open.torn = true;
        let written = loop {
            match open.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written < bytes.len() {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "only a part of the line was written",
            ));
        }
        open.torn = false;
        Ok(())
    }

    /// Returns the file at the path, opening it anew where another process rotated it.
    fn current(&mut self) -> io::Result<&mut Open> {
        let there = FileId::at(&self.path)?;
        let ours = self.open.take().filter(|open| Some(open.id) == there);
        let open = match ours {
            Some(open) => open,
            None => self.open_file()?,
        };
        Ok(self.open.insert(open))
    }

    fn open_file(&self) -> io::Result<Open> {
        let file = self.create(&self.path)?;
        let metadata = file.metadata()?;
        let mut last = [b'\n'];
        if let Some(at) = metadata.len().checked_sub(1) {
            file.read_exact_at(&mut last, at)?;
        }
        Ok(Open {
            id: FileId::of(&metadata),
            file,
            torn: last != *b"\n",
        })
    }

    fn create(&self, path: &PathBuf) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    DirBuilder::new()
                        .recursive(true)
                        .mode(0o700)
                        .create(folder)?;
                }
                options.open(path)
            }
            other => other,
        }
    }

    fn rotate_if_full(&mut self) -> io::Result<()> {
        let max_bytes = self.rotation.max_bytes;
        let full = |open: &Open| Ok::<_, io::Error>(open.file.metadata()?.len() >= max_bytes);
        if !full(self.current()?)? {
            return Ok(());
        }
        match self.lock()?.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Somebody else may have rotated before the lock was ours.
        let outcome = self
            .current()
            .and_then(|open| full(open))
            .and_then(|full| if full { self.rotate() } else { Ok(()) });
        self.unlock()?;
        outcome
    }

    fn rotate(&mut self) -> io::Result<()> {
        let old = rotated(&self.path)?;
        let next = old.last().map_or(1, |(number, _)| number + 1);
        fs::rename(&self.path, beside(&self.path, &format!(".{next}")))?;
        self.open = None;
        let surplus = (old.len() + 1).saturating_sub(self.rotation.keep_files);
        let newest = beside(&self.path, &format!(".{next}"));
        let all = old.into_iter().map(|(_, path)| path).chain([newest]);
        for path in all.take(surplus) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn lock(&mut self) -> io::Result<&File> {
        let lock = match self.lock.take() {
            Some(lock) => lock,
            None => self.create(&beside(&self.path, ".lock"))?,
        };
        Ok(self.lock.insert(lock))
    }

    /// Tells whether the lock was got; without it the line is written all the same.
    fn lock_shared(&mut self) -> io::Result<bool> {
        let lock = self.lock()?;
        for _ in 0..LOCK_TRIES {
            match lock.try_lock_shared() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    fn unlock(&mut self) -> io::Result<()> {
        self.lock()?.unlock()
    }
}
