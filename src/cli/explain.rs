//! `the-loop events --explain`: the story of one event or one work item, and what to do now.

use std::collections::BTreeSet;

use chrono::{DateTime, Local, Utc};
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::explain_steps::{Step, steps};
use super::explain_subject::Subject;
use super::session_state::State;
use super::status::held_for;
use super::{output, setup};
use crate::config::Config;
use crate::daemon::open_store;
use crate::eventlog::{
    self, Advice, Record, drop_advice, drop_phrase, hold_advice, kind_phrase, spawn_advice_of,
};
use crate::model::text::{count, one_line};
use crate::model::{
    Class, DeliveryId, DeliveryState, DropReason, HoldReason, Session, WorkItemRef,
};
use crate::store::{QueueFilter, QueueRow, Store};

/// More deliveries than this are not listed one by one.
const LISTED: u32 = 1000;

/// The longest error; it may end with what to do.
const MAX_ERROR: usize = 600;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    title: String,
    /// How many steps came before those that are told.
    earlier: usize,
    steps: Vec<Step>,
    /// How each delivery stands.
    deliveries: Vec<ExplainedDelivery>,
    /// What can be done where the event was decided against before it was stored.
    refused: Option<&'static str>,
    /// How the session stands, in the story of a work item.
    session: Option<String>,
    /// What can be done about the session.
    session_advice: Option<String>,
}

/// What the store has of it.
#[derive(Default)]
struct Now {
    deliveries: Vec<QueueRow>,
    /// All that is not done of the work items of these.
    open: Vec<QueueRow>,
    /// The last session of each of these work items.
    sessions: Vec<Session>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedDelivery {
    #[serde(flatten)]
    row: QueueRow,
    result: String,
    advice: Option<&'static str>,
}

/// Tells the last `limit` steps of what is asked for.
pub(super) fn run(config: &Config, text: &str, limit: usize, json: bool) -> Result<Exit, Failure> {
    let mut subject = Subject::of(text, &config.integrations.github.host);
    let mut tail = eventlog::tail(&config.event_log.path, subject.filter(), usize::MAX)?;
    let mut now = recorded(config, &subject, &tail.records)?;
    let is_unknown = tail.records.is_empty() && now.deliveries.is_empty();
    if is_unknown && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // No delivery has this number; the story of an item names comments by theirs.
        subject = Subject::Delivery(format!("issue_comment:{text}"));
        tail = eventlog::tail(&config.event_log.path, subject.filter(), usize::MAX)?;
        now = recorded(config, &subject, &tail.records)?;
    }
    let Now {
        deliveries,
        open,
        sessions,
    } = now;
    let session = sessions
        .last()
        .filter(|_| matches!(subject, Subject::Item(_)));
    if tail.records.is_empty() && deliveries.is_empty() && session.is_none() {
        return Err(Failure::of(format!(
            "nothing is known of {text}: neither the event log {} nor the store has it. Was it written \
             before the item was watched, or is its repository not in polling.sources?",
            config.event_log.path.display()
        )));
    }
    let mut steps = steps(&subject, &tail.records);
    let earlier = steps.len().saturating_sub(limit);
    steps.drain(..earlier);
    let story = Story {
        title: title(&subject, &deliveries, &tail.records),
        earlier,
        steps,
        deliveries: deliveries
            .into_iter()
            .map(|row| explained(row, &tail.records, &open, &sessions))
            .collect(),
        refused: refused(&subject, &tail.records),
        session: session.map(stands),
        session_advice: session.and_then(session_advice),
    };
    if json {
        output::json(&story)?;
    } else {
        print(&subject, &story);
    }
    Ok(Exit::Success)
}

