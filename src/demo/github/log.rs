//! What was asked of the server.

use axum::http::StatusCode;

use super::LocalGitHub;
use super::world::{LOG_ROWS, World};

/// One request and the status it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The status; also that of an answer which was never sent.
    pub status: u16,
    /// Whether it carried a token.
    pub authorized: bool,
    /// Whether it was conditional.
    pub conditional: bool,
    /// The user agent.
    pub user_agent: String,
}

impl World {
    pub(super) fn record(&mut self, mut logged: Logged, status: StatusCode) {
        logged.status = status.as_u16();
        if self.log.len() >= LOG_ROWS {
            self.log.pop_front();
        }
        self.log.push_back(logged);
    }
}

impl LocalGitHub {
    /// Returns the requests since the start or the last [`forget_requests`](Self::forget_requests).
    #[must_use]
    pub fn requests(&self) -> Vec<Logged> {
        self.world().log.iter().cloned().collect()
    }

    /// Counts the requests of a method whose path contains `part`.
    #[must_use]
    pub fn count(&self, method: &str, part: &str) -> usize {
        let asked = |row: &&Logged| row.method == method && row.path.contains(part);
        self.world().log.iter().filter(asked).count()
    }

    /// Counts the requests that got a status.
    #[must_use]
    pub fn count_status(&self, status: u16) -> usize {
        let got = |row: &&Logged| row.status == status;
        self.world().log.iter().filter(got).count()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.world().log.clear();
    }
}
