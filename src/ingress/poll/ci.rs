//! CI of watched heads: asked for only while a head has no final result.

use chrono::TimeDelta;

use super::inputs::{self, Progress, Verdict};
use super::repo::{RepoCycle, StepError};
use crate::eventlog::Decision;
use crate::github::{GitHubError, Listing};
use crate::store::{Arrival, ItemRow};

/// How long a head without a single run may still get one.
const NO_CI_AFTER: TimeDelta = TimeDelta::minutes(30);

impl RepoCycle<'_> {
    /// Asks for the verdicts on every watched head that has no final result yet.
    pub(super) async fn ci(&mut self) -> Result<(), StepError> {
        let rows = self
            .poller
            .store
            .ledger()
            .pulls_with_unsettled_ci(self.repo)
            .await?;
        for row in rows {
            if self.stop.is_cancelled() {
                self.report.interrupted = true;
                return Ok(());
            }
            if !self.poller.github.optional_calls_allowed() {
                // The last tenth of the rate limit is for what people write.
                return Ok(());
            }
            match self.head(&row).await {
                Ok(()) => {}
                Err(StepError::GitHub(error @ GitHubError::RateLimited { .. })) => {
                    return Err(error.into());
                }
                Err(StepError::Store(error)) => return Err(error.into()),
                Err(error) => {
                    self.report
                        .errors
                        .push(format!("{}: {error}", row.item.short()));
                    self.poller.log.emit(&Decision::PollItemError {
                        work_item: row.item.clone(),
                        error: error.to_string(),
                        will_retry: true,
                    });
                }
            }
        }
        Ok(())
    }

    async fn head(&mut self, row: &ItemRow) -> Result<(), StepError> {
        let Some(head) = &row.head else { return Ok(()) };
        let item = inputs::item(row);
        let github = &self.poller.github;
        let runs = elements(github.workflow_runs(self.repo, &head.sha, None).await?);
        let statuses = elements(github.combined_status(self.repo, &head.sha, None).await?);
        // Fine-grained tokens cannot be given the permission to read checks; Actions and statuses
        // are enough then.
        let checks = match github.check_runs(self.repo, &head.sha, None).await {
            Ok(checks) => elements(checks),
            Err(GitHubError::Forbidden { .. } | GitHubError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let verdicts: Vec<Verdict> = runs
            .iter()
            .filter_map(|run| inputs::workflow_run(run, &item, &head.sha))
            .chain(
                statuses
                    .iter()
                    .filter_map(|status| inputs::status(status, &item, &head.sha)),
            )
            .chain(
                checks
                    .iter()
                    .filter_map(|check| inputs::check_run(check, &item, &head.sha)),
            )
            .collect();
        let running = verdicts
            .iter()
            .any(|verdict| verdict.progress == Progress::Running);
        let may_still_come =
            verdicts.is_empty() && self.poller.clock.now() - row.updated_at < NO_CI_AFTER;
        let arrivals: Vec<Arrival> = verdicts
            .into_iter()
            .filter_map(|verdict| verdict.event)
            .map(|event| self.judged(event))
            .collect();
        let sha = head.sha.clone();
        self.accept_arrivals(arrivals, Vec::new()).await?;
        if !running && !may_still_come {
            self.poller
                .store
                .ledger()
                .settle_ci(&row.item, &sha)
                .await?;
        }
        Ok(())
    }
}

fn elements<T>(listing: Listing<T>) -> Vec<T> {
    listing.news.map(|news| news.items).unwrap_or_default()
}
