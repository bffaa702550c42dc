//! Objects as GitHub's API writes them.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::world::{
    CheckRun, Comment, Item, ItemEvent, PullPart, Repo, Review, ReviewComment, Status, Text,
    WorkflowRun, World,
};

/// Where people would read it.
const WEB: &str = "https://github.com";
/// A commit that every base branch stands at.
const BASE_SHA: &str = "0000000000000000000000000000000000000000";

pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl World {
    pub(super) fn user(&self, login: &str) -> Value {
        match self.users.get(&login.to_ascii_lowercase()) {
            Some(account) if account.deleted => Value::Null,
            Some(account) => json!({
                "id": account.id,
                "login": account.login,
                "type": if account.login.ends_with("[bot]") { "Bot" } else { "User" },
            }),
            None => json!({ "id": 99, "login": login, "type": "User" }),
        }
    }

    pub(super) fn repo_url(&self, repo: &Repo) -> String {
        format!("{}/repos/{}", self.base, repo.full_name())
    }

    pub(super) fn repository(&self, repo: &Repo) -> Value {
        json!({
            "id": repo.id,
            "name": repo.name,
            "full_name": repo.full_name(),
            "owner": self.user(&repo.owner),
            "private": false,
            "archived": repo.archived,
            "default_branch": "main",
            "html_url": format!("{WEB}/{}", repo.full_name()),
            "url": self.repo_url(repo),
        })
    }

    fn base_of_item(&self, repo: &Repo, item: &Item) -> Value {
        let labels: Vec<Value> = item
            .labels
            .iter()
            .map(|name| json!({ "name": name, "color": "ededed", "description": null }))
            .collect();
        json!({
            "number": item.number,
            "node_id": format!("I_{}", item.id),
            "title": item.title,
            "state": if item.closed.is_some() { "closed" } else { "open" },
            "locked": false,
            "labels": labels,
            "user": self.user(&item.text.author),
            "body": item.text.body,
            "created_at": time(item.text.created),
            "closed_at": item.closed.as_ref().map(|(at, _)| time(*at)),
            "author_association": "NONE",
            "html_url": format!("{WEB}/{}/{}/{}", repo.full_name(),
                if item.pull.is_some() { "pull" } else { "issues" }, item.number),
        })
    }

    pub(super) fn issue(&self, repo: &Repo, item: &Item) -> Value {
        let mut issue = self.base_of_item(repo, item);
        let here = self.repo_url(repo);
        issue["id"] = json!(item.id);
        issue["updated_at"] = json!(time(item.text.updated));
        issue["url"] = json!(format!("{here}/issues/{}", item.number));
        issue["repository_url"] = json!(here);
        let comments = repo.comments.values();
        issue["comments"] = json!(
            comments
                .filter(|comment| comment.number == item.number)
                .count()
        );
        issue["closed_by"] = item
            .closed
            .as_ref()
            .map_or(Value::Null, |(_, login)| self.user(login));
        if let Some(pull) = &item.pull {
            issue["pull_request"] = json!({
                "url": format!("{here}/pulls/{}", item.number),
                "merged_at": pull.merged.map(time),
            });
        }
        issue
    }

    pub(super) fn pull(&self, repo: &Repo, item: &Item, pull: &PullPart) -> Value {
        let mut rendered = self.base_of_item(repo, item);
        let here = self.repo_url(repo);
        let head_repo = match &pull.fork {
            Some(fork) => json!({ "id": fork_id(fork), "full_name": fork, "fork": true }),
            None => self.repository(repo),
        };
        let owner = pull.fork.as_deref().and_then(|fork| fork.split('/').next());
        rendered["id"] = json!(pull.id);
        rendered["node_id"] = json!(format!("PR_{}", item.id));
        rendered["updated_at"] = json!(time(pull.updated.max(item.text.updated)));
        rendered["url"] = json!(format!("{here}/pulls/{}", item.number));
        rendered["issue_url"] = json!(format!("{here}/issues/{}", item.number));
        rendered["draft"] = json!(pull.draft);
        rendered["merged_at"] = json!(pull.merged.map(time));
        rendered["head"] = json!({
            "label": format!("{}:{}", owner.unwrap_or(&repo.owner), pull.head_branch),
            "ref": pull.head_branch,
            "sha": pull.head_sha,
            "repo": head_repo,
        });
        rendered["base"] = json!({
            "label": format!("{}:{}", repo.owner, pull.base_branch),
            "ref": pull.base_branch,
            "sha": BASE_SHA,
            "repo": self.repository(repo),
        });
        rendered
    }

    fn text(&self, kind: &str, id: u64, text: &Text) -> Value {
        json!({
            "id": id,
            "node_id": format!("{kind}_{id}"),
            "user": self.user(&text.author),
            "body": text.body,
            "author_association": "NONE",
            "created_at": time(text.created),
            "updated_at": time(text.updated),
        })
    }

    pub(super) fn comment(&self, repo: &Repo, id: u64, comment: &Comment) -> Value {
        let mut rendered = self.text("IC", id, &comment.text);
        let (here, number) = (self.repo_url(repo), comment.number);
        rendered["url"] = json!(format!("{here}/issues/comments/{id}"));
        rendered["issue_url"] = json!(format!("{here}/issues/{number}"));
        rendered["html_url"] = json!(format!(
            "{WEB}/{}/issues/{number}#issuecomment-{id}",
            repo.full_name()
        ));
        rendered
    }

    pub(super) fn review(&self, repo: &Repo, id: u64, review: &Review) -> Value {
        json!({
            "id": id,
            "node_id": format!("PRR_{id}"),
            "user": self.user(&review.text.author),
            "body": review.text.body,
            "state": review.state,
            "submitted_at": time(review.text.created),
            "commit_id": review.commit,
            "author_association": "NONE",
            "pull_request_url": format!("{}/pulls/{}", self.repo_url(repo), review.number),
            "html_url": format!("{WEB}/{}/pull/{}#pullrequestreview-{id}", repo.full_name(), review.number),
        })
    }

    pub(super) fn review_comment(&self, repo: &Repo, id: u64, comment: &ReviewComment) -> Value {
        let mut rendered = self.text("PRRC", id, &comment.text);
        let (here, number) = (self.repo_url(repo), comment.number);
        rendered["pull_request_review_id"] = json!(comment.review);
        rendered["path"] = json!(comment.path);
        rendered["line"] = json!(comment.line);
        rendered["original_line"] = json!(comment.line);
        rendered["side"] = json!("RIGHT");
        rendered["subject_type"] = json!("line");
        rendered["diff_hunk"] = json!("@@ -1,2 +1,2 @@\n-old\n+new");
        rendered["url"] = json!(format!("{here}/pulls/comments/{id}"));
        rendered["pull_request_url"] = json!(format!("{here}/pulls/{number}"));
        rendered["html_url"] = json!(format!(
            "{WEB}/{}/pull/{number}#discussion_r{id}",
            repo.full_name()
        ));
        if let Some(root) = comment.reply_to {
            rendered["in_reply_to_id"] = json!(root);
        }
        rendered
    }

    pub(super) fn event(&self, event: &ItemEvent) -> Value {
        let mut rendered = json!({
            "id": event.id,
            "event": event.what,
            "actor": self.user(&event.actor),
            "created_at": time(event.at),
        });
        if let Some(label) = &event.label {
            rendered["label"] = json!({ "name": label, "color": "ededed" });
        }
        rendered
    }

    pub(super) fn run(&self, repo: &Repo, id: u64, known: &WorkflowRun) -> Value {
        let run = &known.run;
        let head_repository = match &run.fork {
            Some(fork) => json!({ "id": fork_id(fork), "full_name": fork }),
            None => json!({ "id": repo.id, "full_name": repo.full_name() }),
        };
        let pulls = match run.fork {
            Some(_) => Vec::new(),
            None => self.pull_links(repo, &run.head_sha),
        };
        json!({
            "id": id,
            "name": run.name,
            "display_title": run.name,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
            "run_attempt": run.attempt,
            "status": run.status,
            "conclusion": run.conclusion,
            "event": "pull_request",
            "actor": self.user(&run.actor),
            "triggering_actor": self.user(&run.actor),
            "html_url": format!("{WEB}/{}/actions/runs/{id}", repo.full_name()),
            "created_at": time(known.created),
            "updated_at": time(known.updated),
            "repository": { "id": repo.id, "full_name": repo.full_name() },
            "head_repository": head_repository,
            "pull_requests": pulls,
        })
    }

    pub(super) fn check(&self, repo: &Repo, id: u64, known: &CheckRun) -> Value {
        let check = &known.check;
        let done = check.conclusion.is_some();
        json!({
            "id": id,
            "name": check.name,
            "head_sha": check.head_sha,
            "status": if done { "completed" } else { "in_progress" },
            "conclusion": check.conclusion,
            "started_at": time(known.at),
            "completed_at": done.then(|| time(known.at)),
            "html_url": format!("{WEB}/{}/runs/{id}", repo.full_name()),
            "app": { "slug": check.app },
            "output": { "title": check.title, "summary": check.summary },
            "pull_requests": self.pull_links(repo, &check.head_sha),
        })
    }

    pub(super) fn status(&self, id: u64, status: &Status) -> Value {
        json!({
            "id": id,
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": format!("https://ci.example/{id}"),
            "created_at": time(status.at),
            "updated_at": time(status.at),
        })
    }

    fn pull_links(&self, repo: &Repo, sha: &str) -> Vec<Value> {
        let link = |item: &Item| {
            let pull = item.pull.as_ref()?;
            let open_here = pull.fork.is_none() && item.closed.is_none();
            (open_here && pull.head_sha == sha).then(|| {
                json!({
                    "id": pull.id,
                    "number": item.number,
                    "url": format!("{}/pulls/{}", self.repo_url(repo), item.number),
                    "head": { "ref": pull.head_branch, "sha": sha, "repo": { "id": repo.id } },
                    "base": { "ref": pull.base_branch, "sha": BASE_SHA, "repo": { "id": repo.id } },
                })
            })
        };
        repo.items.values().filter_map(link).collect()
    }
}

/// Gives a fork, which is no repository of this server, an id of its own.
fn fork_id(full_name: &str) -> u64 {
    let hash = |hash: u64, byte: u8| hash.wrapping_mul(31).wrapping_add(u64::from(byte));
    1_000_000_000 + full_name.bytes().fold(7, hash) % 1_000_000_000
}
