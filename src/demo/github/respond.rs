//! From a request to a response: routes, permissions, entity tags, budgets, links, faults.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{
    AUTHORIZATION, CONTENT_TYPE, DATE, ETAG, IF_NONE_MATCH, LINK, LOCATION, RETRY_AFTER, USER_AGENT,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::faults::Fault;
use super::lists::{Asks, Page};
use super::log::Logged;
use super::world::World;

/// A request.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Asked {
    fn header(&self, name: HeaderName) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    fn path_and_query(&self) -> &str {
        self.uri.path_and_query().map_or("/", |both| both.as_str())
    }

    fn log_row(&self) -> Logged {
        Logged {
            method: self.method.to_string(),
            path: self.path_and_query().to_owned(),
            status: 0,
            authorized: self.headers.contains_key(AUTHORIZATION),
            conditional: self.headers.contains_key(IF_NONE_MATCH),
            user_agent: self.header(USER_AGENT).to_owned(),
        }
    }
}

/// When a response leaves.
pub(super) enum Timing {
    AtOnce,
    After(Duration),
    Never,
}

/// What is answered, before headers that all answers have.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
    pub(super) page: Option<Page>,
    headers: Vec<(HeaderName, String)>,
}

impl Answer {
    pub(super) fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body,
            page: None,
            headers: Vec::new(),
        }
    }

    pub(super) fn list(mut page: Page) -> Self {
        Self {
            body: Value::Array(std::mem::take(&mut page.elements)),
            page: Some(page),
            ..Self::ok(Value::Null)
        }
    }

    pub(super) fn refusal(status: StatusCode, message: &str) -> Self {
        Self::ok(json!({ "message": message, "status": status.as_str() })).with_status(status)
    }

    pub(super) fn not_found() -> Self {
        Self::refusal(StatusCode::NOT_FOUND, "Not Found")
    }

    pub(super) fn moved(status: StatusCode, to: String) -> Self {
        Self::refusal(status, "Moved").with_header(LOCATION, to)
    }

    /// Changes the status of an answer that succeeded.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        if self.status.is_success() {
            self.status = status;
        }
        self
    }

    fn with_header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// Answers one request.
pub(super) fn respond(world: &mut World, asked: &Asked) -> (Response, Timing) {
    let path = asked.path_and_query().to_owned();
    let fault = world.take_fault(asked.method.as_str(), &path);
    if let Some(etag) = known_unchanged(world, asked, &path, fault.as_ref()) {
        let answer = Answer::ok(Value::Null)
            .with_status(StatusCode::NOT_MODIFIED)
            .with_header(ETAG, etag);
        return (finish(world, asked, answer, Vec::new()), Timing::AtOnce);
    }
    let mut answer = match fault.as_ref().and_then(|fault| instead(world, fault)) {
        Some(answer) => answer,
        None => route(world, asked),
    };
    let timing = afterwards(fault.as_ref(), &mut answer);
    if let Some(link) = links(world, asked, answer.page.as_ref(), fault.as_ref()) {
        answer = answer.with_header(LINK, link);
    }
    let mut bytes = serde_json::to_vec(&answer.body).unwrap_or_default();
    if asked.method == Method::GET && answer.status == StatusCode::OK && fault.is_none() {
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..16]));
        world.remember_etag(&path, &etag);
        if asked.header(IF_NONE_MATCH).trim_start_matches("W/") == etag {
            answer.status = StatusCode::NOT_MODIFIED;
            bytes.clear();
        }
        answer = answer.with_header(ETAG, etag);
    }
    if fault == Some(Fault::Truncated) {
        bytes.truncate(bytes.len() / 2);
    }
    (finish(world, asked, answer, bytes), timing)
}

/// Returns the `ETag` if it is asked for and nothing at all happened since it was computed.
fn known_unchanged(
    world: &World,
    asked: &Asked,
    path: &str,
    fault: Option<&Fault>,
) -> Option<String> {
    let condition = asked.header(IF_NONE_MATCH).trim_start_matches("W/");
    let (revision, etag) = world.etags.get(path)?;
    let allowed = fault.is_none() && refusal(world, asked).is_none();
    (allowed && *revision == world.revision && etag == condition).then(|| etag.clone())
}

