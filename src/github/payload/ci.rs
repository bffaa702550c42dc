//! What CI says about commits.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Repository, Tip, User};

object! {
    /// A run of a GitHub Actions workflow.
    WorkflowRun {
        required {
            /// Its id; all attempts share it.
            id: u64,
        }
        optional {
            /// The workflow's name.
            name: String,
            /// What the run is called, often the commit's title.
            display_title: String,
            /// The branch; None for some forks.
            head_branch: String,
            /// The commit.
            head_sha: String,
            /// Which attempt this is, from 1.
            run_attempt: u64,
            /// `queued`, `in_progress`, `completed`, …
            status: String,
            /// `success`, `failure`, `cancelled`, …; None until completed.
            conclusion: String,
            /// What started it.
            event: String,
            /// Who started it.
            actor: User,
            /// Where people read it.
            html_url: String,
            /// When it began.
            created_at: DateTime<Utc>,
            /// When it last changed.
            updated_at: DateTime<Utc>,
            /// The repository of the commit.
            head_repository: Repository,
            /// Pull requests with this head; empty for forks.
            pull_requests: Vec<PullLink>,
        }
    }
}

object! {
    /// A pull request as CI objects name it; may belong to another repository.
    PullLink {
        required {
            /// The number in its repository.
            number: u64,
        }
        optional {
            /// Into what it is to be merged.
            base: Tip,
        }
    }
}

object! {
    /// A check of an app.
    CheckRun {
        required {
            /// Its id.
            id: u64,
        }
        optional {
            /// Its name.
            name: String,
            /// The commit.
            head_sha: String,
            /// `queued`, `in_progress`, `completed`, …
            status: String,
            /// `success`, `failure`, …; None until completed.
            conclusion: String,
            /// Where people read it.
            html_url: String,
            /// When it began.
            started_at: DateTime<Utc>,
            /// When it ended.
            completed_at: DateTime<Utc>,
            /// The app; `github-actions` repeats what workflow runs say.
            app: App,
            /// What it says of itself.
            output: CheckOutput,
            /// Pull requests with this head; empty for forks.
            pull_requests: Vec<PullLink>,
        }
    }
}

/// The app behind a check.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct App {
    /// Its name in addresses.
    pub slug: Option<String>,
}

/// What a check says of itself.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct CheckOutput {
    /// In a few words.
    pub title: Option<String>,
    /// At length.
    pub summary: Option<String>,
}

object! {
    /// A commit status of an external CI.
    CommitStatus {
        required {
            /// Its id.
            id: u64,
        }
        optional {
            /// Which CI says so.
            context: String,
            /// `pending`, `success`, `failure` or `error`.
            state: String,
            /// What it says of itself.
            description: String,
            /// Where people read more.
            target_url: String,
            /// When it was set.
            created_at: DateTime<Utc>,
            /// When it last changed.
            updated_at: DateTime<Utc>,
        }
    }
}
