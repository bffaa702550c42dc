//! Issues and pull requests, and what people say on them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Label, Repository, User, last_number};

object! {
    /// An issue; the issues lists show pull requests as issues too.
    Issue {
        required {
            /// The number in its repository.
            number: u64,
        }
        optional {
            /// Its id, other than the pull request's.
            id: u64,
            /// Its id in GraphQL.
            node_id: String,
            /// Its title.
            title: String,
            /// `open` or `closed`.
            state: String,
            /// Its labels; None is not the same as none.
            labels: Vec<Label>,
            /// Who opened it.
            user: User,
            /// What they wrote.
            body: String,
            /// When it was opened.
            created_at: DateTime<Utc>,
            /// When anything about it changed.
            updated_at: DateTime<Utc>,
            /// When it was closed.
            closed_at: DateTime<Utc>,
            /// Who closed it; only where one issue is asked for.
            closed_by: User,
            /// How many comments it has.
            comments: u64,
            /// Where people read it.
            html_url: String,
            /// Its repository, which after a transfer is another one.
            repository_url: String,
            /// There if it is a pull request.
            pull_request: PullPart,
        }
    }
}

/// What an issue says about the pull request that it is.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct PullPart {
    /// When it was merged.
    pub merged_at: Option<DateTime<Utc>>,
}

object! {
    /// A comment in the conversation of an issue or pull request.
    Comment {
        required {
            /// Its id.
            id: u64,
        }
        optional {
            /// Its id in GraphQL.
            node_id: String,
            /// What it says.
            body: String,
            /// Who wrote it.
            user: User,
            /// When it was written.
            created_at: DateTime<Utc>,
            /// When it was touched; also moves without an edit.
            updated_at: DateTime<Utc>,
            /// Where people read it.
            html_url: String,
            /// The API address of its issue, which ends in the number.
            issue_url: String,
        }
    }
}

impl Comment {
    /// Returns the number of the issue or pull request.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        last_number(self.issue_url.as_deref()?)
    }
}

object! {
    /// A review of a pull request.
    Review {
        required {
            /// Its id.
            id: u64,
        }
        optional {
            /// Its id in GraphQL.
            node_id: String,
            /// Who gave it.
            user: User,
            /// What it says; often nothing.
            body: String,
            /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`; webhooks write
            /// them in lower case.
            state: String,
            /// When it was given; None while it is pending.
            submitted_at: DateTime<Utc>,
            /// Where people read it.
            html_url: String,
            /// The commit it is about.
            commit_id: String,
        }
    }
}

object! {
    /// A comment on a line of a pull request.
    ReviewComment {
        required {
            /// Its id.
            id: u64,
        }
        optional {
            /// Its id in GraphQL.
            node_id: String,
            /// The review that it belongs to.
            pull_request_review_id: u64,
            /// What it says.
            body: String,
            /// Who wrote it.
            user: User,
            /// When it was written.
            created_at: DateTime<Utc>,
            /// When it was touched.
            updated_at: DateTime<Utc>,
            /// Where people read it.
            html_url: String,
            /// The API address of its pull request, which ends in the number.
            pull_request_url: String,
            /// The file.
            path: String,
            /// The line; None when outdated, or when it is about the whole file.
            line: u64,
            /// The line when it was written.
            original_line: u64,
            /// The hunk that GitHub shows above it.
            diff_hunk: String,
            /// The comment that began its thread; None on that one.
            in_reply_to_id: u64,
        }
    }
}

impl ReviewComment {
    /// Returns the number of the pull request.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        last_number(self.pull_request_url.as_deref()?)
    }
}

object! {
    /// A pull request.
    Pull {
        required {
            /// The number in its repository.
            number: u64,
        }
        optional {
            /// Its id, other than the issue's.
            id: u64,
            /// Its id in GraphQL.
            node_id: String,
            /// Its title.
            title: String,
            /// `open` or `closed`.
            state: String,
            /// Whether it is a draft.
            draft: bool,
            /// Its labels.
            labels: Vec<Label>,
            /// Who opened it.
            user: User,
            /// What they wrote.
            body: String,
            /// When it was opened.
            created_at: DateTime<Utc>,
            /// When anything about it changed.
            updated_at: DateTime<Utc>,
            /// When it was closed.
            closed_at: DateTime<Utc>,
            /// When it was merged.
            merged_at: DateTime<Utc>,
            /// Where people read it.
            html_url: String,
            /// What is to be merged.
            head: Tip,
            /// Into what.
            base: Tip,
        }
    }
}

object! {
    /// One end of a pull request.
    Tip {
        required {
            /// The commit.
            sha: String,
        }
        optional {
            /// The branch.
            ("ref") branch: String,
            /// Its repository; None when that was deleted.
            repo: Repository,
        }
    }
}

object! {
    /// Something that happened to an issue: labelled, closed, …
    IssueEvent {
        required {
            /// Its id.
            id: u64,
        }
        optional {
            /// What happened: `labeled`, `unlabeled`, `closed`, `reopened`, …
            event: String,
            /// Who did it.
            actor: User,
            /// The label, for the two label events.
            label: Label,
            /// When.
            created_at: DateTime<Utc>,
        }
    }
}
