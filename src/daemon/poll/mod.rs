//! The poll daemon: lock, parts, cycles beside dispatches, and an orderly end.

mod news;
mod outcome;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

pub use news::{PollNews, PollObserver, Standing, StandingNews};
pub use outcome::PollEnd;

use super::heartbeat::{self, CycleSummary, Heartbeat};
use super::lock::{InstanceLock, LockError};
use super::services::{LocalDispatcher, ServiceError, Services, machine_name};
use super::signals;
use super::tidy::tidy;
use crate::config::Config;
use crate::dispatch::{DispatchError, Tally};
use crate::eventlog::Decision;
use crate::github::Rate;
use crate::ingress::poll::{CycleReport, Parts, Poller};
use crate::model::Source;
use crate::process::panic::{Panicked, caught};
use crate::store::{Rearmed, StoreError, Tuning};

/// How often a running poller tidies up.
const TIDY_EVERY: Duration = Duration::from_secs(60 * 60);

/// How the poller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// One cycle, what is due is dispatched, and that is all.
    Once,
    /// Cycle after cycle until it is told to stop.
    Forever,
}

/// What the command line says beside the configuration.
#[derive(Debug, Clone)]
pub struct PollOptions {
    /// How it runs.
    pub run: Run,
    /// Instead of `polling.intervalSeconds`.
    pub interval: Option<Duration>,
    /// Instead of `polling.maxRetries`.
    pub max_retries: Option<u32>,
    /// Whether anybody wants to hear how things stand.
    pub standing: StandingNews,
}

