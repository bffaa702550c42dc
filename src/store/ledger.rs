//! What is known of work items and polled lists, and what may be forgotten.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::SqliteRow;

use super::claim::Claim;
use super::claims;
use super::effects;
use super::error::Fault;
use super::items;
use super::rows::{self, ItemRow, Reader, item_columns, ms};
use super::{Statement, Store, StoreError};
use crate::model::{ControlCommand, Login, RepoRef, WorkItemRef};

/// Payloads are forgotten in steps of this many rows, so that nobody waits long for the lock.
const PRUNE_STEP: i64 = 500;

/// How far a polled list was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The entity tag to ask with next time.
    pub etag: Option<String>,
    /// Where the next page starts, by the server's clock.
    pub since: Option<DateTime<Utc>>,
    /// When the list was last read with something new in it.
    pub last_success: DateTime<Utc>,
}

fn cursor(row: &SqliteRow) -> Result<Cursor, Fault> {
    let row = Reader::new(row, "cursors")?;
    Ok(Cursor {
        etag: row.get("etag")?,
        since: row.opt_time("since")?,
        last_success: row.time("last_success")?,
    })
}

/// Which work items are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFilter<'a> {
    /// Every known one.
    All,
    /// Those of one repository.
    Of(&'a RepoRef),
}

/// What is known of work items and polled lists.
#[derive(Debug, Clone)]
pub struct Ledger {
    store: Store,
}

impl Ledger {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Returns a known work item.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn item(&self, item: &WorkItemRef) -> Result<Option<ItemRow>, StoreError> {
        let found = async {
            let mut conn = self.store.reading().await?;
            items::by_key(&mut conn, item).await
        };
        found
            .await
            .map_err(self.store.explain("reading a work item"))
    }

