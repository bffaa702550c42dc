//! What can be read.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::lists::{self, Asks, Page, page};
use super::respond::Answer;
use super::world::{Fate, Item, Repo, World};

impl World {
    /// Answers a GET below a repository.
    pub(super) fn read(&self, repo: &Repo, rest: &[&str], asks: &Asks) -> Answer {
        match rest {
            [] => Answer::ok(self.repository(repo)),
            ["issues"] => {
                let found = lists::issues(repo, asks);
                Answer::list(page(&found, asks, |item| self.issue(repo, item)))
            }
            ["issues", "comments"] => {
                let found = lists::texts(repo.comments.iter(), asks, |comment| &comment.text);
                Answer::list(page(&found, asks, |(id, one)| self.comment(repo, *id, one)))
            }
            ["issues", "comments", id] => {
                let id = id.parse().unwrap_or(0);
                let found = repo.comments.get(&id);
                found.map_or_else(Answer::not_found, |one| {
                    Answer::ok(self.comment(repo, id, one))
                })
            }
            ["issues", number, part @ ..] => self.item(repo, number, |item| match part {
                [] => Answer::ok(self.issue(repo, item)),
                ["comments"] => self.comments_of(repo, item, asks),
                ["events"] => Answer::list(page(&item.events, asks, |event| self.event(event))),
                _ => Answer::not_found(),
            }),
            ["pulls"] => {
                let found = lists::pulls(repo, asks);
                Answer::list(page(&found, asks, |(item, pull)| {
                    self.pull(repo, item, pull)
                }))
            }
            ["pulls", "comments"] => {
                let all = repo.review_comments.iter();
                let found = lists::texts(all, asks, |comment| &comment.text);
                Answer::list(page(&found, asks, |(id, one)| {
                    self.review_comment(repo, *id, one)
                }))
            }
            ["pulls", number, part @ ..] => {
                self.item(repo, number, |item| match (&item.pull, part) {
                    (Some(pull), []) => Answer::ok(self.pull(repo, item, pull)),
                    (Some(_), ["reviews"]) => self.reviews_of(repo, item, asks),
                    (Some(_), ["comments"]) => self.review_comments_of(repo, item, asks),
                    _ => Answer::not_found(),
                })
            }
            ["actions", "runs"] => self.runs(repo, asks),
            ["commits", sha, "check-runs"] => self.checks(repo, sha, asks),
            ["commits", sha, "status"] => self.statuses(repo, sha, asks),
            _ => Answer::not_found(),
        }
    }

    fn item(&self, repo: &Repo, number: &str, found: impl FnOnce(&Item) -> Answer) -> Answer {
        let number: u64 = number.parse().unwrap_or(0);
        match repo.items.get(&number) {
            None => Answer::not_found(),
            Some(item) => match &item.fate {
                Fate::Here => found(item),
                Fate::Refused(status) => Answer::refusal(*status, "This issue was deleted"),
                Fate::Moved(repo, number) => Answer::moved(
                    StatusCode::MOVED_PERMANENTLY,
                    format!("{}/repositories/{repo}/issues/{number}", self.base),
                ),
            },
        }
    }

    fn comments_of(&self, repo: &Repo, item: &Item, asks: &Asks) -> Answer {
        let all = repo
            .comments
            .iter()
            .filter(|(_, one)| one.number == item.number);
        let found = lists::texts(all, asks, |comment| &comment.text);
        Answer::list(page(&found, asks, |(id, one)| self.comment(repo, *id, one)))
    }

    fn reviews_of(&self, repo: &Repo, item: &Item, asks: &Asks) -> Answer {
        let all = repo.reviews.iter();
        let found: Vec<_> = all.filter(|(_, one)| one.number == item.number).collect();
        Answer::list(page(&found, asks, |(id, one)| self.review(repo, **id, one)))
    }

    fn review_comments_of(&self, repo: &Repo, item: &Item, asks: &Asks) -> Answer {
        let all = repo.review_comments.iter();
        let all = all.filter(|(_, one)| one.number == item.number);
        let found = lists::texts(all, asks, |comment| &comment.text);
        Answer::list(page(&found, asks, |(id, one)| {
            self.review_comment(repo, *id, one)
        }))
    }

    /// Newest first, as GitHub lists runs.
    fn runs(&self, repo: &Repo, asks: &Asks) -> Answer {
        let wanted = |name: &str, value: &str| asks.get(name).is_none_or(|asked| asked == value);
        let found: Vec<_> = repo
            .runs
            .iter()
            .rev()
            .filter(|(_, known)| wanted("head_sha", &known.run.head_sha))
            .filter(|(_, known)| wanted("branch", known.run.head_branch.as_deref().unwrap_or("")))
            .filter(|(_, known)| {
                wanted("status", &known.run.status)
                    || wanted("status", known.run.conclusion.as_deref().unwrap_or(""))
            })
            .collect();
        wrapped(
            page(&found, asks, |(id, known)| self.run(repo, **id, known)),
            "workflow_runs",
        )
    }

    fn checks(&self, repo: &Repo, sha: &str, asks: &Asks) -> Answer {
        let all = repo.checks.iter().rev();
        let found: Vec<_> = all
            .filter(|(_, known)| known.check.head_sha == sha)
            .collect();
        wrapped(
            page(&found, asks, |(id, known)| self.check(repo, **id, known)),
            "check_runs",
        )
    }

    /// The latest status of each context, and what they say together.
    fn statuses(&self, repo: &Repo, sha: &str, asks: &Asks) -> Answer {
        let mut found: Vec<(&u64, &super::world::Status)> = Vec::new();
        for (id, status) in repo.statuses.iter().rev() {
            let known =
                |(_, other): &(&u64, &super::world::Status)| other.context == status.context;
            if status.sha == sha && !found.iter().any(known) {
                found.push((id, status));
            }
        }
        let any = |states: &[&str]| {
            found
                .iter()
                .any(|(_, one)| states.contains(&one.state.as_str()))
        };
        let state = if any(&["failure", "error"]) {
            "failure"
        } else if found.is_empty() || any(&["pending"]) {
            "pending"
        } else {
            "success"
        };
        let mut answer = wrapped(
            page(&found, asks, |(id, one)| self.status(**id, one)),
            "statuses",
        );
        answer.body["state"] = json!(state);
        answer.body["sha"] = json!(sha);
        answer
    }

    /// Answers a GET outside any repository.
    pub(super) fn read_other(&self, segments: &[&str]) -> Answer {
        match segments {
            ["user"] => Answer::ok(self.user(&self.viewer)),
            ["rate_limit"] => match self.budget.0 {
                Some((limit, remaining)) => {
                    let core = json!({
                        "limit": limit,
                        "remaining": remaining,
                        "used": limit.saturating_sub(remaining),
                        "reset": self.reset_at(),
                    });
                    Answer::ok(json!({ "resources": { "core": core }, "rate": core }))
                }
                None => Answer::refusal(StatusCode::NOT_FOUND, "Rate limiting is not enabled."),
            },
            _ => Answer::not_found(),
        }
    }
}

fn wrapped(mut page: Page, key: &str) -> Answer {
    let elements = std::mem::take(&mut page.elements);
    let mut answer = Answer::list(page);
    let total = answer.page.as_ref().map_or(0, |page| page.total);
    let mut body = json!({ "total_count": total });
    body[key] = Value::Array(elements);
    answer.body = body;
    answer
}
