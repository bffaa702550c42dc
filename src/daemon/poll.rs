//! The poll daemon: lock, parts, cycles beside dispatches, and an orderly end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::heartbeat::{self, CycleSummary, Heartbeat};
use super::lock::{InstanceLock, LockError};
use super::services::{LocalDispatcher, ServiceError, Services, machine_name};
use super::signals;
use super::tidy::tidy;
use crate::config::Config;
use crate::dispatch::DispatchError;
use crate::eventlog::{Decision, Record};
use crate::github::Rate;
use crate::ingress::poll::{CycleReport, Parts, Poller};
use crate::model::Source;
use crate::model::text::count;
use crate::process::panic::{Panicked, caught};
use crate::store::{Rearmed, SessionFilter, StoreError};

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

/// Whether the observer is told how things stand, which is counted in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandingNews {
    /// About once a second.
    EverySecond,
    /// Nobody looks.
    Never,
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

/// How a poller ended.
#[derive(Debug)]
pub struct PollEnd {
    /// The last cycle.
    pub report: CycleReport,
    /// Deliveries that reached their session since the start.
    pub delivered: u64,
    /// Attempts that failed since the start.
    pub failed: u64,
}

impl PollEnd {
    /// Tells whether everything that was tried worked.
    #[must_use]
    pub fn worked(&self) -> bool {
        self.failed == 0 && self.report.errors.is_empty()
    }

    /// Says the run in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let report = &self.report;
        let repos: Vec<String> = report.repos.iter().map(ToString::to_string).collect();
        let mut text = format!(
            "{}: {}, {} new, {} delivered, {} failed, {} ({} unchanged), {:.2} s",
            repos.join(", "),
            count(report.items, "item"),
            report.accepted,
            self.delivered,
            self.failed,
            count(report.requests, "request"),
            report.unchanged,
            report.duration.as_secs_f64(),
        );
        for error in &report.errors {
            text.push_str("\n  reading failed, will be tried again: ");
            text.push_str(error);
        }
        text
    }
}

/// How things stand between two cycles.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Open sessions.
    pub sessions: u64,
    /// Open work items.
    pub items: u64,
    /// Deliveries that are not settled.
    pub inbox: u64,
    /// When the next cycle is due.
    pub next_cycle_at: Option<DateTime<Utc>>,
    /// The rate limit as last seen.
    pub rate: Option<Rate>,
}

/// What a running poller tells whoever shows it.
#[derive(Debug)]
pub enum PollNews<'a> {
    /// It holds the lock and every part is built.
    Ready,
    /// Something was decided.
    Decided(&'a Record),
    /// How things stand, about once a second.
    Standing(&'a Standing),
    /// It has ended.
    Ended,
}

/// Who is told the news.
pub type PollObserver = Arc<dyn Fn(PollNews<'_>) + Send + Sync>;

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
    let mut services = Services::open(config, Source::Poll).await?;
    let tally = Arc::new(Tally::default());
    services.log = services.log.observed_by({
        let (observer, tally) = (Arc::clone(&observer), Arc::clone(&tally));
        move |record| {
            tally.count(record);
            observer(PollNews::Decided(record));
        }
    });
    let started_at = services.clock.now();
    let _lock = InstanceLock::acquire(&lock_path, started_at)
        .inspect_err(|error| blocked(&services, &lock_path, error))?;
    services.check_tmux().await?;
    let daemon = Daemon::build(
        services,
        started_at,
        Arc::clone(&observer),
        Arc::clone(&tally),
    )?;
    observer(PollNews::Ready);
    daemon.announce_start(options.run);
    let ended = caught(Box::pin(daemon.run(options))).await;
    let ended = ended.unwrap_or_else(|panicked| Err(panicked.into()));
    observer(PollNews::Ended);
    daemon.services.log.emit(&Decision::PollerStopped {
        cycles: tally.cycles(),
        signal: None,
        error: ended.as_ref().err().map(ToString::to_string),
    });
    daemon.services.store.close().await;
    Ok(PollEnd {
        report: ended?,
        delivered: tally.delivered(),
        failed: tally.failed(),
    })
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
    tally: Arc<Tally>,
}

impl Daemon {
    fn build(
        services: Services,
        started_at: DateTime<Utc>,
        observer: PollObserver,
        tally: Arc<Tally>,
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
        signals::stop_on_signal(stop.clone()).map_err(PollError::Signals)?;
        Ok(Self {
            services,
            dispatcher,
            poller,
            stop,
            started_at,
            observer,
            tally,
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

    async fn run(&self, options: &PollOptions) -> Result<CycleReport, PollError> {
        self.rearm().await;
        self.check_in().await;
        match options.run {
            Run::Once => self.once().await,
            Run::Forever => self.forever(options.standing).await,
        }
    }

    async fn once(&self) -> Result<CycleReport, PollError> {
        let report = self.poller.cycle(&self.stop).await;
        self.tally.cycle();
        self.beat(&report, None);
        self.dispatcher.drain(&self.stop).await?;
        tidy(&self.services).await;
        Ok(report)
    }

    async fn forever(&self, standing: StandingNews) -> Result<CycleReport, PollError> {
        // One that fails takes the other with it, in order: half a daemon helps nobody.
        let dispatches = async {
            let ended = caught(self.dispatcher.run(self.stop.clone())).await;
            self.stop.cancel();
            ended
        };
        let cycles = async {
            let ended = caught(self.cycles(standing)).await;
            self.stop.cancel();
            ended
        };
        let (dispatched, last) = tokio::join!(Box::pin(dispatches), Box::pin(cycles));
        dispatched??;
        Ok(last?)
    }

    /// Cycle after cycle until the stop, with what is done beside it; returns the last report.
    async fn cycles(&self, standing: StandingNews) -> CycleReport {
        let next_cycle_at = Arc::new(Mutex::new(None));
        let mut last = CycleReport::default();
        let cycles = self.poller.run(&self.stop, |report| {
            self.tally.cycle();
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
            sessions: store.registry().list(SessionFilter::Open).await?.len() as u64,
            items: store.ledger().count_open_items().await?,
            inbox: counts.pending + counts.held + counts.claimed,
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
        if let Err(error) = queue.rearm_given_up_saying(version, say).await {
            tracing::error!("cannot look for events that another version gave up: {error}");
        }
    }

    fn beat(&self, report: &CycleReport, next_cycle_at: Option<DateTime<Utc>>) {
        let config = self.services.config.borrow();
        let beat = Heartbeat {
            started_at: self.started_at,
            interval_seconds: config.polling.interval.as_secs(),
            last_cycle: Some(CycleSummary {
                ended_at: report.ended_at.unwrap_or(self.started_at),
                duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                items: report.items,
                requests: report.requests,
                unchanged: report.unchanged,
                rate_remaining: report.rate.as_ref().map(|rate| rate.remaining),
                rate_limit: report.rate.as_ref().map(|rate| rate.limit),
                rate_resets_at: report.rate.as_ref().map(|rate| rate.reset_at),
                errors: report.errors.clone(),
            }),
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

/// Counts cycles, and what the event log says of this run.
#[derive(Debug, Default)]
struct Tally {
    cycles: AtomicU64,
    delivered: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    fn count(&self, record: &Record) {
        let counter = match record.event.as_str() {
            "dispatch.succeeded" => &self.delivered,
            "dispatch.failed" | "dispatch.error" => &self.failed,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn cycle(&self) {
        self.cycles.fetch_add(1, Ordering::Relaxed);
    }

    fn cycles(&self) -> u64 {
        self.cycles.load(Ordering::Relaxed)
    }

    fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}
