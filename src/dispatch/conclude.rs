//! What the work on a claim came to, written down: one transaction, and its lines in the event log
//! just before the commit.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Shared;
use super::error::WorkError;
use super::records::{self, Place};
use crate::eventlog::{Decision, SpawnFailure};
use crate::model::{Class, DropReason, HoldReason, Repeat, SessionName};
use crate::planted::{Planted, is_planted};
use crate::runner::{Machine, TmuxServer};
use crate::store::{Claim, ClaimedDelivery, Rearm, Release, SessionChange, Settlement};

/// What the work on a claim came to.
#[derive(Debug)]
pub(super) enum Conclusion {
    /// The text is in the session.
    Delivered(Box<Delivered>),
    /// The command was executed.
    Executed(Box<Delivered>),
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
        /// What exactly it waits for, where the reason alone does not tell.
        detail: Option<String>,
    },
}

/// A delivery that arrived, or a command that was executed.
#[derive(Debug)]
pub(super) struct Delivered {
    /// Whether the agent may have read the same text before.
    pub(super) repeat: Repeat,
    /// What changes in the registry in the same transaction.
    pub(super) change: Option<SessionChange>,
    /// What to write to the event log.
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
    /// The spawn that failed, where one did.
    pub(super) spawn: Option<FailedSpawn>,
}

/// A spawn that failed, for its line in the event log.
#[derive(Debug)]
pub(super) struct FailedSpawn {
    /// The session that was to be.
    pub(super) name: SessionName,
    /// Why it is not.
    pub(super) reason: SpawnFailure,
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

    pub(super) fn executed(delivered: Delivered) -> Self {
        Self::Executed(Box::new(delivered))
    }

    pub(super) fn held(reason: HoldReason, again: Duration) -> Self {
        Self::Held {
            reason,
            again,
            detail: None,
        }
    }

    pub(super) fn failed(step: Step, error: impl std::fmt::Display) -> Self {
        Self::Failed(Failure {
            step,
            error: error.to_string(),
            undecided_until: None,
            spawn: None,
        })
    }

    /// A first spawn that failed.
    pub(super) fn spawn_failed(spawn: FailedSpawn, error: String) -> Self {
        Self::Failed(Failure {
            step: Step::FirstSpawn,
            error,
            undecided_until: None,
            spawn: Some(spawn),
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
            Conclusion::Delivered(_) if is_planted(Planted::Unsettled) => {
                let again = Duration::from_secs(5);
                self.held(claim, HoldReason::Starting, again, None).await
            }
            Conclusion::Delivered(delivered) | Conclusion::Executed(delivered) => {
                let Delivered {
                    repeat,
                    change,
                    records,
                } = *delivered;
                let possible_repeat = repeat == Repeat::Possible;
                self.settle(
                    claim,
                    Settlement::Delivered { possible_repeat },
                    change,
                    &records,
                )
                .await
            }
            Conclusion::Dropped(reason) => {
                let place = self.place(claim).await;
                let said = Self::of_each(claim, |row| {
                    records::dropped(claim, row, &place, reason, None)
                });
                self.settle(claim, Settlement::Dropped(reason), None, &said)
                    .await
            }
            Conclusion::Skipped { detail } => {
                let reason = DropReason::SessionOccupied;
                let place = self.place(claim).await;
                let said = Self::of_each(claim, |row| {
                    records::dropped(claim, row, &place, reason, Some(&detail))
                });
                self.settle(claim, Settlement::Skipped(reason), None, &said)
                    .await
            }
            Conclusion::Failed(failure) => self.failed(claim, failure).await,
            Conclusion::Held {
                reason,
                again,
                detail,
            } => self.held(claim, reason, again, detail.as_deref()).await,
        }
    }

    /// Where the item's session is, for a record alone: what cannot be read is left out of it.
    pub(super) async fn place(&self, claim: &Claim) -> Place {
        let open = self.registry.open_session(claim.item.id).await;
        Place::of(open.ok().flatten().as_ref())
    }

    fn of_each(claim: &Claim, record: impl Fn(&ClaimedDelivery) -> Decision) -> Vec<Decision> {
        claim.rows.iter().map(record).collect()
    }

    pub(super) fn write_down(&self, said: &[Decision]) {
        said.iter().for_each(|record| self.log.emit(record));
    }

    async fn settle(
        &self,
        claim: &Claim,
        settlement: Settlement<'_>,
        change: Option<SessionChange>,
        said: &[Decision],
    ) -> Result<(), WorkError> {
        let say = || self.write_down(said);
        self.deduper
            .settle_saying(claim, settlement, change, say)
            .await?;
        Ok(())
    }

    async fn held(
        &self,
        claim: &Arc<Claim>,
        reason: HoldReason,
        again: Duration,
        detail: Option<&str>,
    ) -> Result<(), WorkError> {
        let look_again_at = self.clock.now() + again;
        let held = Release::Held {
            reason,
            look_again_at,
        };
        // A delivery that looks again and still waits for the same thing says so once.
        let said = if claim.held_before == Some(reason) {
            Vec::new()
        } else {
            let place = self.place(claim).await;
            Self::of_each(claim, |row| {
                records::held(claim, row, &place, reason, detail)
            })
        };
        let say = || self.write_down(&said);
        self.deduper.release_saying(claim, held, say).await?;
        Ok(())
    }

    async fn failed(&self, claim: &Arc<Claim>, failure: Failure) -> Result<(), WorkError> {
        let config = self.config();
        let most = config.polling.max_retries;
        if claim.attempts() < most {
            // What fails before it could begin counts too, or it would be tried for ever.
            self.deduper.begin_attempt(claim).await?;
        }
        self.deduper.note_error(claim, &failure.error).await?;
        let again = if claim.attempts() < most || is_planted(Planted::Endless) {
            Some(self.clock.now() + config.polling.interval)
        } else {
            failure.undecided_until
        };
        let will_retry = again.is_some();
        let mut said = Vec::new();
        if let Some(spawn) = &failure.spawn {
            let harness = &config.routing.default_harness;
            let error = &failure.error;
            said.push(records::spawn_failed(
                claim, harness, spawn, error, will_retry,
            ));
        }
        if failure.step != Step::BrokenDown {
            let place = self.place(claim).await;
            said.extend(Self::of_each(claim, |row| {
                records::failed(claim, row, &place, &failure.error, most, will_retry)
            }));
        }
        if let Some(at) = again {
            let say = || self.write_down(&said);
            let release = match (claim.class, failure.step) {
                // A command that comes meanwhile need not wait for it.
                (Class::Control, Step::FirstSpawn) => Release::RetryStart { at },
                _ => Release::Retry { at },
            };
            self.deduper.release_saying(claim, release, say).await?;
            return Ok(());
        }
        let (rearm, gave_up) = match failure.step {
            Step::Delivery | Step::BrokenDown => (
                Rearm::ByAnotherVersion,
                records::gave_up_comment(claim, &failure.error),
            ),
            Step::FirstSpawn => (Rearm::ByHand, records::gave_up_spawn(claim, &failure.error)),
        };
        if is_planted(Planted::Silence) {
            said.clear();
        } else {
            said.push(gave_up);
        }
        let version = records::VERSION;
        let abandoned = Settlement::Abandoned { version, rearm };
        self.settle(claim, abandoned, None, &said).await
    }
}
