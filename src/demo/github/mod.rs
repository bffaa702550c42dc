//! A GitHub on this machine: the part of the REST API (and the bit of GraphQL) that the loop uses,
//! played from memory.
//!
//! [`LocalGitHub`] is the server and the hand that moves it: its methods are what people and CI do on
//! GitHub (`act.rs`, `ci.rs`), what can go wrong (`faults.rs`), and what was asked (`log.rs`). Sorting,
//! paging, `since`, entity tags, time stamps in whole seconds and rate limit headers behave as GitHub's.

mod act;
mod ci;
mod edit;
mod faults;
mod graphql;
mod lists;
mod log;
mod reads;
mod render;
mod respond;
mod world;
mod writes;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::serve::ListenerExt;
use chrono::{DateTime, TimeDelta, Utc};
use tokio_util::sync::CancellationToken;

pub use act::PullOptions;
pub use ci::{Check, Run};
pub use edit::NoSuchThing;
pub use faults::Fault;
pub use log::Logged;

use respond::{Asked, Timing};
use world::World;

/// How large a request may be.
const MAX_REQUEST: usize = 1024 * 1024;

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct LocalGitHub {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
    stop: CancellationToken,
}

#[derive(Clone)]
struct Shared {
    world: Arc<Mutex<World>>,
    stop: CancellationToken,
}

impl LocalGitHub {
    /// Starts a server without any repository on a free loopback port. It runs on the current runtime.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = Self::beside_the_network(listener.local_addr()?);
        let app = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .with_state(server.shared());
        // Answers are small; without this each would wait for the peer's delayed acknowledgement.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "setting TCP_NODELAY");
            }
        });
        let ended = server.stop.clone().cancelled_owned();
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app)
                .with_graceful_shutdown(ended)
                .await
            {
                tracing::warn!(%error, "the local GitHub server ended");
            }
        });
        Ok(server)
    }

    /// Makes a server that nobody reaches at its address, only by [`asked`](Self::asked).
    #[must_use]
    pub fn beside_the_network(address: SocketAddr) -> Self {
        Self {
            address,
            world: Arc::new(Mutex::new(World::new(format!("http://{address}")))),
            stop: CancellationToken::new(),
        }
    }

    /// Answers one request, without any network.
    pub async fn asked(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response {
        answer(State(self.shared()), method, uri, headers, body).await
    }

    fn shared(&self) -> Shared {
        Shared {
            world: Arc::clone(&self.world),
            stop: self.stop.clone(),
        }
    }

    /// Returns the API address, as github.com has it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the API address as a GHES has it; the same repositories.
    #[must_use]
    pub fn enterprise_url(&self) -> String {
        format!("{}/api/v3", self.url())
    }

    /// Returns the server's time: the machine's, unless it was moved or stopped.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.world().now()
    }

    /// Stops the server's clock at a time; from then on it only moves by hand and by
    /// [`seconds_per_write`](Self::seconds_per_write).
    pub fn set_clock(&self, at: DateTime<Utc>) {
        self.world().clock.stop_at(at);
    }

    /// Moves the server's clock.
    pub fn advance(&self, by: TimeDelta) {
        self.world().clock.advance(by);
    }

    /// Lets the clock move on after everything that happens; 0 puts all of it into one second.
    pub fn seconds_per_write(&self, seconds: u32) {
        self.world().clock.step = TimeDelta::seconds(i64::from(seconds));
    }

    /// Makes the `Date` header differ from the server's time.
    pub fn skew_date(&self, by: TimeDelta) {
        self.world().date_skew = by;
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }
}

impl Drop for LocalGitHub {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = Asked {
        method,
        uri,
        headers,
        body,
    };
    let (response, timing) = respond::respond(&mut lock(&shared.world), &asked);
    match timing {
        Timing::AtOnce => {}
        Timing::After(pause) => {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shared.stop.cancelled() => {}
            }
        }
        Timing::Never => shared.stop.cancelled().await,
    }
    response
}
