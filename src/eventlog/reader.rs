//! Reads the log back, rotated files first, one record at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::files::{FileId, open_if_there, rotated};
use super::lines::{Lines, Next};
use super::{Filter, Record};

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot read the event log {}: {source}; check who owns it", path.display())]
    Unreadable {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(super) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Unreadable {
            path: path.clone(),
            source,
        }
    }
}

/// The records that a filter takes, the oldest first.
///
/// Holds one record at a time, whatever the size of the log. Lines that are no records are passed
/// over and counted.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    filter: Filter,
    files: VecDeque<BufReader<File>>,
    lines: Lines,
    skipped: u64,
}

/// Opens the log for reading; a log that does not exist yet is empty.
///
/// # Errors
/// [`Error::Unreadable`] when a file is there but cannot be opened.
pub fn read(path: &Path, filter: Filter) -> Result<Reader, Error> {
    let unreadable = Error::unreadable(path);
    // The current file first: one that is rotated meanwhile is found twice, never missed.
    let current = open_if_there(path).map_err(&unreadable)?;
    let mut seen: Vec<FileId> = Vec::new();
    let mut files = VecDeque::new();
    let rotated = rotated(path).map_err(&unreadable)?;
    for (_, old) in rotated {
        let Some((file, metadata)) = open_if_there(&old).map_err(Error::unreadable(&old))? else {
            continue;
        };
        let ended = metadata.modified().ok().map(DateTime::<Utc>::from);
        seen.push(FileId::of(&metadata));
        let too_old = matches!((ended, filter.since), (Some(ended), Some(since)) if ended < since);
        if !too_old {
            files.push_back(BufReader::new(file));
        }
    }
    if let Some((file, metadata)) = current
        && !seen.contains(&FileId::of(&metadata))
    {
        files.push_back(BufReader::new(file));
    }
    Ok(Reader {
        path: path.to_owned(),
        filter,
        files,
        lines: Lines::default(),
        skipped: 0,
    })
}

impl Reader {
    /// Returns how many lines were no records so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Iterator for Reader {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let file = self.files.front_mut()?;
            match self.lines.read(file) {
                Ok(Next::Line) => {
                    let line = self.lines.line();
                    match Record::parse(line) {
                        Some(record) if self.filter.takes(&record) => return Some(Ok(record)),
                        Some(_) => {}
                        None => self.skipped += u64::from(!line.trim_ascii().is_empty()),
                    }
                }
                Ok(Next::TooLong) => self.skipped += 1,
                Ok(Next::End) => {
                    self.skipped += u64::from(self.lines.give_up());
                    self.files.pop_front();
                }
                Err(error) => {
                    self.files.clear();
                    return Some(Err(Error::unreadable(&self.path)(error)));
                }
            }
        }
    }
}

/// The last records that a filter takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// The records, the oldest first.
    pub records: Vec<Record>,
    /// How many lines were no records.
    pub skipped: u64,
}

/// Reads the last `limit` records that the filter takes.
///
/// # Errors
/// [`Error::Unreadable`] when a file is there but cannot be read.
pub fn tail(path: &Path, filter: Filter, limit: usize) -> Result<Tail, Error> {
    let mut reader = read(path, filter)?;
    let mut last = VecDeque::new();
    for record in reader.by_ref() {
        last.push_back(record?);
        if last.len() > limit {
            last.pop_front();
        }
    }
    Ok(Tail {
        records: last.into(),
        skipped: reader.skipped(),
    })
}
