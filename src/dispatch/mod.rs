//! Claims deliveries and decides what becomes of each: deliver, respawn, spawn, hold or drop.
//!
//! The dispatcher holds the session registry and the claims (`Deduper`) and calls the tmux runner. It never
//! parses a payload and never talks to an ingress: both meet at the inbox. Read `work.rs` next, then
//! `deliver.rs`.

mod attempt;
mod conclude;
mod control;
mod deliver;
mod enter;
mod error;
mod fence;
mod message;
mod occupant;
mod pace;
mod records;
mod respawn;
mod spawn;
#[cfg(test)]
mod tests;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use error::DispatchError;

use crate::clock::Clock;
use crate::config::Config;
use crate::eventlog::EventLog;
use crate::harness::{Harness, HarnessError, Surroundings};
use crate::model::{BootId, DeliveryId, HarnessName, ProcessId};
use crate::process::identity::Life;
use crate::routing::policy::Policy;
use crate::routing::prompt::Prompts;
use crate::runner::{Machine, TmuxRunner, TmuxServer};
use crate::store::{Claim, ClaimOwner, Deduper, Ledger, SessionRegistry, Store};
use work::Worked;

/// How long a daemon's dispatcher sleeps at most before it looks into the store again.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a one-shot run sleeps at least before it looks at what is due.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// How long work under way may take to finish after the daemon was asked to stop.
const FINISH: Duration = Duration::from_secs(20);

/// How far ahead a one-shot run waits for deliveries that become due: a review that is still coming
/// in, a harness that is still starting.
const ONE_SHOT_HORIZON: Duration = Duration::from_secs(15);

/// What became of the deliveries that a dispatcher worked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many reached their session.
    pub delivered: u64,
    /// How many attempts failed.
    pub failed: u64,
}

/// A worked claim: how many deliveries it held, and what was done to them.
type Ended = Result<(u64, Worked), tokio::task::JoinError>;

impl Tally {
    fn count(&mut self, ended: Ended) {
        match ended {
            Ok((deliveries, Worked::Delivered)) => self.delivered += deliveries,
            Ok((deliveries, Worked::Failed)) => self.failed += deliveries,
            Ok((_, Worked::Settled | Worked::Waits)) => {}
            Err(error) => tracing::error!(
                "a dispatch ended unexpectedly: {error}; its claim runs out and it is taken up again"
            ),
        }
    }
}

/// Claims and works deliveries, in order per work item, several items at a time.
#[derive(Debug)]
pub struct Dispatcher<T, M> {
    shared: Arc<Shared<T, M>>,
}

impl<T, M> Clone for Dispatcher<T, M> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

/// What a dispatcher is made of.
#[derive(Debug)]
pub struct Parts<T, M> {
    /// The database.
    pub store: Store,
    /// The one who talks to tmux.
    pub runner: TmuxRunner<T, M>,
    /// What a host needs to report its harness's end.
    pub tmux: TmuxForHosts,
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
    /// Where decisions are written.
    pub log: EventLog,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The process that claims.
    pub owner: ClaimOwner,
    /// The environment that agents may be given parts of.
    pub around: Surroundings,
    /// The absolute path of this program, resolved at start: the pane's own process.
    pub program: PathBuf,
    /// What agents are told.
    pub prompts: Prompts,
    /// Rung after something was accepted in this process.
    pub wake: Arc<Notify>,
    /// How long it sleeps at most before it looks into the store again: another process may have
    /// accepted something, and nothing tells across processes.
    pub look_again: Duration,
}

/// How the process in a pane reaches tmux.
#[derive(Debug, Clone)]
pub struct TmuxForHosts {
    /// The absolute path of tmux.
    pub binary: PathBuf,
    /// The socket that new sessions live on, as a path.
    pub socket: PathBuf,
}

