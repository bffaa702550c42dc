//! Claims: who works on which delivery, of all processes on all hosts.
//!
//! A claim is a token on a row, or on all rows of one review, and a lease that its holder renews.
//! One row of it carries the mark that a unique index allows once per work item. A claim whose lease
//! ran out, or whose owner is proved dead on this host, is taken over with a new token; the former
//! holder finds out at its next write, which names the old one.

use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::error::Fault;
use super::rows::{self, ItemRow, Reader, big, item_columns};
use crate::model::{BootId, ClaimToken, Class, DeliveryId, Event, HoldReason, OwnerId, ProcessId};

/// A row that this version cannot read is looked at again after this time, or by a newer version.
const UNREADABLE_MS: i64 = 3_600_000;
/// More unreadable rows than this are left for the next call.
const TRIES: usize = 16;

/// The process that claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOwner {
    /// The process itself.
    pub process: ProcessId,
    /// The boot that it runs in.
    pub boot: BootId,
}

/// Tells whether a process of this host is proved dead; in doubt it is not.
pub type IsDead<'a> = dyn Fn(&ProcessId, &BootId) -> bool + Send + Sync + 'a;

/// A paste that may be under way: until it expires it can still take effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The spawn intent of the session that it goes into.
    pub owner: OwnerId,
    /// When it can no longer take effect.
    pub expires_at: DateTime<Utc>,
}

/// One delivery of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// Its number, which also names its token in the tmux session.
    pub id: DeliveryId,
    /// Its place in the order of its work item.
    pub number: u64,
    /// What it delivers.
    pub event: Event,
    /// How many attempts had begun when it was claimed.
    pub attempts: u32,
    /// The paste that an earlier attempt has begun.
    pub intent: Option<Intent>,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
}

/// The right to work on a delivery, alone.
#[derive(Debug)]
pub struct Claim {
    /// The proof; every write names it.
    pub token: ClaimToken,
    /// The work item as it was when the claim was made.
    pub item: ItemRow,
    /// What is claimed, in order; several rows only for one review. Never empty.
    pub rows: Vec<ClaimedDelivery>,
    /// Which queue it stood in.
    pub class: Class,
    /// When the newest of its events was received.
    pub received_at: DateTime<Utc>,
    /// What it waited for before, if it did.
    pub held_before: Option<HoldReason>,
    /// Whether it was taken from a holder that is gone: an attempt may be half done.
    pub taken_over: bool,
    attempts: AtomicU32,
}

/// The proof of a claim without its content, for the task that renews it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRef {
    /// The proof.
    pub token: ClaimToken,
    /// The first delivery, by which the claim is known.
    pub delivery: DeliveryId,
}

impl Claim {
    /// Returns the first delivery, by which the whole claim is known.
    #[must_use]
    pub fn first(&self) -> &ClaimedDelivery {
        #[expect(
            clippy::expect_used,
            reason = "`read` makes no claim without the row that carries its mark"
        )]
        self.rows.first().expect("a claim has a row")
    }

    /// Returns what is to be told, in order.
    #[must_use]
    pub fn events(&self) -> Vec<&Event> {
        self.rows.iter().map(|row| &row.event).collect()
    }

    /// Returns the paste that an earlier attempt has begun.
    #[must_use]
    pub fn intent(&self) -> Option<&Intent> {
        self.first().intent.as_ref()
    }

    /// Returns how many attempts have begun, with the one of this claim.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    pub(super) fn set_attempts(&self, attempts: u32) {
        self.attempts.store(attempts, Ordering::Relaxed);
    }

    /// Returns the proof alone.
    #[must_use]
    pub fn reference(&self) -> ClaimRef {
        ClaimRef {
            token: self.token.clone(),
            delivery: self.first().id,
        }
    }
}

/// What makes a waiting delivery `d` free to be claimed by the host `$1`:
/// nobody works on its item; nothing of its class is ahead of it (a held command makes no other
/// command wait); its item's session, if open, is this host's, and if still being spawned, for it.
macro_rules! free {
    () => {
        "d.state IN ('pending', 'held') \
         AND NOT EXISTS (SELECT 1 FROM deliveries c WHERE c.item_id = d.item_id AND c.claim_lead = 1) \
         AND NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.item_id = d.item_id AND e.class = d.class \
         AND e.number < d.number AND e.state IN ('pending', 'held') \
         AND (e.class = 'event' OR e.state = 'pending')) \
         AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = d.item_id AND s.status <> 'closed' \
         AND (s.host <> $1 OR (s.status = 'spawning' AND s.boot_delivery <> d.id)))"
    };
}
pub(super) use free;

const OLDEST_DUE: &str = concat!(
    "SELECT d.id, d.item_id, d.batch FROM deliveries d WHERE ",
    free!(),
    " AND d.next_at <= $2 ORDER BY d.class, d.id LIMIT 1"
);

