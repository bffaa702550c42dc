//! What the runner knows from outside tmux: the process table, and the records of hosts.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::model::{BootId, HostPaths, OwnerId, ProcessId, Record};
use crate::process::identity::{self, Life};
use crate::process::signal::{self, Signal, SignalError};
use crate::process::ticket::{self, TicketState};

/// A machine's processes and run folders, real or modelled.
pub trait Machine: Send + Sync {
    /// Returns the time, as tmux's own guards read it.
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    /// Names the process that has this pid now.
    fn identify(&self, pid: i32) -> Option<ProcessId>;

    /// Tells whether a process recorded during `boot` still runs.
    fn life(&self, boot: &BootId, process: &ProcessId) -> Life;

    /// Returns the current boot.
    fn boot(&self) -> BootId;

    /// Signals the proven process.
    ///
    /// # Errors
    /// When it was not signalled.
    fn signal(&self, process: &ProcessId, signal: Signal) -> Result<(), SignalError>;

    /// Waits until the process has ended.
    fn exited(&self, process: &ProcessId) -> impl Future<Output = ()> + Send;

    /// Returns what the host of a spawn recorded; none when there is nothing readable.
    ///
    /// A record only ever adds evidence, so one that cannot be read counts as none. Read in place: it
    /// is a small file beside the database, and handing it to a thread costs more than reading it.
    fn record(&self, owner: &OwnerId) -> Option<Record>;

    /// Tells whether a spawn was given up before a host took its ticket: a host that tmux
    /// makes for it starts nothing and ends.
    fn is_given_up(&self, owner: &OwnerId) -> bool;
}

/// This machine, with run folders below a state root.
#[derive(Debug, Clone)]
pub struct LocalMachine {
    state_root: PathBuf,
}

impl LocalMachine {
    /// Reads records below `<state root>/run`.
    #[must_use]
    pub fn new(state_root: PathBuf) -> Self {
        Self { state_root }
    }
}

impl Machine for LocalMachine {
    fn identify(&self, pid: i32) -> Option<ProcessId> {
        identity::identify(pid)
    }

    fn life(&self, boot: &BootId, process: &ProcessId) -> Life {
        identity::life_in(boot, process)
    }

    fn boot(&self) -> BootId {
        identity::boot_id()
    }

    fn signal(&self, process: &ProcessId, signal: Signal) -> Result<(), SignalError> {
        signal::signal(process, signal)
    }

    async fn exited(&self, process: &ProcessId) {
        identity::exited(process).await;
    }

    fn record(&self, owner: &OwnerId) -> Option<Record> {
        match ticket::record(&HostPaths::new(&self.state_root, owner)) {
            Ok(record) => record.filter(|record| record.owner == *owner),
            Err(error) => {
                tracing::warn!(%owner, %error, "reading a host's record");
                None
            }
        }
    }

    fn is_given_up(&self, owner: &OwnerId) -> bool {
        ticket::state(&HostPaths::new(&self.state_root, owner))
            .is_ok_and(|state| state == TicketState::Revoked)
    }
}
