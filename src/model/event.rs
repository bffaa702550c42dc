//! Events: what happened on GitHub, the same from every ingress.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Login, OperatorCommand, RepoRef, WorkItemRef};

/// Which ingress saw an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The poller.
    Poll,
    /// The webhook receiver.
    GhWebhook,
    /// The command line.
    Cli,
}

impl Source {
    /// Returns the source as log and store write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::GhWebhook => "gh-webhook",
            Self::Cli => "cli",
        }
    }
}

/// Whether a number names an issue or a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// An issue.
    Issue,
    /// A pull request.
    PullRequest,
}

impl ItemKind {
    /// Returns the kind as log and store write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::PullRequest => "pull-request",
        }
    }
}

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A comment in the conversation of an issue or pull request.
    IssueComment,
    /// A review of a pull request.
    Review,
    /// A comment on a line of a pull request.
    ReviewComment,
    /// A finished run of a GitHub Actions workflow.
    WorkflowRun,
    /// A finished check of another app.
    CheckRun,
    /// A commit status of an external CI.
    Status,
    /// The item was armed: labelled, or seen open where every item is armed.
    Armed,
    /// The issue was closed, or the pull request closed or merged.
    Closed,
    /// A command given on this machine.
    Command,
}

impl EventKind {
    /// Returns the kind as keys, log and store write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IssueComment => "issue_comment",
            Self::Review => "review",
            Self::ReviewComment => "review_comment",
            Self::WorkflowRun => "workflow_run",
            Self::CheckRun => "check_run",
            Self::Status => "status",
            Self::Armed => "armed",
            Self::Closed => "closed",
            Self::Command => "command",
        }
    }

    /// Tells whether the event is a text that somebody wrote.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Self::IssueComment | Self::Review | Self::ReviewComment
        )
    }

    /// Tells whether the event is a verdict of CI, the only kind that may lack an actor.
    #[must_use]
    pub fn is_ci(self) -> bool {
        matches!(self, Self::WorkflowRun | Self::CheckRun | Self::Status)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The identity of one version of one GitHub object: `<host>:<kind>:<id>@<version>`.
///
/// The same from every ingress, so a comment that two of them see is one event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKey(String);

impl EventKey {
    /// Makes the key of an object's version.
    #[must_use]
    pub fn new(host: &str, kind: EventKind, id: &str, version: &str) -> Self {
        Self(format!(
            "{}:{kind}:{id}@{version}",
            host.to_ascii_lowercase()
        ))
    }

    /// Reads a key back from the store.
    #[must_use]
    pub fn from_stored(key: String) -> Self {
        Self(key)
    }

    /// Returns the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the object's number, where GitHub numbers such objects: later ones have greater numbers.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.object().rsplit_once(':')?.1.parse().ok()
    }

    /// Returns the key without its version: what all versions of one object share.
    #[must_use]
    pub fn object(&self) -> &str {
        self.0
            .rsplit_once('@')
            .map_or(self.0.as_str(), |(object, _)| object)
    }
}

/// Returns the version of a text object: the first 16 hex digits of the SHA-256 of its state and its
/// LF-normalised body.
///
/// The time of the last update is no version: it moves without an edit and ticks in seconds.
#[must_use]
pub fn content_version(state: &str, body: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(state.as_bytes());
    hash.update([0]);
    hash.update(super::text::lf(body).as_bytes());
    hex::encode(&hash.finalize()[..8])
}

/// Whether a text was changed after it was written, and by whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Edit {
    /// It stands as its author wrote it.
    #[default]
    Never,
    /// This account changed it last.
    By(Login),
    /// It was changed, and who did it cannot be learned: nobody.
    ByNobody,
}

