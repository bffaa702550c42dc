//! Writes: comments and reactions, through octocrab, one at a time, each sent once.
//!
//! A write that got no clear answer is not repeated: GitHub may have done it. Whoever asked looks
//! first ([`GitHubError::may_have_happened`]).

use std::str::FromStr;
use std::sync::Arc;

use octocrab::service::middleware::auth_header::AuthHeaderLayer;
use octocrab::service::middleware::base_uri::BaseUriLayer;
use octocrab::service::middleware::extra_headers::ExtraHeadersLayer;
use octocrab::service::middleware::reqwest_connector::ReqwestConnector;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION, USER_AGENT as USER_AGENT_HEADER};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::model::WorkItemRef;

use super::auth::Token;
use super::payload::parse;
use super::request::{Raw, USER_AGENT, chain};
use super::{GitHub, GitHubError, Sent, interpret};

/// A comment that was written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Posted {
    /// Its id.
    pub id: u64,
    /// Where people read it.
    pub html_url: Option<String>,
}

/// What a reaction shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// 👀
    Eyes,
    /// 🚀
    Rocket,
    /// 👍
    PlusOne,
    /// 😕
    Confused,
}

impl Reaction {
    /// Returns GitHub's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eyes => "eyes",
            Self::Rocket => "rocket",
            Self::PlusOne => "+1",
            Self::Confused => "confused",
        }
    }
}

impl GitHub {
    /// Comments on an issue or pull request.
    ///
    /// # Errors
    /// Any [`GitHubError`]; [`GitHubError::Moved`] after a rename, and nothing was written then.
    pub async fn create_comment(
        &self,
        item: &WorkItemRef,
        body: &str,
    ) -> Result<Posted, GitHubError> {
        let path = self.inner.endpoint.repo_path(item.repo())?;
        let route = format!("{path}/issues/{}/comments", item.number());
        let (url, answer) = self.post(&route, &json!({ "body": body })).await?;
        parse(&answer, &url)
    }

    /// Reacts to an issue or pull request.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn add_reaction(
        &self,
        item: &WorkItemRef,
        reaction: Reaction,
    ) -> Result<(), GitHubError> {
        let route = format!("issues/{}/reactions", item.number());
        self.react(item, &route, reaction).await
    }

    /// Reacts to a comment in the conversation of an issue or pull request.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn add_comment_reaction(
        &self,
        item: &WorkItemRef,
        comment: u64,
        reaction: Reaction,
    ) -> Result<(), GitHubError> {
        let route = format!("issues/comments/{comment}/reactions");
        self.react(item, &route, reaction).await
    }

    /// Reacts to a comment on a line of a pull request.
    ///
    /// # Errors
    /// Any [`GitHubError`].
    pub async fn add_review_comment_reaction(
        &self,
        item: &WorkItemRef,
        comment: u64,
        reaction: Reaction,
    ) -> Result<(), GitHubError> {
        let route = format!("pulls/comments/{comment}/reactions");
        self.react(item, &route, reaction).await
    }

    /// Reacts to what `route` names in the item's repository.
    async fn react(
        &self,
        item: &WorkItemRef,
        route: &str,
        reaction: Reaction,
    ) -> Result<(), GitHubError> {
        let path = self.inner.endpoint.repo_path(item.repo())?;
        let content = json!({ "content": reaction.as_str() });
        self.post(&format!("{path}/{route}"), &content)
            .await
            .map(|_| ())
    }

    /// Posts once, after the pause that GitHub asks for between writes; returns the address and the
    /// answer. A refused token was not acted on, so only then it is sent again, with another one.
    async fn post(&self, route: &str, body: &Value) -> Result<(String, Vec<u8>), GitHubError> {
        let url = format!("{}{route}", self.inner.endpoint.base());
        let mut last = self.inner.last_write.lock().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + self.inner.limits.write_gap).await;
        }
        self.inner.rates.check()?;
        let token = self.token().await?;
        *last = Some(Instant::now());
        let mut raw = self.post_once(&url, route, body, token.as_ref()).await?;
        if let Some(other) = self.token_after(&raw, token.as_ref()).await? {
            raw = self.post_once(&url, route, body, Some(&other)).await?;
            self.still_refused(&raw, &other)?;
        }
        self.settle(url, raw)
    }

    fn settle(&self, url: String, raw: Raw) -> Result<(String, Vec<u8>), GitHubError> {
        let message = if raw.status.is_success() {
            String::new()
        } else {
            interpret::message(&raw.body)
        };
        self.inner
            .rates
            .observe(raw.status, &raw.headers, &message)?;
        if raw.status.is_success() {
            return Ok((url, raw.body));
        }
        if raw.status.is_redirection()
            && let Some(to) = raw.headers.get(LOCATION).and_then(|to| to.to_str().ok())
        {
            // Not followed: after a rename the caller learns the new name first.
            let to = to.to_owned();
            return Err(GitHubError::Moved { url, to });
        }
        Err(interpret::failure(raw.status, &raw.headers, &url, message))
    }

    async fn post_once(
        &self,
        url: &str,
        route: &str,
        body: &Value,
        token: Option<&Token>,
    ) -> Result<Raw, GitHubError> {
        let octocrab = self.octocrab(token).await?;
        let failed = |error: octocrab::Error| failed(url, &error);
        let response = octocrab._post(route, Some(body)).await.map_err(failed)?;
        let status = response.status();
        let headers: HeaderMap = response.headers().clone();
        let body = octocrab.body_to_string(response).await.map_err(failed)?;
        Ok(Raw {
            status,
            headers,
            body: body.into_bytes(),
        })
    }

    /// Makes octocrab on top of our own connections. Its builder would add a second user agent, panic
    /// on a token that fits no header, and mark none as sensitive; so the layers are put together here.
    /// It is made per write because its worker lives no longer than the runtime that made it.
    async fn octocrab(&self, token: Option<&Token>) -> Result<Octocrab, GitHubError> {
        let base = self.inner.endpoint.base();
        let headers = vec![
            (USER_AGENT_HEADER, HeaderValue::from_static(USER_AGENT)),
            (
                ACCEPT,
                HeaderValue::from_static("application/vnd.github+json"),
            ),
        ];
        let authorization = token.and_then(Token::header);
        let Ok(octocrab) = OctocrabBuilder::new_empty()
            .with_service(ReqwestConnector::new(self.http().await?.clone()))
            .with_layer(&ExtraHeadersLayer::new(Arc::new(headers)))
            .with_layer(&BaseUriLayer::new(uri(base)?))
            .with_layer(&AuthHeaderLayer::new(authorization, uri(base)?, uri(base)?))
            .with_auth(AuthState::None)
            .build();
        Ok(octocrab)
    }
}

fn uri<U: FromStr>(text: &str) -> Result<U, GitHubError> {
    text.parse().map_err(|_| GitHubError::BadAddress {
        url: text.to_owned(),
        problem: "not a URI".to_owned(),
    })
}

/// Turns octocrab's error into ours; reqwest's own is somewhere in its chain of causes.
fn failed(url: &str, error: &octocrab::Error) -> GitHubError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut sent = Sent::Maybe;
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<reqwest::Error>()
            && error.is_connect()
        {
            sent = Sent::No;
        }
        cause = error.source();
    }
    GitHubError::Transport {
        url: url.to_owned(),
        problem: chain(error),
        sent,
    }
}
