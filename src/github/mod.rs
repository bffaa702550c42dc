//! The GitHub API client: conditional reads, paging, rate limits, a few writes.
//!
//! [`GitHub`] speaks to one host. Reads go through reqwest directly, because they need what octocrab
//! hides: the 304, the redirect, the body before it is whole (to cap it), and the kind of transport
//! error (to know what may be repeated). Writes go through octocrab. Payloads are our own lenient
//! types ([`payload`]): GitHub sends `user: null` and new fields whenever it likes, and one odd object
//! must not hide the others.
//!
//! It knows nothing of sessions or policy. Begin with `request.rs` for how one answer is got, then
//! `lists.rs` for how a list is read to its end.

pub mod auth;
mod ci;
mod endpoint;
mod error;
mod graphql;
mod hosts_file;
mod interpret;
mod items;
mod lists;
mod pages;
mod paging;
pub mod payload;
mod rate;
mod request;
mod write;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

pub use auth::TokenSource;
pub use endpoint::Endpoint;
pub use error::{GitHubError, Limit, Sent};
pub use paging::{Cursor, Elements, Listing, NextPage};
pub use rate::Rate;
pub use request::{Answer, Redirects, Reply};
pub use write::{Posted, Reaction};

/// How long and how much the client takes before it gives up.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long making a connection may take.
    pub connect: Duration,
    /// How long one request may take, its body included.
    pub whole: Duration,
    /// How large an answer may be, in bytes.
    pub body: usize,
    /// How often a read is repeated after a server or transport error; not any more once `whole` has
    /// passed twice.
    pub retries: u32,
    /// How long the first repetition waits, give or take half; each later one twice as long.
    pub backoff: Duration,
    /// How far apart writes are kept; GitHub asks for a second.
    pub write_gap: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            whole: Duration::from_secs(30),
            body: 32 * 1024 * 1024,
            retries: 3,
            backoff: Duration::from_millis(500),
            write_gap: Duration::from_secs(1),
        }
    }
}

/// Carries the reads of a client to its server, in place of the network.
pub trait Carrier: std::fmt::Debug + Send + Sync {
    /// Brings a request to the server, and the answer back.
    ///
    /// # Errors
    /// [`GitHubError::Transport`] where none came.
    fn carry(
        &self,
        request: reqwest::Request,
    ) -> Pin<Box<dyn Future<Output = Result<reqwest::Response, GitHubError>> + Send + '_>>;
}

/// A client of one GitHub host; clones share connections, token and rate limits.
#[derive(Debug, Clone)]
pub struct GitHub {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    endpoint: Endpoint,
    limits: Limits,
    credentials: auth::Credentials,
    rates: rate::RateBook,
    /// GraphQL has a budget of its own; an empty one stops no polling.
    graphql_rates: rate::RateBook,
    carrier: Option<Box<dyn Carrier>>,
    /// Made at the first request: TLS reads the system's certificates.
    http: OnceCell<reqwest::Client>,
    last_write: Mutex<Option<Instant>>,
    sent: AtomicU64,
    unchanged: AtomicU64,
}

/// How many requests a client has made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// All of them, repetitions too.
    pub sent: u64,
    /// Those answered "unchanged", which cost nothing.
    pub unchanged: u64,
}

impl GitHub {
    /// Makes a client; nothing is read or sent before the first request.
    #[must_use]
    pub fn new(endpoint: Endpoint, tokens: TokenSource, limits: Limits) -> Self {
        Self::made(endpoint, tokens, limits, None)
    }

    /// Makes a client whose reads go another way than over the network.
    #[must_use]
    pub fn carried_by(
        carrier: Box<dyn Carrier>,
        endpoint: Endpoint,
        tokens: TokenSource,
        limits: Limits,
    ) -> Self {
        Self::made(endpoint, tokens, limits, Some(carrier))
    }

    fn made(
        endpoint: Endpoint,
        tokens: TokenSource,
        limits: Limits,
        carrier: Option<Box<dyn Carrier>>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                endpoint,
                limits,
                credentials: auth::Credentials::new(tokens),
                rates: rate::RateBook::default(),
                graphql_rates: rate::RateBook::default(),
                carrier,
                http: OnceCell::new(),
                last_write: Mutex::new(None),
                sent: AtomicU64::new(0),
                unchanged: AtomicU64::new(0),
            }),
        }
    }

    /// Returns the API that the client speaks to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    /// Returns how many requests were made so far.
    #[must_use]
    pub fn requests(&self) -> RequestCounts {
        RequestCounts {
            sent: self.inner.sent.load(Ordering::Relaxed),
            unchanged: self.inner.unchanged.load(Ordering::Relaxed),
        }
    }

    /// Returns the hourly budget as the last answer showed it; None where the server has none.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.inner.rates.core()
    }

    /// Tells whether calls that only decorate may be made: not with less than a tenth of the budget
    /// left, and not while a limit holds.
    #[must_use]
    pub fn optional_calls_allowed(&self) -> bool {
        !self.rate().is_some_and(|rate| rate.is_low()) && self.inner.rates.check().is_ok()
    }
}
