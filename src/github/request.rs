//! One question, one answer: sending, authenticating, repeating what is safe to repeat.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_NONE_MATCH};
use reqwest::{Method, Request, Response, StatusCode, Url};

use tokio::time::Instant;

use super::auth::Token;
use super::interpret::{self, Outcome};
use super::rate::RateBook;
use super::{Endpoint, GitHub, GitHubError, Limits, Rate, Sent};

/// How we introduce ourselves; GitHub refuses requests that do not.
pub(super) const USER_AGENT: &str = concat!("the-loop/", env!("CARGO_PKG_VERSION"));
/// The longest pause between two attempts of one read.
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);
/// How many redirects one read follows.
const MAX_HOPS: u32 = 3;

/// What a read gave.
#[derive(Debug)]
pub enum Reply {
    /// The resource as it is now.
    Fresh(Answer),
    /// Nothing changed since the `ETag`; this costs no rate limit.
    Unchanged {
        /// GitHub's clock.
        date: Option<DateTime<Utc>>,
        /// The hourly budget.
        rate: Option<Rate>,
    },
}

/// A fresh answer.
#[derive(Debug)]
pub struct Answer {
    /// Where it came from in the end.
    pub url: String,
    /// The bytes.
    pub body: Vec<u8>,
    /// What to send as condition next time.
    pub etag: Option<String>,
    /// The next page, as GitHub links it.
    pub next: Option<String>,
    /// GitHub's clock.
    pub date: Option<DateTime<Utc>>,
    /// The hourly budget.
    pub rate: Option<Rate>,
}

/// What to do when GitHub says that something moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Ask there, if it is on the same host: a renamed repository is the same repository.
    Follow,
    /// Say so: a transferred issue is another work item.
    Report,
}

/// A request that may be sent more than once.
struct Question<'a> {
    method: Method,
    url: Url,
    etag: Option<&'a str>,
    body: Option<String>,
    /// The budget that pays for it.
    rates: &'a RateBook,
}

/// An answer before anybody judged it.
pub(super) struct Raw {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Question<'_> {
    fn request(&self, token: Option<&Token>) -> Request {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        let headers = request.headers_mut();
        let fixed = HeaderValue::from_static;
        headers.insert(ACCEPT, fixed("application/vnd.github+json"));
        headers.insert("x-github-api-version", fixed("2022-11-28"));
        // An entity tag came in a header, so it fits into one.
        if let Some(Ok(etag)) = self.etag.map(HeaderValue::from_str) {
            headers.insert(IF_NONE_MATCH, etag);
        }
        if let Some(token) = token.and_then(Token::header) {
            headers.insert(AUTHORIZATION, token);
        }
        if let Some(body) = &self.body {
            headers.insert(CONTENT_TYPE, fixed("application/json"));
            *request.body_mut() = Some(body.clone().into());
        }
        request
    }
}

impl GitHub {
    /// Reads a path below the API address, or an address that GitHub gave; with an `ETag`, only if
    /// it changed. Server and transport errors are retried, refusals are not.
    ///
    /// # Errors
    /// Any [`GitHubError`]; [`GitHubError::Moved`] when the answer leads to another host.
    pub async fn get(&self, path_or_url: &str, etag: Option<&str>) -> Result<Reply, GitHubError> {
        self.read(path_or_url, etag, Redirects::Follow).await
    }

    /// Reads like [`get`](Self::get), and says what a redirect means.
    ///
    /// # Errors
    /// Any [`GitHubError`]; [`GitHubError::Moved`] also for every redirect that is only reported.
    pub async fn read(
        &self,
        path_or_url: &str,
        etag: Option<&str>,
        redirects: Redirects,
    ) -> Result<Reply, GitHubError> {
        let mut question = Question {
            method: Method::GET,
            url: self.inner.endpoint.resolve(path_or_url)?,
            etag,
            body: None,
            rates: &self.inner.rates,
        };
        for _ in 0..=MAX_HOPS {
            match self.ask_with_retries(&question).await? {
                Outcome::Reply(reply) => return Ok(reply),
                Outcome::Elsewhere(to) => {
                    question.url = self.next_hop(&question.url, &to, redirects)?;
                }
            }
        }
        Err(GitHubError::Moved {
            url: path_or_url.to_owned(),
            to: question.url.into(),
        })
    }

