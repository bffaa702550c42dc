//! What a run of the poller came to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::eventlog::Record;
use crate::ingress::poll::CycleReport;
use crate::model::text::count;

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

/// Counts cycles, and what the event log says of this run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    cycles: AtomicU64,
    delivered: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    pub(super) fn count(&self, record: &Record) {
        let counter = match record.event.as_str() {
            "dispatch.succeeded" => &self.delivered,
            "dispatch.failed" | "dispatch.error" => &self.failed,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cycle(&self) {
        self.cycles.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cycles(&self) -> u64 {
        self.cycles.load(Ordering::Relaxed)
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}