/// Reads how the deliveries stand, and the session of a work item.
fn recorded(config: &Config, subject: &Subject, records: &[Record]) -> Result<Now, Failure> {
    setup::block_on(async {
        let Some(store) = open_store(config).await? else {
            return Ok(Now::default());
        };
        let mut now = Now::default();
        let mut items: Vec<WorkItemRef> = Vec::new();
        match subject {
            Subject::Item(item) => {
                items.push(item.clone());
            }
            Subject::Delivery(wanted) => {
                let host = &config.integrations.github.host;
                now.deliveries = rows(&store, host, wanted, records).await?;
                for row in &now.deliveries {
                    if !items.contains(&row.item) {
                        items.push(row.item.clone());
                    }
                }
            }
        }
        for item in items {
            now.open.extend(open_of(&store, &item).await?);
            now.sessions.extend(store.registry().latest(&item).await?);
        }
        if let Subject::Item(_) = subject {
            now.deliveries.clone_from(&now.open);
        }
        store.close().await;
        Ok(now)
    })
}

async fn rows(
    store: &Store,
    host: &str,
    wanted: &str,
    records: &[Record],
) -> Result<Vec<QueueRow>, Failure> {
    let mut numbers: BTreeSet<i64> = records.iter().flat_map(deliveries).collect();
    numbers.extend(wanted.parse::<i64>().ok());
    // The log may have been rotated away; the store keeps the keys.
    for key in [wanted.to_owned(), format!("{host}:{wanted}")] {
        let found = store.queue().list(QueueFilter::About(&key), LISTED).await?;
        numbers.extend(found.iter().map(|row| row.delivery.0));
    }
    let mut found = Vec::new();
    for number in numbers {
        found.extend(store.queue().get(DeliveryId(number)).await?);
    }
    Ok(found)
}

fn deliveries(record: &Record) -> Vec<i64> {
    let many = record.fields.get("deliveries").and_then(|v| v.as_array());
    let many = many
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_i64);
    let one = record
        .number("delivery")
        .and_then(|n| i64::try_from(n).ok());
    one.into_iter().chain(many).collect()
}

/// What of an item is not done, or was given up.
async fn open_of(store: &Store, item: &WorkItemRef) -> Result<Vec<QueueRow>, Failure> {
    let all = store.queue().list(QueueFilter::Of(item), LISTED).await?;
    let open = |row: &QueueRow| !row.state.is_final() || row.state == DeliveryState::Abandoned;
    Ok(all.into_iter().filter(open).collect())
}

fn stands(session: &Session) -> String {
    let name = session.minted_ref.session_name();
    let name = name.map_or_else(|error| error.to_string(), |name| name.to_string());
    let (state, item) = (State::of(session), session.work_item.short());
    format!("{name} is {state}; look at it with: the-loop sessions show {item}")
}

fn session_advice(session: &Session) -> Option<String> {
    let item = session.work_item.short();
    match State::of(session) {
        State::Running | State::Unknown | State::Spawning => None,
        State::Ended => Some("Nothing: the next event starts it again.".to_owned()),
        State::Paused | State::PausedAndEnded => Some(format!(
            "Comment `the-loop resume`, or run: the-loop sessions resume {item}. Until then nothing is delivered."
        )),
        State::Closed | State::ClosedAndRunning => Some(format!(
            "For another, comment `the-loop start`, or run: the-loop sessions start {item}"
        )),
    }
}

fn title(subject: &Subject, rows: &[QueueRow], records: &[Record]) -> String {
    let (kind, item, actor) = match (subject, rows.first(), records.first()) {
        (Subject::Item(item), ..) => return item.short(),
        (_, Some(row), _) => (row.kind.clone(), row.item.short(), row.actor.clone()),
        (_, None, record) => {
            let text = |field| {
                record
                    .and_then(|record| record.text(field))
                    .map(str::to_owned)
            };
            let item = record.and_then(|record| record.work_items().next());
            let item = item.map(|item| item.trim_start_matches("github:").to_owned());
            (
                text("kind").unwrap_or_default(),
                item.unwrap_or_default(),
                text("actor"),
            )
        }
    };
    let by = actor
        .map(|actor| format!(", by @{actor}"))
        .unwrap_or_default();
    format!("{} on {item}{by}", kind_phrase(&kind))
}

