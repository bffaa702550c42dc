//! CI of watched heads: asked for only while a head has no final result.

use chrono::TimeDelta;

use super::inputs::{self, Progress, Verdict};
use super::repo::{RepoCycle, StepError};
use crate::github::{GitHubError, Listing};
use crate::store::{Acceptance, Arrival, ItemRow};

/// How long a head without a single run may still get one.
const NO_CI_AFTER: TimeDelta = TimeDelta::minutes(30);

/// How long a head whose runs have all ended may still get another one: a workflow that follows on
/// another, a second attempt.
const QUIET_AFTER: TimeDelta = TimeDelta::minutes(10);

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
            let what = format!("{} ci", row.item.key());
            if !self.poller.failures.may_ask(&what, self.poller.clock.now()) {
                continue;
            }
            match self.head(&row).await {
                Ok(()) => self.poller.failures.worked(&what),
                Err(error) if error.ends_the_step() => return Err(error),
                Err(error) => self.item_problem(&what, &row.item, &error),
            }
        }
        Ok(())
    }

    async fn head(&mut self, row: &ItemRow) -> Result<(), StepError> {
        let Some(head) = &row.head else { return Ok(()) };
        let item = inputs::item(row);
        let github = &self.poller.github;
        let (repo, sha) = (self.repo, head.sha.as_str());
        let runs = elements(self.ask(github.workflow_runs(repo, sha, None)).await?);
        let statuses = elements(self.ask(github.combined_status(repo, sha, None)).await?);
        // Fine-grained tokens cannot be given the permission to read checks; Actions and statuses
        // are enough then.
        let checks = match self.ask(github.check_runs(repo, sha, None)).await {
            Ok(checks) => elements(checks),
            Err(StepError::GitHub(
                GitHubError::Forbidden { .. } | GitHubError::NotFound { .. },
            )) => Vec::new(),
            Err(error) => return Err(error),
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
        let at_rest = self.at_rest(row, &verdicts);
        let arrivals: Vec<Arrival> = verdicts
            .into_iter()
            .filter_map(|verdict| verdict.event)
            .map(|event| self.judged(event))
            .collect();
        let sha = head.sha.clone();
        let whole = Acceptance {
            arrivals,
            ..Acceptance::default()
        };
        self.accept_whole(whole).await?;
        if at_rest {
            self.poller
                .store
                .ledger()
                .settle_ci(&row.item, &sha)
                .await?;
        }
        Ok(())
    }

    /// Tells whether nothing more is to be expected of a head. All times are GitHub's.
    fn at_rest(&self, row: &ItemRow, verdicts: &[Verdict]) -> bool {
        let Some(now) = self.server_now else {
            return false;
        };
        let is_over = |verdict: &Verdict| verdict.progress == Progress::Finished;
        match verdicts.iter().map(|verdict| verdict.at).max() {
            None => now - row.updated_at >= NO_CI_AFTER,
            Some(newest) => verdicts.iter().all(is_over) && now - newest >= QUIET_AFTER,
        }
    }
}

fn elements<T>(listing: Listing<T>) -> Vec<T> {
    listing.news.map(|news| news.items).unwrap_or_default()
}
