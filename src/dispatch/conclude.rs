//! What the work on a claim came to, written down: one transaction, then the event log.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Shared;
use super::error::WorkError;
use super::records;
use crate::eventlog::{Decision, Repeat};
use crate::model::{DropReason, HoldReason};
use crate::runner::{Machine, TmuxServer};
use crate::store::{Claim, Rearm, Release, SessionChange, Settlement};

/// What the work on a claim came to.
#[derive(Debug)]
pub(super) enum Conclusion {
    /// The text is in the session, or the command was executed.
    Delivered(Box<Delivered>),
    /// Decided against.
    Dropped(DropReason),
    /// The name is held by something neither live nor clearable: never tried again (AC8).
    Skipped {
        /// What holds it.
        detail: String,
    },
    /// It did not work this time (AC2, AC9).
    Failed(Failure),
    /// It waits for a condition.
    Held {
        /// Which.
        reason: HoldReason,
        /// When to look again if nobody says sooner.
        again: Duration,
    },
}

/// A delivery that arrived.
#[derive(Debug)]
pub(super) struct Delivered {
    /// Whether the agent may have read the same text before.
    pub(super) repeat: Repeat,
    /// What changes in the registry in the same transaction.
    pub(super) change: Option<SessionChange>,
    /// What to write to the event log once it is true.
    pub(super) records: Vec<Decision>,
}

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    /// What failed.
    pub(super) step: Step,
    /// In words, with the remedy where there is one.
    pub(super) error: String,
    /// Until when what was tried may still take effect; given up is only after it.
    pub(super) undecided_until: Option<DateTime<Utc>>,
}

/// Which step of a dispatch failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Delivering into a session, or respawning it.
    Delivery,
    /// The first spawn of an item.
    FirstSpawn,
    /// Any: the work broke down, which `dispatch.error` has said.
    BrokenDown,
}

impl Conclusion {
    pub(super) fn delivered(delivered: Delivered) -> Self {
        Self::Delivered(Box::new(delivered))
    }

    pub(super) fn failed(step: Step, error: impl std::fmt::Display) -> Self {
        Self::Failed(Failure {
            step,
            error: error.to_string(),
            undecided_until: None,
        })
    }

    /// The same, where a paste that went wrong may still be served by tmux until then.
    pub(super) fn undecided_until(self, at: DateTime<Utc>) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure {
                undecided_until: Some(at),
                ..failure
            }),
            other => other,
        }
    }
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Writes the conclusion down.
    pub(super) async fn conclude(
        &self,
        claim: &Arc<Claim>,
        conclusion: Conclusion,
    ) -> Result<(), WorkError> {
        match conclusion {
            Conclusion::Delivered(delivered) => {
                let Delivered {
                    repeat,
                    change,
                    records,
                } = *delivered;
                let possible_repeat = repeat == Repeat::Possible;
                self.deduper
                    .settle(claim, Settlement::Delivered { possible_repeat }, change)
                    .await?;
                for record in &records {
                    self.log.emit(record);
                }
            }
            Conclusion::Dropped(reason) => {
                self.deduper
                    .settle(claim, Settlement::Dropped(reason), None)
                    .await?;
                for row in &claim.rows {
                    self.log.emit(&records::dropped(claim, row, reason, None));
                }
            }
            Conclusion::Skipped { detail } => {
                let reason = DropReason::SessionOccupied;
                self.deduper
                    .settle(claim, Settlement::Skipped(reason), None)
                    .await?;
                for row in &claim.rows {
                    self.log
                        .emit(&records::dropped(claim, row, reason, Some(&detail)));
                }
            }
            Conclusion::Failed(failure) => self.failed(claim, failure).await?,
            Conclusion::Held { reason, again } => self.held(claim, reason, again).await?,
        }
        Ok(())
    }

    async fn held(
        &self,
        claim: &Arc<Claim>,
        reason: HoldReason,
        again: Duration,
    ) -> Result<(), WorkError> {
        let look_again_at = self.clock.now() + again;
        self.deduper
            .release(
                claim,
                Release::Held {
                    reason,
                    look_again_at,
                },
            )
            .await?;
        // A delivery that looks again and still waits for the same thing says so once.
        if claim.held_before != Some(reason) {
            for row in &claim.rows {
                self.log.emit(&records::held(claim, row, reason));
            }
        }
        Ok(())
    }

    async fn failed(&self, claim: &Arc<Claim>, failure: Failure) -> Result<(), WorkError> {
        let config = self.config();
        if claim.attempts() < config.polling.max_retries {
            // What fails before it could begin counts too, or it would be tried for ever.
            self.deduper.begin_attempt(claim).await?;
        }
        let again = claim.attempts() < config.polling.max_retries;
        self.deduper.note_error(claim, &failure.error).await?;
        if again {
            let at = self.clock.now() + config.polling.interval;
            self.deduper.release(claim, Release::Retry { at }).await?;
        } else if let Some(at) = failure.undecided_until {
            self.deduper.release(claim, Release::Retry { at }).await?;
        } else {
            let rearm = match failure.step {
                Step::Delivery | Step::BrokenDown => Rearm::ByAnotherVersion,
                Step::FirstSpawn => Rearm::ByHand,
            };
            self.deduper
                .settle(
                    claim,
                    Settlement::Abandoned {
                        version: records::VERSION,
                        rearm,
                    },
                    None,
                )
                .await?;
        }
        let goes_on = again || failure.undecided_until.is_some();
        if failure.step != Step::BrokenDown {
            for row in &claim.rows {
                self.log.emit(&records::failed(
                    claim,
                    row,
                    &failure.error,
                    config.polling.max_retries,
                    goes_on,
                ));
            }
        }
        if !goes_on {
            self.log.emit(&match failure.step {
                Step::Delivery | Step::BrokenDown => {
                    records::gave_up_comment(claim, &failure.error)
                }
                Step::FirstSpawn => records::gave_up_spawn(claim, &failure.error),
            });
        }
        Ok(())
    }
}
