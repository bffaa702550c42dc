//! What an ingress sees of a work item: the row is compared and set, and its changes make deliveries.
//!
//! Arming and closing have no id on GitHub. The transaction that changes the row is the one that
//! makes the delivery, so two observers of one change make one.

use std::cmp::Ordering;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::SqliteConnection;

use super::enqueue::{self, Arriving};
use super::error::Fault;
use super::inbox::Disposition;
use super::items;
use super::rows::{self, ItemRow, ms};
use super::seen::{Arming, ItemSighting, Track};
use crate::model::{Class, DeliveryId, Detail, Edit, Event, EventKey, EventKind, Login, Source};

/// How long the copies of GitHub's database may differ: an answer that is so much younger than the
/// change that it shows need not show the last one of that second.
const COPIES_AGREE_AFTER: TimeDelta = TimeDelta::seconds(10);

/// How a row changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It may have a session now.
    Armed,
    /// It may no longer have one.
    Disarmed,
    /// It was closed.
    Closed,
    /// It was opened again: its control command is forgotten, its baseline kept.
    Reopened,
}

/// What a sighting says about the item as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It is the latest known state.
    Current,
    /// Something later is known.
    Outdated,
    /// It contradicts what is known of the same second, and either may be the later one: the item
    /// has to be looked at again once that second is over everywhere.
    Contested,
}

/// What a sighting did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighted {
    /// The row after it.
    pub item: ItemRow,
    /// Whether the row is new.
    pub first_sight: bool,
    /// What became of the state that it showed.
    pub freshness: Freshness,
    /// How it changed, in order.
    pub changes: Vec<Change>,
    /// The deliveries that the changes made.
    pub deliveries: Vec<DeliveryId>,
}

/// Records one sighting; none when the item is unknown and stays so.
pub(super) async fn record(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    now: i64,
) -> Result<Option<Sighted>, Fault> {
    let (before, first_sight) = match items::find(conn, &seen.item, seen.repo_id).await? {
        Some(row) => (row, false),
        None if seen.track == Track::OnlyIfKnown => return Ok(None),
        None => (items::insert(conn, seen).await?, true),
    };
    let freshness = if first_sight {
        Freshness::Current
    } else {
        freshness(seen, &before)
    };
    let is_taken = match freshness {
        Freshness::Current => true,
        Freshness::Outdated => false,
        Freshness::Contested => is_likely_later(seen, &before),
    };
    let mut sighted = Sighted {
        item: before,
        first_sight,
        freshness,
        changes: Vec::new(),
        deliveries: Vec::new(),
    };
    bind(conn, seen, &mut sighted).await?;
    if !sighted.item.was_shown() && seen.source != Source::Cli {
        let age = (now - ms(sighted.item.baseline_at)).max(0);
        items::set_baseline(conn, sighted.item.id, ms(seen.seen_at) - age).await?;
    }
    if is_taken {
        items::refresh(conn, seen, sighted.item.id).await?;
        close_or_reopen(conn, seen, &mut sighted, now).await?;
        arm_or_disarm(conn, seen, &mut sighted, now).await?;
    }
    if seen.source == Source::Poll {
        sqlx::query(
            "UPDATE work_items SET listed_at = $2 WHERE id = $1 AND COALESCE(listed_at, 0) < $2",
        )
        .bind(sighted.item.id)
        .bind(ms(seen.seen_at))
        .execute(&mut *conn)
        .await?;
    }
    sighted.item = items::by_id(conn, sighted.item.id).await?;
    Ok(Some(sighted))
}

/// Compares a sighting with what is known.
///
/// GitHub's times tick in seconds, and its lists may come from copies that lag behind each other:
/// "commented" and "closed" of one click carry one time, and may be seen in either order.
fn freshness(seen: &ItemSighting, known: &ItemRow) -> Freshness {
    let contradicts =
        seen.open != known.open || (seen.open && seen.arming.is_armed() != known.armed);
    let young = seen.seen_at - seen.updated_at < COPIES_AGREE_AFTER;
    match seen.updated_at.cmp(&known.updated_at) {
        Ordering::Less => Freshness::Outdated,
        Ordering::Equal if contradicts && young => Freshness::Contested,
        Ordering::Equal | Ordering::Greater => Freshness::Current,
    }
}

/// Tells which of two states of one second is taken for the later one: people close what they have
/// just commented on, and label what they have just opened. Whoever reopened it in that second has
/// ended its session all the same.
fn is_likely_later(seen: &ItemSighting, known: &ItemRow) -> bool {
    if seen.open == known.open {
        seen.arming.is_armed()
    } else {
        !seen.open
    }
}

