//! What a run of the poller came to.

use crate::dispatch::Tally;
use crate::ingress::poll::CycleReport;
use crate::model::text::count;

/// How a poller ended.
#[derive(Debug)]
pub struct PollEnd {
    /// The last cycle.
    pub report: CycleReport,
    /// What became of the deliveries since the start.
    pub dispatched: Tally,
}

impl PollEnd {
    /// Tells whether everything that was tried worked.
    #[must_use]
    pub fn worked(&self) -> bool {
        self.dispatched.failed == 0 && self.report.errors.is_empty()
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
            self.dispatched.delivered,
            self.dispatched.failed,
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