    /// Sends a query that changes nothing, so that it may be repeated like a read.
    pub(super) async fn query(&self, url: Url, body: String) -> Result<Answer, GitHubError> {
        let question = Question {
            method: Method::POST,
            url,
            etag: None,
            body: Some(body),
            rates: &self.inner.graphql_rates,
        };
        match self.ask_with_retries(&question).await? {
            Outcome::Reply(Reply::Fresh(answer)) => Ok(answer),
            Outcome::Reply(Reply::Unchanged { .. }) => Err(GitHubError::BadPayload {
                url: question.url.into(),
                place: "status".to_owned(),
                problem: "304 without a condition".to_owned(),
            }),
            Outcome::Elsewhere(to) => Err(GitHubError::Moved {
                url: question.url.into(),
                to,
            }),
        }
    }

    fn next_hop(&self, from: &Url, to: &str, redirects: Redirects) -> Result<Url, GitHubError> {
        let target = from.join(to).ok();
        match target {
            Some(target) if redirects == Redirects::Follow && self.inner.endpoint.owns(&target) => {
                Ok(target)
            }
            target => Err(GitHubError::Moved {
                url: from.to_string(),
                to: target.map_or_else(|| to.to_owned(), Into::into),
            }),
        }
    }

    async fn ask_with_retries(&self, question: &Question<'_>) -> Result<Outcome, GitHubError> {
        let began = Instant::now();
        // One server that hangs must not hold up a whole cycle for four times the time-out.
        let enough = self.inner.limits.whole * 2;
        let mut attempt = 0;
        loop {
            match self.ask(question).await {
                Err(error)
                    if error.is_blip()
                        && attempt < self.inner.limits.retries
                        && began.elapsed() < enough =>
                {
                    tokio::time::sleep(backoff(&self.inner.limits, attempt)).await;
                    attempt += 1;
                }
                settled => return settled,
            }
        }
    }

    /// Asks once; a second time only when the token was refused and another one was found.
    async fn ask(&self, question: &Question<'_>) -> Result<Outcome, GitHubError> {
        self.inner.rates.check()?;
        question.rates.check()?;
        let token = Box::pin(self.token()).await?;
        let mut raw = Box::pin(self.send(question, token.as_ref())).await?;
        if let Some(other) = Box::pin(self.token_after(&raw, token.as_ref())).await? {
            raw = Box::pin(self.send(question, Some(&other))).await?;
            self.still_refused(&raw, &other)?;
        }
        interpret::outcome(question.rates, question.url.as_str(), raw)
    }

