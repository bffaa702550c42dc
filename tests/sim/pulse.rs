//! The life of a daemon, and the instant of its end.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use the_loop::model::ProcessId;
use tokio::task::AbortHandle;

use crate::machine::StoryMachine;

/// When a daemon is killed, counted in its calls of tmux or its uses of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KilledAt {
    /// Before tmux is asked.
    Before(u64),
    /// When tmux was asked and has not answered.
    Under(u64),
    /// When tmux has done it, before anybody knows.
    After(u64),
    /// Before the store is used, and after everything before that.
    Store(u64),
}

/// Whether a daemon lives; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Pulse(Arc<Life>);

#[derive(Debug)]
struct Life {
    process: ProcessId,
    machine: StoryMachine,
    work: OnceLock<AbortHandle>,
    ended: AtomicBool,
}

impl Pulse {
    pub(crate) fn new(process: ProcessId, machine: StoryMachine) -> Self {
        Self(Arc::new(Life {
            process,
            machine,
            work: OnceLock::new(),
            ended: AtomicBool::new(false),
        }))
    }

    /// What stops when the daemon is killed.
    pub(crate) fn drives(&self, work: AbortHandle) {
        self.0.work.set(work).unwrap();
    }

    pub(crate) fn beats(&self) -> bool {
        !self.0.ended.load(Ordering::Relaxed)
    }

    /// Goes on only in a daemon that lives.
    pub(crate) async fn live(&self) {
        if !self.beats() {
            pending::<()>().await;
        }
    }

    /// Kills the daemon at this instant: nothing that it does comes after.
    pub(crate) fn stop(&self) {
        if self.0.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let pid = self.0.process.pid;
        self.0.machine.note(format!("daemon {pid} is killed"));
        self.0.machine.kill_daemon(self.0.process);
        if let Some(work) = self.0.work.get() {
            work.abort();
        }
    }
}
