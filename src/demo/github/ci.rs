//! What CI does: workflow runs, commit statuses, checks.

use super::LocalGitHub;
use super::world::{CheckRun, Status, WorkflowRun};

/// A workflow run, as it is reported.
#[derive(Debug, Clone)]
pub struct Run {
    /// The workflow's name.
    pub name: String,
    /// The branch; None for some forks.
    pub head_branch: Option<String>,
    /// The commit.
    pub head_sha: String,
    /// Which attempt this is.
    pub attempt: u64,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    /// `success`, `failure`, …; None until completed.
    pub conclusion: Option<String>,
    /// Who started it.
    pub actor: String,
    /// The repository of the commit, where it is a fork.
    pub fork: Option<String>,
}

impl Run {
    /// Returns a completed run of the workflow `CI`.
    #[must_use]
    pub fn completed(head_branch: &str, head_sha: &str, conclusion: &str) -> Self {
        Self {
            name: "CI".to_owned(),
            head_branch: Some(head_branch.to_owned()),
            head_sha: head_sha.to_owned(),
            attempt: 1,
            status: "completed".to_owned(),
            conclusion: Some(conclusion.to_owned()),
            actor: "octocat".to_owned(),
            fork: None,
        }
    }
}

/// A check of an app, as it is reported.
#[derive(Debug, Clone)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The app's name in addresses; `github-actions` for the jobs of workflow runs.
    pub app: String,
    /// The commit.
    pub head_sha: String,
    /// None while it runs.
    pub conclusion: Option<String>,
    /// What it says of itself, in a few words.
    pub title: String,
    /// What it says of itself, at length.
    pub summary: String,
}

impl LocalGitHub {
    /// Adds a workflow run and returns its id.
    pub fn workflow_run(&self, repo: &str, run: Run) -> u64 {
        let world = &mut *self.world();
        world.account(&run.actor);
        let (id, now) = (world.next_id(), world.now());
        let run = WorkflowRun {
            run,
            created: now,
            updated: now,
        };
        world.repo_or_new(repo).runs.insert(id, run);
        world.happens();
        id
    }

    /// Changes a workflow run: it ends, or runs again as another attempt.
    pub fn update_run(&self, repo: &str, id: u64, change: impl FnOnce(&mut Run)) {
        let world = &mut *self.world();
        let now = world.now();
        if let Some(known) = world.repo_or_new(repo).runs.get_mut(&id) {
            change(&mut known.run);
            known.updated = now;
        }
        world.happens();
    }

    /// Sets a commit status and returns its id; each call is a new one, the latest of a context counts.
    pub fn status(&self, repo: &str, sha: &str, context: &str, state: &str, text: &str) -> u64 {
        let world = &mut *self.world();
        let (id, at) = (world.next_id(), world.now());
        let status = Status {
            sha: sha.to_owned(),
            context: context.to_owned(),
            state: state.to_owned(),
            description: text.to_owned(),
            at,
        };
        world.repo_or_new(repo).statuses.insert(id, status);
        world.happens();
        id
    }

    /// Adds a check and returns its id.
    pub fn check_run(&self, repo: &str, check: Check) -> u64 {
        let world = &mut *self.world();
        let (id, at) = (world.next_id(), world.now());
        world
            .repo_or_new(repo)
            .checks
            .insert(id, CheckRun { check, at });
        world.happens();
        id
    }
}
