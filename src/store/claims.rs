//! Claims: who works on which delivery, of all processes on all hosts.
//!
//! A claim is a token on a row, or on all rows of one review, and a lease that its holder renews.
//! One row of it carries the mark that a unique index allows once per work item. A claim whose lease
//! ran out, or whose owner is proved dead on this host, is taken over with a new token; the former
//! holder finds out at its next write, which names the old one.

use std::time::Duration;

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::claim::{self, Claim, ClaimOwner, ClaimRef};
use super::error::Fault;
use super::rows::{Reader, big};
use crate::model::{BootId, ClaimToken, DeliveryId, ProcessId};

/// The longest that a delivery waits before it is looked at again. One that seems due later waits
/// because the clock was put back since, and is due now.
pub const LONGEST_WAIT: Duration = Duration::from_mins(10);
/// More unreadable rows than this are left for the next call.
const TRIES: usize = 16;

/// Tells whether a process of this host is proved dead; in doubt it is not.
pub type IsDead<'a> = dyn Fn(&ProcessId, &BootId) -> bool + Send + Sync + 'a;

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

/// The plus keeps the rows in the order of `class` and `id`, where the first that is due ends the
/// search; by time, a backlog would be sorted whole for each claim.
pub(super) const OLDEST_DUE: &str = concat!(
    "SELECT d.id, d.item_id, d.batch FROM deliveries d WHERE ",
    free!(),
    " AND (+d.next_at <= $2 OR +d.next_at > $3) ORDER BY d.class, d.id LIMIT 1"
);

const THIS_ONE: &str = concat!(
    "SELECT d.id, d.item_id, d.batch FROM deliveries d WHERE ",
    free!(),
    " AND d.id = $2"
);

/// Claims the delivery `$1`, and the rows of its review in the item `$8`.
pub(super) const CLAIM: &str = "UPDATE deliveries SET state = 'claimed', \
     claim_lead = CASE WHEN id = $1 THEN 1 ELSE 0 END, claim_token = $2, claim_host = $3, \
     claim_pid = $4, claim_start = $5, claim_boot = $6, lease_until = $7 WHERE id IN (SELECT $1 \
     UNION SELECT m.id FROM deliveries m WHERE m.item_id = $8 AND m.class = 'event' AND m.batch = $9 \
     AND m.state IN ('pending', 'held')) AND state IN ('pending', 'held')";

/// The claims that may be taken over from `$1` at `$2`. Unordered: an order by number would have the
/// whole table read in that order.
pub(super) const HELD: &str = "SELECT d.id, d.claim_token, d.claim_host, d.claim_pid, \
     d.claim_start, d.claim_boot, d.lease_until FROM deliveries d WHERE d.claim_lead = 1 \
     AND (d.claim_host = $1 OR d.lease_until <= $2) AND NOT EXISTS (SELECT 1 FROM sessions s \
     WHERE s.item_id = d.item_id AND s.status <> 'closed' AND s.host <> $1)";

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
            .bind(store.now_ms())
            .bind(store.longest_wait_end_ms()),
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
    let claimed = sqlx::query(CLAIM)
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
        Ok(done) if done.rows_affected() == 0 => return Ok(Tried::Nothing),
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
    let held = sqlx::query(HELD)
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
    match claim::read(conn, &token, taken_over).await {
        Ok(claim) => Ok(Tried::Claimed(Box::new(claim))),
        Err(Fault::Row { table, id, detail }) => {
            sqlx::query(
                "UPDATE deliveries SET state = 'held', error = $2, next_at = $3, claim_lead = 0, \
                 claim_token = NULL WHERE claim_token = $1",
            )
            .bind(token.as_str())
            .bind(format!("row {id} of {table} cannot be read: {detail}"))
            // Looked at again now and then: a newer version may read it.
            .bind(store.longest_wait_end_ms())
            .execute(conn)
            .await?;
            Ok(Tried::PutAside)
        }
        Err(fault) => Err(fault),
    }
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