/// Refuses tokens that are not accepted, and everything once the budget is spent.
fn refusal(world: &World, asked: &Asked) -> Option<Answer> {
    if let Some(token) = &world.accepted_token
        && asked.header(AUTHORIZATION) != format!("Bearer {token}")
    {
        return Some(Answer::refusal(StatusCode::UNAUTHORIZED, "Bad credentials"));
    }
    let spent =
        matches!(world.budget.0, Some((_, 0))) && !asked.uri.path().ends_with("/rate_limit");
    spent.then(|| Answer::refusal(StatusCode::FORBIDDEN, "API rate limit exceeded"))
}

fn route(world: &mut World, asked: &Asked) -> Answer {
    if let Some(answer) = refusal(world, asked) {
        return answer;
    }
    let path = asked.uri.path();
    let path = path.strip_prefix("/api/v3").unwrap_or(path);
    let decoded: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
    let is_read = asked.method == Method::GET;
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
    match segments.as_slice() {
        ["graphql"] | ["api", "graphql"] if asked.method == Method::POST => world.query(&body),
        ["repos", owner, name, rest @ ..] => {
            let name = format!("{owner}/{name}");
            let Some(repo) = world.repo(&name) else {
                return Answer::not_found();
            };
            if !repo.full_name().eq_ignore_ascii_case(&name) {
                return renamed(asked, &world.base, repo.id, rest);
            }
            if is_read {
                return world.read(repo, rest, &Asks::of(&asked.uri));
            }
            if repo.archived {
                let words = "Repository was archived so is read-only.";
                return Answer::refusal(StatusCode::FORBIDDEN, words);
            }
            world.write(&asked.method, &name, rest, &body)
        }
        ["repositories", id, rest @ ..] => match world.repos.get(&id.parse().unwrap_or(0)) {
            Some(repo) if is_read => world.read(repo, rest, &Asks::of(&asked.uri)),
            Some(repo) => {
                let name = repo.full_name();
                world.write(&asked.method, &name, rest, &body)
            }
            None => Answer::not_found(),
        },
        other if is_read => world.read_other(other),
        _ => Answer::not_found(),
    }
}

fn renamed(asked: &Asked, base: &str, id: u64, rest: &[&str]) -> Answer {
    let status = if asked.method == Method::GET {
        StatusCode::MOVED_PERMANENTLY
    } else {
        StatusCode::TEMPORARY_REDIRECT
    };
    let mut to = format!("{base}/repositories/{id}");
    for part in rest {
        to.push('/');
        to.push_str(part);
    }
    if let Some(query) = asked.uri.query() {
        to.push('?');
        to.push_str(query);
    }
    Answer::moved(status, to)
}

/// Returns the answer that a fault gives in place of any work.
fn instead(world: &World, fault: &Fault) -> Option<Answer> {
    let status = |code: u16| StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    let with_wait = |answer: Answer, wait: &Option<Duration>| match wait {
        Some(wait) => answer.with_header(RETRY_AFTER, wait.as_secs().to_string()),
        None => answer,
    };
    let secondary = "You have exceeded a secondary rate limit.";
    match fault {
        Fault::Status(code) => Some(Answer::refusal(status(*code), "Something went wrong")),
        Fault::HourlyLimit(wait) => {
            let reset = world.now().timestamp() + i64::try_from(wait.as_secs()).unwrap_or(0);
            let limit = Answer::refusal(StatusCode::FORBIDDEN, "API rate limit exceeded");
            let header = HeaderName::from_static;
            Some(
                limit
                    .with_header(header("x-ratelimit-limit"), "5000".to_owned())
                    .with_header(header("x-ratelimit-remaining"), "0".to_owned())
                    .with_header(header("x-ratelimit-reset"), reset.to_string()),
            )
        }
        Fault::SecondaryLimit(wait) => Some(with_wait(
            Answer::refusal(StatusCode::FORBIDDEN, secondary),
            wait,
        )),
        Fault::TooManyRequests(wait) => Some(with_wait(
            Answer::refusal(StatusCode::TOO_MANY_REQUESTS, secondary),
            wait,
        )),
        Fault::Redirect(code, to) => Some(Answer::moved(status(*code), to.clone())),
        Fault::StatusAfterwards(_)
        | Fault::Truncated
        | Fault::BadElement(_)
        | Fault::Doubled
        | Fault::Reversed
        | Fault::Slow(_)
        | Fault::Hang
        | Fault::NextPageAt(_) => None,
    }
}

