//! Where every ingress writes: what it saw and what arrived, in one transaction per call.
//!
//! Once [`Inbox::accept`] has returned, all of it is on disk; until then nothing is.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;

use super::enqueue::{self, Arriving, Enqueued};
use super::error::Fault;
use super::items;
use super::rows::{DirtyMark, ms};
use super::seen::ItemSighting;
use super::sightings::{self, Sighted};
use super::waiting::Waiting;
use super::{Store, StoreError};
use crate::model::{
    Class, DeliveryId, DeliveryState, DropReason, Event, EventKey, Source, WorkItemRef,
};

/// How far a polled list was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorUpdate {
    /// The list's name.
    pub name: String,
    /// The entity tag to ask with next time.
    pub etag: Option<String>,
    /// Where the next page starts, by the server's clock.
    pub since: Option<DateTime<Utc>>,
    /// When the list was read.
    pub last_success: DateTime<Utc>,
}

/// What ingress decided about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It is to be delivered, or executed.
    Deliver {
        /// Which queue.
        class: Class,
    },
    /// It is older than the first sight of its item.
    Baseline,
    /// It is not for the agent.
    Drop(DropReason),
}

/// One event that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The event.
    pub event: Event,
    /// GitHub's time of the version, as the answer has it: of two versions the later one counts.
    pub version_at: DateTime<Utc>,
    /// Which ingress saw it.
    pub source: Source,
    /// GitHub's delivery number of a webhook; recorded, never identity.
    pub guid: Option<String>,
    /// What was decided about it.
    pub disposition: Disposition,
}

impl Arrival {
    /// Tells whether it is anything but a text that is known already, or old.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.disposition != Disposition::Baseline
    }
}

/// All that one page or one payload says; accepted whole or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// The work items as they look now; recorded before the arrivals.
    pub items: Vec<ItemSighting>,
    /// The events, in the order in which they are to be told.
    pub arrivals: Vec<Arrival>,
    /// How far the lists were read.
    pub cursors: Vec<CursorUpdate>,
    /// The items whose details are to be asked for.
    pub mark_dirty: Vec<WorkItemRef>,
    /// The items whose whole thread is to be read anew, known by name alone: their rows cannot be read.
    pub read_anew: Vec<WorkItemRef>,
    /// The items whose details were fetched, with the mark that was read before.
    pub clear_dirty: Vec<(WorkItemRef, DirtyMark)>,
}

/// What an acceptance did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The items that have a row, in order.
    pub sightings: Vec<Sighted>,
    /// One outcome per arrival, in order.
    pub arrivals: Vec<ArrivalOutcome>,
}

/// What became of an arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrivalOutcome {
    /// It waits for its delivery; so does a version that an edit came back to before it was told.
    New {
        /// Its number.
        delivery: DeliveryId,
        /// Older versions of the same object that it replaced.
        superseded: Vec<Waiting>,
    },
    /// It is recorded as dropped.
    Dropped {
        /// Its number.
        delivery: DeliveryId,
        /// Why.
        reason: DropReason,
        /// Older versions of the same object that it replaced.
        superseded: Vec<Waiting>,
    },
    /// It is recorded as older than the first sight.
    Baselined,
    /// This version of the object is known already, from whichever ingress; it is not told again.
    Duplicate {
        /// The number it has had since.
        delivery: DeliveryId,
        /// How far that has come.
        state: DeliveryState,
        /// Other versions of the same object that an edit back to this one withdrew.
        superseded: Vec<Waiting>,
    },
    /// Its work item has no row; nothing was recorded.
    UnknownItem,
}

impl ArrivalOutcome {
    /// The other versions of the same object that it replaced before anybody was told them.
    #[must_use]
    pub fn superseded(&self) -> &[Waiting] {
        match self {
            Self::New { superseded, .. }
            | Self::Dropped { superseded, .. }
            | Self::Duplicate { superseded, .. } => superseded,
            Self::Baselined | Self::UnknownItem => &[],
        }
    }
}

/// The ingress side of the store.
#[derive(Debug, Clone)]
pub struct Inbox {
    store: Store,
}

impl Inbox {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Accepts all of it in one transaction.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was accepted.
    pub async fn accept(&self, acceptance: &Acceptance) -> Result<Accepted, StoreError> {
        self.accept_saying(acceptance, |_| {}).await
    }

