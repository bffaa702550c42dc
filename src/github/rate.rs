//! Rate limits: what GitHub's headers say, and when to ask again.
//!
//! Times are GitHub's own. How long to wait is the difference of two of its time stamps, so a wrong
//! local clock neither hurries nor delays us.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName};
use tokio::time::Instant;

use super::GitHubError;
use super::error::Limit;

/// What GitHub asks for at least after a secondary limit that names no time.
const SECONDARY_WAIT: Duration = Duration::from_secs(60);
/// The longest wait that is believed; the hourly budget cannot be further away.
const LONGEST_WAIT: Duration = Duration::from_secs(3700);

/// The hourly budget as the last answer showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate {
    /// Requests per hour.
    pub limit: u64,
    /// Requests left.
    pub remaining: u64,
    /// When the budget is full again.
    pub reset_at: DateTime<Utc>,
    /// Which budget: `core`, `graphql`, …
    pub resource: String,
}

impl Rate {
    /// Reads the headers; a server without limits (GHES by default) sends none, and then there is no
    /// budget to know about.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let reset = number(headers, "x-ratelimit-reset")?;
        Some(Self {
            limit: number(headers, "x-ratelimit-limit")?,
            remaining: number(headers, "x-ratelimit-remaining")?,
            reset_at: DateTime::from_timestamp(i64::try_from(reset).ok()?, 0)?,
            resource: text(headers, "x-ratelimit-resource")
                .unwrap_or("core")
                .to_owned(),
        })
    }

    /// Tells whether less than a tenth is left, shared as it is with the operator and the agents.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.remaining.saturating_mul(10) < self.limit
    }
}

/// Reads the server's clock from the `Date` header; a year with which nobody can reckon is none.
#[must_use]
pub(super) fn server_time(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    let date = DateTime::parse_from_rfc2822(text(headers, "date")?).ok()?;
    (date.year() < 10_000).then(|| date.into())
}

fn text<'h>(headers: &'h HeaderMap, name: &'static str) -> Option<&'h str> {
    headers
        .get(HeaderName::from_static(name))?
        .to_str()
        .ok()
        .map(str::trim)
}

fn number(headers: &HeaderMap, name: &'static str) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

/// A limit that an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hit {
    limit: Limit,
    /// None: GitHub named no time.
    wait: Option<Duration>,
}

impl Hit {
    const UNNAMED: Self = Self {
        limit: Limit::Secondary,
        wait: None,
    };

    fn until_reset(rate: &Rate, now: DateTime<Utc>) -> Self {
        let wait = (rate.reset_at - now).to_std().unwrap_or(Duration::ZERO);
        Self {
            limit: Limit::Primary,
            // The reset is a whole second, and so is the clock it is compared with.
            wait: Some(wait + Duration::from_secs(1)),
        }
    }
}

/// Tells whether an answer is a limit and not a refusal, in the order GitHub documents: what
/// `retry-after` says, then an empty budget, then the words of the message.
fn hit(status: StatusCode, headers: &HeaderMap, body: &str, now: DateTime<Utc>) -> Option<Hit> {
    if status != StatusCode::FORBIDDEN && status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    if let Some(seconds) = number(headers, "retry-after") {
        return Some(Hit {
            limit: Limit::Secondary,
            wait: Some(Duration::from_secs(seconds)),
        });
    }
    if let Some(rate) = Rate::from_headers(headers).filter(|rate| rate.remaining == 0) {
        return Some(Hit::until_reset(&rate, now));
    }
    let body = body.to_ascii_lowercase();
    let says_so = body.contains("secondary rate limit") || body.contains("abuse detection");
    (says_so || status == StatusCode::TOO_MANY_REQUESTS).then_some(Hit::UNNAMED)
}

/// What is known about the limits, shared by all requests of a client.
#[derive(Debug, Default)]
pub(super) struct RateBook(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    core: Option<Rate>,
    closed: Option<Closed>,
    unnamed_in_a_row: u32,
}

#[derive(Debug, Clone, Copy)]
struct Closed {
    limit: Limit,
    opens: Instant,
    until: DateTime<Utc>,
}

impl RateBook {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hourly budget of the last answer that named it.
    pub(super) fn core(&self) -> Option<Rate> {
        self.known().core.clone()
    }

    /// Refuses a request while a limit holds: asking on may get the account banned.
    pub(super) fn check(&self) -> Result<(), GitHubError> {
        let mut known = self.known();
        let Some(closed) = known.closed else {
            return Ok(());
        };
        let wait = closed.opens.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            known.closed = None;
            return Ok(());
        }
        Err(GitHubError::RateLimited {
            limit: closed.limit,
            until: closed.until,
            wait,
        })
    }

    /// Takes note of an answer.
    ///
    /// # Errors
    /// [`GitHubError::RateLimited`] when the answer is a limit.
    pub(super) fn observe(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
    ) -> Result<(), GitHubError> {
        let now = server_time(headers).unwrap_or_else(Utc::now);
        let mut known = self.known();
        if let Some(rate) = Rate::from_headers(headers).filter(|rate| rate.resource == "core") {
            known.core = Some(rate);
        }
        match hit(status, headers, body, now) {
            Some(hit) => Err(known.close(hit, now)),
            None => {
                if status.is_success() || status == StatusCode::NOT_MODIFIED {
                    known.unnamed_in_a_row = 0;
                }
                Ok(())
            }
        }
    }

    /// Takes note of a limit that GraphQL reports in a successful answer.
    pub(super) fn observe_graphql_limit(
        &self,
        rate: Option<&Rate>,
        date: Option<DateTime<Utc>>,
    ) -> GitHubError {
        let now = date.unwrap_or_else(Utc::now);
        let hit = rate
            .filter(|rate| rate.remaining == 0)
            .map_or(Hit::UNNAMED, |rate| Hit::until_reset(rate, now));
        self.known().close(hit, now)
    }
}

