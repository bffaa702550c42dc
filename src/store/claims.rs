//! Claims: who works on which delivery, of all processes on all hosts.
//!
//! A claim is a token on a row, or on all rows of one review, and a lease that its holder renews.
//! One row of it carries the mark that a unique index allows once per work item. A claim whose lease
//! ran out, or whose owner is proved dead on this host, is taken over with a new token; the former
//! holder finds out at its next write, which names the old one.

use std::time::Duration;

use sqlx::SqliteConnection;

use super::Store;
use super::claim::{self, Claim, ClaimOwner, ClaimRef};
use super::error::Fault;
use super::rows::{Reader, big};
use crate::model::{BootId, ClaimToken, DeliveryId, ProcessId};

macro_rules! longest_wait_ms {
    () => {
        600_000
    };
}

/// The longest that a delivery waits before it is looked at again.
pub const LONGEST_WAIT: Duration = Duration::from_millis(longest_wait_ms!());

/// What makes a delivery due at `$2`: its time has come, or it is so far ahead that the clock must
/// have been put back since it was set.
macro_rules! due {
    ($next_at:literal) => {
        concat!(
            $next_at,
            " NOT BETWEEN $2 + 1 AND $2 + ",
            $crate::store::claims::longest_wait_ms!()
        )
    };
}
pub(super) use longest_wait_ms;

/// More unreadable rows than this are left for the next call.
const TRIES: usize = 16;

/// Tells whether a process of this host is proved dead; in doubt it is not.
pub type IsDead<'a> = dyn Fn(&ProcessId, &BootId) -> bool + Send + Sync + 'a;

/// What makes a waiting delivery `d` free to be claimed by the host `$1`:
/// nobody works on its item; nothing of its class is ahead of it, and no command that waits to be
/// tried again, unless `d` is what a spawn under way carries; its item's session, if open, is this
/// host's, and not being spawned for another delivery that still waits.
///
/// A stop that tmux has not answered must not be overtaken by what would start the agent anew, nor a
/// start that failed by an event, which would start the agent without what the start says. Such a
/// start makes no later command wait, and what was put aside and has no reason makes nobody. A spawn
/// whose own delivery is settled or put aside blocks nobody: whoever comes next brings it to its end.
macro_rules! free {
    () => {
        "d.state IN ('pending', 'held') \
         AND NOT EXISTS (SELECT 1 FROM deliveries c WHERE c.item_id = d.item_id AND c.claim_lead = 1) \
         AND ((NOT EXISTS (SELECT 1 FROM deliveries e WHERE d.class = 'event' AND e.item_id = d.item_id \
         AND e.class = 'event' AND e.number < d.number AND e.state IN ('pending', 'held') \
         AND (e.state = 'pending' OR e.reason IS NOT NULL)) \
         AND NOT EXISTS (SELECT 1 FROM deliveries h WHERE h.item_id = d.item_id AND h.class = 'control' \
         AND h.state IN ('pending', 'held') \
         AND ((d.class = 'event' AND (h.state = 'pending' OR h.reason IS NOT NULL)) \
         OR (h.number < d.number AND (h.state = 'pending' OR h.reason <> 'start-retry'))))) \
         OR EXISTS (SELECT 1 FROM sessions o WHERE o.item_id = d.item_id AND o.status = 'spawning' \
         AND o.boot_delivery = d.id)) \
         AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = d.item_id AND s.status <> 'closed' \
         AND (s.host <> $1 OR (s.status = 'spawning' AND EXISTS (SELECT 1 FROM deliveries b \
         WHERE b.id = s.boot_delivery AND b.id <> d.id AND b.item_id = d.item_id \
         AND (b.state = 'pending' OR (b.state = 'held' AND b.reason IS NOT NULL))))))"
    };
}
pub(super) use free;

/// The plus keeps the rows in the order of `class` and `id`, where the first that is due ends the
/// search; by time, a backlog would be sorted whole for each claim. The time comes first: it stands in
/// the index, and whoever is not due is passed over without a look at the table.
macro_rules! oldest_due {
    () => {
        concat!(
            "SELECT d.id, d.item_id, d.batch FROM deliveries d WHERE ",
            due!("+d.next_at"),
            " AND ",
            free!(),
            " ORDER BY d.class, d.id LIMIT 1"
        )
    };
}

/// What there is to do on `$1` at `$2`: the claims that may be taken over, and last the oldest due
/// delivery, which has no token. Unordered: an order by number would have the whole table read in
/// that order.
pub(super) const LOOK: &str = concat!(
    "SELECT d.id, d.claim_token, d.claim_host, d.claim_pid, d.claim_start, d.claim_boot, \
     d.lease_until FROM deliveries d WHERE d.claim_lead = 1 \
     AND (d.claim_host = $1 OR d.lease_until <= $2) AND NOT EXISTS (SELECT 1 FROM sessions s \
     WHERE s.item_id = d.item_id AND s.status <> 'closed' AND s.host <> $1) \
     UNION ALL SELECT due.id, NULL, NULL, NULL, NULL, NULL, NULL FROM (",
    oldest_due!(),
    ") AS due"
);

