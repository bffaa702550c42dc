//! How a claim ends.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use super::claim::Claim;
use super::enqueue::delivery_ids;
use super::error::Fault;
use super::rows::ms;
use crate::model::{DeliveryState, DropReason, HoldReason};

/// Who tries a given-up delivery again (AC11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rearm {
    /// A version of the program that has not given it up, once.
    ByAnotherVersion,
    /// Only a person: it was a first spawn.
    ByHand,
}

/// The final outcome of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement<'v> {
    /// Its text is in the session, or its command was executed.
    Delivered {
        /// Whether the agent may have read it before (the session died in between).
        possible_repeat: bool,
    },
    /// Decided against.
    Dropped(DropReason),
    /// No progress was possible; never tried again (AC8).
    Skipped(DropReason),
    /// Its attempts are spent.
    Abandoned {
        /// The running version of the program, which never tries it again.
        version: &'v str,
        /// Who tries it again.
        rearm: Rearm,
    },
}

/// How a claim is given back; for [`LONGEST_WAIT`](super::LONGEST_WAIT) at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The attempt failed; another one follows.
    Retry {
        /// When.
        at: DateTime<Utc>,
    },
    /// The same for a start that failed; no later command waits for it.
    RetryStart {
        /// When.
        at: DateTime<Utc>,
    },
    /// It waits for a condition; an attempt that had begun is not counted.
    Held {
        /// Which condition.
        reason: HoldReason,
        /// When to look again if nothing wakes it before.
        look_again_at: DateTime<Utc>,
    },
}

pub(super) const SETTLE: &str = "UPDATE deliveries SET state = $2, reason = $3, by_hand = $4, \
     possible_repeat = CASE WHEN $2 = 'abandoned' THEN possible_repeat ELSE $5 END, settled_at = $6, attempt_begun = 0, typed = 0, claim_lead = 0, claim_token = NULL, \
     claim_host = NULL, claim_pid = NULL, claim_start = NULL, claim_boot = NULL, lease_until = NULL \
     WHERE claim_token = $1 RETURNING id";

pub(super) async fn settle(
    conn: &mut SqliteConnection,
    claim: &Claim,
    settlement: Settlement<'_>,
    now: i64,
) -> Result<(), Fault> {
    let (state, reason) = match settlement {
        Settlement::Delivered { .. } => (DeliveryState::Delivered, None),
        Settlement::Dropped(reason) => (DeliveryState::Dropped, Some(reason)),
        Settlement::Skipped(reason) => (DeliveryState::Skipped, Some(reason)),
        Settlement::Abandoned { .. } => (DeliveryState::Abandoned, None),
    };
    let by_hand = matches!(
        settlement,
        Settlement::Abandoned {
            rearm: Rearm::ByHand,
            ..
        }
    );
    let repeat = matches!(
        settlement,
        Settlement::Delivered {
            possible_repeat: true
        }
    );
    let rows = sqlx::query(SETTLE)
        .bind(claim.token.as_str())
        .bind(state.as_str())
        .bind(reason.map(DropReason::as_str))
        .bind(i64::from(by_hand))
        .bind(i64::from(repeat))
        .bind(now)
        .fetch_all(&mut *conn)
        .await?;
    let settled = delivery_ids(&rows)?;
    if settled.is_empty() {
        return Err(Fault::Lost(claim.first().id));
    }
    if let Settlement::Abandoned { version, .. } = settlement {
        for delivery in settled {
            remember_give_up(conn, delivery.0, version).await?;
        }
    }
    Ok(())
}

pub(super) async fn remember_give_up(
    conn: &mut SqliteConnection,
    delivery: i64,
    version: &str,
) -> Result<(), Fault> {
    sqlx::query(
        "INSERT INTO give_ups (delivery_id, version) VALUES ($1, $2) \
         ON CONFLICT (delivery_id, version) DO NOTHING",
    )
    .bind(delivery)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn release(
    conn: &mut SqliteConnection,
    claim: &Claim,
    release: Release,
    longest_wait_end: i64,
) -> Result<(), Fault> {
    let (state, reason, next_at, given_back) = match release {
        Release::Retry { at } => (DeliveryState::Pending, None, at, 0),
        Release::RetryStart { at } => (DeliveryState::Held, Some(HoldReason::StartRetry), at, 0),
        Release::Held {
            reason,
            look_again_at,
        } => (DeliveryState::Held, Some(reason), look_again_at, 1),
    };
    let done = sqlx::query(
        "UPDATE deliveries SET state = $2, reason = $3, next_at = $4, \
         attempts = attempts - attempt_begun * $5, attempt_begun = 0, typed = $6, claim_lead = 0, claim_token = NULL, \
         claim_host = NULL, claim_pid = NULL, claim_start = NULL, claim_boot = NULL, lease_until = NULL \
         WHERE claim_token = $1",
    )
    .bind(claim.token.as_str())
    .bind(state.as_str())
    .bind(reason.map(HoldReason::as_str))
    .bind(ms(next_at).min(longest_wait_end))
    .bind(i64::from(given_back))
    .bind(i64::from(claim.is_typed()))
    .execute(conn)
    .await?;
    if done.rows_affected() == 0 {
        return Err(Fault::Lost(claim.first().id));
    }
    Ok(())
}
