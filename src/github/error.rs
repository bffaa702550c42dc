//! What can go wrong between us and GitHub, told apart by what a caller does next.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Why GitHub did not give what was asked.
///
/// No variant carries a token; URLs are those of the API and hold none.
#[derive(Debug, thiserror::Error)]
pub enum GitHubError {
    /// The configured address cannot be used.
    #[error("{url:?} is not an API address: {problem}; set integrations.github.apiUrl")]
    BadAddress {
        /// What was configured.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client could not be made.
    #[error("preparing the http client: {problem}")]
    Client {
        /// What it said.
        problem: String,
    },
    /// The repository lives on another host than the client.
    #[error("{repo} is not on {host}: a client speaks to one host only")]
    OtherHost {
        /// The repository.
        repo: String,
        /// The client's host.
        host: String,
    },
    /// No source had a token.
    #[error(
        "no token for {host} in {tried}: run `gh auth login --hostname {host}` or set one of the variables"
    )]
    NoToken {
        /// The host.
        host: String,
        /// Every source that was asked, and what it said.
        tried: String,
    },
    /// The address only plays the host, and nobody said which token it may have.
    #[error(
        "{address} is not {host}'s own address, so no token that is kept for {host} is sent there: name the variable that holds one in integrations.github.tokenEnv"
    )]
    NoTokenNamed {
        /// The host that the address plays.
        host: String,
        /// The address.
        address: String,
    },
    /// GitHub refuses the token.
    #[error("{host} refuses the token from {origin} (401): log in again or replace it")]
    Unauthorized {
        /// The host.
        host: String,
        /// Where the token came from.
        origin: String,
    },
    /// The token may not do this.
    #[error("not allowed at {url} (403): {message}{hint}")]
    Forbidden {
        /// What was asked.
        url: String,
        /// GitHub's words.
        message: String,
        /// What is missing, where GitHub's headers name it; begins with a separator.
        hint: String,
    },
    /// A rate limit is reached; nothing is asked before it ends.
    #[error("{limit} of the GitHub API reached: waiting until {until}")]
    RateLimited {
        /// Which limit.
        limit: Limit,
        /// When it ends, by GitHub's clock.
        until: DateTime<Utc>,
        /// How long that is from now; what a local timer waits.
        wait: Duration,
    },
    /// It is not there, or the token may not see it: GitHub does not tell the two apart.
    #[error("not found, or not visible with this token: {url} (404)")]
    NotFound {
        /// What was asked.
        url: String,
    },
    /// It was deleted.
    #[error("deleted on GitHub: {url} (410)")]
    Gone {
        /// What was asked.
        url: String,
    },
    /// It moved (renamed repository, transferred issue), or the answer leads to another host.
    #[error("{url} moved to {to}")]
    Moved {
        /// What was asked.
        url: String,
        /// Where GitHub says it is.
        to: String,
    },
    /// GitHub understood and declined.
    #[error("refused at {url} ({status}): {message}")]
    Refused {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// GitHub's words.
        message: String,
    },
    /// GitHub failed.
    #[error("server error at {url} ({status}); it may pass")]
    Server {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// No answer, or only a part of one.
    #[error("no answer from {url}: {problem}")]
    Transport {
        /// What was asked.
        url: String,
        /// Why.
        problem: String,
        /// Whether GitHub may have read the request.
        sent: Sent,
    },
    /// The answer is not what the API promises.
    #[error("unreadable answer from {url} at {place}: {problem}")]
    BadPayload {
        /// What was asked.
        url: String,
        /// Where in the answer: `line 1 column 80`, or `element 3`.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// The answer is larger than we are willing to hold.
    #[error("the answer from {url} exceeds {limit} bytes")]
    TooLarge {
        /// What was asked.
        url: String,
        /// The cap.
        limit: usize,
    },
    /// A GraphQL query failed as a whole.
    #[error("graphql query refused by {url}: {message}")]
    GraphQl {
        /// What was asked.
        url: String,
        /// GitHub's words.
        message: String,
    },
}

/// Which rate limit was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The hourly budget, shared by everything that uses the same account.
    Primary,
    /// Too much at once.
    Secondary,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Primary => "hourly rate limit",
            Self::Secondary => "secondary rate limit",
        })
    }
}

/// Whether a request that got no answer may have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// No connection was made.
    No,
    /// It may have been.
    Maybe,
}

impl GitHubError {
    /// Tells whether the same request may work later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Server { .. }
                | Self::Transport { .. }
                | Self::BadPayload { .. }
        )
    }

    /// Tells whether a write that ended so may have happened: look before writing again.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        matches!(
            self,
            Self::Server { .. }
                | Self::BadPayload { .. }
                | Self::TooLarge { .. }
                | Self::Transport {
                    sent: Sent::Maybe,
                    ..
                }
        )
    }

    /// Tells whether a read is worth repeating at once.
    pub(super) fn is_blip(&self) -> bool {
        matches!(self, Self::Server { .. } | Self::Transport { .. })
    }
}
