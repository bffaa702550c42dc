//! How fast texts reach one work item's agent.

use chrono::{DateTime, Utc};

use super::error::Fault;
use super::rows::{Reader, ms};
use super::{Deduper, StoreError};

/// How far back in an item's order is looked; what lies behind so many rows came long ago.
const ROWS: i64 = 500;

/// One review is one message. The look back by number keeps it short however long the item's past is.
const LAST_TOLD: &str = "SELECT 0 AS id, COUNT(*) AS messages, MAX(told) AS newest FROM \
     (SELECT MAX(d.settled_at) AS told FROM deliveries d JOIN events e ON e.id = d.event_id \
     WHERE d.item_id = $1 \
     AND d.number >= (SELECT w.next_number FROM work_items w WHERE w.id = $1) - $2 \
     AND d.class = 'event' AND d.state = 'delivered' AND d.settled_at > $3 \
     AND e.kind IN ('issue_comment', 'review', 'review_comment') \
     GROUP BY COALESCE(d.batch, CAST(d.id AS TEXT))) AS told";

/// The texts that an item's agent was told since some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// How many messages they were.
    pub messages: u64,
    /// When the last one was told.
    pub newest: DateTime<Utc>,
}

impl Deduper {
    /// Returns what people wrote that the agent of this item's row was told since then; none where
    /// it was told nothing.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn told_since(
        &self,
        item: i64,
        since: DateTime<Utc>,
    ) -> Result<Option<Told>, StoreError> {
        let counted = async {
            let row = sqlx::query(LAST_TOLD)
                .bind(item)
                .bind(ROWS)
                .bind(ms(since))
                .fetch_one(&self.store.readers)
                .await?;
            let row = Reader::new(&row, "deliveries")?;
            let messages = row.number("messages")?;
            let newest = row.opt_time("newest")?;
            Ok::<_, Fault>(newest.map(|newest| Told { messages, newest }))
        };
        counted
            .await
            .map_err(self.store.explain("counting what an agent was told"))
    }
}
