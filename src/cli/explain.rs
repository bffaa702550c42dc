//! `the-loop events --explain`: the story of one event or one work item, and what to do now.

use std::collections::BTreeSet;

use chrono::{DateTime, Local, Utc};
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::session_state::State;
use super::status::{MAX_ERROR, held_for};
use super::{output, setup};
use crate::config::Config;
use crate::daemon::open_store;
use crate::eventlog::{
    self, Advice, Filter, Record, drop_advice, drop_phrase, hold_advice, kind_phrase,
    spawn_advice_of,
};
use crate::model::text::{count, one_line};
use crate::model::{DeliveryId, DeliveryState, DropReason, EventKey, HoldReason, WorkItemRef};
use crate::store::{QueueFilter, QueueRow, Store};

/// More deliveries than this are not listed one by one.
const LISTED: u32 = 1000;

/// What is to be explained.
enum Subject {
    Item(WorkItemRef),
    /// A number, a key, or a key without host and version.
    Delivery(String),
}

impl Subject {
    fn of(text: &str, host: &str) -> Self {
        match text.parse::<WorkItemRef>() {
            Ok(item) => Self::Item(item.meant_on(host)),
            Err(_) => Self::Delivery(text.to_owned()),
        }
    }

    fn filter(&self) -> Filter {
        match self {
            Self::Item(item) => Filter {
                work_item: Some(item.clone()),
                ..Filter::default()
            },
            Self::Delivery(wanted) => Filter {
                delivery: Some(wanted.clone()),
                ..Filter::default()
            },
        }
    }
}

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
}

#[derive(Debug, Serialize)]
struct Step {
    ts: DateTime<Utc>,
    event: String,
    text: String,
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
    let subject = Subject::of(text, &config.integrations.github.host);
    let tail = eventlog::tail(&config.event_log.path, subject.filter(), usize::MAX)?;
    let (deliveries, session) = recorded(config, &subject, &tail.records)?;
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
            .map(|row| explained(row, &tail.records))
            .collect(),
        refused: refused(&tail.records),
        session,
    };
    if json {
        output::json(&story)?;
    } else {
        print(&subject, &story);
    }
    Ok(Exit::Success)
}

/// One step for each thing that happened: a failed start is an attempt that failed, and says so itself.
fn steps(subject: &Subject, records: &[Record]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before: Option<&Record> = None;
    for record in records {
        let same = before.replace(record).is_some_and(|before| {
            before.event == "session.spawn_failed"
                && before.number("delivery") == record.number("delivery")
        });
        // That a list showed an old text again is part of that text's story alone.
        let beside = matches!(subject, Subject::Item(_)) && record.event == "inbox.duplicate";
        if !(beside || same && record.event == "dispatch.failed") {
            steps.push(step(subject, record));
        }
    }
    steps
}

fn step(subject: &Subject, record: &Record) -> Step {
    let told = eventlog::tell(record);
    Step {
        ts: record.ts,
        event: record.event.clone(),
        text: match (subject, act(record)) {
            (Subject::Item(_), Some(act)) => format!("{act}: {told}"),
            (Subject::Item(_), None) | (Subject::Delivery(_), _) => told,
        },
    }
}

/// `comment 2451 by @octocat`, where the record is about an event.
fn act(record: &Record) -> Option<String> {
    let kind = kind_phrase(record.text("kind")?);
    let key = EventKey::from_stored(record.text("key")?.to_owned());
    let id = key.object().rsplit_once(':').map(|(_, id)| id);
    let id = id.filter(|id| id.bytes().all(|b| b.is_ascii_digit()));
    let by = record.text("actor").map(|actor| format!(" by @{actor}"));
    Some(format!(
        "{kind}{}{}",
        id.map(|id| format!(" {id}")).unwrap_or_default(),
        by.unwrap_or_default()
    ))
}

/// Reads how the deliveries stand, and the session of a work item.
fn recorded(
    config: &Config,
    subject: &Subject,
    records: &[Record],
) -> Result<(Vec<QueueRow>, Option<String>), Failure> {
    setup::block_on(async {
        let Some(store) = open_store(config).await? else {
            return Ok((Vec::new(), None));
        };
        let found = match subject {
            Subject::Item(item) => (
                open_of(&store, item).await?,
                session_of(&store, item).await?,
            ),
            Subject::Delivery(wanted) => {
                let host = &config.integrations.github.host;
                (rows(&store, host, wanted, records).await?, None)
            }
        };
        store.close().await;
        Ok(found)
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

async fn session_of(store: &Store, item: &WorkItemRef) -> Result<Option<String>, Failure> {
    let Some(session) = store.registry().latest(item).await? else {
        return Ok(None);
    };
    let name = session.minted_ref.session_name();
    let name = name.map_or_else(|error| error.to_string(), |name| name.to_string());
    Ok(Some(format!(
        "{name} is {}; look at it with: the-loop sessions show {}",
        State::of(&session),
        item.short()
    )))
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

fn explained(row: QueueRow, records: &[Record]) -> ExplainedDelivery {
    let (result, advice) = outcome(&row);
    // Why an agent could not be started says more than that its start was given up.
    let spawn = records.iter().rev().find_map(|record| {
        let of_it = record.number("delivery") == u64::try_from(row.delivery.0).ok();
        let reason = record.text("reason").filter(|_| of_it)?;
        spawn_advice_of(reason).filter(|_| record.event == "session.spawn_failed")
    });
    let advice = match (row.state, spawn) {
        (DeliveryState::Abandoned, Some(spawn)) => Some(spawn.remedy),
        _ => advice,
    };
    ExplainedDelivery {
        row,
        result,
        advice,
    }
}

/// What can be done about an event that was decided against as soon as it was seen.
fn refused(records: &[Record]) -> Option<&'static str> {
    let last = records
        .iter()
        .rev()
        .find(|record| record.event == "routing.dropped")?;
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

fn clock(at: DateTime<Utc>) -> String {
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
    if let Some(session) = &story.session {
        output::line(format!("Session: {session}"));
    }
}