    /// Returns known work items, in the order of their first sight.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn items(&self, filter: ItemFilter<'_>) -> Result<Vec<ItemRow>, StoreError> {
        let query = match filter {
            ItemFilter::All => sqlx::query(concat!(
                "SELECT ",
                item_columns!(),
                " FROM work_items w ORDER BY w.id"
            )),
            ItemFilter::Of(repo) => sqlx::query(concat!(
                "SELECT ",
                item_columns!(),
                " FROM work_items w WHERE w.repo_key = $1 ORDER BY w.id"
            ))
            .bind(repo.key()),
        };
        self.read(query).await
    }

    /// Counts the open work items.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn count_open_items(&self) -> Result<u64, StoreError> {
        let query = sqlx::query("SELECT COUNT(*) FROM work_items WHERE is_open = 1");
        let counted = self.store.count(query).await;
        counted.map_err(self.store.explain("counting work items"))
    }

    /// Returns the open work items of a repository.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_items_of(&self, repo: &RepoRef) -> Result<Vec<ItemRow>, StoreError> {
        let query = sqlx::query(concat!(
            "SELECT ",
            item_columns!(),
            " FROM work_items w WHERE w.repo_key = $1 AND w.is_open = 1 ORDER BY w.id"
        ));
        self.read(query.bind(repo.key())).await
    }

    /// Returns the work items of a repository whose details are still to be fetched.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn dirty(&self, repo: &RepoRef) -> Result<Vec<ItemRow>, StoreError> {
        let query = sqlx::query(concat!(
            "SELECT ",
            item_columns!(),
            " FROM work_items w WHERE w.repo_key = $1 AND w.dirty_mark > w.clean_mark ORDER BY w.id"
        ));
        self.read(query.bind(repo.key())).await
    }

    /// Returns the open pull requests of a repository whose head's CI is watched: it has not come to
    /// rest, or an agent is there to be told what comes after.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn pulls_with_watched_ci(&self, repo: &RepoRef) -> Result<Vec<ItemRow>, StoreError> {
        let query = sqlx::query(concat!(
            "SELECT ",
            item_columns!(),
            " FROM work_items w WHERE w.repo_key = $1 AND w.is_open = 1 AND w.head_sha IS NOT NULL \
             AND w.same_repo = 1 AND (COALESCE(w.ci_settled_sha, '') <> w.head_sha \
             OR EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = w.id AND s.status <> 'closed') \
             OR EXISTS (SELECT 1 FROM work_items t JOIN sessions s ON s.item_id = t.id \
             WHERE t.ref_key = lower(w.bound_to) AND s.status <> 'closed')) ORDER BY w.id"
        ));
        self.read(query.bind(repo.key())).await
    }

    async fn read(&self, query: Statement<'_>) -> Result<Vec<ItemRow>, StoreError> {
        const DOING: &str = "reading work items";
        let rows = self
            .store
            .all(query)
            .await
            .map_err(self.store.explain(DOING))?;
        Ok(self.store.readable(DOING, &rows, rows::item))
    }

    /// Returns how far a polled list was read.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn cursor(&self, name: &str) -> Result<Option<Cursor>, StoreError> {
        let found = async {
            let row = sqlx::query(
                "SELECT 0 AS id, etag, since, last_success FROM cursors WHERE name = $1",
            )
            .bind(name)
            .fetch_optional(&mut *self.store.reading().await?)
            .await?;
            let Some(row) = row else {
                return Ok(None);
            };
            // Cursors have names and no numbers.
            cursor(&row).map(Some).map_err(|fault| fault.about(name))
        };
        found.await.map_err(self.store.explain("reading a cursor"))
    }

    /// Records the last control command of the claim's work item.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn set_control(
        &self,
        claim: &Claim,
        command: ControlCommand,
        actor: Option<&Login>,
    ) -> Result<(), StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            let now = self.store.now_ms();
            effects::set_control(&mut tx, claim.item.id, command, actor, now).await?;
            tx.commit().await.map_err(Fault::from)
        };
        done.await
            .map_err(self.store.explain("recording a control command"))
    }

    /// Forgets the last control command of the claim's work item.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn clear_control(&self, claim: &Claim) -> Result<(), StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            effects::clear_control(&mut tx, claim.item.id).await?;
            tx.commit().await.map_err(Fault::from)
        };
        done.await
            .map_err(self.store.explain("forgetting a control command"))
    }

    /// Records the head whose CI has come to rest and was told; none while it goes on.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn settle_ci(&self, item: &WorkItemRef, sha: Option<&str>) -> Result<(), StoreError> {
        let settle = sqlx::query("UPDATE work_items SET ci_settled_sha = $2 WHERE ref_key = $1")
            .bind(item.key())
            .bind(sha);
        let settled = self.store.change(settle).await;
        settled
            .map(|_| ())
            .map_err(self.store.explain("settling the CI of a head"))
    }

    /// Forgets the payloads of events older than `age` that nobody needs any more, and returns how
    /// many; keys stay, and what may be tried again stays whole.
    ///
    /// # Errors
    /// When the database cannot be written; what was forgotten until then stays so.
    pub async fn prune(&self, age: TimeDelta) -> Result<u64, StoreError> {
        let before = ms(self.store.now()).saturating_sub(age.num_milliseconds());
        let mut forgotten = 0;
        loop {
            let forget = sqlx::query(
                "UPDATE events SET payload = NULL WHERE id IN (SELECT e.id FROM events e \
                 WHERE e.payload IS NOT NULL AND e.received_at < $1 AND NOT EXISTS (SELECT 1 \
                 FROM deliveries d WHERE d.event_id = e.id \
                 AND d.state IN ('pending', 'claimed', 'held', 'abandoned')) LIMIT $2)",
            )
            .bind(before)
            .bind(PRUNE_STEP);
            let done = self.store.change(forget).await;
            match done.map_err(self.store.explain("forgetting old payloads"))? {
                0 => return Ok(forgotten),
                some => forgotten += some,
            }
        }
    }
}