/// Why the poller did not run.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// Another one runs.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A part could not be built.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The dispatcher failed.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// The daemon itself panicked.
    #[error(transparent)]
    BrokeDown(#[from] Panicked),
    /// Signals could not be handled.
    #[error("cannot install the signal handlers: {0}")]
    Signals(#[source] std::io::Error),
}

/// The lock file of a state root's poller.
#[must_use]
pub fn lock_path(config: &Config) -> PathBuf {
    config.state.root.join("poll.lock")
}

/// Runs the poller to its end and tells `observer` the news.
///
/// # Errors
/// When it could not start, or the store failed.
pub async fn run_poll(
    mut config: Config,
    options: &PollOptions,
    observer: PollObserver,
) -> Result<PollEnd, PollError> {
    if let Some(interval) = options.interval {
        config.polling.interval = interval;
    }
    if let Some(max_retries) = options.max_retries {
        config.polling.max_retries = max_retries;
    }
    let lock_path = lock_path(&config);
    let tuning = match options.run {
        Run::Once => Tuning::one_reader(),
        Run::Forever => Tuning::default(),
    };
    let mut services = Services::open(config, Source::Poll, tuning).await?;
    services.log = services.log.observed_by({
        let observer = Arc::clone(&observer);
        move |record| observer(PollNews::Decided(record))
    });
    let started_at = services.clock.now();
    let _lock = InstanceLock::acquire(&lock_path, started_at)
        .inspect_err(|error| blocked(&services, &lock_path, error))?;
    if options.run == Run::Forever {
        services.check_tmux().await?;
    }
    let daemon = Daemon::build(services, started_at, Arc::clone(&observer))?;
    observer(PollNews::Ready);
    daemon.announce_start(options.run);
    let ended = caught(Box::pin(daemon.run(options))).await;
    let ended = ended.unwrap_or_else(|panicked| Err(panicked.into()));
    daemon.services.log.emit(&Decision::PollerStopped {
        cycles: daemon.cycles.load(Ordering::Relaxed),
        error: ended.as_ref().err().map(ToString::to_string),
    });
    daemon.services.store.close().await;
    ended
}

fn blocked(services: &Services, lock: &Path, error: &LockError) {
    let holder = match error {
        LockError::Held { holder, .. } => holder.as_ref().map(|holder| holder.process.pid),
        LockError::Io { .. } => None,
    };
    services.log.emit(&Decision::PollerBlocked {
        holder,
        lock: lock.display().to_string(),
    });
}

/// A built poll daemon.
struct Daemon {
    services: Services,
    dispatcher: LocalDispatcher,
    poller: Poller,
    stop: CancellationToken,
    started_at: DateTime<Utc>,
    observer: PollObserver,
    /// How many have ended.
    cycles: AtomicU64,
}

impl Daemon {
    fn build(
        services: Services,
        started_at: DateTime<Utc>,
        observer: PollObserver,
    ) -> Result<Self, PollError> {
        let dispatcher = services.dispatcher()?;
        let poller = Poller::new(Parts {
            github: services.github()?,
            store: services.store.clone(),
            config: services.config.clone(),
            log: services.log.clone(),
            clock: Arc::clone(&services.clock),
            wake: Arc::clone(&services.wake),
        });
        let stop = CancellationToken::new();
        let told = Arc::clone(&observer);
        signals::stop_on_signal(stop.clone(), move || told(PollNews::EndsAtOnce))
            .map_err(PollError::Signals)?;
        Ok(Self {
            services,
            dispatcher,
            poller,
            stop,
            started_at,
            observer,
            cycles: AtomicU64::new(0),
        })
    }

    fn announce_start(&self, run: Run) {
        let config = self.services.config.borrow();
        self.services.log.emit(&Decision::PollerStarted {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            interval_seconds: config.polling.interval.as_secs(),
            repos: config
                .polling
                .sources
                .iter()
                .flat_map(|source| source.repos.clone())
                .collect(),
            once: run == Run::Once,
        });
    }

    /// Records that this host lives.
    async fn check_in(&self) {
        let version = env!("CARGO_PKG_VERSION");
        if let Err(error) = self
            .services
            .store
            .record_host(&machine_name(), version)
            .await
        {
            tracing::error!("{error}");
        }
    }

    async fn run(&self, options: &PollOptions) -> Result<PollEnd, PollError> {
        self.rearm().await;
        self.check_in().await;
        let (report, dispatched) = match options.run {
            Run::Once => self.once().await?,
            Run::Forever => self.forever(options.standing).await?,
        };
        Ok(PollEnd { report, dispatched })
    }

    async fn once(&self) -> Result<(CycleReport, Tally), PollError> {
        let report = self.poller.cycle(&self.stop).await;
        self.cycles.fetch_add(1, Ordering::Relaxed);
        self.beat(&report, None);
        // Most runs from cron find nothing to do, and need not start a process to learn that.
        if self.has_work().await? {
            self.services.check_tmux().await?;
        }
        let dispatched = self.dispatcher.drain(&self.stop).await?;
        tidy(&self.services).await;
        Ok((report, dispatched))
    }

    async fn has_work(&self) -> Result<bool, ServiceError> {
        let counts = self.services.store.queue().counts().await?;
        Ok(counts.not_done() > 0)
    }

    async fn forever(&self, standing: StandingNews) -> Result<(CycleReport, Tally), PollError> {
        // One that fails takes the other with it, in order: half a daemon helps nobody.
        let dispatches = async {
            let ended = caught(self.dispatcher.run(self.stop.clone())).await;
            self.stop.cancel();
            ended
        };
        let cycles = async {
            let ended = caught(Box::pin(self.cycles(standing))).await;
            self.stop.cancel();
            ended
        };
        let (dispatched, last) = tokio::join!(Box::pin(dispatches), Box::pin(cycles));
        let dispatched = dispatched??;
        Ok((last?, dispatched))
    }

    /// Cycle after cycle until the stop, with what is done beside it; returns the last report.
    async fn cycles(&self, standing: StandingNews) -> CycleReport {
        let next_cycle_at = Arc::new(Mutex::new(None));
        let mut last = CycleReport::default();
        let cycles = self.poller.run(&self.stop, |report| {
            self.cycles.fetch_add(1, Ordering::Relaxed);
            let interval = self.services.config.borrow().polling.interval;
            let now = self.services.clock.now();
            let next = now + report.pause(interval, now);
            *next_cycle_at.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((next, report.rate.clone()));
            self.beat(report, Some(next));
            last = report.clone();
        });
        tokio::select! {
            () = cycles => {}
            () = self.show_standing(&next_cycle_at), if standing == StandingNews::EverySecond => {}
            () = self.keep_tidy() => {}
        }
        last
    }

    /// Tidies up from time to time; never ends.
    async fn keep_tidy(&self) {
        loop {
            tidy(&self.services).await;
            tokio::time::sleep(TIDY_EVERY).await;
        }
    }

    /// Tells the observer about once a second how things stand; never ends.
    async fn show_standing(&self, next: &Mutex<Option<(DateTime<Utc>, Option<Rate>)>>) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let known = next.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match self.standing(known).await {
                Ok(standing) => (self.observer)(PollNews::Standing(&standing)),
                Err(error) => tracing::warn!("cannot count what is in the store: {error}"),
            }
        }
    }

    async fn standing(
        &self,
        known: Option<(DateTime<Utc>, Option<Rate>)>,
    ) -> Result<Standing, StoreError> {
        let store = &self.services.store;
        let counts = store.queue().counts().await?;
        let (next_cycle_at, rate) = known.map_or((None, None), |(next, rate)| (Some(next), rate));
        Ok(Standing {
            sessions: store.registry().count_open().await?,
            items: store.ledger().count_open_items().await?,
            inbox: counts.not_done(),
            next_cycle_at,
            rate,
        })
    }

    /// Gives what another version of this program gave up a new chance, once (AC11).
    async fn rearm(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let say = |one: &Rearmed| {
            self.services.log.emit(&Decision::PollRearmed {
                work_item: one.item.clone(),
                deliveries: vec![one.delivery],
                version: version.to_owned(),
            });
        };
        let queue = self.services.store.queue();
        if let Err(error) = queue.rearm_given_up(version, say).await {
            tracing::error!("cannot look for events that another version gave up: {error}");
        }
    }

    fn beat(&self, report: &CycleReport, next_cycle_at: Option<DateTime<Utc>>) {
        let config = self.services.config.borrow();
        let beat = Heartbeat {
            started_at: self.started_at,
            interval_seconds: config.polling.interval.as_secs(),
            last_cycle: Some(CycleSummary::of(report, self.started_at)),
            next_cycle_at,
        };
        if let Err(error) = heartbeat::write(&config.state.root, &beat) {
            tracing::warn!(
                "cannot write {}: {error}",
                heartbeat::path(&config.state.root).display()
            );
        }
    }
}
