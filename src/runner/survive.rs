//! Whether a harness that was just started goes on.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
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
    /// It ran for the whole window; whether it still does is for a probe to tell.
    Survived(TmuxTarget),
    /// It ended by itself inside the window with exit code 0: started, and done.
    EndedClean(TmuxTarget),
    /// It ended inside the window with an error, or could not be started.
    Failed {
        /// How.
        ending: Ending,
        /// The last lines of its screen.
        screen: Vec<String>,
    },
    /// Its host is gone, and left no readable record of having started it. The ticket tells whether it
    /// may have, and it may be open still.
    HostGone,
    /// Its host took too long to start it, or did not record how it ended.
    Unknown(String),
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Waits until the harness of a spawn has run for `window`, or has ended.
    ///
    /// The window counts from the harness's start, also where another process saw that one. Waits on
    /// the host's record and on the harness's process; tmux is only asked for the screen of one that
    /// failed.
    pub async fn survives(
        &self,
        owner: &OwnerId,
        pane: &SpawnedPane,
        window: Duration,
        clock: &dyn Clock,
    ) -> Survival {
        let record = match self.started(owner, pane).await {
            Ok(record) => record,
            Err(survival) => return survival,
        };
        let Phase::Running { harness } = record.phase else {
            return self.ended(pane, record, window).await;
        };
        let ran = record.ran_for(clock.now().timestamp_millis());
        let rest = window.saturating_sub(ran.unwrap_or_default());
        if timeout(rest, self.machine.exited(&harness)).await.is_err() {
            return match pane.target(&record) {
                Some(target) => Survival::Survived(target),
                None => Survival::Unknown("its host recorded no agent".to_owned()),
            };
        }
        let give_up = Instant::now() + self.limits.record;
        loop {
            if let Some(record) = self.machine.record(owner)
                && matches!(record.phase, Phase::Ended { .. })
            {
                return self.ended(pane, record, window).await;
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
                _ if host_gone => return Err(Survival::HostGone),
                _ if Instant::now() >= give_up => {
                    let host = pane
                        .host
                        .map_or(String::new(), |host| format!(" (process {host})"));
                    return Err(Survival::Unknown(format!(
                        "its host{host} did not start it in time"
                    )));
                }
                _ => sleep(TICK).await,
            }
        }
    }

    async fn ended(&self, pane: &SpawnedPane, record: Record, window: Duration) -> Survival {
        let target = pane.target(&record);
        let survived = record.ended_after(window);
        match (record.phase, target) {
            (Phase::Ended { .. }, Some(target)) if survived => Survival::Survived(target),
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
