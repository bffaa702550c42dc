//! `the-loop status`: how everything stands, on one screen.

use chrono::Utc;
use serde::Serialize;

use super::args::{Global, JsonArgs};
use super::exit::{Exit, Failure};
use super::{output, poll, setup};
use crate::daemon::heartbeat::{self, Heartbeat};
use crate::daemon::lock::{Holder, InstanceLock, LockState};
use crate::daemon::{lock_path, open_store};
use crate::model::SessionStatus;
use crate::store::{Counts, QueueFilter, QueueRow, SessionFilter};

/// How many abandoned events are listed; more are counted.
const LISTED: u32 = 10;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    poller_running: bool,
    poller: Option<Holder>,
    heartbeat: Option<Heartbeat>,
    sessions: Vec<SessionCount>,
    inbox: Counts,
    abandoned: Vec<QueueRow>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionCount {
    status: SessionStatus,
    count: usize,
}

pub(super) fn run(global: &Global, args: &JsonArgs) -> Result<Exit, Failure> {
    let loaded = setup::load_or_defaults(global)?;
    let lock = InstanceLock::state(&lock_path(&loaded.config))?;
    let status = setup::block_on(async {
        let store = open_store(&loaded.config).await?;
        let sessions = store.registry().list(SessionFilter::Open).await?;
        let counted = [
            SessionStatus::Active,
            SessionStatus::Paused,
            SessionStatus::Spawning,
        ]
        .into_iter()
        .map(|status| SessionCount {
            status,
            count: sessions
                .iter()
                .filter(|session| session.status == status)
                .count(),
        });
        let status = Status {
            poller_running: lock != LockState::Free,
            heartbeat: heartbeat::read(&loaded.config.state.root),
            sessions: counted.filter(|counted| counted.count > 0).collect(),
            inbox: store.queue().counts().await?,
            abandoned: store.queue().list(QueueFilter::Abandoned, LISTED).await?,
            poller: match lock {
                LockState::Held(holder) => holder,
                LockState::Free => None,
            },
        };
        store.close().await;
        Ok(status)
    })?;
    if args.json {
        output::json(&status)?;
    } else {
        print(&status);
    }
    Ok(Exit::Success)
}

fn print(status: &Status) {
    let holder = status.poller_running.then_some(&status.poller);
    row(
        "daemons",
        &format!(
            "poll  {}",
            poll::describe(holder, status.heartbeat.as_ref())
        ),
    );
    let sessions: Vec<String> = status
        .sessions
        .iter()
        .map(|counted| format!("{} {}", counted.count, counted.status))
        .collect();
    row(
        "sessions",
        if sessions.is_empty() {
            "none".to_owned()
        } else {
            sessions.join(" · ")
        }
        .as_str(),
    );
    row("inbox", &inbox(&status.inbox));
    if let Some(cycle) = status
        .heartbeat
        .as_ref()
        .and_then(|beat| beat.last_cycle.as_ref())
    {
        row("items", &cycle.items.to_string());
        if let (Some(left), Some(limit)) = (cycle.rate_remaining, cycle.rate_limit) {
            row("github", &format!("{left} of {limit} requests left"));
        }
        for error in &cycle.errors {
            row("attention", error);
        }
    }
    for gone in &status.abandoned {
        let why = gone.error.as_deref().unwrap_or("every attempt failed");
        row(
            "attention",
            &format!("{}: {} was given up: {why}", gone.item.short(), gone.key),
        );
    }
}

fn inbox(counts: &Counts) -> String {
    let now = Utc::now();
    let oldest = |at: Option<chrono::DateTime<Utc>>| {
        at.map_or_else(String::new, |at| {
            format!(" (oldest {})", output::age((now - at).num_seconds()))
        })
    };
    format!(
        "{} pending{} · {} held{} · {} at work · {} abandoned",
        counts.pending,
        oldest(counts.oldest_pending),
        counts.held,
        oldest(counts.oldest_held),
        counts.claimed,
        counts.abandoned,
    )
}

fn row(head: &str, text: &str) {
    output::line(format!("{head:<10} {text}"));
}