/// Claims the delivery that the query finds, and the rows of its review. These are looked up by
/// values: as a join, `SQLite` would begin with every waiting event.
macro_rules! claim_what {
    ($found:expr) => {
        concat!(
            "WITH lead AS (",
            $found,
            "), wanted AS (SELECT lead.id, 1 AS leads FROM lead UNION ALL SELECT m.id, 0 \
             FROM deliveries m WHERE m.item_id = (SELECT lead.item_id FROM lead) AND m.class = 'event' \
             AND m.batch = (SELECT lead.batch FROM lead) AND m.id <> (SELECT lead.id FROM lead) \
             AND m.state IN ('pending', 'held')) \
             UPDATE deliveries SET state = 'claimed', claim_lead = wanted.leads, claim_token = $3, \
             claim_host = $1, claim_pid = $4, claim_start = $5, claim_boot = $6, lease_until = $7 \
             FROM wanted WHERE deliveries.id = wanted.id AND deliveries.state IN ('pending', 'held')"
        )
    };
}

pub(super) const CLAIM_OLDEST_DUE: &str = claim_what!(oldest_due!());

macro_rules! this_one {
    () => {
        concat!(
            "SELECT d.id, d.item_id, d.batch FROM deliveries d WHERE ",
            free!(),
            " AND d.id = $2"
        )
    };
}

pub(super) const LOOK_AT_THIS_ONE: &str = this_one!();

pub(super) const CLAIM_THIS_ONE: &str = claim_what!(this_one!());

/// Which waiting delivery is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    OldestDue,
    This(DeliveryId),
}

/// How one try ended.
enum Tried {
    Claimed(Box<Claim>),
    Nothing,
    /// A row could not be read: what comes behind it passes now.
    PutAside,
}

/// Claims what is to be done next: a claim whose holder is gone, else the oldest due delivery.
pub(super) async fn next(
    store: &Store,
    owner: &ClaimOwner,
    is_dead: &IsDead<'_>,
) -> Result<Option<Claim>, Fault> {
    for _ in 0..TRIES {
        // Looking first keeps an idle dispatcher from taking the write lock.
        let found = sqlx::query(LOOK)
            .bind(&*store.machine)
            .bind(store.now_ms())
            .fetch_all(&mut *store.reading().await?)
            .await?;
        let (mut due, mut changed) = (false, false);
        for row in &found {
            let row = Reader::new(row, "deliveries")?;
            let tried = match row.get::<Option<String>>("claim_token") {
                Ok(None) => {
                    due = true;
                    continue;
                }
                Ok(Some(token)) => take_over(store, owner, is_dead, row, &token).await?,
                Err(_) => {
                    replace_token(store, row.id()).await?;
                    Tried::Nothing
                }
            };
            match tried {
                Tried::Claimed(claim) => return Ok(Some(*claim)),
                Tried::Nothing => {}
                Tried::PutAside => changed = true,
            }
        }
        if changed {
            continue;
        }
        if !due {
            return Ok(None);
        }
        match claim_waiting(store, owner, Wanted::OldestDue).await? {
            Tried::Claimed(claim) => return Ok(Some(*claim)),
            Tried::Nothing => return Ok(None),
            Tried::PutAside => {}
        }
    }
    Ok(None)
}

/// Claims the oldest due delivery without a look first, for one who knows that there is one.
pub(super) async fn at_once(store: &Store, owner: &ClaimOwner) -> Result<Option<Claim>, Fault> {
    match claim_waiting(store, owner, Wanted::OldestDue).await? {
        Tried::Claimed(claim) => Ok(Some(*claim)),
        Tried::Nothing | Tried::PutAside => Ok(None),
    }
}

/// Claims this delivery, due or not, if it is free.
pub(super) async fn this_one(
    store: &Store,
    owner: &ClaimOwner,
    delivery: DeliveryId,
) -> Result<Option<Claim>, Fault> {
    // Looking first keeps a command that waits from taking the write lock again and again.
    let free = sqlx::query(LOOK_AT_THIS_ONE)
        .bind(&*store.machine)
        .bind(delivery.0)
        .fetch_optional(&mut *store.reading().await?)
        .await?;
    if free.is_none() {
        return Ok(None);
    }
    match claim_waiting(store, owner, Wanted::This(delivery)).await? {
        Tried::Claimed(claim) => Ok(Some(*claim)),
        Tried::Nothing | Tried::PutAside => Ok(None),
    }
}

