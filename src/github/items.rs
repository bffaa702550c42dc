//! One issue or pull request and what belongs to it, and who we are.

use serde::de::DeserializeOwned;

use crate::model::{RepoRef, WorkItemRef};

use super::payload::{
    Comment, Issue, IssueEvent, Pull, Repository, Review, ReviewComment, User, parse,
};
use super::{Elements, GitHub, GitHubError, Redirects, Reply};

impl GitHub {
    /// Asks for one issue or pull request, as an issue.
    ///
    /// # Errors
    /// [`GitHubError::Moved`] when it was transferred or its repository was renamed (ask
    /// [`issue_at`](Self::issue_at) there), [`GitHubError::NotFound`], [`GitHubError::Gone`], or any
    /// other [`GitHubError`].
    pub async fn issue(&self, item: &WorkItemRef) -> Result<Issue, GitHubError> {
        let path = self.inner.endpoint.repo_path(item.repo())?;
        let url = format!("{path}/issues/{}", item.number());
        self.one(&url, Redirects::Report).await
    }

    /// Asks for an issue where [`GitHubError::Moved`] says that it is; its `repository_url` and
    /// `number` tell whether it is still the same work item.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn issue_at(&self, url: &str) -> Result<Issue, GitHubError> {
        self.one(url, Redirects::Follow).await
    }

    /// Asks for one pull request.
    ///
    /// # Errors
    /// Any [`GitHubError`]; an issue is [`GitHubError::NotFound`].
    pub async fn pull(&self, item: &WorkItemRef) -> Result<Pull, GitHubError> {
        let path = self.inner.endpoint.repo_path(item.repo())?;
        let url = format!("{path}/pulls/{}", item.number());
        self.one(&url, Redirects::Follow).await
    }

    /// Asks for a repository, also under a name it no longer has.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn repository(&self, repo: &RepoRef) -> Result<Repository, GitHubError> {
        let path = self.inner.endpoint.repo_path(repo)?;
        self.one(&path, Redirects::Follow).await
    }

    /// Lists the whole conversation, oldest first.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn comments_of(&self, item: &WorkItemRef) -> Result<Elements<Comment>, GitHubError> {
        self.part_of(item, "issues", "comments").await
    }

    /// Lists what happened to it, oldest first: who labelled, closed, reopened.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn issue_events(
        &self,
        item: &WorkItemRef,
    ) -> Result<Elements<IssueEvent>, GitHubError> {
        self.part_of(item, "issues", "events").await
    }

    /// Lists the reviews of a pull request, oldest first; our own pending ones are among them.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn reviews(&self, item: &WorkItemRef) -> Result<Elements<Review>, GitHubError> {
        self.part_of(item, "pulls", "reviews").await
    }

    /// Lists the review comments of a pull request, oldest first.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn review_comments_of(
        &self,
        item: &WorkItemRef,
    ) -> Result<Elements<ReviewComment>, GitHubError> {
        self.part_of(item, "pulls", "comments").await
    }

    /// Asks whose token this is.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn whoami(&self) -> Result<User, GitHubError> {
        self.one("/user", Redirects::Follow).await
    }

    async fn part_of<T: super::pages::Object>(
        &self,
        item: &WorkItemRef,
        kind: &str,
        part: &str,
    ) -> Result<Elements<T>, GitHubError> {
        let path = self.inner.endpoint.repo_path(item.repo())?;
        let number = item.number();
        self.all(&format!("{path}/{kind}/{number}/{part}")).await
    }

    pub(super) async fn one<T: DeserializeOwned>(
        &self,
        url: &str,
        redirects: Redirects,
    ) -> Result<T, GitHubError> {
        match self.read(url, None, redirects).await? {
            Reply::Fresh(answer) => parse(&answer.body, &answer.url),
            Reply::Unchanged { .. } => Err(GitHubError::BadPayload {
                url: url.to_owned(),
                place: "status".to_owned(),
                problem: "304 without a condition".to_owned(),
            }),
        }
    }
}