fn explained(
    row: QueueRow,
    records: &[Record],
    open: &[QueueRow],
    sessions: &[Session],
) -> ExplainedDelivery {
    let (result, advice) = match ahead(&row, open) {
        Some(first) => (
            format!(
                "waits behind delivery {}, which {}",
                first.delivery,
                outcome(first).0
            ),
            outcome(first).1,
        ),
        None => outcome(&row),
    };
    // Why an agent could not be started says more than that its start was given up.
    let spawn = records.iter().rev().find_map(|record| {
        let of_it = record.number("delivery") == u64::try_from(row.delivery.0).ok();
        let reason = record.text("reason").filter(|_| of_it)?;
        spawn_advice_of(reason).filter(|_| record.event == "session.spawn_failed")
    });
    let is_started_since = sessions
        .iter()
        .any(|session| session.work_item == row.item && session.created_at > row.accepted_at);
    let advice = match (row.state, spawn) {
        (DeliveryState::Abandoned, _) if is_started_since => {
            Some("A session was started since: say it again if it still matters.")
        }
        (DeliveryState::Abandoned, Some(spawn)) => Some(spawn.remedy),
        _ => advice,
    };
    ExplainedDelivery {
        row,
        result,
        advice,
    }
}

/// The first of those that a delivery waits for: what an agent reads comes in order.
fn ahead<'a>(row: &QueueRow, open: &'a [QueueRow]) -> Option<&'a QueueRow> {
    let waits = |row: &QueueRow| row.state == DeliveryState::Pending && row.class == Class::Event;
    let first = open.iter().find(|other| {
        other.item == row.item && other.class == Class::Event && !other.state.is_final()
    });
    first.filter(|first| {
        waits(row) && first.delivery < row.delivery && first.state != DeliveryState::Pending
    })
}

/// What can be done about an event that was decided against as soon as it was seen, or about an item
/// for which nothing was started.
fn refused(subject: &Subject, records: &[Record]) -> Option<&'static str> {
    let dropped = match subject {
        Subject::Item(_) => "dispatch.dropped",
        Subject::Delivery(_) => "routing.dropped",
    };
    let last = records
        .iter()
        .rev()
        .find(|record| record.event == dropped)?;
    let reason = last.text("reason")?.parse().ok()?;
    Some(drop_advice(reason).remedy)
}

/// How a delivery stands, and what can be done about it.
fn outcome(row: &QueueRow) -> (String, Option<&'static str>) {
    let reason = row.reason.as_deref().unwrap_or_default();
    let dropped = || reason.parse::<DropReason>().ok().map(drop_advice);
    let held = || reason.parse::<HoldReason>().ok().map(hold_advice);
    let remedy = |advice: Option<Advice>| advice.map(|advice| advice.remedy);
    let after = |error: &Option<String>| match error {
        Some(error) => format!("; the last error: {}", one_line(error, MAX_ERROR)),
        None => String::new(),
    };
    match row.state {
        DeliveryState::Pending => (
            format!(
                "waits for its turn, due {}{}",
                clock(row.next_at),
                after(&row.error)
            ),
            Some("A poller must run: the-loop poll status."),
        ),
        DeliveryState::Claimed => ("is being worked on in this moment".to_owned(), None),
        DeliveryState::Held => (
            format!(
                "waits: {}; looked at again {}",
                held_for(row),
                clock(row.next_at)
            ),
            remedy(held()),
        ),
        DeliveryState::Delivered => ("delivered".to_owned(), None),
        DeliveryState::Dropped | DeliveryState::Skipped => (
            format!("not delivered: {}", drop_phrase(reason)),
            remedy(dropped()),
        ),
        DeliveryState::Abandoned => (
            format!(
                "given up after {}{}",
                count(row.attempts, "attempt"),
                after(&row.error)
            ),
            Some("Put the cause right; then comment again, or start the session anew."),
        ),
        DeliveryState::Baselined => (
            "not delivered: it was there before the item was first seen".to_owned(),
            Some("Comment again if it still matters."),
        ),
    }
}

