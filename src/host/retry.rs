//! When to try again what must succeed some day.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// Pauses that double from one second to one minute, for ever.
pub(super) struct Retry {
    pause: Duration,
}

impl Retry {
    pub(super) fn new() -> Self {
        Self { pause: FIRST }
    }

    /// The time of the next attempt, after one failed now.
    pub(super) fn next(&mut self, now: Instant) -> Instant {
        let next = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let now = Instant::now();
        let mut retry = Retry::new();
        let pauses: Vec<u64> = (0..8).map(|_| (retry.next(now) - now).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
