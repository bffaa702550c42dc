//! What a running poller tells whoever shows it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::eventlog::Record;
use crate::github::Rate;

/// Whether the observer is told how things stand, which is counted in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandingNews {
    /// About once a second.
    EverySecond,
    /// Nobody looks.
    Never,
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
    /// It was told to stop twice, and ends as soon as this news is taken.
    EndsAtOnce,
}

/// Who is told the news.
pub type PollObserver = Arc<dyn Fn(PollNews<'_>) + Send + Sync>;