/// What only some kinds of events have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "detail",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Detail {
    /// Nothing more.
    None,
    /// The verdict of a review and the review's id.
    Review {
        /// `approved`, `changes_requested`, `commented` or `dismissed`.
        state: String,
        /// The review's number on GitHub.
        review_id: u64,
    },
    /// Where a review comment stands.
    Line {
        /// The review that the comment belongs to.
        review_id: Option<u64>,
        /// The file.
        path: String,
        /// The line, where GitHub still knows it.
        line: Option<u64>,
        /// The hunk that GitHub shows above the comment.
        diff_hunk: String,
    },
    /// What CI said about which commit.
    Ci {
        /// The name of the workflow, check or status context.
        name: String,
        /// `failure`, `timed_out`, `error`, …
        conclusion: String,
        /// The commit.
        head_sha: String,
        /// The branch, where known.
        head_branch: Option<String>,
        /// The run's attempt, for workflow runs.
        attempt: Option<u64>,
        /// What the check says of itself; text of whoever wrote the workflow.
        summary: String,
    },
    /// How the item ended.
    Closed {
        /// Whether a pull request was merged.
        merged: bool,
    },
    /// A command of an operator.
    Command {
        /// Which one.
        command: OperatorCommand,
    },
}

/// One thing that happened on GitHub (or a command on this machine), ready to be judged and told.
///
/// Stored as JSON in the event's row; fields may be added with a default, never change meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its identity.
    pub key: EventKey,
    /// Its kind.
    pub kind: EventKind,
    /// The repository it happened in.
    pub repo: RepoRef,
    /// The repository's number on GitHub, which survives a rename.
    pub repo_id: Option<u64>,
    /// The issue or pull request it happened on.
    pub number: u64,
    /// Which of the two that is.
    pub on: ItemKind,
    /// Who did the act; a deleted account is nobody.
    pub actor: Option<Login>,
    /// Whether somebody changed the text after it was written.
    #[serde(default)]
    pub edit: Edit,
    /// The title of the issue or pull request; text of its author.
    pub title: String,
    /// The text of the act itself, LF-normalised; empty where there is none.
    pub body: String,
    /// Where a person reads it.
    pub url: String,
    /// When it happened, by GitHub's clock.
    pub occurred_at: DateTime<Utc>,
    /// What only its kind has.
    pub detail: Detail,
}

impl Event {
    /// Returns the issue or pull request it happened on, which may be bound to another work item.
    #[must_use]
    pub fn item(&self) -> WorkItemRef {
        self.repo.item(self.number)
    }

    /// Returns the id that all rows of one review share.
    #[must_use]
    pub fn review_id(&self) -> Option<u64> {
        match self.detail {
            Detail::Review { review_id, .. } => Some(review_id),
            Detail::Line { review_id, .. } => review_id,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_follows_content_and_ignores_line_ends() {
        assert_eq!(content_version("", "a\r\nb"), content_version("", "a\nb"));
        assert_ne!(content_version("", "a"), content_version("", "b"));
        assert_ne!(
            content_version("approved", "a"),
            content_version("commented", "a")
        );
        assert_eq!(content_version("", "a").len(), 16);
    }

    #[test]
    fn all_versions_of_an_object_share_its_name() {
        let key = EventKey::new(
            "GitHub.com",
            EventKind::IssueComment,
            "2451",
            "0011223344556677",
        );
        assert_eq!(
            key.as_str(),
            "github.com:issue_comment:2451@0011223344556677"
        );
        assert_eq!(key.object(), "github.com:issue_comment:2451");
        assert_eq!(key.number(), Some(2451));
        let unnumbered = EventKey::new("github.com", EventKind::Armed, "octo/app#15", "1");
        assert_eq!(unnumbered.number(), None);
    }

    #[test]
    fn a_text_is_somebodys_and_a_verdict_is_of_ci() {
        for (kind, is_text, is_ci) in [
            (EventKind::IssueComment, true, false),
            (EventKind::Review, true, false),
            (EventKind::ReviewComment, true, false),
            (EventKind::WorkflowRun, false, true),
            (EventKind::CheckRun, false, true),
            (EventKind::Status, false, true),
            (EventKind::Armed, false, false),
            (EventKind::Closed, false, false),
            (EventKind::Command, false, false),
        ] {
            assert_eq!((kind.is_text(), kind.is_ci()), (is_text, is_ci), "{kind}");
        }
    }
}
