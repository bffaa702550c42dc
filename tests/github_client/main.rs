//! The GitHub client against a GitHub on this machine.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod credentials;
mod faults;
mod local;
mod moves;
mod reads;
mod speed;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use the_loop::demo::github::LocalGitHub;
use the_loop::github::auth::{Gh, TokenSource};
use the_loop::github::{Endpoint, GitHub, Limits, Listing};
use the_loop::model::{RepoRef, WorkItemRef};

const REPO: &str = "octo/my.repo";

fn repo() -> RepoRef {
    REPO.parse().unwrap()
}

fn item(number: u64) -> WorkItemRef {
    repo().item(number)
}

fn limits() -> Limits {
    Limits {
        backoff: Duration::from_millis(1),
        write_gap: Duration::ZERO,
        ..Limits::default()
    }
}

fn client(server: &LocalGitHub) -> GitHub {
    client_with(&server.url(), TokenSource::none(), limits())
}

fn client_with(url: &str, tokens: TokenSource, limits: Limits) -> GitHub {
    GitHub::new(Endpoint::new(url, "github.com").unwrap(), tokens, limits)
}

fn token(value: &'static str) -> TokenSource {
    TokenSource {
        variables: vec!["LOOP_TOKEN".to_owned()],
        environment: Arc::new(move |name| (name == "LOOP_TOKEN").then(|| value.to_owned())),
        gh: Gh::LeftAlone,
    }
}

fn noon() -> DateTime<Utc> {
    "2026-01-30T12:00:00Z".parse().unwrap()
}

/// A server with one issue, whose clock moves a second with everything that happens.
async fn server() -> LocalGitHub {
    let server = LocalGitHub::start().await.unwrap();
    server.set_clock(noon());
    server.seconds_per_write(1);
    server.open_issue(REPO, "ada", "First", "text");
    server
}

fn items<T>(listing: Listing<T>) -> Vec<T> {
    let news = listing.news.expect("something changed");
    assert!(news.bad.is_empty(), "{:?}", news.bad);
    assert!(news.next.is_none(), "the list was not read to its end");
    news.items
}
