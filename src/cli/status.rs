//! `the-loop status`: how everything stands, on one screen.

use chrono::{DateTime, Local, TimeDelta, Utc};
use serde::Serialize;

use super::args::{Global, JsonArgs};
use super::exit::{Exit, Failure};
use super::layout::{pad, width};
use super::output::{self, grouped};
use super::session_list::{Row, cannot_be_read};
use super::session_state::State;
use super::{poll, setup};
use crate::config::{Config, Purpose};
use crate::daemon::heartbeat::{self, Heartbeat};
use crate::daemon::lock::{Holder, InstanceLock, LockState};
use crate::daemon::{lock_path, open_store};
use crate::eventlog::{hold_phrase, kind_phrase};
use crate::model::text::{count, one_line};
use crate::model::{DeliveryState, HoldReason, RepoRef};
use crate::store::{
    Counts, ItemFilter, QueueFilter, QueueRow, SessionFilter, Store, UnreadableSession,
};

/// What is held for less goes on by itself, as a rule.
const LONG: TimeDelta = TimeDelta::seconds(60);
/// How many rows are listed one by one; more are counted.
const LISTED: u32 = 10;
/// The width of the first column: its longest head.
const HEAD: usize = 10;
/// The longest error that is shown; those of tools can be pages, and JSON has all of it.
const MAX_ERROR: usize = 300;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    poller_running: bool,
    poller: Option<Holder>,
    heartbeat: Option<Heartbeat>,
    sources: Vec<SourceRow>,
    sessions: Vec<SessionCount>,
    inbox: Counts,
    /// The oldest deliveries that wait for a condition.
    held: Vec<QueueRow>,
    abandoned: Vec<QueueRow>,
    /// Open sessions whose harness has ended; the next event starts it again, unless they are paused.
    ended: Vec<Row>,
    /// Open sessions whose rows this version cannot read.
    unreadable: Vec<UnreadableSession>,
}

/// A watched repository.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceRow {
    repo: RepoRef,
    items: usize,
    sessions: usize,
    /// When its newest work item changed, by GitHub's clock.
    unchanged_since: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionCount {
    state: State,
    count: usize,
}

pub(super) fn run(global: &Global, args: &JsonArgs) -> Result<Exit, Failure> {
    let loaded = setup::load_or_defaults(global, Purpose::Look)?;
    let config = &loaded.config;
    let lock = InstanceLock::state(&lock_path(config))?;
    let status = setup::block_on(async {
        let mut status = Status::without_store(config, lock);
        if let Some(store) = open_store(config).await? {
            Box::pin(status.read(&store)).await?;
            store.close().await;
        }
        Ok(status)
    })?;
    if args.json {
        output::json(&status)?;
    } else {
        print(&status);
    }
    Ok(Exit::Success)
}

impl Status {
    /// What is known before anything is recorded.
    fn without_store(config: &Config, lock: LockState) -> Self {
        let repos = config.polling.sources.iter().flat_map(|one| &one.repos);
        let sources = repos.map(|repo| SourceRow {
            repo: repo.clone(),
            items: 0,
            sessions: 0,
            unchanged_since: None,
        });
        Self {
            poller_running: lock != LockState::Free,
            heartbeat: heartbeat::read(&config.state.root),
            sources: sources.collect(),
            sessions: Vec::new(),
            inbox: Counts::default(),
            held: Vec::new(),
            abandoned: Vec::new(),
            ended: Vec::new(),
            unreadable: Vec::new(),
            poller: match lock {
                LockState::Held(holder) => holder,
                LockState::Free => None,
            },
        }
    }

