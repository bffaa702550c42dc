//! The breaker for comments that answer each other.
//!
//! An agent comments under somebody's login. Where that login is listed and the comment lacks our
//! marker, it comes back as an event, the agent answers it, and so on.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Shared;
use super::conclude::Conclusion;
use super::error::WorkError;
use crate::model::HoldReason;
use crate::runner::{Machine, TmuxServer};
use crate::store::Claim;

/// How many messages an item's agent may be told within [`WINDOW`]; people do not write so many, and
/// a poller that looks every minute passes on more where each answer brings the next.
const MESSAGES: usize = 25;

/// How long messages count, and how long an item that had too many of them rests.
const WINDOW: TimeDelta = TimeDelta::minutes(30);

/// Returns how long an item rests now, by the times at which its agent was told messages, in order.
///
/// What was told is all that counts, so every process and whichever delivery comes next finds the same.
fn rest(told: &[DateTime<Utc>], now: DateTime<Utc>) -> Option<Duration> {
    let last_too_many = told.windows(MESSAGES).rev().find_map(|run| match run {
        [first, .., last] if *last - *first < WINDOW => Some(*last),
        _ => None,
    })?;
    let rest = (last_too_many + WINDOW - now).to_std().ok()?;
    (!rest.is_zero()).then_some(rest)
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Holds a text of an item whose comments answer each other; what an attempt has begun to tell is
    /// brought to its end.
    pub(super) async fn held_for_rate(
        &self,
        claim: &Claim,
    ) -> Result<Option<Conclusion>, WorkError> {
        if !claim.first().event.kind.is_text() || claim.intent().is_some() {
            return Ok(None);
        }
        let now = self.clock.now();
        // What made an item rest lies within one window, and the rest lasts another. Nothing was told
        // in the future: a clock that ran ahead must not make an item rest until it is caught up.
        let told = self
            .deduper
            .told_between(claim, now - WINDOW - WINDOW, now)
            .await?;
        Ok(rest(&told, now).map(|again| Conclusion::held(HoldReason::Rate, again)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_messages_in_a_whole_window_are_not_too_many() {
        let began = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let second = TimeDelta::seconds(1);
        for (last, rests) in [
            (began + WINDOW - second, true),
            (began + WINDOW, false),
            (began + WINDOW + second, false),
        ] {
            let mut told = vec![began; MESSAGES - 1];
            told.push(last);

            assert_eq!(rest(&told, last).is_some(), rests, "{last}");
            assert_eq!(rest(&told, last + WINDOW), None, "it has rested");
        }
    }
}
