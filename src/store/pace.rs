//! How fast texts reach one work item's agent.

use chrono::{DateTime, Utc};

use super::error::Fault;
use super::rows::{Reader, big, ms};
use super::{Claim, Deduper, StoreError};

/// How far around a delivery its item's order is looked at; what lies behind so many rows came long
/// ago.
const ROWS: u64 = 500;

/// One review is one message. The look around by number keeps it short however long the item's past
/// is, and does not lose sight of what was told when much waits behind the delivery.
const TOLD: &str = "SELECT MIN(d.id) AS id, MAX(d.settled_at) AS told \
     FROM deliveries d JOIN events e ON e.id = d.event_id \
     WHERE d.item_id = $1 AND d.number BETWEEN $2 AND $3 \
     AND d.class = 'event' AND d.state = 'delivered' AND d.settled_at > $4 AND d.settled_at <= $5 \
     AND e.kind IN ('issue_comment', 'review', 'review_comment') \
     GROUP BY COALESCE(d.batch, CAST(d.id AS TEXT)) ORDER BY told";

impl Deduper {
    /// Returns when the agent of the claimed item was told each message that people wrote, after
    /// `since` and up to `until`, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn told_between(
        &self,
        claim: &Claim,
        since: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<DateTime<Utc>>, StoreError> {
        let here = claim.first().number;
        let told = async {
            let rows = sqlx::query(TOLD)
                .bind(claim.item.id)
                .bind(big(here.saturating_sub(ROWS)))
                .bind(big(here.saturating_add(ROWS)))
                .bind(ms(since))
                .bind(ms(until))
                .fetch_all(&mut *self.store.reading().await?)
                .await?;
            rows.iter()
                .map(|row| Reader::new(row, "deliveries")?.time("told"))
                .collect::<Result<Vec<_>, Fault>>()
        };
        told.await
            .map_err(self.store.explain("looking up what an agent was told"))
    }
}
