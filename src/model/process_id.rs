//! A process that cannot be mistaken for a later one with the same number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process, named by its pid and its start time.
///
/// The pid alone is reused by the system; both together name one process of one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number; always above 1.
    pub pid: i32,
    /// When it started: clock ticks since boot on Linux (`/proc/<pid>/stat`, field 22), microseconds
    /// since the epoch on macOS.
    pub start: u64,
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)
    }
}

/// One boot of one machine: every process recorded under another boot id is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_the_pid() {
        assert_eq!(ProcessId { pid: 41, start: 7 }.to_string(), "41");
    }
}
