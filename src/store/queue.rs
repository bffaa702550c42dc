//! The deliveries as people and schedules see them: counted, listed, tried again, dropped.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::sqlite::SqliteRow;

use super::claim;
use super::effects::not_being_spawned;
use super::error::Fault;
use super::rows::Reader;
use super::settle::remember_give_up;
use super::{Store, StoreError};
use crate::model::{Class, DeliveryId, DeliveryState, DropReason, EventKey, WorkItemRef};

/// Which deliveries are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFilter<'a> {
    /// Those that wait or are being worked on.
    Open,
    /// Those whose attempts are spent, until something later of their work item succeeds.
    Abandoned,
    /// All of one work item.
    Of(&'a WorkItemRef),
    /// Those of one event or object: its key, or the key without the version.
    About(&'a str),
}

/// One delivery, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    /// Its number.
    pub delivery: DeliveryId,
    /// Its work item.
    pub item: WorkItemRef,
    /// The key of its event.
    pub key: EventKey,
    /// The kind of its event, as log and store write it.
    pub kind: String,
    /// Who did the act.
    pub actor: Option<String>,
    /// Which queue it stands in.
    pub class: Class,
    /// How far it has come.
    pub state: DeliveryState,
    /// Why it waits, or was decided against.
    pub reason: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// How many attempts have begun.
    pub attempts: u64,
    /// When it is due.
    pub next_at: DateTime<Utc>,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
}

/// How many deliveries are not done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// They wait for their turn.
    pub pending: u64,
    /// Somebody works on them.
    pub claimed: u64,
    /// They wait for a condition.
    pub held: u64,
    /// Their attempts are spent, and nothing later of their work items has succeeded.
    pub abandoned: u64,
    /// When the oldest pending one was accepted, where that can be read.
    pub oldest_pending: Option<DateTime<Utc>>,
    /// When the oldest held one was accepted, where that can be read.
    pub oldest_held: Option<DateTime<Utc>>,
}

impl Counts {
    /// Counts what is neither done nor given up.
    #[must_use]
    pub fn not_done(&self) -> u64 {
        self.pending + self.held + self.claimed
    }
}

/// A given-up delivery that is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rearmed {
    /// Its number.
    pub delivery: DeliveryId,
    /// Its work item.
    pub item: WorkItemRef,
    /// The key of its event.
    pub key: EventKey,
}

/// What was given up and needs somebody: a delivery or a command for the same work item that succeeds
/// afterwards shows that somebody has seen to it.
macro_rules! needs_somebody {
    () => {
        "d.state = 'abandoned' AND NOT EXISTS (SELECT 1 FROM deliveries l WHERE l.item_id = d.item_id \
         AND l.state = 'delivered' AND l.settled_at > d.settled_at)"
    };
}

pub(super) const NOT_DONE: &str = concat!(
    "SELECT 0 AS id, d.state, COUNT(*) AS count, MIN(d.accepted_at) AS oldest FROM deliveries d \
     WHERE d.state IN ('pending', 'held') GROUP BY d.state \
     UNION ALL SELECT 0 AS id, 'claimed', COUNT(*), 0 FROM deliveries c WHERE c.claim_token IS NOT NULL \
     UNION ALL SELECT 0 AS id, 'abandoned', COUNT(*), 0 FROM deliveries d WHERE ",
    needs_somebody!()
);

const REARMING: &str = "re-arming given-up deliveries";

const WANTED_AGAIN: &str = "SELECT d.id, w.ref, e.key FROM deliveries d \
     JOIN events e ON e.id = d.event_id JOIN work_items w ON w.id = d.item_id \
     WHERE d.state = 'abandoned' AND d.class = 'event' AND d.by_hand = 0 \
     AND COALESCE(d.intent_expires_at, 0) < $2 AND NOT EXISTS (SELECT 1 FROM give_ups g \
     WHERE g.delivery_id = d.id AND g.version = $1) ORDER BY d.id";

macro_rules! queue_columns {
    () => {
        "SELECT d.id, w.ref, e.key, e.kind, e.actor, d.class, d.state, d.reason, d.error, d.attempts, \
         d.next_at, d.accepted_at FROM deliveries d JOIN events e ON e.id = d.event_id \
         JOIN work_items w ON w.id = d.item_id "
    };
}