pub(super) fn clock(at: DateTime<Utc>) -> String {
    at.with_timezone(&Local).format("%H:%M:%S").to_string()
}

fn print(subject: &Subject, story: &Story) {
    output::line(&story.title);
    output::line("");
    if story.earlier > 0 {
        let earlier = count(story.earlier as u64, "earlier step");
        output::line(format!("  ({earlier}; --limit 0 tells all)"));
    }
    let mut day = None;
    for step in &story.steps {
        let at = step.ts.with_timezone(&Local);
        if day.replace(at.date_naive()) != Some(at.date_naive()) {
            output::line(format!("  {}", at.format("%Y-%m-%d")));
        }
        output::line(format!("  {}  {}", at.format("%H:%M:%S%.3f"), step.text));
    }
    if story.steps.is_empty() {
        output::line("  the event log has nothing about it any more");
    }
    output::line("");
    for explained in &story.deliveries {
        let about = match subject {
            Subject::Item(_) => format!(
                "delivery {} ({}) ",
                explained.row.delivery,
                kind_phrase(&explained.row.kind)
            ),
            Subject::Delivery(_) if story.deliveries.len() > 1 => {
                format!("delivery {}: ", explained.row.delivery)
            }
            Subject::Delivery(_) => String::new(),
        };
        output::line(format!("Result: {about}{}", explained.result));
        if let Some(advice) = &explained.advice {
            output::line(format!("To do:  {advice}"));
        }
    }
    if story.deliveries.is_empty() && matches!(subject, Subject::Delivery(_)) {
        match story.refused {
            Some(advice) => {
                output::line("Result: not delivered; it was decided against when it was seen");
                output::line(format!("To do:  {advice}"));
            }
            None => output::line("Result: the store has nothing of it any more"),
        }
    }
    if let Subject::Item(_) = subject {
        let session = story.session.as_deref().unwrap_or("there is none");
        output::line(format!("Session: {session}"));
        let refused = story
            .refused
            .filter(|_| story.session.is_none() && story.deliveries.is_empty());
        if let Some(advice) = story.session_advice.as_deref().or(refused) {
            output::line(format!("To do:  {advice}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EventKey;

    #[test]
    fn what_waits_for_the_one_before_it_says_so_with_what_that_one_waits_for() {
        let row = |delivery, number, state, reason: Option<HoldReason>| QueueRow {
            delivery: DeliveryId(delivery),
            item: format!("octo/app#{number}").parse().unwrap(),
            key: EventKey::from_stored("github.com:issue_comment:1@aa".to_owned()),
            kind: "issue_comment".to_owned(),
            actor: None,
            class: Class::Event,
            state,
            reason: reason.map(|reason| reason.to_string()),
            error: None,
            attempts: 0,
            next_at: Utc::now(),
            accepted_at: Utc::now(),
        };
        let held = row(4, 15, DeliveryState::Held, Some(HoldReason::PaneInMode));
        let other = row(5, 16, DeliveryState::Pending, None);
        let behind = row(6, 15, DeliveryState::Pending, None);
        let open = [held.clone(), other.clone(), behind.clone()];
        let said = |row| explained(row, &[], &open, &[]);

        let result = said(behind);
        assert!(
            result
                .result
                .starts_with("waits behind delivery 4, which waits: somebody scrolls the pane"),
            "{}",
            result.result
        );
        assert_eq!(
            result.advice,
            Some(hold_advice(HoldReason::PaneInMode).remedy)
        );
        for alone in [held, other] {
            let result = said(alone).result;
            assert!(!result.contains("behind"), "{result}");
        }
    }
}