const THIS_ONE: &str = concat!(
    "SELECT d.id, d.item_id, d.batch FROM deliveries d WHERE ",
    free!(),
    " AND d.id = $2"
);

/// Which waiting delivery is wanted.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    OldestDue,
    This(DeliveryId),
}

/// How one try ended.
enum Tried {
    Claimed(Box<Claim>),
    Nothing,
    /// The row could not be read and was put aside.
    PutAside,
}

pub(super) async fn claim(
    store: &Store,
    owner: &ClaimOwner,
    wanted: Wanted,
) -> Result<Option<Claim>, Fault> {
    for _ in 0..TRIES {
        // The look outside a transaction keeps an idle dispatcher from taking the write lock.
        let mut reader = store.readers.acquire().await?;
        if candidate(store, &mut reader, wanted).await?.is_none() {
            return Ok(None);
        }
        drop(reader);
        match claim_waiting(store, owner, wanted).await? {
            Tried::Claimed(claim) => return Ok(Some(*claim)),
            Tried::Nothing => return Ok(None),
            Tried::PutAside => {}
        }
    }
    Ok(None)
}

async fn candidate(
    store: &Store,
    conn: &mut SqliteConnection,
    wanted: Wanted,
) -> Result<Option<SqliteRow>, Fault> {
    let query = match wanted {
        Wanted::OldestDue => sqlx::query(OLDEST_DUE)
            .bind(&*store.machine)
            .bind(store.now_ms()),
        Wanted::This(delivery) => sqlx::query(THIS_ONE).bind(&*store.machine).bind(delivery.0),
    };
    Ok(query.fetch_optional(conn).await?)
}

async fn claim_waiting(store: &Store, owner: &ClaimOwner, wanted: Wanted) -> Result<Tried, Fault> {
    let mut tx = store.begin().await?;
    let Some(row) = candidate(store, &mut tx, wanted).await? else {
        return Ok(Tried::Nothing);
    };
    let row = Reader::new(&row, "deliveries")?;
    let token = ClaimToken::mint();
    let claimed = sqlx::query(
        "UPDATE deliveries SET state = 'claimed', \
         claim_lead = CASE WHEN id = $1 THEN 1 ELSE 0 END, claim_token = $2, claim_host = $3, \
         claim_pid = $4, claim_start = $5, claim_boot = $6, lease_until = $7 \
         WHERE state IN ('pending', 'held') AND (id = $1 OR (item_id = $8 AND class = 'event' AND batch = $9))",
    )
    .bind(row.id())
    .bind(token.as_str())
    .bind(&*store.machine)
    .bind(i64::from(owner.process.pid))
    .bind(big(owner.process.start))
    .bind(&owner.boot.0)
    .bind(store.lease_end_ms())
    .bind(row.get::<i64>("item_id")?)
    .bind(row.get::<Option<String>>("batch")?)
    .execute(&mut *tx)
    .await
    .map_err(Fault::from);
    match claimed {
        Ok(_) => {}
        Err(fault) if fault.is_unique_violation() => return Ok(Tried::Nothing),
        Err(fault) => return Err(fault),
    }
    let tried = read_or_put_aside(store, &mut tx, token, false).await?;
    tx.commit().await?;
    Ok(tried)
}

/// Takes over the oldest claim whose holder is gone.
pub(super) async fn take_over(
    store: &Store,
    owner: &ClaimOwner,
    is_dead: &IsDead<'_>,
) -> Result<Option<Claim>, Fault> {
    let now = store.now_ms();
    let held = sqlx::query(
        "SELECT d.id, d.claim_token, d.claim_host, d.claim_pid, d.claim_start, d.claim_boot, d.lease_until \
         FROM deliveries d WHERE d.claim_lead = 1 AND (d.claim_host = $1 OR d.lease_until <= $2) \
         AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = d.item_id AND s.status <> 'closed' \
         AND s.host <> $1) ORDER BY d.id",
    )
    .bind(&*store.machine)
    .bind(now)
    .fetch_all(&store.readers)
    .await?;
    for row in &held {
        let row = Reader::new(row, "deliveries")?;
        let lease: i64 = row.get("lease_until")?;
        let gone = lease <= now || {
            let process = row.process("claim_pid", "claim_start")?;
            is_dead(&process, &BootId(row.get("claim_boot")?))
        };
        if gone && let Tried::Claimed(claim) = replace(store, owner, row, lease).await? {
            return Ok(Some(*claim));
        }
    }
    Ok(None)
}

