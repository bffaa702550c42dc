//! The lists of a repository that a poll cycle reads, all of them conditional.

use crate::model::RepoRef;

use super::endpoint::encode;
use super::paging::Depth;
use super::payload::{Comment, Issue, Pull, ReviewComment};
use super::{Cursor, Elements, GitHub, GitHubError, Listing, NextPage};

impl GitHub {
    /// Lists the issues and pull requests that changed since the cursor, open or closed, whatever
    /// their labels, oldest change first.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn issues_since(
        &self,
        repo: &RepoRef,
        cursor: &Cursor,
    ) -> Result<Listing<Issue>, GitHubError> {
        let path = format!("{}/issues", self.inner.endpoint.repo_path(repo)?);
        self.keyset(&path, "state=all&", cursor).await
    }

    /// Lists all open issues and pull requests with a label, or with any where `label` is None; the
    /// list to begin with at first sight. It is read whole and without a condition.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn open_issues(
        &self,
        repo: &RepoRef,
        label: Option<&str>,
    ) -> Result<Listing<Issue>, GitHubError> {
        let path = format!("{}/issues", self.inner.endpoint.repo_path(repo)?);
        let labels = label.map_or_else(String::new, |label| format!("labels={}&", encode(label)));
        let query = format!("{labels}state=open&");
        self.keyset(&path, &query, &Cursor::default()).await
    }

    /// Lists the conversation comments of the whole repository that changed since the cursor.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn issue_comments(
        &self,
        repo: &RepoRef,
        cursor: &Cursor,
    ) -> Result<Listing<Comment>, GitHubError> {
        let path = format!("{}/issues/comments", self.inner.endpoint.repo_path(repo)?);
        self.keyset(&path, "", cursor).await
    }

    /// Lists the review comments of the whole repository that changed since the cursor.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn review_comments(
        &self,
        repo: &RepoRef,
        cursor: &Cursor,
    ) -> Result<Listing<ReviewComment>, GitHubError> {
        let path = format!("{}/pulls/comments", self.inner.endpoint.repo_path(repo)?);
        self.keyset(&path, "", cursor).await
    }

    /// Lists the open pull requests, latest change first: the first page, which shows every change.
    /// Further pages ([`more_pulls`](Self::more_pulls)) matter at first sight only.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn open_pulls(
        &self,
        repo: &RepoRef,
        etag: Option<&str>,
    ) -> Result<Listing<Pull>, GitHubError> {
        let url = format!(
            "{}/pulls?state=open&sort=updated&direction=desc",
            self.inner.endpoint.repo_path(repo)?
        );
        self.linked(&url, None, etag, Depth::FirstPage).await
    }

    /// Reads one more page of pull requests.
    ///
    /// # Errors
    /// Any [`GitHubError`]; [`GitHubError::Moved`] when the link leads to another host.
    pub async fn more_pulls(&self, page: &NextPage) -> Result<Elements<Pull>, GitHubError> {
        self.next_page(page).await
    }
}
