//! Writes an event and its delivery, once per key.

use sqlx::SqliteConnection;

use super::effects::not_being_spawned;
use super::error::Fault;
use super::inbox::Disposition;
use super::rows::Reader;
use super::waiting::{self, Waiting};
use crate::model::{
    Class, DeliveryId, DeliveryState, DropReason, Event, EventKey, HoldReason, Login, Source,
    WorkItemRef,
};
use crate::planted::{Planted, is_planted};

/// The rows of one review wait this long after the newest of them …
const GROUP_QUIET_MS: i64 = 3_000;
/// … but no longer than this after the first.
const GROUP_LIMIT_MS: i64 = 15_000;

/// One event on its way into the store.
pub(super) struct Arriving<'a> {
    pub(super) item_id: i64,
    pub(super) event: &'a Event,
    pub(super) version_at: i64,
    pub(super) source: Source,
    pub(super) guid: Option<&'a str>,
    pub(super) disposition: Disposition,
    pub(super) now: i64,
}

/// What became of it.
pub(super) enum Enqueued {
    New {
        delivery: DeliveryId,
        superseded: Vec<Waiting>,
    },
    Duplicate {
        delivery: DeliveryId,
        state: DeliveryState,
        superseded: Vec<Waiting>,
    },
}

/// Returns the key that all rows of the event's review share.
pub(super) fn group_key(event: &Event) -> Option<String> {
    let review = event.review_id()?;
    let host = event.repo.host().to_ascii_lowercase();
    Some(format!("{host}:review:{review}"))
}

/// Returns the key of a review that an attempt has begun to tell as the message `first`: rows that
/// arrive late are another message.
pub(super) fn closed_group(group: &str, first: DeliveryId) -> String {
    format!("{group}!{first}")
}

/// Returns the message that a closed group is told as.
pub(super) fn message_of(batch: Option<&str>) -> Option<DeliveryId> {
    let (_, first) = batch?.rsplit_once('!')?;
    first.parse().ok().map(DeliveryId)
}

/// Follows an item's binding to the row that its events belong to, as far as the rows are known.
pub(super) async fn follow(conn: &mut SqliteConnection, item_id: i64) -> Result<i64, Fault> {
    let mut at = item_id;
    // A binding leads from a pull request to an issue; more hops than this are a circle.
    for _ in 0..4 {
        let row = sqlx::query("SELECT id, bound_to FROM work_items WHERE id = $1")
            .bind(at)
            .fetch_one(&mut *conn)
            .await?;
        let bound: Option<WorkItemRef> = Reader::new(&row, "work_items")?.opt_parse("bound_to")?;
        let Some(bound) = bound else {
            return Ok(at);
        };
        // Its number alone: a target that cannot be read must not hold up what is said to others.
        let target = sqlx::query_scalar("SELECT id FROM work_items WHERE ref_key = $1")
            .bind(bound.key())
            .fetch_optional(&mut *conn)
            .await?;
        match target {
            Some(target) => at = target,
            None => return Ok(at),
        }
    }
    Ok(item_id)
}

pub(super) async fn enqueue(
    conn: &mut SqliteConnection,
    arriving: &Arriving<'_>,
) -> Result<Enqueued, Fault> {
    let Some(event_id) = insert_event(conn, arriving).await? else {
        return again(conn, arriving).await;
    };
    let superseded = match arriving.disposition {
        Disposition::Baseline => Vec::new(),
        Disposition::Deliver { .. } | Disposition::Drop(_) => {
            supersede(conn, arriving, event_id).await?
        }
    };
    let delivery = insert_delivery(conn, arriving, event_id).await?;
    Ok(Enqueued::New {
        delivery,
        superseded,
    })
}

async fn insert_event(
    conn: &mut SqliteConnection,
    arriving: &Arriving<'_>,
) -> Result<Option<i64>, Fault> {
    let event = arriving.event;
    // What was said before the first sight is never told, so its text is not kept.
    let payload = match arriving.disposition {
        Disposition::Baseline => None,
        Disposition::Deliver { .. } | Disposition::Drop(_) => Some(payload(event)?),
    };
    let row = sqlx::query(
        "INSERT INTO events (key, object, kind, source, guid, actor, payload, occurred_at, \
         received_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (key) DO NOTHING RETURNING id",
    )
    .bind(event.key.as_str())
    .bind(event.key.object())
    .bind(event.kind.as_str())
    .bind(arriving.source.as_str())
    .bind(arriving.guid)
    .bind(event.actor.as_ref().map(Login::as_str))
    .bind(payload)
    .bind(arriving.version_at)
    .bind(arriving.now)
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok(Reader::new(&row, "events")?.id()))
        .transpose()
}

fn payload(event: &Event) -> Result<String, Fault> {
    let text = serde_json::to_string(event);
    Ok(text.map_err(|error| sqlx::Error::Encode(Box::new(error)))?)
}