    async fn read(&mut self, store: &Store) -> Result<(), Failure> {
        let faces = store.registry().faces(SessionFilter::Open).await?;
        let open: Vec<Row> = faces.readable.into_iter().map(Row::from).collect();
        for source in &mut self.sources {
            let items = store.ledger().items(ItemFilter::Of(&source.repo)).await?;
            let of_it = open
                .iter()
                .filter(|one| one.session.work_item.repo() == &source.repo);
            source.sessions = of_it.count();
            source.items = items.iter().filter(|item| item.open).count();
            // An item that a command made known has no time of GitHub's yet.
            let changes = items.iter().map(|item| item.updated_at);
            source.unchanged_since = changes.filter(|at| *at > DateTime::UNIX_EPOCH).max();
        }
        let counted = State::ALL.into_iter().map(|state| SessionCount {
            state,
            count: open.iter().filter(|one| one.state == state).count(),
        });
        self.sessions = counted.filter(|counted| counted.count > 0).collect();
        self.ended = open
            .into_iter()
            .filter(|row| row.state.has_ended())
            .collect();
        self.unreadable = faces.unreadable;
        let waiting = store.queue().list(QueueFilter::Open, 1000).await?;
        self.held = waiting
            .into_iter()
            .filter(|row| row.state == DeliveryState::Held)
            .take(usize::try_from(LISTED).unwrap_or_default())
            .collect();
        self.inbox = store.queue().counts().await?;
        self.abandoned = store.queue().list(QueueFilter::Abandoned, LISTED).await?;
        Ok(())
    }
}

fn print(status: &Status) {
    let now = Utc::now();
    let holder = status.poller_running.then_some(&status.poller);
    let poller = poll::describe(holder, status.heartbeat.as_ref());
    section("daemons", &[format!("poll  {poller}")]);
    section("sources", &sources(&status.sources));
    section("sessions", &[sessions(&status.sessions)]);
    section("inbox", &[inbox(&status.inbox, now)]);
    section("github", &github(status.heartbeat.as_ref(), now));
    section("attention", &attention(status, now));
}

fn section(head: &str, lines: &[String]) {
    for (at, line) in lines.iter().enumerate() {
        let head = if at == 0 { head } else { "" };
        output::line(format!("{} {line}", pad(head, HEAD)).trim_end());
    }
}

fn sources(rows: &[SourceRow]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["none; polling.sources in the configuration names repositories".to_owned()];
    }
    let cells: Vec<[String; 3]> = rows
        .iter()
        .map(|row| {
            [
                row.repo.to_string(),
                count(row.items as u64, "item"),
                count(row.sessions as u64, "session"),
            ]
        })
        .collect();
    let room = |at: usize| {
        let widths = cells.iter().filter_map(|cells| cells.get(at));
        widths.map(|cell| width(cell)).max().unwrap_or(0)
    };
    rows.iter()
        .zip(&cells)
        .map(|(row, [repo, items, sessions])| {
            let since = match row.unchanged_since {
                Some(at) => format!("unchanged since {}", clock(at)),
                None => "nothing seen yet".to_owned(),
            };
            format!(
                "{}  {}  {}  {since}",
                pad(repo, room(0)),
                pad(items, room(1)),
                pad(sessions, room(2)),
            )
        })
        .collect()
}

fn sessions(counted: &[SessionCount]) -> String {
    if counted.is_empty() {
        return "none".to_owned();
    }
    let words = counted.iter();
    let words = words.map(|counted| format!("{} {}", counted.count, counted.state));
    words.collect::<Vec<_>>().join(" · ")
}

fn inbox(counts: &Counts, now: DateTime<Utc>) -> String {
    let oldest = |at: Option<DateTime<Utc>>| {
        at.map_or_else(String::new, |at| format!(" (oldest {})", age(at, now)))
    };
    let mut text = format!(
        "{} pending{} · {} held{} · {} abandoned",
        counts.pending,
        oldest(counts.oldest_pending),
        counts.held,
        oldest(counts.oldest_held),
        counts.abandoned,
    );
    if counts.claimed > 0 {
        text = format!("{text} · {} at work", counts.claimed);
    }
    text
}

fn github(beat: Option<&Heartbeat>, now: DateTime<Utc>) -> Vec<String> {
    let Some(cycle) = beat.and_then(|beat| beat.last_cycle.as_ref()) else {
        return vec!["not asked yet".to_owned()];
    };
    let (Some(left), Some(limit)) = (cycle.rate_remaining, cycle.rate_limit) else {
        return vec!["tells no rate limit".to_owned()];
    };
    let resets = match cycle.rate_resets_at {
        Some(at) if at > now => format!(", resets {}", clock(at)),
        Some(_) | None => String::new(),
    };
    vec![format!(
        "{} of {} requests left{resets}",
        grouped(left),
        grouped(limit)
    )]
}

