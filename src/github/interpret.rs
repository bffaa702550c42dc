//! What an answer means, by its status and headers.

use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderMap, LINK, LOCATION};
use serde::Deserialize;

use crate::model::text;

use super::rate::{RateBook, server_time};
use super::request::Raw;
use super::{Answer, GitHubError, Rate, Reply};

/// How much of GitHub's own words an error repeats.
const MESSAGE_CHARS: usize = 300;

/// What came of a question.
pub(super) enum Outcome {
    /// An answer.
    Reply(Reply),
    /// A redirect, and where it leads.
    Elsewhere(String),
}

/// Judges an answer, having taken note of what it says about rate limits.
pub(super) fn outcome(rates: &RateBook, url: &str, raw: Raw) -> Result<Outcome, GitHubError> {
    let Raw {
        status,
        headers,
        body,
    } = raw;
    let message = if status.is_success() {
        String::new()
    } else {
        message(&body)
    };
    rates.observe(status, &headers, &message)?;
    let date = server_time(&headers);
    let rate = Rate::from_headers(&headers);
    if status == StatusCode::NOT_MODIFIED {
        return Ok(Outcome::Reply(Reply::Unchanged { date, rate }));
    }
    if status.is_redirection()
        && let Some(to) = header(&headers, LOCATION.as_str())
    {
        return Ok(Outcome::Elsewhere(to));
    }
    if !status.is_success() {
        return Err(failure(status, &headers, url, message));
    }
    Ok(Outcome::Reply(Reply::Fresh(Answer {
        url: url.to_owned(),
        etag: header(&headers, ETAG.as_str()),
        next: next_link(&headers),
        body,
        date,
        rate,
    })))
}

/// Tells what kind of refusal a status is.
pub(super) fn failure(
    status: StatusCode,
    headers: &HeaderMap,
    url: &str,
    message: String,
) -> GitHubError {
    let url = url.to_owned();
    match status {
        StatusCode::FORBIDDEN => GitHubError::Forbidden {
            hint: hint(headers),
            url,
            message,
        },
        StatusCode::NOT_FOUND => GitHubError::NotFound { url },
        StatusCode::GONE => GitHubError::Gone { url },
        status if status.is_server_error() => GitHubError::Server {
            url,
            status: status.as_u16(),
        },
        status => GitHubError::Refused {
            url,
            status: status.as_u16(),
            message,
        },
    }
}

/// Returns what GitHub said, short and without control characters: it ends up in logs.
pub(super) fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Words {
        message: String,
    }
    let text = serde_json::from_slice::<Words>(body).map_or_else(
        |_| String::from_utf8_lossy(&body[..body.len().min(4 * MESSAGE_CHARS)]).into_owned(),
        |words| words.message,
    );
    text::one_line(&text, MESSAGE_CHARS)
}

/// Names what is missing, where the headers of a 403 say it.
fn hint(headers: &HeaderMap) -> String {
    if header(headers, "x-github-sso").is_some() {
        return "; authorise the token for the organisation's single sign-on".to_owned();
    }
    if let Some(permission) = header(headers, "x-accepted-github-permissions") {
        return format!("; the token needs the permission {permission}");
    }
    match (
        header(headers, "x-accepted-oauth-scopes").filter(|scopes| !scopes.is_empty()),
        header(headers, "x-oauth-scopes"),
    ) {
        (Some(accepted), Some(has)) => {
            format!("; the token needs one of the scopes [{accepted}] and has [{has}]")
        }
        _ => String::new(),
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)?
        .to_str()
        .ok()
        .map(|value| value.trim().to_owned())
}

/// Finds `rel="next"` among the links.
fn next_link(headers: &HeaderMap) -> Option<String> {
    headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|link| {
            let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
            let is_next = parameters.split(';').any(|parameter| {
                parameter
                    .trim()
                    .strip_prefix("rel=")
                    .is_some_and(|rel| rel.trim_matches('"').split(' ').any(|word| word == "next"))
            });
            is_next.then(|| target.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn the_next_page_is_found_among_the_links() {
        let link = r#"<https://h/a?page=1>; rel="prev", <https://h/a?page=3&q=x>; rel="next", <https://h/a?page=9>; rel="last""#;
        assert_eq!(
            next_link(&headers(&[("link", link)])).as_deref(),
            Some("https://h/a?page=3&q=x")
        );
        assert_eq!(
            next_link(&headers(&[("link", r#"<https://h/a>; rel="last""#)])),
            None
        );
        assert_eq!(
            next_link(&headers(&[("link", "garbage, <x; rel=next")])),
            None
        );
        assert_eq!(next_link(&HeaderMap::new()), None);
    }

    #[test]
    fn a_refusal_names_what_is_missing() {
        for (pairs, expected) in [
            (
                vec![("x-accepted-github-permissions", "issues=write")],
                "issues=write",
            ),
            (
                vec![
                    ("x-accepted-oauth-scopes", "repo"),
                    ("x-oauth-scopes", "gist"),
                ],
                "[repo] and has [gist]",
            ),
            (
                vec![("x-github-sso", "required; url=https://x")],
                "single sign-on",
            ),
        ] {
            let error = failure(
                StatusCode::FORBIDDEN,
                &headers(&pairs),
                "u",
                "no".to_owned(),
            );
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn words_of_a_server_are_short_and_harmless() {
        assert_eq!(
            message(br#"{"message":"Bad\ncredentials"}"#),
            "Bad credentials"
        );
        let page = format!("<html>\u{1b}[31m{}</html>", "x".repeat(5000));
        let text = message(page.as_bytes());
        assert!(text.chars().count() <= MESSAGE_CHARS && !text.contains('\u{1b}'));
        assert_eq!(message(b""), "");
    }
}