/// Takes in a version that is known: an edit may have come back to it, and then the versions that wait
/// beside it are withdrawn, and itself is told unless it was.
async fn again(conn: &mut SqliteConnection, arriving: &Arriving<'_>) -> Result<Enqueued, Fault> {
    let event = arriving.event;
    let row = sqlx::query(
        "SELECT e.id, d.id AS delivery, d.item_id, d.state, d.reason FROM events e \
         LEFT JOIN deliveries d ON d.event_id = e.id WHERE e.key = $1 ORDER BY d.id LIMIT 1",
    )
    .bind(event.key.as_str())
    .fetch_one(&mut *conn)
    .await?;
    let known = Reader::new(&row, "events")?;
    known.present::<i64>("delivery")?;
    let event_id = known.id();
    let row = Reader::numbered(&row, "deliveries", "delivery")?;
    let delivery = DeliveryId(row.id());
    let item_id: i64 = row.get("item_id")?;
    let state = row.parse("state")?;
    let reason: Option<String> = row.get("reason")?;
    // Nothing else goes back to an earlier version.
    if !event.kind.is_text() {
        return Ok(Enqueued::Duplicate {
            delivery,
            state,
            superseded: Vec::new(),
        });
    }
    let stands = stands(conn, arriving, event_id).await?;
    let superseded = supersede(conn, arriving, event_id).await?;
    let is_withdrawn = state == DeliveryState::Dropped
        && reason.as_deref() == Some(DropReason::Superseded.as_str());
    let is_wanted = matches!(arriving.disposition, Disposition::Deliver { .. });
    if stands && is_withdrawn && is_wanted {
        let arriving = Arriving {
            item_id,
            ..*arriving
        };
        restore(conn, &arriving, event_id, delivery).await?;
        return Ok(Enqueued::New {
            delivery,
            superseded,
        });
    }
    Ok(Enqueued::Duplicate {
        delivery,
        state,
        superseded,
    })
}

/// Notes when a known version was shown last, and tells whether none of its object is later: GitHub's
/// copies may lag behind each other.
async fn stands(
    conn: &mut SqliteConnection,
    arriving: &Arriving<'_>,
    event_id: i64,
) -> Result<bool, Fault> {
    sqlx::query("UPDATE events SET occurred_at = $2 WHERE id = $1 AND occurred_at < $2")
        .bind(event_id)
        .bind(arriving.version_at)
        .execute(&mut *conn)
        .await?;
    let later: Option<i64> = sqlx::query_scalar(
        "SELECT e.id FROM events e WHERE e.object = $1 AND e.id <> $2 AND e.occurred_at > $3 LIMIT 1",
    )
    .bind(arriving.event.key.object())
    .bind(event_id)
    .bind(arriving.version_at)
    .fetch_optional(conn)
    .await?;
    Ok(later.is_none())
}

/// Drops the other versions of the same object that nobody was told yet, and returns them. A later version
/// stays: then this one came late. So does one that is typed: its agent reads it, whatever is dropped.
async fn supersede(
    conn: &mut SqliteConnection,
    arriving: &Arriving<'_>,
    event_id: i64,
) -> Result<Vec<Waiting>, Fault> {
    let rows = sqlx::query(concat!(
        "UPDATE deliveries SET state = 'dropped', reason = $1, settled_at = $2 \
         WHERE state IN ('pending', 'held', 'abandoned') AND event_id IN \
         (SELECT e.id FROM events e WHERE e.object = $3 AND e.id <> $4 AND e.occurred_at <= $5) \
         AND typed = 0",
        not_being_spawned!(),
        " RETURNING id"
    ))
    .bind(DropReason::Superseded.as_str())
    .bind(arriving.now)
    .bind(arriving.event.key.object())
    .bind(event_id)
    .bind(arriving.version_at)
    .fetch_all(&mut *conn)
    .await?;
    waiting::read(conn, &delivery_ids(&rows)?).await
}

/// Tells whether an event with this key is stored.
pub(super) async fn is_known(conn: &mut SqliteConnection, key: &EventKey) -> Result<bool, Fault> {
    let id: Option<i64> = sqlx::query_scalar("SELECT id FROM events WHERE key = $1")
        .bind(key.as_str())
        .fetch_optional(conn)
        .await?;
    Ok(id.is_some())
}

pub(super) fn delivery_ids(rows: &[sqlx::sqlite::SqliteRow]) -> Result<Vec<DeliveryId>, Fault> {
    rows.iter()
        .map(|row| Ok(DeliveryId(Reader::new(row, "deliveries")?.id())))
        .collect()
}

/// Where a delivery stands in its item's queue.
struct Place {
    number: i64,
    class: Class,
    batch: Option<String>,
    state: DeliveryState,
    reason: Option<&'static str>,
    next_at: i64,
}

