//! What the scripted agents of a test read.

use std::path::PathBuf;

use the_loop::demo::agent::{Entry, Record, heard, read};

use super::wait::eventually;

/// The log that one or more agents write.
#[derive(Debug, Clone)]
pub(crate) struct AgentLog {
    path: PathBuf,
}

impl AgentLog {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns all that is there.
    pub(crate) fn records(&self) -> Vec<Record> {
        read(&self.path).unwrap()
    }

    /// Returns the texts that were submitted, oldest first, without the boot prompts.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.records()
            .into_iter()
            .filter_map(|record| match record.entry {
                Entry::Message { text, .. } => Some(text),
                _ => None,
            })
            .collect()
    }

    /// Returns every text that an agent read, oldest first: boot prompts and messages.
    pub(crate) fn heard(&self) -> Vec<String> {
        heard(self.records())
    }

    /// Returns the agents that were started, oldest first.
    pub(crate) fn starts(&self) -> Vec<Record> {
        let mut found = self.records();
        found.retain(|record| matches!(record.entry, Entry::Start { .. }));
        found
    }

    /// Waits until an entry is of the wanted kind and returns it.
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&Entry) -> bool) -> Record {
        eventually(what, || {
            self.records()
                .into_iter()
                .find(|record| wanted(&record.entry))
        })
    }

    /// Waits until so many agents are ready to be told something.
    pub(crate) fn wait_ready(&self, agents: usize) {
        eventually("the agent is ready", || {
            let ready = self
                .records()
                .iter()
                .filter(|record| matches!(record.entry, Entry::Ready {}))
                .count();
            (ready >= agents).then_some(())
        });
    }

    /// Waits until a message with the text was submitted.
    pub(crate) fn wait_for_message(&self, part: &str) -> Record {
        self.wait_for(
            &format!("a message with {part:?}"),
            |entry| matches!(entry, Entry::Message { text, .. } if text.contains(part)),
        )
    }
}
