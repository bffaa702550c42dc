//! Ending a live agent on purpose: its own host does it, nobody else is killed.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::model::{BootId, Phase, ProcessId};
use crate::process::identity::Life;
use crate::process::signal::{Signal, SignalError};

use super::error::RunnerError;
use super::probe::TICK;
use super::server::TmuxServer;
use super::{Address, Fence, Machine, TmuxRunner};

/// What a host needs beyond the grace of its harness: to kill, to reap, to record.
pub(super) const RECORDING: Duration = Duration::from_secs(2);

/// What became of an agent that was to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndOutcome {
    /// No agent runs any more; its record says how it ended, where it has one.
    Ended,
    /// It still runs; nothing else was killed.
    StillRunning(ProcessId),
    /// It was not started by us, so it is not ended by us either.
    NotOurs,
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Asks the agent's host to end it, and waits: TERM, `grace`, KILL are the host's to send.
    ///
    /// The session stays, with its last screen; [`clear`](Self::clear) removes it.
    ///
    /// # Errors
    /// When the work is no longer ours, or the host could not be asked.
    pub async fn end(
        &self,
        address: &Address,
        grace: Duration,
        fence: Fence<'_>,
    ) -> Result<EndOutcome, RunnerError> {
        let Some(owner) = &address.owner else {
            return Ok(EndOutcome::Ended);
        };
        let Some(record) = self.machine.record(owner) else {
            return Ok(self.end_without_record(address));
        };
        let harness = match record.phase {
            Phase::Ended { .. } => return Ok(EndOutcome::Ended),
            Phase::Running { harness } => Some(harness),
            Phase::Starting => None,
        };
        // Its pid is another process's by now.
        if self.machine.boot() != record.boot {
            return Ok(self.without_host(&record.boot, harness));
        }
        fence().await?;
        match self.machine.signal(&record.host, Signal::Terminate) {
            Ok(()) => {}
            Err(SignalError::Gone { .. }) => return Ok(self.without_host(&record.boot, harness)),
            Err(error) => return Err(error.into()),
        }
        let give_up = Instant::now() + grace + RECORDING;
        if let Some(harness) = harness
            && timeout_at(give_up, self.machine.exited(&harness))
                .await
                .is_err()
        {
            return Ok(EndOutcome::StillRunning(harness));
        }
        let give_up = give_up.max(Instant::now() + self.limits.record);
        loop {
            match self.machine.record(owner).map(|record| record.phase) {
                Some(Phase::Ended { .. }) => return Ok(EndOutcome::Ended),
                _ if Instant::now() < give_up => sleep(TICK).await,
                Some(Phase::Starting) => return Ok(EndOutcome::StillRunning(record.host)),
                _ => return Ok(EndOutcome::Ended),
            }
        }
    }

    fn end_without_record(&self, address: &Address) -> EndOutcome {
        match &address.target {
            None => EndOutcome::Ended,
            Some(target) => match self.machine.life(&target.boot, &target.harness) {
                Life::Gone => EndOutcome::Ended,
                Life::Running | Life::Unknown if !target.is_hosted() => EndOutcome::NotOurs,
                Life::Running | Life::Unknown => EndOutcome::StillRunning(target.harness),
            },
        }
    }

    /// A host that is gone took its harness with it, unless the system says otherwise.
    fn without_host(&self, boot: &BootId, harness: Option<ProcessId>) -> EndOutcome {
        match harness {
            Some(harness) if self.machine.life(boot, &harness) != Life::Gone => {
                EndOutcome::StillRunning(harness)
            }
            _ => EndOutcome::Ended,
        }
    }
}
