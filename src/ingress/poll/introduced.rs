//! Items that a command on this machine made known: GitHub is asked what they are.
//!
//! Nothing but the number is known of them, and no list shows what does not change.

use super::repo::{RepoCycle, StepError};

impl RepoCycle<'_> {
    /// Asks about each item that GitHub has not shown yet. It comes before the pull requests, all of
    /// which are then read: for its head, or because one may serve it.
    pub(super) async fn introduced(&mut self) -> Result<(), StepError> {
        // Their threads are still to be read, so they are among the dirty ones.
        let rows = self.poller.store.ledger().dirty(self.repo).await?;
        for row in rows.iter().filter(|row| !row.was_shown()) {
            if self.stop.is_cancelled() {
                self.report.interrupted = true;
                return Ok(());
            }
            let what = format!("{} introduced", row.item.key());
            if !self.poller.failures.may_ask(&what, self.poller.clock.now()) {
                continue;
            }
            let server_time = self.server_time(None);
            match self.ask_about(row, server_time).await {
                Ok(()) => self.poller.failures.worked(&what),
                Err(error) if error.ends_the_step() => return Err(error),
                Err(error) => self.item_problem(&what, &row.item, &error),
            }
        }
        Ok(())
    }
}
