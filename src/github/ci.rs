//! What CI says about a commit, and how much we may still ask.

use serde::Deserialize;

use crate::model::RepoRef;

use super::endpoint::encode;
use super::paging::Depth;
use super::payload::{CheckRun, CommitStatus, WorkflowRun, parse};
use super::{GitHub, GitHubError, Listing, Rate};

impl GitHub {
    /// Lists the GitHub Actions runs of a commit.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn workflow_runs(
        &self,
        repo: &RepoRef,
        head_sha: &str,
        etag: Option<&str>,
    ) -> Result<Listing<WorkflowRun>, GitHubError> {
        let path = self.inner.endpoint.repo_path(repo)?;
        let sha = encode(head_sha);
        let url = format!("{path}/actions/runs?head_sha={sha}");
        self.linked(&url, Some("workflow_runs"), etag, Depth::Whole)
            .await
    }

    /// Lists the latest status of every external CI for a commit.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn combined_status(
        &self,
        repo: &RepoRef,
        sha: &str,
        etag: Option<&str>,
    ) -> Result<Listing<CommitStatus>, GitHubError> {
        let path = self.inner.endpoint.repo_path(repo)?;
        let url = format!("{path}/commits/{}/status", encode(sha));
        self.linked(&url, Some("statuses"), etag, Depth::Whole)
            .await
    }

    /// Lists the latest checks of a commit. Fine-grained tokens are never allowed to: they get
    /// [`GitHubError::Forbidden`], and workflow runs and statuses must do.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn check_runs(
        &self,
        repo: &RepoRef,
        sha: &str,
        etag: Option<&str>,
    ) -> Result<Listing<CheckRun>, GitHubError> {
        let path = self.inner.endpoint.repo_path(repo)?;
        let sha = encode(sha);
        let url = format!("{path}/commits/{sha}/check-runs?filter=latest");
        self.linked(&url, Some("check_runs"), etag, Depth::Whole)
            .await
    }

    /// Asks for the hourly budget; this costs nothing of it.
    ///
    /// None on a server without limits.
    ///
    /// # Errors
    /// Any [`GitHubError`], but for the 404 by which a GHES says that it has no limits.
    pub async fn rate_limit(&self) -> Result<Option<Rate>, GitHubError> {
        #[derive(Deserialize)]
        struct Limits {
            resources: Resources,
        }
        #[derive(Deserialize)]
        struct Resources {
            core: Core,
        }
        #[derive(Deserialize)]
        struct Core {
            limit: u64,
            remaining: u64,
            reset: i64,
        }
        let answer = match self.fresh("/rate_limit").await {
            Err(GitHubError::NotFound { .. }) => return Ok(None),
            answer => answer?,
        };
        let core = parse::<Limits>(&answer.body, &answer.url)?.resources.core;
        Ok(Some(Rate {
            limit: core.limit,
            remaining: core.remaining,
            reset_at: chrono::DateTime::from_timestamp(core.reset, 0).unwrap_or_default(),
            resource: "core".to_owned(),
        }))
    }
}
