//! What people wrote in a story.

use the_loop::model::EventKey;

/// A text of somebody whose words count.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) item: u64,
    pub(crate) number: u64,
    pub(crate) at_ms: i64,
    /// Of its first version.
    pub(crate) key: EventKey,
    /// Its comment, where GitHub has it.
    pub(crate) comment: Option<u64>,
    pub(crate) edits: u64,
    pub(crate) deleted: bool,
}

impl Said {
    /// What marks the versions of the text wherever they appear, in order.
    pub(crate) fn marks(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        (0..=self.edits).map(|edit| mark(self.item, self.number, edit))
    }

    /// What marks the text as it is in the end.
    pub(crate) fn last_mark(&self) -> String {
        mark(self.item, self.number, self.edits)
    }

    /// Tells whether it stayed as it was written.
    pub(crate) fn is_as_written(&self) -> bool {
        self.edits == 0 && !self.deleted
    }
}

pub(crate) fn mark(item: u64, number: u64, edit: u64) -> String {
    match edit {
        0 => format!("<text {number} for {item}>"),
        _ => format!("<text {number} for {item}, edit {edit}>"),
    }
}

/// What marks the words of somebody who may not command any agent.
pub(crate) const STRANGER: &str = "<words of a stranger>";
