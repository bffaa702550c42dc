//! Follows the log as it grows, over rotations.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::files::{FileId, open_if_there, rotated};
use super::lines::{Lines, Next};
use super::{Error, Filter, Record};

/// How long a reader that has seen everything waits before it looks again.
const PAUSE: Duration = Duration::from_millis(100);
/// How many lines one look reads at most.
const BATCH: usize = 256;

/// Where following begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// With the next record that is written.
    End,
    /// With the first record of the current file.
    CurrentFile,
}

/// Hands out records as they are written; none is lost or halved when the log is rotated.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    filter: Filter,
    open: Option<Open>,
    lines: Lines,
    ready: VecDeque<Record>,
    skipped: u64,
}

#[derive(Debug)]
struct Open {
    file: BufReader<File>,
    id: FileId,
}

impl Open {
    fn new((file, metadata): (File, std::fs::Metadata)) -> Self {
        Self {
            id: FileId::of(&metadata),
            file: BufReader::new(file),
        }
    }
}

impl Follower {
    /// Begins to follow; a log that does not exist yet is waited for.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the file is there but cannot be opened.
    pub fn open(path: &Path, filter: Filter, beginning: Beginning) -> Result<Self, Error> {
        let unreadable = Error::unreadable(path);
        let current = open_if_there(path).map_err(&unreadable)?;
        let there = match (current, rotated(path).map_err(&unreadable)?.pop()) {
            // Right after a rotation there may be no current file: the newest full one is where
            // the log ends.
            (None, Some((_, newest))) => open_if_there(&newest).map_err(&unreadable)?,
            (current, _) => current,
        };
        let mut open = there.map(Open::new);
        if let (Some(open), Beginning::End) = (&mut open, beginning) {
            open.file.seek(SeekFrom::End(0)).map_err(&unreadable)?;
        }
        Ok(Self {
            path: path.to_owned(),
            filter,
            open,
            lines: Lines::default(),
            ready: VecDeque::new(),
            skipped: 0,
        })
    }

    /// Returns the next record, waiting for it; nothing once `stop` is cancelled.
    pub async fn next(&mut self, stop: &CancellationToken) -> Option<Result<Record, Error>> {
        loop {
            if stop.is_cancelled() {
                return None;
            }
            match self.try_next() {
                Ok(Some(record)) => return Some(Ok(record)),
                Err(error) => return Some(Err(error)),
                Ok(None) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Returns the next record if it is there already.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the system refuses to read on.
    pub fn try_next(&mut self) -> Result<Option<Record>, Error> {
        while self.ready.is_empty() && self.look()? {}
        Ok(self.ready.pop_front())
    }

    /// Returns how many lines were no records so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads some lines; tells whether looking again at once may bring more.
    fn look(&mut self) -> Result<bool, Error> {
        if self.open.is_none() {
            return self.advance();
        }
        if self.read_lines()? {
            return Ok(true);
        }
        let unreadable = Error::unreadable(&self.path);
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        if FileId::at(&self.path).map_err(&unreadable)? != Some(open.id) {
            // Rotated after the end was seen: a record may have come in between.
            return Ok(self.read_lines()? || self.advance()?);
        }
        let length = open.file.get_ref().metadata().map_err(&unreadable)?.len();
        if open.file.stream_position().map_err(&unreadable)? > length {
            // Somebody emptied the file.
            open.file.seek(SeekFrom::Start(0)).map_err(&unreadable)?;
            self.skipped += u64::from(self.lines.give_up());
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads up to a batch of lines; tells whether there may be more in this file.
    fn read_lines(&mut self) -> Result<bool, Error> {
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        for _ in 0..BATCH {
            match self
                .lines
                .read(&mut open.file)
                .map_err(Error::unreadable(&self.path))?
            {
                Next::End => return Ok(false),
                Next::TooLong => self.skipped += 1,
                Next::Line => match Record::parse(self.lines.line()) {
                    Some(record) if self.filter.takes(&record) => self.ready.push_back(record),
                    Some(_) => {}
                    None => self.skipped += u64::from(!self.lines.line().trim_ascii().is_empty()),
                },
            }
        }
        Ok(true)
    }

    /// Goes on to the file that follows the one that was read to its end; tells whether there is one.
    ///
    /// The finished file stays open until then, so that no other can be taken for it.
    fn advance(&mut self) -> Result<bool, Error> {
        // The current file is opened first, so that a rotation right now cannot hide one.
        let current = self.open_path(&self.path)?;
        let done = self.open.as_ref().map(|open| open.id);
        let mut later = Vec::new();
        for (_, path) in rotated(&self.path).map_err(Error::unreadable(&self.path))? {
            if let Some(open) = self.open_path(&path)? {
                if Some(open.id) == done {
                    later.clear();
                } else {
                    later.push(open);
                }
            }
        }
        let Some(next) = later.into_iter().next().or(current) else {
            return Ok(false);
        };
        self.skipped += u64::from(self.lines.give_up());
        self.open = Some(next);
        Ok(true)
    }

    fn open_path(&self, path: &Path) -> Result<Option<Open>, Error> {
        let opened = open_if_there(path).map_err(Error::unreadable(path))?;
        Ok(opened.map(Open::new))
    }
}