/// What a person may want to do something about, each with the command that helps.
fn attention(status: &Status, now: DateTime<Utc>) -> Vec<String> {
    let mut lines = Vec::new();
    let cycle = status.heartbeat.as_ref();
    let errors = cycle.and_then(|beat| beat.last_cycle.as_ref());
    let errors = errors.iter().flat_map(|cycle| &cycle.errors);
    lines.extend(errors.map(|error| one_line(error, MAX_ERROR)));
    for row in status
        .held
        .iter()
        .filter(|row| now - row.accepted_at > LONG)
    {
        let item = row.item.short();
        let why = held_for(row);
        let remedy = match row.reason.as_deref().map(str::parse) {
            Some(Ok(
                HoldReason::NoAgent
                | HoldReason::PaneInMode
                | HoldReason::InputOff
                | HoldReason::Unsent
                | HoldReason::EnterPending,
            )) => format!("the-loop sessions attach {item}"),
            Some(_) => format!("the-loop events --explain {item}"),
            None => "a newer the-loop may read it".to_owned(),
        };
        lines.push(format!(
            "{item}: {} held for {}: {why} → {remedy}",
            what(row),
            age(row.accepted_at, now)
        ));
    }
    lines.extend(status.unreadable.iter().map(cannot_be_read));
    for row in &status.ended {
        let item = row.session.work_item.short();
        // What is said to a paused session is dropped: no event starts it again.
        lines.push(if row.state == State::PausedAndEnded {
            format!("{item}: paused, and its agent has ended → the-loop sessions resume {item}")
        } else {
            format!("{item}: its agent has ended; the next event starts it again → the-loop sessions show {item}")
        });
    }
    for row in &status.abandoned {
        let item = row.item.short();
        let why = one_line(
            row.error.as_deref().unwrap_or("every attempt failed"),
            MAX_ERROR,
        );
        lines.push(format!(
            "{item}: {} was given up: {why} → the-loop events --explain {item}",
            what(row)
        ));
    }
    let listed = u64::from(LISTED);
    let more =
        status.inbox.abandoned.saturating_sub(listed) + status.inbox.held.saturating_sub(listed);
    if more > 0 {
        lines.push(format!("and {more} more → the-loop status --json"));
    }
    lines
}

/// Says what a held delivery waits for. One that this version cannot read waits for no condition: its
/// error says what is wrong with it.
pub(super) fn held_for(row: &QueueRow) -> &str {
    match &row.reason {
        Some(reason) => hold_phrase(reason),
        None => row.error.as_deref().unwrap_or("no reason is recorded"),
    }
}

/// `comment by @ada`.
fn what(row: &QueueRow) -> String {
    let kind = kind_phrase(&row.kind);
    match &row.actor {
        Some(actor) => format!("{kind} by @{actor}"),
        None => kind.to_owned(),
    }
}

fn age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    output::age((now - at).num_seconds())
}

/// A time of today as `14:05`, another with its day.
fn clock(at: DateTime<Utc>) -> String {
    let local = at.with_timezone(&Local);
    if local.date_naive() == Local::now().date_naive() {
        local.format("%H:%M").to_string()
    } else {
        local.format("%Y-%m-%d %H:%M").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Class, DeliveryId, EventKey, EventKind};

    fn held(reason: Option<&str>) -> QueueRow {
        QueueRow {
            delivery: DeliveryId(1),
            item: "github:o/r#1".parse().unwrap(),
            key: EventKey::new("github.com", EventKind::IssueComment, "1", "v1"),
            kind: "issue_comment".to_owned(),
            actor: None,
            class: Class::Event,
            state: DeliveryState::Held,
            reason: reason.map(str::to_owned),
            error: Some("row 1 of deliveries cannot be read: payload".to_owned()),
            attempts: 0,
            next_at: DateTime::UNIX_EPOCH,
            accepted_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_delivery_that_cannot_be_read_is_shown_with_the_cause() {
        assert!(held_for(&held(None)).contains("cannot be read"));
        assert_eq!(held_for(&held(Some("rate"))), hold_phrase("rate"));
    }
}
