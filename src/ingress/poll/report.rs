//! What one cycle did, in figures.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::eventlog::Decision;
use crate::github::Rate;
use crate::model::RepoRef;

/// What one cycle did.
#[derive(Debug, Clone, Default)]
pub struct CycleReport {
    /// Repositories that were asked.
    pub repos: Vec<RepoRef>,
    /// Open work items known afterwards.
    pub items: u64,
    /// Items seen for the first time.
    pub first_sights: u64,
    /// Events accepted for delivery.
    pub accepted: u64,
    /// Events dropped by the guards.
    pub dropped: u64,
    /// Items found closed or merged.
    pub closures: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests answered "unchanged".
    pub unchanged: u64,
    /// The rate limit as last seen.
    pub rate: Option<Rate>,
    /// When GitHub may be asked again, where it refused; by our own clock.
    pub rate_limited_until: Option<DateTime<Utc>>,
    /// What went wrong, one line each; each will be tried again.
    pub errors: Vec<String>,
    /// How many problems, these and what the token may not read, were said in the event log.
    pub new_errors: u64,
    /// Whether a stop ended the cycle early.
    pub interrupted: bool,
    /// How long it took.
    pub duration: Duration,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

impl CycleReport {
    /// Tells whether there is anything to write down.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.first_sights + self.accepted + self.dropped + self.closures > 0
            || self.new_errors > 0
            || self.interrupted
    }

    /// Returns the event log's record of the cycle.
    #[must_use]
    pub fn record(&self) -> Decision {
        Decision::PollCycle {
            items_seen: self.items,
            comments_forwarded: self.accepted,
            closures: self.closures,
            failures: self.errors.len() as u64,
            errors: self.errors.clone(),
            requests: self.requests,
            unchanged: self.unchanged,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            interrupted: self.interrupted,
        }
    }

    /// Returns how long to wait before the next cycle.
    #[must_use]
    pub fn pause(&self, interval: Duration, now: DateTime<Utc>) -> Duration {
        let until_allowed = self
            .rate_limited_until
            .and_then(|until| (until - now).to_std().ok());
        // The interval counts from start to start, as far as the cycle lets it.
        let rest = interval
            .saturating_sub(self.duration)
            .max(Duration::from_millis(100));
        until_allowed.map_or(rest, |wait| wait.max(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_respects_interval_duration_and_rate_limit() {
        let now = DateTime::from_timestamp(1_000, 0).unwrap();
        let minute = Duration::from_secs(60);
        let quick = CycleReport {
            duration: Duration::from_secs(10),
            ..CycleReport::default()
        };
        assert_eq!(quick.pause(minute, now), Duration::from_secs(50));
        let slow = CycleReport {
            duration: Duration::from_secs(90),
            ..CycleReport::default()
        };
        assert_eq!(slow.pause(minute, now), Duration::from_millis(100));
        let limited = CycleReport {
            rate_limited_until: DateTime::from_timestamp(1_600, 0),
            ..CycleReport::default()
        };
        assert_eq!(limited.pause(minute, now), Duration::from_secs(600));
    }
}
