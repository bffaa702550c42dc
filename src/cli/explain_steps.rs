//! The steps of a story that `events --explain` tells.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::explain::clock;
use super::explain_subject::Subject;
use crate::eventlog::{self, Record, kind_phrase};
use crate::model::EventKey;

/// One thing that happened.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) ts: DateTime<Utc>,
    pub(super) event: String,
    pub(super) text: String,
}

/// One step for each thing that happened; what a record before has said already is not said again.
pub(super) fn steps(subject: &Subject, records: &[Record]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut before: Option<&Record> = None;
    let mut known = Known::default();
    for record in records {
        let is_said = before
            .replace(record)
            .is_some_and(|before| says_it(before, record));
        if is_said {
            continue;
        }
        if record.event == "inbox.duplicate" {
            // That a list showed an old text again is part of that text's story alone.
            if matches!(subject, Subject::Delivery(_)) {
                known.seen_again(record, &mut steps);
            }
            continue;
        }
        let told = known.tell(record);
        let text = match (subject, act(record)) {
            (Subject::Item(_), Some(act)) => format!("{act}: {told}"),
            (Subject::Item(_), None) | (Subject::Delivery(_), _) => told,
        };
        steps.push(step(record, text));
    }
    steps
}

fn step(record: &Record, text: String) -> Step {
    Step {
        ts: record.ts,
        event: record.event.clone(),
        text,
    }
}

/// What the story has told so far.
#[derive(Default)]
struct Known<'a> {
    /// The last error of each delivery.
    failures: BTreeMap<u64, &'a str>,
    /// The last version of each object.
    versions: BTreeMap<String, &'a str>,
    /// Where it is told that a version was seen again, and how often it was.
    repeats: BTreeMap<&'a str, (usize, u64)>,
}

impl<'a> Known<'a> {
    fn tell(&mut self, record: &'a Record) -> String {
        let failed = record.number("delivery").zip(record.text("error"));
        let is_same = failed
            .is_some_and(|(delivery, error)| self.failures.insert(delivery, error) == Some(error));
        match record.event.as_str() {
            "dispatch.failed"
            | "session.spawn_failed"
            | "poll.comment_failed"
            | "poll.spawn_failed"
                if is_same =>
            {
                eventlog::tell_same_failure(record)
            }
            "inbox.accepted" | "routing.dropped" if self.is_edit(record) => {
                format!("edited since; {}", eventlog::tell(record))
            }
            _ => eventlog::tell(record),
        }
    }

    fn is_edit(&mut self, record: &'a Record) -> bool {
        let key = record.text("key").unwrap_or_default();
        let object = EventKey::from_stored(key.to_owned()).object().to_owned();
        let old = self.versions.insert(object, key);
        old.is_some_and(|old| old != key)
    }

    /// Lists show a text again and again: it is told once, with how often.
    fn seen_again(&mut self, record: &'a Record, steps: &mut Vec<Step>) {
        let told = eventlog::tell(record);
        let key = record.text("key").unwrap_or_default();
        let (at, times) = self.repeats.entry(key).or_insert((steps.len(), 0));
        *times += 1;
        match steps.get_mut(*at) {
            Some(first) => {
                first.text = format!("{told} ({times} times, the last at {})", clock(record.ts));
            }
            None => steps.push(step(record, told)),
        }
    }
}

/// Tells whether a record has said already what the next one says of the same delivery: a failed start
/// is an attempt that failed, a refused command is not delivered, and what an agent was started with is
/// its first message.
fn says_it(before: &Record, record: &Record) -> bool {
    let delivery = record.number("delivery");
    let is_same = delivery.is_some() && before.number("delivery") == delivery;
    is_same
        && match (before.event.as_str(), record.event.as_str()) {
            ("session.spawn_failed", "dispatch.failed")
            | ("control.rejected", "dispatch.dropped") => true,
            ("session.spawned" | "session.respawned", "dispatch.succeeded") => {
                record.text("possible_repeat") != Some("possible")
            }
            _ => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(event: &str, fields: &str) -> Record {
        let json = format!(
            r#"{{"ts":"2026-11-30T14:05:41.000Z","source":"poll","event":"{event}","level":"info","pid":7,"host":"h",{fields}}}"#
        );
        Record::parse(json.as_bytes()).unwrap()
    }

    fn story(records: &[Record]) -> Vec<String> {
        let subject = Subject::Delivery("issue_comment:1".to_owned());
        let steps = steps(&subject, records).into_iter();
        steps.map(|step| step.text).collect()
    }

    const FIRST: &str = r#""key":"github.com:issue_comment:1@aa","kind":"issue_comment""#;
    const SECOND: &str = r#""key":"github.com:issue_comment:1@bb","kind":"issue_comment""#;

    #[test]
    fn a_text_that_is_seen_again_and_again_is_told_once_and_its_edit_as_one() {
        let told = story(&[
            record("inbox.accepted", FIRST),
            record("inbox.duplicate", FIRST),
            record("inbox.duplicate", FIRST),
            record("inbox.accepted", SECOND),
            record("inbox.duplicate", FIRST),
        ]);
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(
            told[0],
            "seen by poll and stored; it cannot be lost any more"
        );
        assert!(
            told[1].starts_with(
                "seen again by poll: this version is stored already (3 times, the last at "
            ),
            "{told:?}"
        );
        assert!(
            told[2].starts_with("edited since; seen by poll"),
            "{told:?}"
        );
    }

    #[test]
    fn a_failure_is_told_in_full_once_and_another_one_too() {
        let failed = |attempt: u32, error: &str| {
            let of = format!(
                r#""delivery":4,"tmux_target":"x","error":"{error}","attempt":{attempt},"will_retry":true"#
            );
            [
                record("session.spawn_failed", &of),
                record("dispatch.failed", &of),
            ]
        };
        let mut records = Vec::new();
        records.extend(failed(1, "boom"));
        records.extend(failed(2, "boom"));
        records.extend(failed(3, "bang"));
        records.push(record(
            "poll.spawn_failed",
            r#""delivery":4,"error":"bang","attempts":3"#,
        ));
        let told = story(&records);
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[0].contains("boom"), "{told:?}");
        assert_eq!(
            told[1],
            "attempt 2 failed for the same reason; it is tried again"
        );
        assert!(told[2].contains("bang"), "{told:?}");
        assert_eq!(told[3], "given up after 3 attempts");
    }

    #[test]
    fn what_an_agent_is_started_with_was_not_typed() {
        let start =
            r#""delivery":4,"tmux_target":"x","harness":"claude","chars":3,"possible_repeat":"no""#;
        let repeat = start.replace("\"no\"", "\"possible\"");
        for (fields, steps) in [(start, 1), (repeat.as_str(), 2)] {
            let told = story(&[
                record("session.spawned", fields),
                record("dispatch.succeeded", fields),
            ]);
            assert_eq!(told.len(), steps, "{told:?}");
        }
    }
}
