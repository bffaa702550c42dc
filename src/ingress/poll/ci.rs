//! CI of watched heads: asked for in every cycle while a head has no final result, and seldom after
//! that, because a second attempt of a run moves neither the pull request nor any list.

use chrono::{DateTime, TimeDelta, Utc};

use super::inputs::{self, CiResult, Progress};
use super::repo::{RepoCycle, StepError};
use crate::github::payload::{CheckRun, CommitStatus, WorkflowRun};
use crate::github::{GitHubError, Listing};
use crate::store::{Acceptance, Arrival, Cursor, CursorUpdate, ItemRow, PullHead};

/// How long a head without a single run may still get one.
const NO_CI_AFTER: TimeDelta = TimeDelta::minutes(30);

/// How long a head whose runs have all ended may still get another one at any moment: a workflow that
/// follows on another, a second attempt.
const QUIET_AFTER: TimeDelta = TimeDelta::minutes(10);

/// How often a head at rest is looked at, as long as an agent may hear of it.
const LOOK_AGAIN_AFTER: TimeDelta = TimeDelta::minutes(10);

/// What GitHub says about a commit, in its three lists.
struct Answers {
    runs: Listing<WorkflowRun>,
    statuses: Listing<CommitStatus>,
    checks: Listing<CheckRun>,
}

/// The conditions for asking again, in the order of [`Answers`].
type Conditions = [Option<String>; 3];

impl Answers {
    fn is_unchanged(&self) -> bool {
        self.runs.news.is_none() && self.statuses.news.is_none() && self.checks.news.is_none()
    }

    fn conditions(&self) -> Conditions {
        [
            self.runs.cursor.etag.clone(),
            self.statuses.cursor.etag.clone(),
            self.checks.cursor.etag.clone(),
        ]
    }

    fn results(&self, row: &ItemRow, sha: &str) -> Vec<CiResult> {
        let item = inputs::item(row);
        let runs = elements(&self.runs)
            .iter()
            .filter_map(|run| inputs::workflow_run(run, &item, sha));
        let statuses = elements(&self.statuses)
            .iter()
            .filter_map(|status| inputs::status(status, &item, sha));
        let checks = elements(&self.checks)
            .iter()
            .filter_map(|check| inputs::check_run(check, &item, sha));
        runs.chain(statuses).chain(checks).collect()
    }
}

