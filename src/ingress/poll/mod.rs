//! The poll ingress: asks GitHub, cycle by cycle.
//!
//! A cycle asks each repository for what changed since the last one; while nothing does, that is four
//! conditional requests, all answered "unchanged". Read `repo.rs` next: one repository's cycle.

mod accept;
mod ci;
mod details;
mod failures;
mod inputs;
mod introduced;
mod listing;
mod lists;
#[cfg(any(test, fuzzing))]
pub mod property;
mod records;
mod repo;
mod report;
mod sightings;
mod texts;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use report::CycleReport;

use crate::clock::Clock;
use crate::config::Config;
use crate::eventlog::EventLog;
use crate::github::GitHub;
use crate::store::Store;

/// Asks GitHub and accepts what happened.
#[derive(Debug)]
pub struct Poller {
    github: GitHub,
    store: Store,
    config: watch::Receiver<Arc<Config>>,
    log: EventLog,
    clock: Arc<dyn Clock>,
    wake: Arc<Notify>,
    failures: failures::Failures,
}

/// What a poller is made of.
#[derive(Debug)]
pub struct Parts {
    /// The API client.
    pub github: GitHub,
    /// The database.
    pub store: Store,
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
    /// Where decisions are written.
    pub log: EventLog,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Rung after something was accepted.
    pub wake: Arc<Notify>,
}

impl Poller {
    /// Makes a poller.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts {
            github,
            store,
            config,
            log,
            clock,
            wake,
        } = parts;
        Self {
            github,
            store,
            config,
            log,
            clock,
            wake,
            failures: failures::Failures::default(),
        }
    }

    /// Runs cycle after cycle until `stop` is cancelled; `after` sees each report.
    pub async fn run(&self, stop: &CancellationToken, mut after: impl FnMut(&CycleReport)) {
        while !stop.is_cancelled() {
            let report = self.cycle(stop).await;
            let pause = report.pause(self.config.borrow().polling.interval, self.clock.now());
            after(&report);
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Runs one cycle over every configured repository.
    ///
    /// One failing repository or item stops no other. A stop ends it between two items, never inside
    /// a write.
    pub async fn cycle(&self, stop: &CancellationToken) -> CycleReport {
        let config = Arc::clone(&self.config.borrow());
        let began = Instant::now();
        let before = self.github.requests();
        let mut report = CycleReport::default();
        'sources: for source in &config.polling.sources {
            for repo in &source.repos {
                if stop.is_cancelled() {
                    report.interrupted = true;
                    break 'sources;
                }
                repo::RepoCycle {
                    poller: self,
                    config: &config,
                    source,
                    repo,
                    stop,
                    report: &mut report,
                    server_now: None,
                    statuses: None,
                }
                .run()
                .await;
                if report.rate_limited_until.is_some() {
                    break 'sources;
                }
            }
        }
        self.finish(&mut report, began.elapsed(), before).await;
        report
    }

    async fn finish(
        &self,
        report: &mut CycleReport,
        took: Duration,
        before: crate::github::RequestCounts,
    ) {
        let after = self.github.requests();
        report.requests = after.sent - before.sent;
        report.unchanged = after.unchanged - before.unchanged;
        report.rate = self.github.rate();
        report.duration = took;
        report.ended_at = Some(self.clock.now());
        match self.store.ledger().count_open_items().await {
            Ok(items) => report.items = items,
            Err(error) => report.errors.push(error.to_string()),
        }
        // An idle cycle is no decision; the heartbeat shows it.
        if report.is_news() {
            self.log.emit(&report.record());
        }
    }
}
