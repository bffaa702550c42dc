//! What can be written through the API, as the account that the token belongs to.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::respond::Answer;
use super::world::{Fate, World};

impl World {
    /// Answers a request that changes something below a repository.
    pub(super) fn write(
        &mut self,
        method: &Method,
        repo: &str,
        rest: &[&str],
        body: &Value,
    ) -> Answer {
        let viewer = self.viewer.clone();
        match (method.as_str(), rest) {
            ("POST", ["issues", number, "comments"]) => {
                let Some(text) = body["body"].as_str().filter(|text| !text.is_empty()) else {
                    return Answer::refusal(
                        StatusCode::UNPROCESSABLE_ENTITY,
                        "Body can't be blank",
                    );
                };
                self.on_item(repo, number, |world, number| {
                    let id = world.add_comment(repo, number, &viewer, text).ok()?;
                    let repo = world.repo(repo)?;
                    Some(world.comment(repo, id, repo.comments.get(&id)?))
                })
            }
            ("POST", ["issues", number, "labels"]) => {
                let labels = body["labels"].as_array().cloned().unwrap_or_default();
                self.on_item(repo, number, |world, number| {
                    for label in labels.iter().filter_map(Value::as_str) {
                        world.add_label(repo, number, &viewer, label).ok()?;
                    }
                    let repo = world.repo(repo)?;
                    Some(world.issue(repo, repo.items.get(&number)?)["labels"].take())
                })
                .with_status(StatusCode::OK)
            }
            ("DELETE", ["issues", number, "labels", label]) => self
                .on_item(repo, number, |world, number| {
                    world.remove_label(repo, number, &viewer, label).ok()?;
                    Some(json!([]))
                })
                .with_status(StatusCode::OK),
            ("POST", ["issues", "comments", id, "reactions"]) => self.react(
                repo,
                &viewer,
                body,
                |repo| &mut repo.comments,
                |one| &mut one.text,
                id,
            ),
            ("POST", ["pulls", "comments", id, "reactions"]) => self.react(
                repo,
                &viewer,
                body,
                |repo| &mut repo.review_comments,
                |one| &mut one.text,
                id,
            ),
            ("POST", ["issues", number, "reactions"]) => self.react(
                repo,
                &viewer,
                body,
                |repo| &mut repo.items,
                |one| &mut one.text,
                number,
            ),
            _ => Answer::not_found(),
        }
    }

    fn on_item(
        &mut self,
        repo: &str,
        number: &str,
        act: impl FnOnce(&mut Self, u64) -> Option<Value>,
    ) -> Answer {
        let number: u64 = number.parse().unwrap_or(0);
        let fate = self
            .repo(repo)
            .and_then(|repo| repo.items.get(&number))
            .map(|item| item.fate.clone());
        match fate {
            Some(Fate::Here) => act(self, number)
                .map_or_else(Answer::not_found, Answer::ok)
                .with_status(StatusCode::CREATED),
            Some(Fate::Refused(status)) => Answer::refusal(status, "This issue was deleted"),
            Some(Fate::Moved(repo, number)) => Answer::moved(
                StatusCode::TEMPORARY_REDIRECT,
                format!("{}/repositories/{repo}/issues/{number}", self.base),
            ),
            None => Answer::not_found(),
        }
    }

    /// Adds a reaction; the same one by the same account is answered with 200 and changes nothing.
    fn react<T>(
        &mut self,
        repo: &str,
        viewer: &str,
        body: &Value,
        all: impl FnOnce(&mut super::world::Repo) -> &mut std::collections::BTreeMap<u64, T>,
        text: impl FnOnce(&mut T) -> &mut super::world::Text,
        id: &str,
    ) -> Answer {
        let content = body["content"].as_str().unwrap_or_default().to_owned();
        let known = [
            "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes",
        ];
        if !known.contains(&content.as_str()) {
            return Answer::refusal(
                StatusCode::UNPROCESSABLE_ENTITY,
                "content is not a reaction",
            );
        }
        let Ok(repo) = self.repo_mut(repo) else {
            return Answer::not_found();
        };
        let Some(found) = all(repo).get_mut(&id.parse().unwrap_or(0)) else {
            return Answer::not_found();
        };
        let reaction = (viewer.to_owned(), content);
        let reactions = &mut text(found).reactions;
        let answer = json!({ "content": reaction.1, "user": { "login": reaction.0 } });
        if reactions.contains(&reaction) {
            return Answer::ok(answer);
        }
        reactions.push(reaction);
        self.happens();
        Answer::ok(answer).with_status(StatusCode::CREATED)
    }
}

impl super::LocalGitHub {
    /// Returns the texts of the comments on an item, oldest first, as `(login, body)`.
    #[must_use]
    pub fn comments_on(&self, repo: &str, number: u64) -> Vec<(String, String)> {
        let world = &*self.world();
        let all = world.repo(repo).map(|repo| repo.comments.values());
        all.into_iter()
            .flatten()
            .filter(|comment| comment.number == number)
            .map(|comment| {
                let text = &comment.text;
                (text.author.clone(), text.body.clone().unwrap_or_default())
            })
            .collect()
    }

    /// Returns the reactions to a comment, or to the item with that number, as `(login, content)`.
    #[must_use]
    pub fn reactions_to(&self, repo: &str, id: u64) -> Vec<(String, String)> {
        let world = &*self.world();
        let Some(repo) = world.repo(repo) else {
            return Vec::new();
        };
        let comment = repo.comments.get(&id).map(|comment| &comment.text);
        let inline = repo.review_comments.get(&id).map(|comment| &comment.text);
        let item = repo.items.get(&id).map(|item| &item.text);
        comment
            .or(inline)
            .or(item)
            .map(|text| text.reactions.clone())
            .unwrap_or_default()
    }

    /// Returns the labels of an item.
    #[must_use]
    pub fn labels_of(&self, repo: &str, number: u64) -> Vec<String> {
        let world = &*self.world();
        world
            .repo(repo)
            .and_then(|repo| repo.items.get(&number))
            .map(|item| item.labels.clone())
            .unwrap_or_default()
    }
}
