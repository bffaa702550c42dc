//! Makes events of what GitHub's API shows; the same from every ingress, so that keys agree.
//!
//! The inputs are plain fields: this module knows nothing of requests and of the shapes of answers.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::model::text::lf;
use crate::model::{
    Detail, Edit, Event, EventKey, EventKind, ItemKind, Login, RepoRef, content_version,
};

/// The issue or pull request that something happened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemInput {
    /// Its repository.
    pub repo: RepoRef,
    /// The repository's number on GitHub.
    pub repo_id: Option<u64>,
    /// Its own number.
    pub number: u64,
    /// Which of the two it is.
    pub on: ItemKind,
    /// Its title.
    pub title: String,
    /// Where a person reads it.
    pub url: String,
}

/// A comment or review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextInput {
    /// Its number on GitHub.
    pub id: u64,
    /// Its text; GitHub's null is empty.
    pub body: String,
    /// Who wrote it; a deleted account is nobody.
    pub author: Option<Login>,
    /// Whether somebody changed it since.
    pub edit: Edit,
    /// Where a person reads it.
    pub url: String,
    /// When it was written.
    pub created_at: DateTime<Utc>,
}

/// Where a review comment stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineInput {
    /// The review that it belongs to.
    pub review_id: Option<u64>,
    /// The file.
    pub path: String,
    /// The line, where GitHub still knows it.
    pub line: Option<u64>,
    /// The hunk above the comment.
    pub diff_hunk: String,
}

/// A finished run, check or status of a pull request's head.
///
/// Whoever makes one has seen that the head is the current one and lies in the same repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiInput {
    /// Its number on GitHub.
    pub id: u64,
    /// The workflow's, check's or context's name.
    pub name: String,
    /// GitHub's `conclusion`, or the `state` of a status.
    pub conclusion: String,
    /// The commit.
    pub head_sha: String,
    /// The branch, where known.
    pub head_branch: Option<String>,
    /// What it says of itself.
    pub summary: String,
    /// Who caused it, where GitHub tells.
    pub actor: Option<Login>,
    /// Where a person reads it.
    pub url: String,
    /// When it finished.
    pub finished_at: DateTime<Utc>,
}

/// Makes the event of a comment in the conversation.
#[must_use]
pub fn issue_comment(item: &ItemInput, text: &TextInput) -> Event {
    text_event(item, EventKind::IssueComment, text, "", Detail::None)
}

/// Makes the event of a review; none for one that is not submitted yet or was dismissed.
///
/// A dismissal is an act of somebody else on words that were said before.
#[must_use]
pub fn review(item: &ItemInput, text: &TextInput, state: &str) -> Option<Event> {
    // REST shows the state in capitals, webhooks do not.
    let state = state.to_ascii_lowercase();
    if matches!(state.as_str(), "pending" | "dismissed") {
        return None;
    }
    let detail = Detail::Review {
        state: state.clone(),
        review_id: text.id,
    };
    Some(text_event(item, EventKind::Review, text, &state, detail))
}

/// Makes the event of a comment on a line.
#[must_use]
pub fn review_comment(item: &ItemInput, text: &TextInput, line: LineInput) -> Event {
    let detail = Detail::Line {
        review_id: line.review_id,
        path: line.path,
        line: line.line,
        diff_hunk: lf(&line.diff_hunk),
    };
    text_event(item, EventKind::ReviewComment, text, "", detail)
}

/// Makes the event of a workflow run that failed; none for any other.
#[must_use]
pub fn workflow_run(item: &ItemInput, run: CiInput, attempt: u64) -> Option<Event> {
    let key = EventKey::new(
        item.repo.host(),
        EventKind::WorkflowRun,
        &run.id.to_string(),
        &attempt.to_string(),
    );
    failed(&run.conclusion).then(|| ci_event(item, EventKind::WorkflowRun, key, run, Some(attempt)))
}

/// Makes the event of a check that failed; none for any other, nor for those of GitHub Actions, whose
/// workflow runs are events already.
#[must_use]
pub fn check_run(item: &ItemInput, check: CiInput, app: &str) -> Option<Event> {
    // A check can be run again under its number.
    let version = content_version(&check.conclusion, &instant(check.finished_at));
    let key = EventKey::new(
        item.repo.host(),
        EventKind::CheckRun,
        &check.id.to_string(),
        &version,
    );
    (app != "github-actions" && failed(&check.conclusion))
        .then(|| ci_event(item, EventKind::CheckRun, key, check, None))
}

/// Makes the event of a commit status that failed; none for any other.
#[must_use]
pub fn status(item: &ItemInput, status: CiInput) -> Option<Event> {
    // A status never changes: every report has a number of its own, and so no versions.
    let host = item.repo.host().to_ascii_lowercase();
    let key = EventKey::from_stored(format!("{host}:{}:{}", EventKind::Status, status.id));
    failed(&status.conclusion).then(|| ci_event(item, EventKind::Status, key, status, None))
}

fn failed(conclusion: &str) -> bool {
    matches!(
        conclusion,
        "failure" | "timed_out" | "startup_failure" | "error"
    )
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn text_event(
    item: &ItemInput,
    kind: EventKind,
    text: &TextInput,
    state: &str,
    detail: Detail,
) -> Event {
    let version = content_version(state, &text.body);
    Event {
        actor: text.author.clone(),
        edit: text.edit.clone(),
        body: lf(&text.body),
        url: text.url.clone(),
        detail,
        ..bare(
            item,
            kind,
            EventKey::new(item.repo.host(), kind, &text.id.to_string(), &version),
            text.created_at,
        )
    }
}

fn ci_event(
    item: &ItemInput,
    kind: EventKind,
    key: EventKey,
    ci: CiInput,
    attempt: Option<u64>,
) -> Event {
    let bare = bare(item, kind, key, ci.finished_at);
    Event {
        actor: ci.actor,
        url: ci.url,
        detail: Detail::Ci {
            name: ci.name,
            conclusion: ci.conclusion,
            head_sha: ci.head_sha,
            head_branch: ci.head_branch,
            attempt,
            summary: lf(&ci.summary),
        },
        ..bare
    }
}

fn bare(item: &ItemInput, kind: EventKind, key: EventKey, at: DateTime<Utc>) -> Event {
    Event {
        key,
        kind,
        repo: item.repo.clone(),
        repo_id: item.repo_id,
        number: item.number,
        on: item.on,
        actor: None,
        edit: Edit::Never,
        title: item.title.clone(),
        body: String::new(),
        url: String::new(),
        occurred_at: at,
        detail: Detail::None,
    }
}

#[cfg(test)]
mod tests;