impl Known {
    fn close(&mut self, hit: Hit, now: DateTime<Utc>) -> GitHubError {
        let wait = hit.wait.unwrap_or_else(|| {
            // One minute, then twice as long each time that it did not help, a quarter of an hour at most.
            let doublings = self.unnamed_in_a_row.min(4);
            self.unnamed_in_a_row = self.unnamed_in_a_row.saturating_add(1);
            SECONDARY_WAIT * 2_u32.pow(doublings)
        });
        let wait = wait.min(LONGEST_WAIT);
        let until = now + TimeDelta::from_std(wait).unwrap_or_default();
        self.closed = Some(Closed {
            limit: hit.limit,
            opens: Instant::now() + wait,
            until,
        });
        GitHubError::RateLimited {
            limit: hit.limit,
            until,
            wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "Fri, 30 Jan 2026 12:00:00 GMT";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    fn noon_plus(seconds: i64) -> String {
        let noon: DateTime<Utc> = DateTime::parse_from_rfc2822(NOON).unwrap().into();
        (noon.timestamp() + seconds).to_string()
    }

    fn wait_after(status: u16, pairs: &[(&'static str, &str)], body: &str) -> Option<(Limit, u64)> {
        let mut all = headers(pairs);
        all.insert("date", NOON.parse().unwrap());
        match RateBook::default().observe(StatusCode::from_u16(status).unwrap(), &all, body) {
            Ok(()) => None,
            Err(GitHubError::RateLimited { limit, wait, .. }) => Some((limit, wait.as_secs())),
            Err(other) => unreachable!("{other}"),
        }
    }

    #[test]
    fn a_clock_beyond_all_reckoning_is_none() {
        let read = |date: &str| server_time(&headers(&[("date", date)]));
        assert!(read(NOON).is_some());
        assert_eq!(read("30 Jan 262142 12:00:00 GMT"), None);
        assert_eq!(read("noon"), None);
    }

    #[test]
    fn a_limit_is_told_from_a_refusal_in_the_documented_order() {
        let empty: &[(&str, &str)] = &[
            ("x-ratelimit-limit", "5000"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", &noon_plus(90)),
        ];
        let with_retry = [empty, &[("retry-after", "7")]].concat();
        let plenty: &[(&str, &str)] = &[
            ("x-ratelimit-limit", "5000"),
            ("x-ratelimit-remaining", "17"),
            ("x-ratelimit-reset", &noon_plus(90)),
        ];
        let secondary = "You have exceeded a secondary rate limit.";
        for (name, status, headers, body, expected) in [
            (
                "an empty budget",
                403,
                empty,
                "",
                Some((Limit::Primary, 91)),
            ),
            (
                "an empty budget, 429",
                429,
                empty,
                "",
                Some((Limit::Primary, 91)),
            ),
            (
                "retry-after first",
                403,
                &with_retry,
                "",
                Some((Limit::Secondary, 7)),
            ),
            (
                "the message",
                403,
                plenty,
                secondary,
                Some((Limit::Secondary, 60)),
            ),
            ("a bare 429", 429, &[], "", Some((Limit::Secondary, 60))),
            ("a refusal", 403, plenty, "Resource not accessible", None),
            (
                "a refusal without headers",
                403,
                &[],
                "Must have admin rights",
                None,
            ),
            ("a success that spends the last one", 200, empty, "", None),
        ] {
            assert_eq!(wait_after(status, headers, body), expected, "{name}");
        }
    }

    #[test]
    fn missing_headers_are_not_an_empty_budget() {
        assert_eq!(Rate::from_headers(&HeaderMap::new()), None);
        let partial = headers(&[("x-ratelimit-remaining", "0")]);
        assert_eq!(Rate::from_headers(&partial), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_asked_before_a_limit_ends() {
        let book = RateBook::default();
        let limited = headers(&[("retry-after", "30")]);
        book.observe(StatusCode::FORBIDDEN, &limited, "")
            .unwrap_err();

        tokio::time::advance(Duration::from_secs(29)).await;
        assert!(
            matches!(book.check(), Err(GitHubError::RateLimited { wait, .. }) if wait.as_secs() == 1)
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(book.check().is_ok());
    }

    #[test]
    fn a_limit_that_names_no_time_is_waited_out_longer_each_time() {
        let book = RateBook::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            match book.observe(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), "") {
                Err(GitHubError::RateLimited { wait, .. }) => waits.push(wait.as_secs()),
                other => unreachable!("{other:?}"),
            }
        }
        assert_eq!(waits, [60, 120, 240, 480, 960, 960, 960]);

        book.observe(StatusCode::OK, &HeaderMap::new(), "").unwrap();
        assert!(matches!(
            book.observe(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), ""),
            Err(GitHubError::RateLimited { wait, .. }) if wait.as_secs() == 60
        ));
    }

    #[test]
    fn a_tenth_of_the_budget_is_left_to_others() {
        let rate = |remaining| Rate {
            limit: 5000,
            remaining,
            reset_at: DateTime::UNIX_EPOCH,
            resource: "core".to_owned(),
        };
        assert!(rate(499).is_low());
        assert!(!rate(500).is_low());
    }
}
