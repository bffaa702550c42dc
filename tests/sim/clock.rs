//! The time of a story: what tokio's stopped clock shows, and the jumps of the wall clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use the_loop::clock::Clock;
use tokio::time::Instant;

/// A wall clock that goes with tokio's.
#[derive(Debug, Clone)]
pub(crate) struct StoryClock {
    began: Instant,
    jumped_ms: Arc<AtomicI64>,
}

impl StoryClock {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            jumped_ms: Arc::default(),
        }
    }

    /// Puts the wall clock forward or back.
    pub(crate) fn jump(&self, ms: i64) {
        self.jumped_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// What a clock shows that nobody touches.
    pub(crate) fn undisturbed(&self) -> DateTime<Utc> {
        let noon = DateTime::from_timestamp(1_767_614_400, 0).unwrap();
        noon + TimeDelta::milliseconds(self.elapsed_ms())
    }

    /// How long the story goes on, whatever the wall clock shows.
    pub(crate) fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap()
    }
}

impl Clock for StoryClock {
    fn now(&self) -> DateTime<Utc> {
        self.undisturbed() + TimeDelta::milliseconds(self.jumped_ms.load(Ordering::Relaxed))
    }
}