/// Makes the place of what has just come in, behind all that came before.
async fn place(conn: &mut SqliteConnection, arriving: &Arriving<'_>) -> Result<Place, Fault> {
    let now = arriving.now;
    let number = next_number(conn, arriving.item_id).await?;
    let (class, state, reason) = match arriving.disposition {
        Disposition::Deliver { class } => (class, DeliveryState::Pending, None),
        Disposition::Baseline => (Class::Event, DeliveryState::Baselined, None),
        Disposition::Drop(reason) => (Class::Event, DeliveryState::Dropped, Some(reason.as_str())),
    };
    let batch = group_key(arriving.event)
        .filter(|_| class == Class::Event && state == DeliveryState::Pending);
    let (state, reason, next_at) = match &batch {
        Some(batch) => {
            let due = wait_for_group(conn, arriving.item_id, batch, now).await?;
            let reason = Some(HoldReason::Grouping.as_str());
            (DeliveryState::Held, reason, due)
        }
        None => (state, reason, now),
    };
    Ok(Place {
        number,
        class,
        batch,
        state,
        reason,
        next_at,
    })
}

async fn insert_delivery(
    conn: &mut SqliteConnection,
    arriving: &Arriving<'_>,
    event_id: i64,
) -> Result<DeliveryId, Fault> {
    let place = place(conn, arriving).await?;
    let settled_at = place.state.is_final().then_some(arriving.now);
    let row = sqlx::query(
        "INSERT INTO deliveries (event_id, item_id, number, class, batch, state, reason, next_at, \
         accepted_at, settled_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
    )
    .bind(event_id)
    .bind(arriving.item_id)
    .bind(place.number)
    .bind(place.class.as_str())
    .bind(place.batch)
    .bind(place.state.as_str())
    .bind(place.reason)
    .bind(place.next_at)
    .bind(arriving.now)
    .bind(settled_at)
    .fetch_one(conn)
    .await?;
    Ok(DeliveryId(Reader::new(&row, "deliveries")?.id()))
}

/// Lets a version wait again that was withdrawn unheard, as if it came in now. It keeps its number in
/// tmux, and with it the token of a paste that may have arrived; only where that was another message's
/// token is it told as a possible repeat.
async fn restore(
    conn: &mut SqliteConnection,
    arriving: &Arriving<'_>,
    event_id: i64,
    delivery: DeliveryId,
) -> Result<(), Fault> {
    let place = place(conn, arriving).await?;
    sqlx::query("UPDATE events SET payload = $2, received_at = $3 WHERE id = $1")
        .bind(event_id)
        .bind(payload(arriving.event)?)
        .bind(arriving.now)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "UPDATE deliveries SET number = $2, class = $3, state = $5, reason = $6, next_at = $7, \
         possible_repeat = CASE WHEN batch <> $4 THEN 1 ELSE possible_repeat END, batch = $4, \
         attempts = 0, error = NULL, typed = 0, accepted_at = $8, settled_at = NULL WHERE id = $1",
    )
    .bind(delivery.0)
    .bind(place.number)
    .bind(place.class.as_str())
    .bind(place.batch)
    .bind(place.state.as_str())
    .bind(place.reason)
    .bind(place.next_at)
    .bind(arriving.now)
    .execute(conn)
    .await?;
    Ok(())
}

async fn next_number(conn: &mut SqliteConnection, item_id: i64) -> Result<i64, Fault> {
    let row = sqlx::query(
        "UPDATE work_items SET next_number = next_number + 1 WHERE id = $1 \
         RETURNING id, next_number - 1 AS number",
    )
    .bind(item_id)
    .fetch_one(conn)
    .await?;
    let number: i64 = Reader::new(&row, "work_items")?.get("number")?;
    Ok(if is_planted(Planted::LastFirst) {
        1_000_000 - number
    } else {
        number
    })
}

/// Puts off the rows of the review that wait already, and returns when all of them are due.
async fn wait_for_group(
    conn: &mut SqliteConnection,
    item_id: i64,
    batch: &str,
    now: i64,
) -> Result<i64, Fault> {
    let first: Option<i64> = sqlx::query_scalar(
        "SELECT MIN(accepted_at) FROM deliveries WHERE item_id = $1 AND class = 'event' \
         AND state IN ('pending', 'held') AND batch = $2",
    )
    .bind(item_id)
    .bind(batch)
    .fetch_one(&mut *conn)
    .await?;
    let limit = first.unwrap_or(now).saturating_add(GROUP_LIMIT_MS);
    let due = now.saturating_add(GROUP_QUIET_MS).min(limit);
    sqlx::query(
        "UPDATE deliveries SET next_at = $3 WHERE item_id = $1 AND class = 'event' \
         AND state = 'held' AND reason = 'grouping' AND batch = $2",
    )
    .bind(item_id)
    .bind(batch)
    .bind(due)
    .execute(conn)
    .await?;
    Ok(due)
}
