//! What the running poller last did, for `status` and `poll status`.
//!
//! A small file beside the lock, replaced whole. It never says whether the poller runs: that is the
//! lock's to say.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ingress::poll::CycleReport;

/// The last cycle of a poller, and when the next one is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// When this poller started.
    pub started_at: DateTime<Utc>,
    /// Seconds between two cycles.
    pub interval_seconds: u64,
    /// The last finished cycle.
    pub last_cycle: Option<CycleSummary>,
    /// When the next cycle is due.
    pub next_cycle_at: Option<DateTime<Utc>>,
}

/// One cycle in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleSummary {
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Open work items that are known after the cycle.
    pub items: u64,
    /// Requests sent to GitHub.
    pub requests: u64,
    /// Requests that GitHub answered with "unchanged"; they cost no rate limit.
    pub unchanged: u64,
    /// Requests left in the current hour, where GitHub said so.
    pub rate_remaining: Option<u64>,
    /// The hour's budget, where GitHub said so.
    pub rate_limit: Option<u64>,
    /// When the budget is full again.
    pub rate_resets_at: Option<DateTime<Utc>>,
    /// What went wrong, one line each.
    pub errors: Vec<String>,
}

impl CycleSummary {
    /// Sums up a cycle of a poller that started then.
    pub(super) fn of(report: &CycleReport, started_at: DateTime<Utc>) -> Self {
        let rate = report.rate.as_ref();
        Self {
            ended_at: report.ended_at.unwrap_or(started_at),
            duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
            items: report.items,
            requests: report.requests,
            unchanged: report.unchanged,
            rate_remaining: rate.map(|rate| rate.remaining),
            rate_limit: rate.map(|rate| rate.limit),
            rate_resets_at: rate.map(|rate| rate.reset_at),
            errors: report.errors.clone(),
        }
    }
}

/// The heartbeat's file in a state root.
#[must_use]
pub fn path(state_root: &Path) -> PathBuf {
    state_root.join("poll-status.json")
}

/// Replaces the heartbeat; a small write to the page cache that is never waited on.
///
/// # Errors
/// When the file cannot be written.
pub fn write(state_root: &Path, beat: &Heartbeat) -> std::io::Result<()> {
    let target = path(state_root);
    let partial = target.with_extension(format!("{}.partial", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&partial)?;
    file.write_all(&serde_json::to_vec(beat)?)?;
    std::fs::rename(&partial, &target)
}

/// Reads the heartbeat; none where no poller ever ran here, or the file makes no sense.
#[must_use]
pub fn read(state_root: &Path) -> Option<Heartbeat> {
    serde_json::from_slice(&std::fs::read(path(state_root)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_reads_back_and_a_torn_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let beat = Heartbeat {
            started_at: DateTime::from_timestamp(1, 0).unwrap(),
            interval_seconds: 60,
            last_cycle: None,
            next_cycle_at: None,
        };
        write(dir.path(), &beat).unwrap();
        assert_eq!(read(dir.path()), Some(beat));

        std::fs::write(path(dir.path()), "{\"startedAt\":").unwrap();
        assert_eq!(read(dir.path()), None);
    }
}