/// Spoils a right answer as a fault wants it.
fn afterwards(fault: Option<&Fault>, answer: &mut Answer) -> Timing {
    match fault {
        Some(Fault::StatusAfterwards(code)) => {
            let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::BAD_GATEWAY);
            *answer = Answer::refusal(status, "Something went wrong");
            Timing::AtOnce
        }
        Some(Fault::BadElement(index)) => {
            let list = answer.body.as_array_mut();
            if let Some(element) = list.and_then(|list| list.get_mut(*index)) {
                *element = json!({ "id": "not a number", "number": [] });
            }
            Timing::AtOnce
        }
        Some(Fault::Doubled) => {
            if let Some(list) = answer.body.as_array_mut() {
                *list = list
                    .iter()
                    .flat_map(|one| [one.clone(), one.clone()])
                    .collect();
            }
            Timing::AtOnce
        }
        Some(Fault::Reversed) => {
            if let Some(list) = answer.body.as_array_mut() {
                list.reverse();
            }
            Timing::AtOnce
        }
        Some(Fault::Slow(pause)) => Timing::After(*pause),
        Some(Fault::Hang) => Timing::Never,
        _ => Timing::AtOnce,
    }
}

fn links(
    world: &World,
    asked: &Asked,
    page: Option<&Page>,
    fault: Option<&Fault>,
) -> Option<String> {
    if let Some(Fault::NextPageAt(url)) = fault {
        return Some(format!("<{url}>; rel=\"next\""));
    }
    let page = page?;
    if page.page >= page.pages {
        return None;
    }
    let query: Vec<&str> = asked
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("page="))
        .collect();
    let query = query.join("&");
    let link = |number: usize, rel: &str| {
        format!(
            "<{}{}?{query}&page={number}>; rel=\"{rel}\"",
            world.base,
            asked.uri.path()
        )
    };
    Some(format!(
        "{}, {}",
        link(page.page + 1, "next"),
        link(page.pages, "last")
    ))
}

/// Adds what every answer has, spends the budget, writes the log.
fn finish(world: &mut World, asked: &Asked, answer: Answer, bytes: Vec<u8>) -> Response {
    let free =
        answer.status == StatusCode::NOT_MODIFIED || asked.uri.path().ends_with("/rate_limit");
    if let Some((_, remaining)) = world.budget.0.as_mut().filter(|_| !free) {
        *remaining = remaining.saturating_sub(1);
    }
    world.record(asked.log_row(), answer.status);
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = answer.status;
    let date = (world.now() + world.date_skew).format("%a, %d %b %Y %H:%M:%S GMT");
    let mut headers = vec![
        (DATE, date.to_string()),
        (CONTENT_TYPE, "application/json; charset=utf-8".to_owned()),
    ];
    if let Some((limit, remaining)) = world.budget.0 {
        let header = HeaderName::from_static;
        headers.push((header("x-ratelimit-limit"), limit.to_string()));
        headers.push((header("x-ratelimit-remaining"), remaining.to_string()));
        headers.push((header("x-ratelimit-reset"), world.reset_at().to_string()));
        headers.push((header("x-ratelimit-resource"), "core".to_owned()));
    }
    headers.extend(answer.headers);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

impl World {
    /// The next full hour.
    pub(super) fn reset_at(&self) -> i64 {
        (self.now().timestamp() / 3600 + 1) * 3600
    }
}

fn decode(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2).and_then(|two| std::str::from_utf8(two).ok()))
            .flatten()
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
