//! What keeps failing, remembered so that it is neither asked nor reported in every cycle.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// The longest pause between two attempts on something that keeps failing.
const LONGEST: TimeDelta = TimeDelta::hours(1);

/// How many failures are remembered; so many at once are one outage, and its end forgets them all.
const MOST: usize = 4096;

/// Whether a failure is worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// It is new, has changed, or has lasted twice as long as when it was last said.
    Saying,
    /// It was said.
    Nothing,
}

/// The failures of earlier cycles that have not ended.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<String, Failing>>);

#[derive(Debug)]
struct Failing {
    error: String,
    times: u32,
    ask_at: DateTime<Utc>,
}

impl Failures {
    /// Notes that `what` failed once more; cycles are `interval` apart.
    pub(super) fn failed(
        &self,
        what: &str,
        error: &str,
        interval: Duration,
        now: DateTime<Utc>,
    ) -> Worth {
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(what) {
            all.clear();
        }
        let known = all.entry(what.to_owned()).or_insert_with(|| Failing {
            error: String::new(),
            times: 0,
            ask_at: now,
        });
        known.times = known.times.saturating_add(1);
        known.ask_at = now + pause(known.times, interval);
        let changed = known.error != error;
        if changed {
            error.clone_into(&mut known.error);
        }
        if changed || known.times.is_power_of_two() {
            Worth::Saying
        } else {
            Worth::Nothing
        }
    }

    /// Notes that `what` works.
    pub(super) fn worked(&self, what: &str) {
        self.all().remove(what);
    }

    /// Tells whether `what` may be asked again.
    pub(super) fn may_ask(&self, what: &str, now: DateTime<Utc>) -> bool {
        self.all()
            .get(what)
            // A clock that was put back must not put it off for as long.
            .is_none_or(|failing| failing.ask_at <= now || failing.ask_at - now > LONGEST)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing after the first failure, which is mostly a hiccup; then twice as long each time.
fn pause(times: u32, interval: Duration) -> TimeDelta {
    let Some(doublings) = times.checked_sub(2) else {
        return TimeDelta::zero();
    };
    let doubled = interval.saturating_mul(2_u32.saturating_pow(doublings));
    TimeDelta::from_std(doubled).map_or(LONGEST, |pause| pause.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_keeps_failing_is_said_and_asked_less_and_less_until_it_works() {
        let failures = Failures::default();
        let mut now = DateTime::UNIX_EPOCH;
        let (mut asked, mut said) = (0, 0);
        for _ in 0..(24 * 60) {
            if failures.may_ask("x", now) {
                asked += 1;
                if failures.failed("x", "no", MINUTE, now) == Worth::Saying {
                    said += 1;
                }
            }
            now += TimeDelta::minutes(1);
        }
        assert!((24..40).contains(&asked), "{asked}");
        assert!((4..8).contains(&said), "{said}");
        assert_eq!(failures.failed("x", "other", MINUTE, now), Worth::Saying);
        failures.worked("x");
        assert!(failures.may_ask("x", now));
        assert_eq!(failures.failed("x", "other", MINUTE, now), Worth::Saying);
    }

    #[test]
    fn a_clock_that_is_put_back_keeps_nothing_from_being_asked_again() {
        let failures = Failures::default();
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        for _ in 0..3 {
            failures.failed("x", "no", MINUTE, now);
        }
        assert!(!failures.may_ask("x", now));
        assert!(failures.may_ask("x", now - TimeDelta::hours(20)));
    }

    #[test]
    fn the_memory_is_bounded() {
        let failures = Failures::default();
        for number in 0..(MOST * 2) {
            failures.failed(&number.to_string(), "no", MINUTE, DateTime::UNIX_EPOCH);
        }
        assert!(failures.all().len() <= MOST);
    }
}