async fn claim_waiting(store: &Store, owner: &ClaimOwner, wanted: Wanted) -> Result<Tried, Fault> {
    let query = match wanted {
        Wanted::OldestDue => sqlx::query(CLAIM_OLDEST_DUE)
            .bind(&*store.machine)
            .bind(store.now_ms()),
        Wanted::This(delivery) => sqlx::query(CLAIM_THIS_ONE)
            .bind(&*store.machine)
            .bind(delivery.0),
    };
    let token = ClaimToken::mint();
    let mut conn = store.writing().await?;
    let claimed = query
        .bind(token.as_str())
        .bind(i64::from(owner.process.pid))
        .bind(big(owner.process.start))
        .bind(&owner.boot.0)
        .bind(store.lease_end_ms())
        .execute(&mut *conn)
        .await
        .map_err(Fault::from);
    match claimed {
        Ok(_) => read_or_put_aside(store, &mut conn, token).await,
        Err(fault) if fault.is_unique_violation() => Ok(Tried::Nothing),
        Err(fault) => Err(fault),
    }
}

/// Takes over a claim whose holder is gone, unless it was renewed or somebody else was faster.
async fn take_over(
    store: &Store,
    owner: &ClaimOwner,
    is_dead: &IsDead<'_>,
    held: Reader<'_>,
    held_token: &str,
) -> Result<Tried, Fault> {
    let lease: i64 = match held.present("lease_until") {
        Ok(lease) => lease,
        Err(fault) => {
            let mut conn = store.writing().await?;
            put_aside(store, &mut conn, held_token, fault).await?;
            return Ok(Tried::PutAside);
        }
    };
    if lease > store.now_ms() && !holder_is_dead(held, is_dead) {
        return Ok(Tried::Nothing);
    }
    let token = ClaimToken::mint();
    let mut conn = store.writing().await?;
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
    .bind(held_token)
    .bind(lease)
    .execute(&mut *conn)
    .await?;
    if taken.rows_affected() == 0 {
        return Ok(Tried::Nothing);
    }
    read_or_put_aside(store, &mut conn, token).await
}

/// Replaces a token that cannot be read: nobody can name it any more, and under another one the claim
/// is taken over like any other.
async fn replace_token(store: &Store, delivery: i64) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE deliveries SET claim_token = $2 WHERE claim_token = \
         (SELECT d.claim_token FROM deliveries d WHERE d.id = $1)",
    )
    .bind(delivery)
    .bind(ClaimToken::mint().as_str())
    .execute(&mut *store.writing().await?)
    .await?;
    Ok(())
}

/// Whoever cannot be read, or is process 1 of a container, proves nothing: the lease decides.
fn holder_is_dead(held: Reader<'_>, is_dead: &IsDead<'_>) -> bool {
    let process = held.process("claim_pid", "claim_start");
    match (process, held.present("claim_boot")) {
        (Ok(process), Ok(boot)) => is_dead(&process, &BootId(boot)),
        _ => false,
    }
}

/// Reads what was just claimed. Where the database fails between the two, nobody works on the claim,
/// and it is taken over when its lease ends.
async fn read_or_put_aside(
    store: &Store,
    conn: &mut SqliteConnection,
    token: ClaimToken,
) -> Result<Tried, Fault> {
    match claim::read(conn, &token).await {
        Ok(Some(claim)) => Ok(Tried::Claimed(Box::new(claim))),
        // Somebody else was faster. Or a database that looks at each row anew skips one that was dropped
        // in this moment, and claims the rest of its review: without a lead, that is nobody's.
        Ok(None) => {
            sqlx::query(
                "UPDATE deliveries SET state = 'pending', claim_token = NULL WHERE claim_token = $1",
            )
            .bind(token.as_str())
            .execute(conn)
            .await?;
            Ok(Tried::Nothing)
        }
        Err(fault) => {
            put_aside(store, conn, token.as_str(), fault).await?;
            Ok(Tried::PutAside)
        }
    }
}

/// Lets a delivery that cannot be read lie, whoever holds it: what comes behind it passes, and brings a
/// spawn that it began to its end. Its agent may have read it, so that it is marked if it is ever said.
/// Any other fault is handed back.
async fn put_aside(
    store: &Store,
    conn: &mut SqliteConnection,
    token: &str,
    fault: Fault,
) -> Result<(), Fault> {
    let Fault::Row { table, id, detail } = fault else {
        return Err(fault);
    };
    let error = format!("row {id} of {table} cannot be read: {detail}");
    tracing::error!("a delivery is put aside, those behind it pass: {error}");
    sqlx::query(
        "UPDATE deliveries SET state = 'held', reason = NULL, error = $2, next_at = $3, \
         claim_lead = 0, claim_token = NULL, possible_repeat = CASE WHEN EXISTS (SELECT 1 \
         FROM sessions s WHERE s.item_id = deliveries.item_id \
         AND ((s.status = 'spawning' AND s.boot_delivery = deliveries.id) \
         OR s.attempt_boot_delivery = deliveries.id)) THEN 1 ELSE possible_repeat END \
         WHERE claim_token = $1",
    )
    .bind(token)
    .bind(error)
    // Looked at again now and then: a newer version may read it.
    .bind(store.longest_wait_end_ms())
    .execute(conn)
    .await?;
    Ok(())
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
