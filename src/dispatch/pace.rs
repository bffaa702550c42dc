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
use crate::store::{Claim, Told};

/// How many messages an item's agent may be told within [`WINDOW`]; people do not write so many, and
/// a poller that looks every minute passes on more where each answer brings the next.
const MESSAGES: u64 = 25;

/// How long messages count, and how long an item that had too many of them rests.
const WINDOW: TimeDelta = TimeDelta::minutes(30);

/// Returns how long an item rests now: one that rests already does so for a whole window.
fn rest(told: Option<Told>, held: Option<HoldReason>, now: DateTime<Utc>) -> Option<Duration> {
    let enough = match held {
        Some(HoldReason::Rate) => 1,
        _ => MESSAGES,
    };
    let told = told.filter(|told| told.messages >= enough)?;
    (told.newest + WINDOW - now).to_std().ok()
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
        let told = self.deduper.told_since(claim.item.id, now - WINDOW).await?;
        Ok(rest(told, claim.held_before, now)
            .map(|again| Conclusion::held(HoldReason::Rate, again)))
    }
}
