//! The record of the harness, written so that it is never half there and never goes back.

use std::time::Instant;

use super::retry::Retry;
use crate::clock::{Clock, SystemClock};
use crate::model::{HostPaths, OwnerId, PaneId, Phase, Record};
use crate::process::{identity, ticket};

/// The record file and what belongs into it.
pub(super) struct Journal {
    paths: HostPaths,
    record: Record,
    /// When to write again what could not be written.
    pending: Option<Instant>,
    retry: Retry,
}

impl Journal {
    /// Records that the ticket is taken.
    pub(super) fn begin(paths: &HostPaths, owner: OwnerId, pane: PaneId) -> Self {
        let mut journal = Self {
            paths: paths.clone(),
            record: Record {
                v: Record::VERSION,
                owner,
                host: identity::own(),
                boot: identity::boot_id(),
                pane,
                started_ms: None,
                phase: Phase::Starting,
            },
            pending: None,
            retry: Retry::new(),
        };
        journal.write();
        journal
    }

    pub(super) fn owner(&self) -> &OwnerId {
        &self.record.owner
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.record.phase
    }

    /// Records a later phase. A file that cannot be written stops nothing: it is tried again.
    pub(super) fn advance(&mut self, phase: Phase) {
        if rank(&phase) > rank(&self.record.phase) {
            if matches!(phase, Phase::Running { .. }) {
                self.record.started_ms = Some(SystemClock.now().timestamp_millis());
            }
            self.record.phase = phase;
            self.write();
        }
    }

    /// When [`Self::try_again`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pending
    }

    /// Writes what could not be written, if its time has come.
    pub(super) fn try_again(&mut self) {
        if self.pending.is_some_and(|due| due <= Instant::now()) {
            self.write();
        }
    }

    fn write(&mut self) {
        let written = serde_json::to_vec(&self.record)
            .is_ok_and(|text| ticket::write_private(&self.paths.record(), &text).is_ok());
        self.pending = (!written).then(|| self.retry.next(Instant::now()));
    }
}

fn rank(phase: &Phase) -> u8 {
    match phase {
        Phase::Starting => 0,
        Phase::Running { .. } => 1,
        Phase::Ended { .. } => 2,
    }
}
