//! GitHub's objects as routing wants them: plain fields, nothing of the API's shape.

use chrono::{DateTime, Utc};

use crate::github::payload::{
    CheckRun, Comment, CommitStatus, Review, ReviewComment, WorkflowRun, login,
};
use crate::model::{Edit, Event};
use crate::routing::payload::{self, CiInput, ItemInput, LineInput, TextInput};
use crate::store::ItemRow;

/// Returns what routing needs to know of a work item.
pub(super) fn item(row: &ItemRow) -> ItemInput {
    ItemInput {
        repo: row.item.repo().clone(),
        repo_id: row.repo_id,
        number: row.item.number(),
        on: row.kind,
        title: row.title.clone(),
        url: row.url.clone(),
    }
}

/// A text that somebody wrote, of one of three kinds.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// What routing needs.
    input: TextInput,
    /// Its id in GraphQL.
    pub(super) node_id: Option<String>,
    /// When it was touched last; also moves without an edit.
    pub(super) updated_at: DateTime<Utc>,
    kind: TextKind,
}

#[derive(Debug, Clone)]
enum TextKind {
    Comment,
    Line(LineInput),
    Review { state: String },
}

/// Takes what all kinds of texts have in common out of GitHub's object.
macro_rules! written {
    ($object:ident, $created_at:ident) => {
        TextInput {
            id: $object.id,
            body: $object.body.clone().unwrap_or_default(),
            author: login($object.user.as_ref()),
            edit: Edit::Never,
            url: $object.html_url.clone().unwrap_or_default(),
            created_at: $created_at,
        }
    };
}

impl Text {
    /// Reads a conversation comment; none where GitHub left out when it was written.
    pub(super) fn of_comment(comment: &Comment) -> Option<Self> {
        let created_at = comment.created_at?;
        Some(Self {
            input: written!(comment, created_at),
            node_id: comment.node_id.clone(),
            updated_at: comment.updated_at.unwrap_or(created_at),
            kind: TextKind::Comment,
        })
    }

    /// Reads a comment on a line.
    pub(super) fn of_review_comment(comment: &ReviewComment) -> Option<Self> {
        let created_at = comment.created_at?;
        Some(Self {
            input: written!(comment, created_at),
            node_id: comment.node_id.clone(),
            updated_at: comment.updated_at.unwrap_or(created_at),
            kind: TextKind::Line(LineInput {
                review_id: comment.pull_request_review_id,
                path: comment.path.clone().unwrap_or_default(),
                line: comment.line.or(comment.original_line),
                diff_hunk: comment.diff_hunk.clone().unwrap_or_default(),
            }),
        })
    }

    /// Reads a review; none while it is a draft.
    pub(super) fn of_review(review: &Review) -> Option<Self> {
        let submitted_at = review.submitted_at?;
        Some(Self {
            input: written!(review, submitted_at),
            node_id: review.node_id.clone(),
            updated_at: submitted_at,
            kind: TextKind::Review {
                state: review.state.clone().unwrap_or_default(),
            },
        })
    }

    /// Tells whether it may have been changed after it was written.
    ///
    /// A review does not say when it was touched: each that says something may have been.
    pub(super) fn may_be_edited(&self) -> bool {
        match self.kind {
            TextKind::Comment | TextKind::Line(_) => self.updated_at != self.input.created_at,
            TextKind::Review { .. } => !self.input.body.trim().is_empty(),
        }
    }

    /// Returns it with what was learned about its edit.
    pub(super) fn with_edit(mut self, edit: Edit) -> Self {
        self.input.edit = edit;
        self
    }

    /// Makes the event; none for a review that is no act of its author (pending, dismissed).
    pub(super) fn event(&self, item: &ItemInput) -> Option<Event> {
        match &self.kind {
            TextKind::Comment => Some(payload::issue_comment(item, &self.input)),
            TextKind::Line(line) => Some(payload::review_comment(item, &self.input, line.clone())),
            TextKind::Review { state } => payload::review(item, &self.input, state),
        }
    }
}

/// Whether CI has finished with something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It still runs, or has not begun.
    Running,
    /// It has a result.
    Finished,
}

/// What CI says about a commit.
#[derive(Debug)]
pub(super) struct CiResult {
    pub(super) progress: Progress,
    /// When it last changed.
    pub(super) at: DateTime<Utc>,
    /// The event, where it is one: a failure.
    pub(super) event: Option<Event>,
}

