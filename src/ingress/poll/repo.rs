//! One repository's cycle.
//!
//! The lists say what moved; an item that needs more is marked dirty in the same transaction as the
//! list's cursor and asked for again each cycle until it succeeds. Every step has a cursor of its
//! own, so a failing one holds up no other.

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::Poller;
use super::ci::Refused;
use super::failures::Worth;
use super::report::CycleReport;
use crate::config::{Config, WatchedRepos};
use crate::eventlog::Decision;
use crate::github::GitHubError;
use crate::model::{ItemKind, RepoRef, WorkItemRef};
use crate::process::panic::{Panicked, caught};
use crate::routing::policy::Policy;
use crate::store::StoreError;

/// One repository in one cycle.
pub(super) struct RepoCycle<'a> {
    pub(super) poller: &'a Poller,
    pub(super) config: &'a Config,
    pub(super) source: &'a WatchedRepos,
    pub(super) repo: &'a RepoRef,
    pub(super) stop: &'a CancellationToken,
    pub(super) report: &'a mut CycleReport,
    /// GitHub's clock at the last list of this cycle.
    pub(super) server_now: Option<DateTime<Utc>>,
    /// Whether every head's commit statuses could be read; none before they were asked for.
    pub(super) statuses: Option<Result<(), Refused>>,
}

/// Why a step of a cycle did not finish; it is tried again in the next one.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The editor of one text; whatever the reason, it concerns this text only.
    #[error("cannot learn who edited {node_id}: {source}")]
    Editor {
        node_id: String,
        source: GitHubError,
    },
    #[error(transparent)]
    BrokeDown(#[from] Panicked),
    #[error("stopped")]
    Stopped,
}

impl StepError {
    /// Tells whether everything else of the step would fail as well.
    pub(super) fn ends_the_step(&self) -> bool {
        match self {
            Self::GitHub(error) => matches!(
                error,
                GitHubError::RateLimited { .. } | GitHubError::Unauthorized { .. }
            ),
            // One row that cannot be read is one item's trouble.
            Self::Editor { .. } | Self::Store(StoreError::BadRow { .. }) => false,
            Self::Store(_) | Self::BrokeDown(_) | Self::Stopped => true,
        }
    }
}

/// The steps, in order.
///
/// Comments on lines come before the details: the reviews that they belong to are among these, and
/// one review is one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    FirstListing,
    Issues,
    Introduced,
    Pulls,
    Missing,
    ReviewComments,
    Details,
    Comments,
    Ci,
}

const STEPS: [Step; 9] = [
    Step::FirstListing,
    Step::Issues,
    Step::Introduced,
    Step::Pulls,
    Step::Missing,
    Step::ReviewComments,
    Step::Details,
    Step::Comments,
    Step::Ci,
];

impl RepoCycle<'_> {
    /// Runs every step; a failed one is reported and the others go on.
    pub(super) async fn run(&mut self) {
        self.report.repos.push(self.repo.clone());
        for step in STEPS {
            if self.stop.is_cancelled() {
                self.report.interrupted = true;
                return;
            }
            let done = caught(Box::pin(self.step(step))).await;
            let done = done.unwrap_or_else(|panicked| Err(panicked.into()));
            let what = format!("{} {step:?}", self.repo.key());
            match done {
                Ok(()) => self.poller.failures.worked(&what),
                Err(StepError::Stopped) => {
                    self.report.interrupted = true;
                    return;
                }
                Err(error) => {
                    self.problem(&what, &error);
                    // A refused client must not go on asking; without a first listing nothing else
                    // has a place to start from.
                    if self.report.rate_limited_until.is_some() || step == Step::FirstListing {
                        return;
                    }
                }
            }
        }
    }

    async fn step(&mut self, step: Step) -> Result<(), StepError> {
        match step {
            Step::FirstListing => self.first_listing().await,
            Step::Issues => self.issues().await,
            Step::Introduced => self.introduced().await,
            Step::Pulls => self.pulls().await,
            Step::Missing => self.missing().await,
            Step::ReviewComments => self.review_comments().await,
            Step::Details => self.details().await,
            Step::Comments => self.comments().await,
            Step::Ci => self.ci().await,
        }
    }

    /// Reports that something of the repository could not be read.
    pub(super) fn problem(&mut self, what: &str, error: &StepError) {
        let text = error.to_string();
        self.report.errors.push(format!("{}: {text}", self.repo));
        if let StepError::GitHub(GitHubError::RateLimited { until, wait, .. }) = error {
            // `until` is GitHub's time; ours may be another.
            self.report.rate_limited_until = Some(self.poller.clock.now() + *wait);
            self.report.new_errors += 1;
            self.poller.log.emit(&Decision::PollRateLimited {
                until: until.to_rfc3339(),
                remaining: self.poller.github.rate().map(|rate| rate.remaining),
            });
        } else {
            self.limitation(what, &text);
        }
    }

    /// Says what of the repository cannot be read, where that does not count against the cycle.
    pub(super) fn limitation(&mut self, what: &str, text: &str) {
        if self.is_news(what, text) {
            self.poller.log.emit(&Decision::PollProviderError {
                repo: self.repo.clone(),
                error: text.to_owned(),
                will_retry: true,
            });
        }
    }

    /// Reports that one work item could not be read; it is asked about less and less often.
    pub(super) fn item_problem(&mut self, what: &str, item: &WorkItemRef, error: &StepError) {
        let text = error.to_string();
        self.report.errors.push(format!("{}: {text}", item.short()));
        if self.is_news(what, &text) {
            self.poller.log.emit(&Decision::PollItemError {
                work_item: item.clone(),
                error: text,
                will_retry: true,
            });
        }
    }

    fn is_news(&mut self, what: &str, error: &str) -> bool {
        let interval = self.config.polling.interval;
        let now = self.poller.clock.now();
        let worth = self.poller.failures.failed(what, error, interval, now);
        if worth == Worth::Saying {
            self.report.new_errors += 1;
        }
        worth == Worth::Saying
    }

    /// Asks GitHub, but no longer than until the stop: a server that hangs must not hold it up.
    pub(super) async fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, GitHubError>>,
    ) -> Result<T, StepError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(StepError::Stopped),
            answer = question => Ok(answer?),
        }
    }

    /// Keeps the first failure of a list's elements, so that the others are accepted before the step
    /// fails and its cursor stays.
    ///
    /// # Errors
    /// With a failure that concerns the others too.
    pub(super) fn hold_back(
        held: &mut Option<StepError>,
        error: StepError,
    ) -> Result<(), StepError> {
        if error.ends_the_step() {
            return Err(error);
        }
        held.get_or_insert(error);
        Ok(())
    }

    pub(super) fn policy(&self) -> Policy {
        Policy::from(self.config)
    }

    pub(super) fn monitors(&self, kind: ItemKind) -> bool {
        match kind {
            ItemKind::Issue => self.source.monitor.issues,
            ItemKind::PullRequest => self.source.monitor.pull_requests,
        }
    }

    /// Returns the name of a cursor of this repository.
    pub(super) fn cursor_name(&self, list: &str) -> String {
        format!("{list}:{}", self.repo.key())
    }

    /// Returns GitHub's time at a list, and remembers it for what the cycle decides next.
    pub(super) fn server_time(&mut self, date: Option<DateTime<Utc>>) -> DateTime<Utc> {
        self.server_now = date.or(self.server_now);
        self.server_now.unwrap_or_else(|| self.poller.clock.now())
    }
}
