//! The log of what the agent read, for the demo's narrator and for tests.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// One line of the log; several agents may share a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Milliseconds since the epoch.
    pub at: u64,
    /// The agent's process.
    pub pid: u32,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What happened to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// It started; written before anything is read.
    Start {
        /// The conversation, where it was given one.
        session: Option<String>,
        /// Whether the conversation was there before.
        resumed: bool,
        /// The message it was started with.
        prompt: Option<String>,
        /// The directory it runs in.
        cwd: String,
        /// Its whole environment.
        env: BTreeMap<String, String>,
    },
    /// The terminal is raw and pastes are bracketed from now on.
    Ready {},
    /// Enter was pressed on a message.
    Message {
        /// What stood in the composer.
        text: String,
        /// Whether all of it came in brackets.
        bracketed: bool,
        /// What came in so far.
        counters: Counters,
    },
    /// The question at the start was answered.
    Answered {
        /// What came in so far.
        counters: Counters,
    },
    /// It ends.
    End {
        /// `asked`, `script`, `hangup` or `signal`.
        reason: String,
        /// The exit code that follows.
        code: u8,
        /// What came in so far.
        counters: Counters,
    },
}

/// What came in over the terminal, counted raw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes.
    pub bytes: u64,
    /// Bracketed pastes.
    pub pastes: u64,
    /// Enter keys, also those on an empty line.
    pub enters: u64,
    /// Pastes that a dialog swallowed.
    pub swallowed: u64,
    /// Changes of the terminal's size.
    pub resizes: u64,
}

/// Reads the complete lines of a log; none where there is no file yet.
///
/// # Errors
/// When the file cannot be read, or a complete line is not a record.
pub fn read(path: &Path) -> io::Result<Vec<Record>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}

/// Returns every text that agents read, in order: boot prompts and messages.
#[must_use]
pub fn heard(records: Vec<Record>) -> Vec<String> {
    records
        .into_iter()
        .filter_map(|record| match record.entry {
            Entry::Start { prompt, .. } => prompt,
            Entry::Message { text, .. } => Some(text),
            _ => None,
        })
        .collect()
}

/// Where entries go; nowhere without a file.
#[derive(Debug)]
pub(super) struct Journal {
    file: Option<File>,
}

impl Journal {
    pub(super) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path
            .map(|path| OpenOptions::new().append(true).create(true).open(path))
            .transpose()?;
        Ok(Self { file })
    }

    /// Writes one line and has it on disk before it returns.
    pub(super) fn write(&mut self, entry: Entry) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let record = Record {
            at: now(),
            pid: std::process::id(),
            entry,
        };
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_data()
    }
}

fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_a_torn_line_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(read(&path).unwrap(), []);

        let entry = Entry::Message {
            text: "one\ntwo".to_owned(),
            bracketed: true,
            counters: Counters::default(),
        };
        Journal::open(Some(&path))
            .unwrap()
            .write(entry.clone())
            .unwrap();
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"at\":1").unwrap();

        let records = read(&path).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].entry, entry);
    }
}