    /// Accepts all of it, and says so when nothing but the commit is left to do: whoever is killed
    /// there says it twice, and never not at all.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn accept_saying(
        &self,
        acceptance: &Acceptance,
        say: impl FnOnce(&Accepted) + Send,
    ) -> Result<Accepted, StoreError> {
        self.accept_whole(acceptance, say)
            .await
            .map_err(self.store.explain("accepting events"))
    }

    async fn accept_whole(
        &self,
        acceptance: &Acceptance,
        say: impl FnOnce(&Accepted) + Send,
    ) -> Result<Accepted, Fault> {
        let now = self.store.now_ms();
        let mut tx = self.store.begin().await?;
        let mut accepted = Accepted::default();
        for seen in &acceptance.items {
            accepted
                .sightings
                .extend(sightings::record(&mut tx, seen, now).await?);
        }
        for arrival in &acceptance.arrivals {
            accepted
                .arrivals
                .push(take_in(&mut tx, arrival, now).await?);
        }
        for cursor in &acceptance.cursors {
            move_cursor(&mut tx, cursor).await?;
        }
        for item in &acceptance.mark_dirty {
            mark_dirty(&mut tx, item).await?;
        }
        for item in &acceptance.read_anew {
            read_anew(&mut tx, item).await?;
        }
        for (item, mark) in &acceptance.clear_dirty {
            clear_dirty(&mut tx, item, *mark, now).await?;
        }
        say(&accepted);
        tx.commit().await?;
        Ok(accepted)
    }

    /// Tells whether this version of an object is stored and is not told any more, whoever shows it.
    /// One that an edit withdrew before it was told is, once an edit comes back to it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn knows(&self, key: &EventKey) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "SELECT e.id FROM events e WHERE e.key = $1 AND NOT EXISTS (SELECT 1 FROM deliveries d \
             WHERE d.event_id = e.id AND d.state = 'dropped' AND d.reason = $2)",
        )
        .bind(key.as_str())
        .bind(DropReason::Superseded.as_str());
        let found = self.store.first(query).await;
        found
            .map(|row| row.is_some())
            .map_err(self.store.explain("looking for an event"))
    }

    /// Tells whether any version of an object is stored, whatever became of it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn knows_object(&self, key: &EventKey) -> Result<bool, StoreError> {
        let query = sqlx::query("SELECT id FROM events WHERE object = $1 LIMIT 1");
        let found = self.store.first(query.bind(key.object())).await;
        found
            .map(|row| row.is_some())
            .map_err(self.store.explain("looking for an object"))
    }
}

async fn take_in(
    conn: &mut SqliteConnection,
    arrival: &Arrival,
    now: i64,
) -> Result<ArrivalOutcome, Fault> {
    let event = &arrival.event;
    let Some(own) = items::find(conn, &event.item(), event.repo_id).await? else {
        return Ok(ArrivalOutcome::UnknownItem);
    };
    let arriving = Arriving {
        item_id: enqueue::follow(conn, own.id).await?,
        event,
        version_at: ms(arrival.version_at),
        source: arrival.source,
        guid: arrival.guid.as_deref(),
        disposition: arrival.disposition,
        now,
    };
    Ok(match enqueue::enqueue(conn, &arriving).await? {
        Enqueued::Duplicate {
            delivery,
            state,
            superseded,
        } => ArrivalOutcome::Duplicate {
            delivery,
            state,
            superseded,
        },
        Enqueued::New {
            delivery,
            superseded,
        } => match arrival.disposition {
            Disposition::Deliver { .. } => ArrivalOutcome::New {
                delivery,
                superseded,
            },
            Disposition::Drop(reason) => ArrivalOutcome::Dropped {
                delivery,
                reason,
                superseded,
            },
            Disposition::Baseline => ArrivalOutcome::Baselined,
        },
    })
}

async fn move_cursor(conn: &mut SqliteConnection, cursor: &CursorUpdate) -> Result<(), Fault> {
    sqlx::query(
        "INSERT INTO cursors (name, etag, since, last_success) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (name) DO UPDATE SET etag = excluded.etag, since = excluded.since, \
         last_success = excluded.last_success",
    )
    .bind(&cursor.name)
    .bind(&cursor.etag)
    .bind(cursor.since.map(ms))
    .bind(ms(cursor.last_success))
    .execute(conn)
    .await?;
    Ok(())
}

async fn mark_dirty(conn: &mut SqliteConnection, item: &WorkItemRef) -> Result<(), Fault> {
    sqlx::query("UPDATE work_items SET dirty_mark = dirty_mark + 1 WHERE ref_key = $1")
        .bind(item.key())
        .execute(conn)
        .await?;
    Ok(())
}

/// Without `details_at` it is as if the thread had never been read: what is known of it is a duplicate.
async fn read_anew(conn: &mut SqliteConnection, item: &WorkItemRef) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE work_items SET dirty_mark = dirty_mark + 1, details_at = NULL WHERE ref_key = $1",
    )
    .bind(item.key())
    .execute(conn)
    .await?;
    Ok(())
}

/// A mark set after `mark` was read stays: what it asks for was not in the answer.
async fn clear_dirty(
    conn: &mut SqliteConnection,
    item: &WorkItemRef,
    mark: DirtyMark,
    now: i64,
) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE work_items SET clean_mark = $2, details_at = COALESCE(details_at, $3) \
         WHERE ref_key = $1 AND clean_mark < $2",
    )
    .bind(item.key())
    .bind(mark.0)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}
