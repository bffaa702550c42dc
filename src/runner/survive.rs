//! Whether a harness that was just started goes on.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::model::{Ending, OwnerId, Phase, Record, TmuxTarget};
use crate::process::identity::Life;

use super::probe::TICK;
use super::screen::last_lines;
use super::server::TmuxServer;
use super::spawn::SpawnedPane;
use super::{Machine, TmuxRunner};

/// How many lines of a failed harness's screen explain its failure.
const EXPLAINING_LINES: usize = 15;

/// What became of a harness within its probe window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Survival {
    /// It runs.
    Alive(TmuxTarget),
    /// It ended by itself with exit code 0: started, and done.
    EndedClean(TmuxTarget),
    /// It ended with an error, or never started.
    Failed {
        /// How.
        ending: Ending,
        /// The last lines of its screen.
        screen: Vec<String>,
    },
    /// Its host took too long to start it, or did not record how it ended.
    Unknown(String),
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Waits until the harness of a spawn has run for `window`, or has ended.
    ///
    /// Waits on the host's record and on the harness's process; tmux is only asked for the screen of
    /// one that failed.
    pub async fn survives(
        &self,
        owner: &OwnerId,
        pane: &SpawnedPane,
        window: Duration,
    ) -> Survival {
        let record = match self.started(owner, pane).await {
            Ok(record) => record,
            Err(survival) => return survival,
        };
        let Phase::Running { harness } = record.phase else {
            return self.ended(pane, record).await;
        };
        if timeout(window, self.machine.exited(&harness))
            .await
            .is_err()
        {
            return match pane.target(&record) {
                Some(target) => Survival::Alive(target),
                None => Survival::Unknown("its host recorded no agent".to_owned()),
            };
        }
        let give_up = Instant::now() + self.limits.record;
        loop {
            if let Some(record) = self.machine.record(owner)
                && matches!(record.phase, Phase::Ended { .. })
            {
                return self.ended(pane, record).await;
            }
            if Instant::now() >= give_up {
                return Survival::Unknown("it ended, and its host recorded no end".to_owned());
            }
            sleep(TICK).await;
        }
    }

    /// Waits until the host has started its harness, or has failed to.
    async fn started(&self, owner: &OwnerId, pane: &SpawnedPane) -> Result<Record, Survival> {
        let boot = self.machine.boot();
        let give_up = Instant::now() + self.limits.start;
        loop {
            // The process is looked at first: a host may record and end between the two.
            let host_gone = pane
                .host
                .is_none_or(|host| self.machine.life(&boot, &host) == Life::Gone);
            match self.machine.record(owner) {
                Some(record) if record.phase != Phase::Starting => return Ok(record),
                _ if host_gone => {
                    return Err(Survival::Failed {
                        ending: Ending::Failed("its host ended before it started it".to_owned()),
                        screen: Vec::new(),
                    });
                }
                _ if Instant::now() >= give_up => {
                    return Err(Survival::Unknown(
                        "its host did not start it in time".to_owned(),
                    ));
                }
                _ => sleep(TICK).await,
            }
        }
    }

    async fn ended(&self, pane: &SpawnedPane, record: Record) -> Survival {
        let target = pane.target(&record);
        match (record.phase, target) {
            (
                Phase::Ended {
                    ending: Ending::Code(0),
                    ..
                },
                Some(target),
            ) => Survival::EndedClean(target),
            (Phase::Ended { ending, .. }, _) => Survival::Failed {
                ending,
                screen: self
                    .screen_of(pane, record.host.pid)
                    .await
                    .map(|screen| last_lines(&screen, EXPLAINING_LINES))
                    .unwrap_or_default(),
            },
            (Phase::Starting | Phase::Running { .. }, _) => {
                Survival::Unknown("its host recorded no end".to_owned())
            }
        }
    }
}
