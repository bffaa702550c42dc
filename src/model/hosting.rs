//! What the daemon and the pane's own process tell each other, through files.
//!
//! `<state.root>/run/<owner>/` holds one spawn: `ticket`, `prompt`, `record`. The host takes the ticket
//! by renaming it to `taken`; whoever gives the spawn up renames it to `revoked`. One rename wins. Hosts outlive daemons, so both formats carry a version and are read
//! by older and newer programs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BootId, OwnerId, PaneId, ProcessId, TmuxSocket, WorkItemRef};

/// The ticket of a spawn: everything that the host needs to start exactly one harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// The format's version.
    pub v: u32,
    /// The spawn.
    pub owner: OwnerId,
    /// The work item, for messages.
    pub work_item: WorkItemRef,
    /// The server to report the exit to.
    pub socket: TmuxSocket,
    /// The absolute path of tmux.
    pub tmux: PathBuf,
    /// The absolute directory to start in.
    pub cwd: PathBuf,
    /// The program, absolute, and its arguments; the prompt is not among them.
    pub argv: Vec<String>,
    /// The whole environment of the harness, but for `TERM`, which the pane gives. Emptied in the
    /// taken ticket, so that no secret stays on disk.
    pub env: BTreeMap<String, String>,
    /// Whether the content of `prompt` becomes the last argument.
    pub prompt: PromptPassing,
    /// Milliseconds since the epoch after which the ticket is void.
    pub not_after_ms: i64,
    /// How long the harness's group may take to end after TERM before it is killed.
    pub grace_ms: u64,
    /// What becomes of the pane when the harness has ended.
    pub after_end: AfterEnd,
}

impl Ticket {
    /// The version that this program writes.
    pub const VERSION: u32 = 1;

    /// Tells whether the ticket is void by now.
    #[must_use]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        now_ms > self.not_after_ms
    }
}

/// What becomes of the pane when the harness has ended (`routing.tmux.remainOnExit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterEnd {
    /// The host stays, so that the last screen can be read.
    KeepScreen,
    /// The host ends too, and tmux closes the session.
    CloseSession,
}

/// How the boot prompt reaches the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptPassing {
    /// There is none.
    None,
    /// As the last argument.
    LastArgument,
}

/// What the host knows of its harness; the truth about how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The format's version.
    pub v: u32,
    /// The spawn.
    pub owner: OwnerId,
    /// The host's own process.
    pub host: ProcessId,
    /// The boot in which all of this happens.
    pub boot: BootId,
    /// The pane that the host runs in.
    pub pane: PaneId,
    /// When the harness was let go, in milliseconds since the epoch; none before, and in the records
    /// of hosts that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    /// How far the harness is; never goes back.
    #[serde(flatten)]
    pub phase: Phase,
}

/// How far a hosted harness is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "phase",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Phase {
    /// The ticket is taken, the harness not yet forked.
    Starting,
    /// The harness runs.
    Running {
        /// Its process, which also leads its own group.
        harness: ProcessId,
    },
    /// The harness ended, or could not be started.
    Ended {
        /// Its process, where it was started.
        harness: Option<ProcessId>,
        /// How.
        ending: Ending,
        /// Milliseconds since the epoch.
        at_ms: i64,
    },
}

impl Record {
    /// The version that this program writes.
    pub const VERSION: u32 = 1;

    /// Returns how long the harness ran, until its end or until `now_ms`.
    ///
    /// None where the record does not tell, or the clock was put back in between.
    #[must_use]
    pub fn ran_for(&self, now_ms: i64) -> Option<Duration> {
        let until = match self.phase {
            Phase::Starting => return None,
            Phase::Running { .. } => now_ms,
            Phase::Ended { at_ms, .. } => at_ms,
        };
        let ran = until.checked_sub(self.started_ms?)?;
        u64::try_from(ran).ok().map(Duration::from_millis)
    }

    /// Tells whether the harness has ended, and had run for the whole probe window by then.
    #[must_use]
    pub fn ended_after(&self, window: Duration) -> bool {
        match &self.phase {
            Phase::Ended {
                ending: Ending::Code(_) | Ending::Signal(_),
                at_ms,
                ..
            } => self.ran_for(*at_ms).is_some_and(|ran| ran >= window),
            Phase::Ended { .. } | Phase::Starting | Phase::Running { .. } => false,
        }
    }
}

