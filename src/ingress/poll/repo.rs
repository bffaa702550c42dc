//! One repository's cycle.
//!
//! The lists say what moved; an item that needs more is marked dirty in the same transaction as the
//! list's cursor and asked for again each cycle until it succeeds. Every step has a cursor of its
//! own, so a failing one holds up no other.

use tokio_util::sync::CancellationToken;

use super::Poller;
use super::report::CycleReport;
use crate::config::{Config, Source};
use crate::eventlog::Decision;
use crate::github::GitHubError;
use crate::model::{ItemKind, RepoRef};
use crate::routing::policy::Policy;
use crate::store::StoreError;

/// One repository in one cycle.
pub(super) struct RepoCycle<'a> {
    pub(super) poller: &'a Poller,
    pub(super) config: &'a Config,
    pub(super) source: &'a Source,
    pub(super) repo: &'a RepoRef,
    pub(super) stop: &'a CancellationToken,
    pub(super) report: &'a mut CycleReport,
}

/// Why a step of a cycle did not finish; it is tried again in the next one.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The steps, in order.
#[derive(Debug, Clone, Copy)]
enum Step {
    FirstListing,
    Issues,
    Pulls,
    Details,
    Comments,
    ReviewComments,
    Ci,
}

const STEPS: [Step; 7] = [
    Step::FirstListing,
    Step::Issues,
    Step::Pulls,
    Step::Details,
    Step::Comments,
    Step::ReviewComments,
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
            let done = match step {
                Step::FirstListing => self.first_listing().await,
                Step::Issues => self.issues().await,
                Step::Pulls => self.pulls().await,
                Step::Details => self.details().await,
                Step::Comments => self.comments().await,
                Step::ReviewComments => self.review_comments().await,
                Step::Ci => self.ci().await,
            };
            if let Err(error) = done {
                self.problem(&error);
                // A refused client must not go on asking; without a first listing nothing else has a
                // place to start from.
                if self.report.rate_limited_until.is_some() || matches!(step, Step::FirstListing) {
                    return;
                }
            }
        }
    }

    pub(super) fn problem(&mut self, error: &StepError) {
        if let StepError::GitHub(GitHubError::RateLimited { until, .. }) = error {
            self.report.rate_limited_until = Some(*until);
            self.poller.log.emit(&Decision::PollRateLimited {
                until: until.to_rfc3339(),
                remaining: self.poller.github.rate().map(|rate| rate.remaining),
            });
        }
        self.report.errors.push(format!("{}: {error}", self.repo));
        self.poller.log.emit(&Decision::PollProviderError {
            repo: self.repo.clone(),
            error: error.to_string(),
            will_retry: true,
        });
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
}
