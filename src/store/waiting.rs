//! Deliveries that wait, with what they are about: for those who decide against them unheard.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::error::Fault;
use super::rows::Reader;
use crate::model::{DeliveryId, Event, WorkItemRef};

/// A delivery that waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The work item whose session it was for.
    pub item: WorkItemRef,
    /// Its number.
    pub delivery: DeliveryId,
    /// What it was about.
    pub event: Event,
}

/// Reads what these deliveries are about. One that this version cannot read keeps nobody from dropping
/// it: it is only logged.
pub(super) async fn read(
    conn: &mut SqliteConnection,
    deliveries: &[DeliveryId],
) -> Result<Vec<Waiting>, Fault> {
    let mut found = Vec::new();
    for &delivery in deliveries {
        let row = sqlx::query(
            "SELECT d.id, w.ref, e.payload FROM deliveries d JOIN events e ON e.id = d.event_id \
             JOIN work_items w ON w.id = d.item_id WHERE d.id = $1",
        )
        .bind(delivery.0)
        .fetch_optional(&mut *conn)
        .await?;
        match row.as_ref().map(waiting) {
            Some(Ok(waiting)) => found.push(waiting),
            Some(Err(Fault::Row { table, id, detail })) => tracing::error!(
                "delivery {delivery} is dropped unread: row {id} of {table} cannot be read: {detail}"
            ),
            Some(Err(fault)) => return Err(fault),
            None => {}
        }
    }
    Ok(found)
}

fn waiting(row: &SqliteRow) -> Result<Waiting, Fault> {
    let row = Reader::new(row, "deliveries")?;
    let payload: String = row.present("payload")?;
    Ok(Waiting {
        item: row.parse("ref")?,
        delivery: DeliveryId(row.id()),
        event: serde_json::from_str(&payload)
            .map_err(|error| row.bad(format!("payload: {error}")))?,
    })
}