impl Phase {
    /// Returns the harness's process, where one was started.
    #[must_use]
    pub fn harness(&self) -> Option<ProcessId> {
        match self {
            Self::Starting => None,
            Self::Running { harness } => Some(*harness),
            Self::Ended { harness, .. } => *harness,
        }
    }
}

/// How a harness ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It never ran; why.
    Failed(String),
}

/// The word in the pane option `@loop_exit`: `code:7`, `signal:9` or `failed`; never free text.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code:{code}"),
            Self::Signal(signal) => write!(f, "signal:{signal}"),
            Self::Failed(_) => f.write_str("failed"),
        }
    }
}

/// The names of the files of one spawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPaths {
    dir: PathBuf,
}

impl HostPaths {
    /// Returns the names below `<state root>/run/<owner>`.
    #[must_use]
    pub fn new(state_root: &Path, owner: &OwnerId) -> Self {
        Self {
            dir: Self::all(state_root).join(owner.as_str()),
        }
    }

    /// Returns the folder that holds those of all spawns.
    #[must_use]
    pub fn all(state_root: &Path) -> PathBuf {
        state_root.join("run")
    }

    /// Returns the names beside a ticket file, for the host.
    #[must_use]
    pub fn beside(ticket: &Path) -> Option<Self> {
        ticket.parent().map(|dir| Self {
            dir: dir.to_owned(),
        })
    }

    /// The folder; 0700.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The ticket, while nobody took it.
    #[must_use]
    pub fn ticket(&self) -> PathBuf {
        self.dir.join("ticket")
    }

    /// The ticket, taken by the host.
    #[must_use]
    pub fn taken(&self) -> PathBuf {
        self.dir.join("taken")
    }

    /// The ticket, given up.
    #[must_use]
    pub fn revoked(&self) -> PathBuf {
        self.dir.join("revoked")
    }

    /// The boot prompt.
    #[must_use]
    pub fn prompt(&self) -> PathBuf {
        self.dir.join("prompt")
    }

    /// The host's record.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        self.dir.join("record")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_word_carries_no_free_text() {
        assert_eq!(Ending::Code(7).to_string(), "code:7");
        assert_eq!(Ending::Signal(9).to_string(), "signal:9");
        let failed = Ending::Failed("; kill-server".to_owned());
        assert_eq!(failed.to_string(), "failed");
    }

    #[test]
    fn a_record_is_flat_json_that_later_versions_can_extend() {
        let json = r#"{"v":1,"owner":"0b6f3a52-6a0e-4a43-9c58-000000000001","host":{"pid":41,"start":7},
            "boot":"b","pane":"%3","phase":"running","harness":{"pid":42,"start":8},"later":true}"#;
        let record: Record = serde_json::from_str(json).unwrap();
        assert_eq!(
            record.phase.harness(),
            Some(ProcessId { pid: 42, start: 8 })
        );
        assert_eq!(record.ran_for(1_000), None, "it does not tell");
    }

    #[test]
    fn a_harness_ran_until_its_end_or_until_now() {
        let started = Record {
            v: Record::VERSION,
            owner: OwnerId::mint(),
            host: ProcessId { pid: 41, start: 7 },
            boot: BootId("b".to_owned()),
            pane: "%3".parse().unwrap(),
            started_ms: Some(1_000),
            phase: Phase::Running {
                harness: ProcessId { pid: 42, start: 8 },
            },
        };
        assert_eq!(started.ran_for(1_300), Some(Duration::from_millis(300)));
        assert_eq!(started.ran_for(900), None, "the clock was put back");
        let ended = Record {
            phase: Phase::Ended {
                harness: None,
                ending: Ending::Code(1),
                at_ms: 1_200,
            },
            ..started
        };
        assert_eq!(ended.ran_for(9_000), Some(Duration::from_millis(200)));
        assert!(ended.ended_after(Duration::from_millis(200)));
        assert!(!ended.ended_after(Duration::from_millis(201)));
    }
}
