//! What a daemon does once a day: old payloads go, so that the database stays small.

use chrono::TimeDelta;

use super::services::Services;
use crate::eventlog::Decision;
use crate::store::{Acceptance, CursorUpdate, StoreError};

/// Where the last time is kept: a one-shot run from cron must not do it every minute.
const CURSOR: &str = "housekeeping";
const EVERY: TimeDelta = TimeDelta::days(1);

/// Removes the payloads that are older than `state.retentionDays`, unless that was done today; their
/// keys stay.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn daily(services: &Services) -> Result<(), StoreError> {
    let now = services.clock.now();
    let last = services.store.ledger().cursor(CURSOR).await?;
    if last.is_some_and(|last| now - last.last_success < EVERY) {
        return Ok(());
    }
    let days = services.config.borrow().state.retention_days;
    let count = services
        .store
        .ledger()
        .prune(TimeDelta::days(i64::from(days)))
        .await?;
    if count > 0 {
        services.log.emit(&Decision::InboxPruned { count });
    }
    let cursor = CursorUpdate {
        name: CURSOR.to_owned(),
        etag: None,
        since: None,
        last_success: now,
    };
    let done = Acceptance {
        cursor: Some(cursor),
        ..Acceptance::default()
    };
    services.store.inbox().accept(&done).await?;
    Ok(())
}