/// Turns a run into a result; none for another commit, nor for a fork's run of the same commit, whose
/// title is a stranger's.
pub(super) fn workflow_run(run: &WorkflowRun, item: &ItemInput, sha: &str) -> Option<CiResult> {
    let home = run.head_repository.as_ref().map(|repository| repository.id);
    let is_foreign = home.is_some() && item.repo_id.is_some() && home != item.repo_id;
    if is_foreign || run.head_sha.as_deref() != Some(sha) {
        return None;
    }
    let input = CiInput {
        id: run.id,
        name: run
            .name
            .clone()
            .or_else(|| run.display_title.clone())
            .unwrap_or_default(),
        conclusion: run.conclusion.clone().unwrap_or_default(),
        head_sha: sha.to_owned(),
        head_branch: run.head_branch.clone(),
        summary: run.display_title.clone().unwrap_or_default(),
        actor: login(run.actor.as_ref()),
        url: run.html_url.clone().unwrap_or_default(),
        finished_at: at(run.updated_at.or(run.created_at)),
    };
    let finished = run.status.as_deref() == Some("completed");
    Some(result(finished, input.finished_at, || {
        payload::workflow_run(item, input, run.run_attempt.unwrap_or(1))
    }))
}

pub(super) fn status(status: &CommitStatus, item: &ItemInput, sha: &str) -> Option<CiResult> {
    let state = status.state.clone()?;
    let finished = state != "pending";
    let input = CiInput {
        id: status.id,
        name: status.context.clone().unwrap_or_default(),
        conclusion: state,
        head_sha: sha.to_owned(),
        head_branch: None,
        summary: status.description.clone().unwrap_or_default(),
        actor: None,
        url: status.target_url.clone().unwrap_or_default(),
        finished_at: at(status.updated_at.or(status.created_at)),
    };
    Some(result(finished, input.finished_at, || {
        payload::status(item, input)
    }))
}

/// Turns a check into a result; none for those of GitHub Actions, which repeat its workflow runs.
pub(super) fn check_run(check: &CheckRun, item: &ItemInput, sha: &str) -> Option<CiResult> {
    let app = check
        .app
        .as_ref()
        .and_then(|app| app.slug.clone())
        .unwrap_or_default();
    if app == "github-actions" || check.head_sha.as_deref() != Some(sha) {
        return None;
    }
    let said = check.output.as_ref();
    let summary = said.and_then(|output| output.summary.clone().or_else(|| output.title.clone()));
    let input = CiInput {
        id: check.id,
        name: check.name.clone().unwrap_or_default(),
        conclusion: check.conclusion.clone().unwrap_or_default(),
        head_sha: sha.to_owned(),
        head_branch: None,
        summary: summary.unwrap_or_default(),
        actor: None,
        url: check.html_url.clone().unwrap_or_default(),
        finished_at: at(check.completed_at.or(check.started_at)),
    };
    let finished = check.status.as_deref() == Some("completed");
    Some(result(finished, input.finished_at, || {
        payload::check_run(item, input, &app)
    }))
}

fn result(finished: bool, at: DateTime<Utc>, event: impl FnOnce() -> Option<Event>) -> CiResult {
    let (progress, event) = if finished {
        (Progress::Finished, event())
    } else {
        (Progress::Running, None)
    };
    CiResult {
        progress,
        at,
        event,
    }
}

fn at(time: Option<DateTime<Utc>>) -> DateTime<Utc> {
    time.unwrap_or(DateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ItemKind;

    fn pull_request() -> ItemInput {
        ItemInput {
            repo: "octo/app".parse().unwrap(),
            repo_id: Some(7),
            number: 20,
            on: ItemKind::PullRequest,
            title: String::new(),
            url: String::new(),
        }
    }

    #[test]
    fn a_review_may_have_been_edited_though_it_does_not_say_so() {
        let review =
            json!({"id": 1, "body": "the-loop stop", "submitted_at": "2026-01-30T12:00:00Z"});
        let review = Text::of_review(&serde_json::from_value(review).unwrap()).unwrap();
        assert!(review.may_be_edited());
    }

    #[test]
    fn a_forks_run_of_the_same_commit_is_no_verdict() {
        let result = |repository: u64| {
            let run = json!({
                "id": 1, "head_sha": "abc", "status": "completed", "conclusion": "failure",
                "display_title": "from a stranger", "head_repository": {"id": repository},
            });
            workflow_run(
                &serde_json::from_value(run).unwrap(),
                &pull_request(),
                "abc",
            )
        };
        assert!(result(7).is_some());
        assert!(result(8).is_none());
    }
}