impl RepoCycle<'_> {
    /// Asks for the results on every watched head.
    pub(super) async fn ci(&mut self) -> Result<(), StepError> {
        let done = self.heads().await;
        self.say_what_is_refused();
        done
    }

    async fn heads(&mut self) -> Result<(), StepError> {
        let rows = self
            .poller
            .store
            .ledger()
            .pulls_with_watched_ci(self.repo)
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
        let was_at_rest = row.ci_settled_sha.as_deref() == Some(head.sha.as_str());
        if was_at_rest && !self.goes_on(row, head).await? {
            return Ok(());
        }
        let answers = self.answers(head, &Conditions::default()).await?;
        let results = answers.results(row, &head.sha);
        let at_rest = self.at_rest(row, &results);
        let arrivals: Vec<Arrival> = results
            .into_iter()
            .filter_map(|result| result.event)
            .map(|event| self.judged(event))
            .collect();
        let cursors = if at_rest {
            self.looked(row, answers.conditions())
        } else {
            Vec::new()
        };
        self.accept_whole(Acceptance {
            arrivals,
            cursors,
            ..Acceptance::default()
        })
        .await?;
        if at_rest != was_at_rest {
            let settled = at_rest.then_some(head.sha.as_str());
            self.poller
                .store
                .ledger()
                .settle_ci(&row.item, settled)
                .await?;
        }
        Ok(())
    }

    /// Tells whether something has moved at a head that had come to rest; asked now and then, under
    /// the conditions of the last look, so that a no costs nothing.
    async fn goes_on(&mut self, row: &ItemRow, head: &PullHead) -> Result<bool, StepError> {
        let now = self.poller.clock.now();
        let mut conditions = Conditions::default();
        let mut is_due = false;
        for (list, condition) in lists(row).iter().zip(&mut conditions) {
            let name = self.cursor_name(list);
            let known = self.poller.store.ledger().cursor(&name).await?;
            is_due |= known.as_ref().is_none_or(|known| is_old(known, now));
            *condition = known.and_then(|known| known.etag);
        }
        if !is_due {
            return Ok(false);
        }
        let answers = self.answers(head, &conditions).await?;
        if !answers.is_unchanged() {
            return Ok(true);
        }
        self.accept(Acceptance {
            cursors: self.looked(row, conditions),
            ..Acceptance::default()
        })
        .await?;
        Ok(false)
    }

    async fn answers(
        &mut self,
        head: &PullHead,
        conditions: &Conditions,
    ) -> Result<Answers, StepError> {
        let github = &self.poller.github;
        let (repo, sha) = (self.repo, head.sha.as_str());
        let [runs, statuses, checks] = conditions.each_ref().map(Option::as_deref);
        let runs = self.ask(github.workflow_runs(repo, sha, runs)).await?;
        // A token need not be allowed to read these two.
        let statuses = self.ask(github.combined_status(repo, sha, statuses)).await;
        let checks = self.ask(github.check_runs(repo, sha, checks)).await;
        let statuses = unless_refused(statuses)?;
        // A fine-grained token can never be given the permission for checks, so that is not said.
        let checks = unless_refused(checks)?.unwrap_or_else(|_| nothing());
        Ok(Answers {
            runs,
            statuses: self.noted(statuses),
            checks,
        })
    }

    /// Notes whether the statuses of a head could be read; those that could not are none.
    fn noted(&mut self, answer: Result<Listing<CommitStatus>, Refused>) -> Listing<CommitStatus> {
        match answer {
            Ok(statuses) => {
                self.statuses.get_or_insert(Ok(()));
                statuses
            }
            Err(refused) => {
                self.statuses = Some(Err(refused));
                nothing()
            }
        }
    }

    /// Says once for the whole repository that commit statuses are missing. It is no failure of the
    /// cycle: whoever gave the token may want it so.
    fn say_what_is_refused(&mut self) {
        let what = format!("{} statuses", self.repo.key());
        match self.statuses.take() {
            None => {}
            Some(Ok(())) => self.poller.failures.worked(&what),
            Some(Err(refused)) => self.limitation(&what, &refused.to_string()),
        }
    }

    /// Says when a head at rest was looked at, and how to ask again.
    fn looked(&self, row: &ItemRow, conditions: Conditions) -> Vec<CursorUpdate> {
        let lists = lists(row);
        let looks = lists.iter().zip(conditions);
        looks
            .map(|(list, etag)| self.update(list, etag, None))
            .collect()
    }

    /// Tells whether nothing more is to be expected of a head. All times are GitHub's.
    fn at_rest(&self, row: &ItemRow, results: &[CiResult]) -> bool {
        let Some(now) = self.server_now else {
            return false;
        };
        let is_over = |result: &CiResult| result.progress == Progress::Finished;
        match results.iter().map(|result| result.at).max() {
            None => now - row.updated_at >= NO_CI_AFTER,
            Some(newest) => results.iter().all(is_over) && now - newest >= QUIET_AFTER,
        }
    }
}

/// The names of the lists of a head's CI, in the order of [`Answers`].
fn lists(row: &ItemRow) -> [String; 3] {
    let number = row.item.number();
    ["runs", "statuses", "checks"].map(|list| format!("ci-{list}#{number}"))
}

/// A clock that was set back must not put a look off for as long.
fn is_old(known: &Cursor, now: DateTime<Utc>) -> bool {
    (now - known.last_success).abs() >= LOOK_AGAIN_AFTER
}

/// A refusal of commit statuses, without the address: it is the same for every head.
#[derive(Debug, thiserror::Error)]
#[error("failures of CI that reports commit statuses are not seen: {0}")]
pub(super) struct Refused(String);

/// Keeps a list that the token may not read apart from what went wrong.
fn unless_refused<T>(
    answer: Result<Listing<T>, StepError>,
) -> Result<Result<Listing<T>, Refused>, StepError> {
    match answer {
        Ok(listing) => Ok(Ok(listing)),
        Err(StepError::GitHub(GitHubError::Forbidden { message, hint, .. })) => {
            Ok(Err(Refused(format!("not allowed (403): {message}{hint}"))))
        }
        Err(StepError::GitHub(GitHubError::NotFound { .. })) => Ok(Err(Refused(
            "not found, or not visible with this token (404)".to_owned(),
        ))),
        Err(error) => Err(error),
    }
}

/// A list with nothing in it, to be asked for without a condition.
fn nothing<T>() -> Listing<T> {
    Listing {
        news: None,
        cursor: crate::github::Cursor::default(),
        date: None,
    }
}

fn elements<T>(listing: &Listing<T>) -> &[T] {
    listing.news.as_ref().map_or(&[], |news| &news.items)
}