/// Exchanges the token, unless the holder renewed or somebody else was faster.
async fn replace(
    store: &Store,
    owner: &ClaimOwner,
    held: Reader<'_>,
    lease: i64,
) -> Result<Tried, Fault> {
    let token = ClaimToken::mint();
    let mut tx = store.begin().await?;
    let taken = sqlx::query(
        "UPDATE deliveries SET claim_token = $1, claim_host = $2, claim_pid = $3, claim_start = $4, \
         claim_boot = $5, lease_until = $6 WHERE claim_token = $7 AND lease_until = $8",
    )
    .bind(token.as_str())
    .bind(&*store.machine)
    .bind(i64::from(owner.process.pid))
    .bind(big(owner.process.start))
    .bind(&owner.boot.0)
    .bind(store.lease_end_ms())
    .bind(held.get::<String>("claim_token")?)
    .bind(lease)
    .execute(&mut *tx)
    .await?;
    if taken.rows_affected() == 0 {
        return Ok(Tried::Nothing);
    }
    let tried = read_or_put_aside(store, &mut tx, token, true).await?;
    tx.commit().await?;
    Ok(tried)
}

async fn read_or_put_aside(
    store: &Store,
    conn: &mut SqliteConnection,
    token: ClaimToken,
    taken_over: bool,
) -> Result<Tried, Fault> {
    match read(conn, &token, taken_over).await {
        Ok(claim) => Ok(Tried::Claimed(Box::new(claim))),
        Err(Fault::Row { table, id, detail }) => {
            let until = store.now_ms().saturating_add(UNREADABLE_MS);
            sqlx::query(
                "UPDATE deliveries SET state = 'held', error = $2, next_at = $3, claim_lead = 0, \
                 claim_token = NULL WHERE claim_token = $1",
            )
            .bind(token.as_str())
            .bind(format!("row {id} of {table} cannot be read: {detail}"))
            .bind(until)
            .execute(conn)
            .await?;
            Ok(Tried::PutAside)
        }
        Err(fault) => Err(fault),
    }
}

async fn read(
    conn: &mut SqliteConnection,
    token: &ClaimToken,
    taken_over: bool,
) -> Result<Claim, Fault> {
    let rows = sqlx::query(
        "SELECT d.id, d.number, d.class, d.attempts, d.reason, d.intent_owner, \
         d.intent_expires_at, d.accepted_at, e.payload FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.claim_token = $1 \
         ORDER BY d.number",
    )
    .bind(token.as_str())
    .fetch_all(&mut *conn)
    .await?;
    let deliveries = rows.iter().map(delivery).collect::<Result<Vec<_>, _>>()?;
    let row = sqlx::query(concat!(
        "SELECT ",
        item_columns!(),
        " FROM work_items w WHERE w.id = (SELECT d.item_id FROM deliveries d WHERE d.claim_token = $1 \
         AND d.claim_lead = 1)"
    ))
    .bind(token.as_str())
    .fetch_one(conn)
    .await?;
    let lead = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let lead = Reader::new(lead, "deliveries")?;
    let reason: Option<String> = lead.get("reason")?;
    let attempts = deliveries.iter().map(|row| row.attempts).max();
    Ok(Claim {
        token: token.clone(),
        item: rows::item(&row)?,
        class: class(lead)?,
        received_at: newest(&deliveries),
        // A reason that this version does not know is no reason to leave the delivery lying.
        held_before: reason.and_then(|word| word.parse().ok()),
        attempts: AtomicU32::new(attempts.unwrap_or(0)),
        rows: deliveries,
        taken_over,
    })
}

fn newest(deliveries: &[ClaimedDelivery]) -> DateTime<Utc> {
    let newest = deliveries.iter().map(|row| row.accepted_at).max();
    newest.unwrap_or_default()
}

/// Extends the lease, in the transaction of what it protects.
pub(super) async fn fence(
    store: &Store,
    conn: &mut SqliteConnection,
    claim: &ClaimRef,
) -> Result<(), Fault> {
    let held = sqlx::query("UPDATE deliveries SET lease_until = $2 WHERE claim_token = $1")
        .bind(claim.token.as_str())
        .bind(store.lease_end_ms())
        .execute(conn)
        .await?;
    if held.rows_affected() == 0 {
        return Err(Fault::Lost(claim.delivery));
    }
    Ok(())
}

fn delivery(row: &SqliteRow) -> Result<ClaimedDelivery, Fault> {
    let row = Reader::new(row, "deliveries")?;
    let payload: String = row.get("payload")?;
    let event =
        serde_json::from_str(&payload).map_err(|error| row.bad(format!("payload: {error}")))?;
    let attempts = row.number("attempts")?;
    let intent = match row.opt_time("intent_expires_at")? {
        Some(expires_at) => Some(Intent {
            owner: row.parse("intent_owner")?,
            expires_at,
        }),
        None => None,
    };
    Ok(ClaimedDelivery {
        id: DeliveryId(row.id()),
        number: row.number("number")?,
        event,
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        intent,
        accepted_at: row.time("accepted_at")?,
    })
}

pub(super) fn class(row: Reader<'_>) -> Result<Class, Fault> {
    let word: String = row.get("class")?;
    [Class::Control, Class::Event]
        .into_iter()
        .find(|class| class.as_str() == word)
        .ok_or_else(|| row.bad(format!("class: {word:?} is neither control nor event")))
}