    async fn send(
        &self,
        question: &Question<'_>,
        token: Option<&Token>,
    ) -> Result<Raw, GitHubError> {
        let url = question.url.as_str();
        self.inner.sent.fetch_add(1, Ordering::Relaxed);
        let mut response = self.carry(question.request(token)).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            self.inner.unchanged.fetch_add(1, Ordering::Relaxed);
        }
        let limit = self.inner.limits.body;
        let too_large = || GitHubError::TooLarge {
            url: url.to_owned(),
            limit,
        };
        let announced = response.content_length().unwrap_or(0);
        if announced > limit as u64 {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| transport(url, error))?
        {
            if body.len() + chunk.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Raw {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body,
        })
    }

    async fn carry(&self, request: Request) -> Result<Response, GitHubError> {
        if let Some(carrier) = &self.inner.carrier {
            return carrier.carry(request).await;
        }
        let url = request.url().clone();
        let answered = self.http().await?.execute(request).await;
        answered.map_err(|error| transport(url.as_str(), error))
    }

    pub(super) async fn token(&self) -> Result<Option<Token>, GitHubError> {
        self.inner.credentials.token(&self.inner.endpoint).await
    }

    /// Returns the token to send the same with again: another one, where this one was refused.
    ///
    /// # Errors
    /// When it was refused and there is no other.
    pub(super) async fn token_after(
        &self,
        answer: &Raw,
        token: Option<&Token>,
    ) -> Result<Option<Token>, GitHubError> {
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        let other = self.renewed_token(token).await?;
        other.map(Some).ok_or_else(|| self.unauthorized(token))
    }

    /// Says so when the other token was refused as well.
    pub(super) fn still_refused(&self, answer: &Raw, token: &Token) -> Result<(), GitHubError> {
        if answer.status == StatusCode::UNAUTHORIZED {
            return Err(self.unauthorized(Some(token)));
        }
        Ok(())
    }

    async fn renewed_token(&self, refused: Option<&Token>) -> Result<Option<Token>, GitHubError> {
        self.inner
            .credentials
            .renew(&self.inner.endpoint, refused)
            .await
    }

    fn unauthorized(&self, token: Option<&Token>) -> GitHubError {
        GitHubError::Unauthorized {
            host: self.inner.endpoint.host().to_owned(),
            origin: token.map_or_else(|| "nowhere".to_owned(), |token| token.origin().to_string()),
        }
    }

    pub(super) async fn http(&self) -> Result<&reqwest::Client, GitHubError> {
        let make = || async {
            let (endpoint, limits) = (self.inner.endpoint.clone(), self.inner.limits.clone());
            // Reading the certificates blocks.
            tokio::task::spawn_blocking(move || http_client(&endpoint, &limits))
                .await
                .map_err(|error| GitHubError::Client {
                    problem: error.to_string(),
                })?
        };
        self.inner.http.get_or_try_init(make).await
    }
}

fn http_client(endpoint: &Endpoint, limits: &Limits) -> Result<reqwest::Client, GitHubError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(limits.connect)
        .timeout(limits.whole)
        // Followed by hand: a redirect can mean a transferred issue, and no token leaves the host.
        .redirect(reqwest::redirect::Policy::none());
    if !endpoint.is_https() {
        // No certificate is ever looked at, and loading the system's costs more than all the rest.
        builder = builder.tls_certs_only(Vec::new());
    }
    if endpoint.is_loopback() {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| GitHubError::Client {
        problem: chain(&error),
    })
}

/// Turns a failure of the HTTP client into ours, without the URL in its text a second time.
pub(super) fn transport(url: &str, error: reqwest::Error) -> GitHubError {
    let sent = if error.is_connect() || error.is_builder() {
        Sent::No
    } else {
        Sent::Maybe
    };
    GitHubError::Transport {
        url: url.to_owned(),
        problem: if error.is_timeout() {
            "timed out".to_owned()
        } else {
            chain(&error.without_url())
        },
        sent,
    }
}

/// Joins an error and its causes, which reqwest leaves out of its own text.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    text
}

/// Doubles the pause each time and spreads it by half, so that many clients do not come back at once.
fn backoff(limits: &Limits, attempt: u32) -> Duration {
    let random = uuid::Uuid::new_v4().as_u64_pair().0 % 1000;
    let doubled = limits.backoff.saturating_mul(2_u32.saturating_pow(attempt));
    let spread = u32::try_from(500 + random).unwrap_or(1000);
    (doubled.saturating_mul(spread) / 1000).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_within_bounds() {
        let limits = Limits::default();
        for _ in 0..200 {
            let first = backoff(&limits, 0).as_millis();
            let third = backoff(&limits, 2).as_millis();
            assert!((250..750).contains(&first), "{first}");
            assert!((1000..3000).contains(&third), "{third}");
            assert!(backoff(&limits, 40) <= LONGEST_BACKOFF);
        }
    }

    #[test]
    fn a_plain_http_client_is_made_without_reading_certificates() {
        for (api, host) in [
            ("http://127.0.0.1:1", "github.com"),
            ("https://api.github.com", "github.com"),
        ] {
            let endpoint = Endpoint::new(api, host).unwrap();
            let began = std::time::Instant::now();
            http_client(&endpoint, &Limits::default()).unwrap();
            println!("http client for {api}: {:?}", began.elapsed());
        }
    }
}
