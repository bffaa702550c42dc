//! The way from a daemon to the GitHub of the story and back, which takes a while.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::to_bytes;
use axum::http::Response;
use the_loop::demo::github::LocalGitHub;
use the_loop::github::{Carrier, Endpoint, GitHub, GitHubError, Limits, Sent, TokenSource};
use tokio::time::{sleep, timeout};

use crate::numbers::Numbers;
use crate::pulse::Pulse;

/// Where nobody listens: the story has no network.
pub(crate) const ADDRESS: &str = "127.0.0.1:1";

#[derive(Debug)]
struct Way {
    github: Arc<LocalGitHub>,
    pulse: Pulse,
    numbers: Mutex<Numbers>,
    patience: Duration,
}

/// Makes the client of one daemon.
pub(crate) fn client(github: &Arc<LocalGitHub>, pulse: Pulse, numbers: Numbers) -> GitHub {
    let limits = Limits {
        // Its spread is chance.
        backoff: Duration::ZERO,
        ..Limits::default()
    };
    let way = Way {
        github: Arc::clone(github),
        pulse,
        numbers: Mutex::new(numbers),
        patience: limits.whole,
    };
    let endpoint = Endpoint::new(&github.url(), "github.com").unwrap();
    GitHub::carried_by(Box::new(way), endpoint, TokenSource::none(), limits)
}

impl Way {
    async fn go(&self) {
        let takes = self.numbers.lock().unwrap().between(5, 60);
        sleep(Duration::from_millis(takes)).await;
        self.pulse.live().await;
    }
}

impl Carrier for Way {
    fn carry(
        &self,
        request: reqwest::Request,
    ) -> Pin<Box<dyn Future<Output = Result<reqwest::Response, GitHubError>> + Send + '_>> {
        Box::pin(async move {
            self.go().await;
            let uri = request.url().as_str().parse().unwrap();
            let body = request.body().and_then(|body| body.as_bytes());
            let body = body.unwrap_or_default().to_vec().into();
            let (method, headers) = (request.method().clone(), request.headers().clone());
            let answer = self.github.asked(method, uri, headers, body);
            let Ok(answer) = timeout(self.patience, answer).await else {
                self.pulse.live().await;
                return Err(GitHubError::Transport {
                    url: request.url().to_string(),
                    problem: "timed out".to_owned(),
                    sent: Sent::Maybe,
                });
            };
            let (parts, body) = answer.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap();
            self.go().await;
            Ok(reqwest::Response::from(Response::from_parts(parts, body)))
        })
    }
}
