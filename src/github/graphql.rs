//! The one thing that only GraphQL knows: whether a text was edited, and by whom.

use serde::Deserialize;
use serde_json::json;

use crate::model::{Edit, Login, text};

use super::payload::parse;
use super::{Answer, GitHub, GitHubError};

/// Issues, comments, reviews and review comments all are a `Comment` here.
const LAST_EDIT: &str = "query($id: ID!) { node(id: $id) { __typename \
    ... on Comment { lastEditedAt editor { __typename login } } } }";

#[derive(Deserialize)]
struct Answered {
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<Problem>,
}

#[derive(Deserialize)]
struct Data {
    node: Option<Node>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    last_edited_at: Option<String>,
    editor: Option<Actor>,
}

#[derive(Deserialize)]
struct Actor {
    #[serde(rename = "__typename")]
    kind: Option<String>,
    login: Option<String>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
}

impl GitHub {
    /// Asks whether a text was edited after it was written, and by whom.
    ///
    /// REST cannot tell: its `updated_at` also moves without an edit. An editor that GitHub does not
    /// name is [`Edit::ByNobody`].
    ///
    /// # Errors
    /// Any [`GitHubError`]; a text that is gone is [`GitHubError::NotFound`]. A caller that must go on
    /// takes every error as [`Edit::ByNobody`].
    pub async fn last_edit(&self, node_id: &str) -> Result<Edit, GitHubError> {
        let url = self.inner.endpoint.graphql().clone();
        let query = json!({ "query": LAST_EDIT, "variables": { "id": node_id } });
        let answer = self.query(url, query.to_string()).await?;
        let answered: Answered = parse(&answer.body, &answer.url)?;
        if let Some(problem) = answered.errors.first() {
            return Err(self.graphql_error(problem, answer));
        }
        match answered.data.and_then(|data| data.node) {
            Some(node) => Ok(edit(node)),
            None => Err(GitHubError::NotFound { url: answer.url }),
        }
    }

    /// GraphQL reports refusals, and even its rate limit, in answers with status 200.
    fn graphql_error(&self, problem: &Problem, answer: Answer) -> GitHubError {
        match problem.kind.as_deref() {
            Some("RATE_LIMITED" | "RATE_LIMIT") => self
                .inner
                .graphql_rates
                .observe_graphql_limit(answer.rate.as_ref(), answer.date),
            Some("NOT_FOUND") => GitHubError::NotFound { url: answer.url },
            _ => GitHubError::GraphQl {
                url: answer.url,
                message: text::one_line(
                    problem.message.as_deref().unwrap_or("no reason given"),
                    300,
                ),
            },
        }
    }
}

fn edit(node: Node) -> Edit {
    if node.last_edited_at.is_none() {
        return Edit::Never;
    }
    match node.editor {
        Some(Actor {
            kind,
            login: Some(login),
        }) if !login.is_empty() => {
            // REST writes `renovate[bot]` where GraphQL writes `renovate`.
            let is_bot = kind.as_deref() == Some("Bot") && !login.ends_with("[bot]");
            Edit::By(Login::new(&if is_bot {
                format!("{login}[bot]")
            } else {
                login
            }))
        }
        _ => Edit::ByNobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(node: &str) -> Edit {
        edit(serde_json::from_str(node).unwrap())
    }

    #[test]
    fn an_editor_who_cannot_be_learned_is_nobody() {
        let edited = r#""lastEditedAt":"2026-01-01T00:00:00Z""#;
        for (node, expected) in [
            ("{}".to_owned(), Edit::Never),
            (
                r#"{"lastEditedAt":null,"editor":{"login":"ada"}}"#.to_owned(),
                Edit::Never,
            ),
            (format!("{{{edited}}}"), Edit::ByNobody),
            (format!(r#"{{{edited},"editor":null}}"#), Edit::ByNobody),
            (
                format!(r#"{{{edited},"editor":{{"login":"ada"}}}}"#),
                Edit::By(Login::new("ada")),
            ),
            (
                format!(r#"{{{edited},"editor":{{"__typename":"Bot","login":"renovate"}}}}"#),
                Edit::By(Login::new("renovate[bot]")),
            ),
        ] {
            assert_eq!(read(&node), expected, "{node}");
        }
    }
}
