//! The bit of GraphQL that the loop asks: whether a text was edited, and by whom.

use serde_json::{Value, json};

use super::render::time;
use super::respond::Answer;
use super::world::{Text, World};

impl World {
    /// Answers `node(id: $id) { … on Comment { lastEditedAt editor { login } } }`, whatever else the
    /// query says.
    pub(super) fn query(&self, body: &Value) -> Answer {
        let id = body["variables"]["id"].as_str().unwrap_or_default();
        match self.node(id) {
            Some(text) => Answer::ok(json!({ "data": { "node": self.edit_of(text) } })),
            None => Answer::ok(json!({
                "data": { "node": null },
                "errors": [{
                    "type": "NOT_FOUND",
                    "path": ["node"],
                    "message": format!("Could not resolve to a node with the global id of '{id}'"),
                }],
            })),
        }
    }

    fn edit_of(&self, text: &Text) -> Value {
        let Some((at, editor)) = &text.edited else {
            return json!({ "__typename": "Comment", "lastEditedAt": null, "editor": null });
        };
        let editor = match self.users.get(&editor.to_ascii_lowercase()) {
            Some(account) if account.deleted => Value::Null,
            // GraphQL writes the logins of bots without their suffix.
            _ => match editor.strip_suffix("[bot]") {
                Some(bot) => json!({ "__typename": "Bot", "login": bot }),
                None => json!({ "__typename": "User", "login": editor }),
            },
        };
        json!({ "__typename": "Comment", "lastEditedAt": time(*at), "editor": editor })
    }

    fn node(&self, id: &str) -> Option<&Text> {
        let (kind, id) = id.split_once('_')?;
        let id: u64 = id.parse().ok()?;
        self.repos.values().find_map(|repo| match kind {
            "IC" => repo.comments.get(&id).map(|one| &one.text),
            "PRR" => repo.reviews.get(&id).map(|one| &one.text),
            "PRRC" => repo.review_comments.get(&id).map(|one| &one.text),
            "I" | "PR" => repo
                .items
                .values()
                .find(|item| item.id == id)
                .map(|one| &one.text),
            _ => None,
        })
    }
}