/// Stores the binding when it is first known. A pull request with a session of its own keeps it: its
/// events do not move to another agent in the middle.
async fn bind(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    sighted: &mut Sighted,
) -> Result<(), Fault> {
    let target = seen.pull.as_ref().and_then(|pull| pull.binds_to.as_ref());
    let Some(target) = target.filter(|target| **target != seen.item) else {
        return Ok(());
    };
    sqlx::query(
        "UPDATE work_items SET bound_to = $2 WHERE id = $1 AND bound_to IS NULL \
         AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = $1 AND s.status <> 'closed')",
    )
    .bind(sighted.item.id)
    .bind(target.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

async fn close_or_reopen(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    sighted: &mut Sighted,
    now: i64,
) -> Result<(), Fault> {
    let before = &sighted.item;
    if seen.open {
        if !before.open {
            reopen(conn, before.id).await?;
            sighted.item.armed = false;
            sighted.changes.push(Change::Reopened);
        }
        return Ok(());
    }
    let closed_at = seen.closed_at.unwrap_or(seen.seen_at);
    // Closed, reopened and closed again between two looks: another closing, told like the first.
    let closed_again = !before.open && before.closed_at.is_some_and(|at| closed_at > at);
    if !before.open && !closed_again {
        return Ok(());
    }
    if closed_again {
        reopen(conn, before.id).await?;
        sighted.changes.push(Change::Reopened);
    }
    sqlx::query(
        "UPDATE work_items SET is_open = 0, closed_at = $2, merged = $3, armed = 0 WHERE id = $1",
    )
    .bind(before.id)
    .bind(ms(closed_at))
    .bind(i64::from(seen.merged))
    .execute(&mut *conn)
    .await?;
    sighted.item.armed = false;
    sighted.changes.push(Change::Closed);
    let event = Event {
        occurred_at: closed_at,
        detail: Detail::Closed {
            merged: seen.merged,
        },
        ..closing(conn, seen, &sighted.item, closed_at).await?
    };
    // A closing ends the item's own session only: a merged pull request leaves its issue's alone.
    deliver(conn, seen, sighted, &event, Class::Control, now).await
}

/// Makes the event of a closing, with a key of its own.
///
/// The time that GitHub gives ticks in seconds, and an item can be closed twice in one; that the row
/// was open proves another closing.
async fn closing(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    row: &ItemRow,
    closed_at: DateTime<Utc>,
) -> Result<Event, Fault> {
    let second = closed_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let mut event = own_event(seen, row, EventKind::Closed, &second);
    let mut count = 1;
    while enqueue::is_known(conn, &event.key).await? {
        count += 1;
        event = own_event(seen, row, EventKind::Closed, &format!("{second}.{count}"));
    }
    Ok(event)
}

async fn reopen(conn: &mut SqliteConnection, id: i64) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE work_items SET is_open = 1, closed_at = NULL, merged = 0, armed = 0, control = NULL, \
         control_actor = NULL, control_at = NULL WHERE id = $1",
    )
    .bind(id)
    .execute(conn)
    .await?;
    Ok(())
}

async fn arm_or_disarm(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    sighted: &mut Sighted,
    now: i64,
) -> Result<(), Fault> {
    let id = sighted.item.id;
    if !seen.open || seen.arming.is_armed() == sighted.item.armed {
        return Ok(());
    }
    if !seen.arming.is_armed() {
        sqlx::query("UPDATE work_items SET armed = 0 WHERE id = $1")
            .bind(id)
            .execute(conn)
            .await?;
        sighted.changes.push(Change::Disarmed);
        return Ok(());
    }
    let row = sqlx::query(
        "UPDATE work_items SET armed = 1, armed_count = armed_count + 1, armed_by = $2 WHERE id = $1 \
         RETURNING id, armed_count",
    )
    .bind(id)
    .bind(seen.arming.actor().map(Login::as_str))
    .fetch_one(&mut *conn)
    .await?;
    sighted.changes.push(Change::Armed);
    if seen.arming == Arming::ByPolicy || enqueue::follow(conn, id).await? != id {
        return Ok(());
    }
    let count: i64 = rows::Reader::new(&row, "work_items")?.get("armed_count")?;
    let event = Event {
        actor: seen.arming.actor().cloned(),
        ..own_event(seen, &sighted.item, EventKind::Armed, &count.to_string())
    };
    deliver(conn, seen, sighted, &event, Class::Event, now).await
}

fn own_event(seen: &ItemSighting, row: &ItemRow, kind: EventKind, version: &str) -> Event {
    let repo = seen.item.repo();
    let repo_id = seen.repo_id.or(row.repo_id);
    let repo_name = repo_id.map_or_else(|| repo.key(), |id| id.to_string());
    let id = format!("{repo_name}#{}", seen.item.number());
    Event {
        key: EventKey::new(repo.host(), kind, &id, version),
        kind,
        repo: repo.clone(),
        repo_id,
        number: seen.item.number(),
        on: seen.kind,
        actor: None,
        edit: Edit::Never,
        title: seen.title.clone(),
        body: String::new(),
        url: seen.url.clone(),
        occurred_at: seen.updated_at,
        detail: Detail::None,
    }
}

async fn deliver(
    conn: &mut SqliteConnection,
    seen: &ItemSighting,
    sighted: &mut Sighted,
    event: &Event,
    class: Class,
    now: i64,
) -> Result<(), Fault> {
    let arriving = Arriving {
        item_id: sighted.item.id,
        event,
        version_at: ms(event.occurred_at),
        source: seen.source,
        guid: None,
        disposition: Disposition::Deliver { class },
        now,
    };
    if let enqueue::Enqueued::New { delivery, .. } = enqueue::enqueue(conn, &arriving).await? {
        sighted.deliveries.push(delivery);
    }
    Ok(())
}