#[derive(Debug)]
struct Shared<T, M> {
    registry: SessionRegistry,
    deduper: Deduper,
    ledger: Ledger,
    runner: Arc<TmuxRunner<T, M>>,
    tmux: TmuxForHosts,
    config: watch::Receiver<Arc<Config>>,
    log: EventLog,
    clock: Arc<dyn Clock>,
    owner: ClaimOwner,
    around: Surroundings,
    program: PathBuf,
    wake: Arc<Notify>,
    prompts: Prompts,
    look_again: Duration,
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Dispatcher<T, M> {
    /// Makes a dispatcher.
    #[must_use]
    pub fn new(parts: Parts<T, M>) -> Self {
        let Parts {
            store,
            runner,
            tmux,
            config,
            log,
            clock,
            owner,
            around,
            program,
            prompts,
            wake,
            look_again,
        } = parts;
        let shared = Shared {
            registry: store.registry(),
            deduper: store.deduper(),
            ledger: store.ledger(),
            runner: Arc::new(runner),
            tmux,
            config,
            log,
            clock,
            owner,
            around,
            program,
            wake,
            prompts,
            look_again,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Works until `stop` is cancelled, lets what is under way finish, and returns what it did.
    ///
    /// # Errors
    /// When the store fails; what was under way is taken up at the next start.
    pub async fn run(&self, stop: CancellationToken) -> Result<Tally, DispatchError> {
        let mut work = JoinSet::new();
        let mut tally = Tally::default();
        let outcome = loop {
            let pause = match self.fill(&mut work).await {
                Ok(pause) => pause,
                Err(error) if error.is_transient() => {
                    tracing::warn!("{error}; tried again");
                    self.shared.look_again
                }
                Err(error) => break Err(error),
            };
            // In order, so that what is done does not hang on chance; what has ended makes room first.
            tokio::select! {
                biased;
                () = stop.cancelled() => break Ok(()),
                Some(ended) = work.join_next() => tally.count(ended),
                () = self.shared.wake.notified() => self.take_news(&mut work).await,
                () = tokio::time::sleep(pause) => {}
            }
        };
        self.finish(&mut work, &mut tally).await;
        outcome.map(|()| tally)
    }

    /// Lets what is under way finish, whatever ended the run.
    async fn finish(&self, work: &mut JoinSet<(u64, Worked)>, tally: &mut Tally) {
        let finished = tokio::time::timeout(FINISH, async {
            while let Some(ended) = work.join_next().await {
                tally.count(ended);
            }
        });
        if finished.await.is_err() {
            tracing::warn!(
                "work under way did not finish within {} s; it is taken up at the next start",
                FINISH.as_secs()
            );
        }
    }

    /// Works all that is due, and what becomes due within a few seconds, and returns what it did.
    ///
    /// What waits for a person looks again every few seconds, so the seconds count from the last
    /// delivery that was not only looked at.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn drain(&self, stop: &CancellationToken) -> Result<Tally, DispatchError> {
        self.drain_within(ONE_SHOT_HORIZON, stop).await
    }

    async fn drain_within(
        &self,
        horizon: Duration,
        stop: &CancellationToken,
    ) -> Result<Tally, DispatchError> {
        let mut work = JoinSet::new();
        let mut tally = Tally::default();
        let mut until = Instant::now() + horizon;
        let outcome = loop {
            let looked = match self.fill_or_look(&mut work, stop).await {
                Err(error) if !error.is_transient() => break Err(error),
                looked => looked,
            };
            if let Some(ended) = work.join_next().await {
                if !matches!(ended, Ok((_, Worked::Waits)) | Err(_)) {
                    until = Instant::now() + horizon;
                }
                tally.count(ended);
                continue;
            }
            let (pause, found) = match looked {
                Ok(due) => (due, Ok(())),
                Err(error) => (Some(self.shared.look_again), Err(error)),
            };
            match pause {
                Some(pause) if Instant::now() + pause <= until && !stop.is_cancelled() => {
                    if let Err(error) = found {
                        tracing::warn!("{error}; tried again");
                    }
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(pause.max(SHORTEST_PAUSE)) => {}
                    }
                }
                _ => break found,
            }
        };
        self.finish(&mut work, &mut tally).await;
        outcome.map(|()| tally)
    }

    /// Claims what is due, and where nothing is worked returns when the next is.
    async fn fill_or_look(
        &self,
        work: &mut JoinSet<(u64, Worked)>,
        stop: &CancellationToken,
    ) -> Result<Option<Duration>, DispatchError> {
        if !stop.is_cancelled() {
            self.fill(work).await?;
        }
        if work.is_empty() {
            self.until_due().await
        } else {
            Ok(None)
        }
    }

    /// Takes what was accepted in this process a moment ago; the look that follows finds the rest, and
    /// decides what a store that fails means.
    async fn take_news(&self, work: &mut JoinSet<(u64, Worked)>) {
        if work.len() >= self.places() {
            return;
        }
        match self.shared.deduper.claim_due(&self.shared.owner).await {
            Ok(Some(claim)) => self.begin(work, claim),
            Ok(None) => {}
            Err(error) => tracing::warn!("{error}; looked for again"),
        }
    }

    fn places(&self) -> usize {
        let config = self.shared.config.borrow();
        config.routing.max_concurrent_dispatches
    }

    fn begin(&self, work: &mut JoinSet<(u64, Worked)>, claim: Claim) {
        let shared = Arc::clone(&self.shared);
        let deliveries = claim.rows.len() as u64;
        work.spawn(async move { (deliveries, shared.work(Arc::new(claim)).await) });
    }

    /// Claims until every place is taken or nothing is due, and returns when to look again.
    async fn fill(&self, work: &mut JoinSet<(u64, Worked)>) -> Result<Duration, DispatchError> {
        while work.len() < self.places() {
            let Some(claim) = self
                .shared
                .deduper
                .claim_next(&self.shared.owner, &self.shared.is_dead())
                .await?
            else {
                let due = self.until_due().await?;
                return Ok(due
                    .unwrap_or(self.shared.look_again)
                    .min(self.shared.look_again));
            };
            self.begin(work, claim);
        }
        // What is due meanwhile has to wait for a place, and the end of a work is heard of.
        Ok(self.shared.look_again)
    }

    async fn until_due(&self) -> Result<Option<Duration>, DispatchError> {
        let due = self.shared.deduper.next_due().await?;
        let now = self.shared.clock.now();
        Ok(due.map(|due| (due - now).to_std().unwrap_or(Duration::ZERO)))
    }

    /// Claims and works one delivery of the caller's own, for a command on this machine.
    ///
    /// Returns false while somebody else holds the item.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn work_one(&self, delivery: DeliveryId) -> Result<bool, DispatchError> {
        let Some(claim) = self
            .shared
            .deduper
            .claim(delivery, &self.shared.owner)
            .await?
        else {
            return Ok(false);
        };
        self.shared.work(Arc::new(claim)).await;
        Ok(true)
    }
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    /// A process of this machine is dead only where the process table proves it.
    fn is_dead(&self) -> impl Fn(&ProcessId, &BootId) -> bool + Send + Sync {
        |process, boot| self.runner.life(boot, process) == Life::Gone
    }

    fn policy(&self) -> Policy {
        Policy::from(&*self.config())
    }

    fn harness(&self, name: &HarnessName) -> Result<Harness, HarnessError> {
        Harness::resolve(name, &self.config(), &self.around)
    }
}
