//! The time, as one replaceable source.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};

/// Where the program asks for the wall-clock time, so that tests can decide it.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that stands still until it is moved by hand.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// Makes a clock that shows `at`.
    #[must_use]
    pub fn starting_at(at: DateTime<Utc>) -> Self {
        Self(Arc::new(AtomicI64::new(at.timestamp_millis())))
    }

    /// Moves the clock forward (or back, for a negative delta).
    pub fn advance(&self, by: TimeDelta) {
        self.0.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        // Every value stored here came from a DateTime, so it is in range; the epoch is never reached.
        DateTime::from_timestamp_millis(self.0.load(Ordering::SeqCst)).unwrap_or_default()
    }
}