/// The deliveries as people and schedules see them.
#[derive(Debug, Clone)]
pub struct Queue {
    store: Store,
}

impl Queue {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Counts what is not done.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let counted = async {
            let rows = sqlx::query(NOT_DONE)
                .fetch_all(&mut *self.store.reading().await?)
                .await?;
            let mut counts = Counts::default();
            for row in &rows {
                let row = Reader::new(row, "deliveries")?;
                let count = row.number("count")?;
                match row.parse("state")? {
                    DeliveryState::Pending => {
                        counts.pending = count;
                        counts.oldest_pending = oldest(row);
                    }
                    DeliveryState::Held => {
                        counts.held = count;
                        counts.oldest_held = oldest(row);
                    }
                    DeliveryState::Claimed => counts.claimed = count,
                    DeliveryState::Abandoned => counts.abandoned = count,
                    DeliveryState::Delivered
                    | DeliveryState::Dropped
                    | DeliveryState::Skipped
                    | DeliveryState::Baselined => {}
                }
            }
            Ok(counts)
        };
        counted
            .await
            .map_err(self.store.explain("counting deliveries"))
    }

    /// Lists at most `limit` deliveries, oldest first; those that cannot be read are said and left out.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn list(
        &self,
        filter: QueueFilter<'_>,
        limit: u32,
    ) -> Result<Vec<QueueRow>, StoreError> {
        let query = match filter {
            QueueFilter::Open => sqlx::query(concat!(
                queue_columns!(),
                "WHERE d.id IN (SELECT o.id FROM deliveries o WHERE o.state IN ('pending', 'held') \
                 UNION ALL SELECT c.id FROM deliveries c WHERE c.claim_token IS NOT NULL) \
                 ORDER BY d.id LIMIT $1"
            ))
            .bind(i64::from(limit)),
            QueueFilter::Abandoned => sqlx::query(concat!(
                queue_columns!(),
                "WHERE ",
                needs_somebody!(),
                " ORDER BY d.id LIMIT $1"
            ))
            .bind(i64::from(limit)),
            QueueFilter::Of(item) => sqlx::query(concat!(
                queue_columns!(),
                "WHERE w.ref_key = $2 ORDER BY d.number LIMIT $1"
            ))
            .bind(i64::from(limit))
            .bind(item.key()),
            QueueFilter::About(key) => sqlx::query(concat!(
                queue_columns!(),
                "WHERE e.key = $2 OR e.object = $2 ORDER BY d.id LIMIT $1"
            ))
            .bind(i64::from(limit))
            .bind(key),
        };
        const DOING: &str = "listing deliveries";
        let rows = self.store.all(query).await;
        let rows = rows.map_err(self.store.explain(DOING))?;
        Ok(self.store.readable(DOING, &rows, queue_row))
    }

    /// Returns one delivery.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn get(&self, delivery: DeliveryId) -> Result<Option<QueueRow>, StoreError> {
        let query = sqlx::query(concat!(queue_columns!(), "WHERE d.id = $1"));
        let row = self.store.first(query.bind(delivery.0)).await;
        row.and_then(|row| row.as_ref().map(queue_row).transpose())
            .map_err(self.store.explain("reading a delivery"))
    }

    /// Gives what other versions of the program gave up a full budget again, once per version
    /// (AC11), and says so of each just before the commit. First spawns stay given up, and so does a
    /// paste that may still take effect; and so does a command, which was meant for the agent of then.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was re-armed.
    pub async fn rearm_given_up(
        &self,
        running: &str,
        say: impl FnMut(&Rearmed) + Send,
    ) -> Result<Vec<Rearmed>, StoreError> {
        self.rearm_all(running, say)
            .await
            .map_err(self.store.explain(REARMING))
    }

    async fn rearm_all(
        &self,
        running: &str,
        say: impl FnMut(&Rearmed) + Send,
    ) -> Result<Vec<Rearmed>, Fault> {
        let now = self.store.now_ms();
        let wanted = || sqlx::query(WANTED_AGAIN).bind(running).bind(now);
        // Every start looks, and nearly none finds any: only then is there something to write.
        let found = wanted()
            .fetch_optional(&mut *self.store.reading().await?)
            .await?;
        if found.is_none() {
            return Ok(Vec::new());
        }
        let mut tx = self.store.begin().await?;
        let rows = wanted().fetch_all(&mut *tx).await?;
        let rearmed = self.store.readable(REARMING, &rows, rearmed);
        for again in &rearmed {
            let delivery = again.delivery.0;
            sqlx::query(
                "UPDATE deliveries SET state = 'pending', attempts = 0, next_at = $2, settled_at = NULL \
                 WHERE id = $1",
            )
            .bind(delivery)
            .bind(now)
            .execute(&mut *tx)
            .await?;
            remember_give_up(&mut tx, delivery, running).await?;
        }
        rearmed.iter().for_each(say);
        tx.commit().await?;
        Ok(rearmed)
    }

    /// Tries a given-up delivery again because a person says so; returns whether it was given up.
    ///
    /// Rows that were told as one message are tried again as one: each alone would find the token of
    /// that message, and count as said with it.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn retry(&self, delivery: DeliveryId) -> Result<bool, StoreError> {
        let again = sqlx::query(
            "UPDATE deliveries SET state = 'pending', attempts = 0, by_hand = 0, reason = NULL, \
             next_at = $2, settled_at = NULL WHERE state IN ('abandoned', 'skipped') \
             AND id IN (SELECT m.id FROM deliveries w JOIN deliveries m ON m.item_id = w.item_id \
             AND (m.id = w.id OR m.batch = w.batch) WHERE w.id = $1 \
             AND w.state IN ('abandoned', 'skipped')) \
             AND event_id IN (SELECT e.id FROM events e WHERE e.payload IS NOT NULL)",
        )
        .bind(delivery.0)
        .bind(self.store.now_ms());
        let changed = self.store.change(again).await;
        changed
            .map(|rows| rows > 0)
            .map_err(self.store.explain("retrying a delivery"))
    }

    /// Drops a delivery that waits or was given up, says so just before the commit, and returns
    /// whether it did.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn drop_one(
        &self,
        delivery: DeliveryId,
        reason: DropReason,
        say: impl FnOnce() + Send,
    ) -> Result<bool, StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            let done = sqlx::query(concat!(
            "UPDATE deliveries SET state = 'dropped', reason = $2, settled_at = $3 WHERE id = $1 \
             AND state IN ('pending', 'held', 'abandoned')",
            not_being_spawned!()
        ))
        .bind(delivery.0)
        .bind(reason.as_str())
        .bind(self.store.now_ms())
        .execute(&mut *tx)
        .await?;
            let dropped = done.rows_affected() > 0;
            if dropped {
                say();
            }
            tx.commit().await?;
            Ok(dropped)
        };
        done.await
            .map_err(self.store.explain("dropping a delivery"))
    }
}

fn rearmed(row: &SqliteRow) -> Result<Rearmed, Fault> {
    let row = Reader::new(row, "deliveries")?;
    Ok(Rearmed {
        delivery: DeliveryId(row.id()),
        item: row.parse("ref")?,
        key: EventKey::from_stored(row.get("key")?),
    })
}

/// A time that cannot be read is one delivery's trouble, and no reason to count none.
fn oldest(row: Reader<'_>) -> Option<DateTime<Utc>> {
    row.opt_time("oldest").ok().flatten()
}

fn queue_row(row: &SqliteRow) -> Result<QueueRow, Fault> {
    let row = Reader::new(row, "deliveries")?;
    Ok(QueueRow {
        delivery: DeliveryId(row.id()),
        item: row.parse("ref")?,
        key: EventKey::from_stored(row.get("key")?),
        kind: row.get("kind")?,
        actor: row.get("actor")?,
        class: claim::class(row)?,
        state: row.parse("state")?,
        reason: row.get("reason")?,
        error: row.get("error")?,
        attempts: row.number("attempts")?,
        next_at: row.time("next_at")?,
        accepted_at: row.time("accepted_at")?,
    })
}
