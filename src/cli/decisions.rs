//! Decisions as lines: `14:05:41  octo/app#15   dropped    comment by @mallory: …`.

use chrono::{DateTime, Local, NaiveDate, Utc};

use super::layout::{pad, width};
use super::output::{Paint, paint};
use crate::eventlog::{Level, Line, Record, describe};

/// The least width of the verb's column.
const VERB: usize = 9;
/// The least width of the subject's column.
const SUBJECT: usize = 12;

/// Lays out one decision after the other; a column that had to grow stays as wide.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    subject: usize,
    day: NaiveDate,
    coloured: bool,
    detail: Detail,
    /// The delivery whose arrival the line of its session's start has told.
    told: Option<u64>,
    /// The delivery whose failed attempt the line of its failed start has told.
    failed: Option<u64>,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// One line for one thing that happened.
    Brief,
    /// A line for every record, but one for a start that failed, which is an attempt that failed.
    Full,
}

impl Decisions {
    /// Begins with a subject column that is as wide as the longest of these.
    pub(super) fn new<'a>(
        subjects: impl Iterator<Item = &'a str>,
        coloured: bool,
        detail: Detail,
    ) -> Self {
        Self {
            subject: subjects.map(width).max().unwrap_or(0).max(SUBJECT),
            day: Local::now().date_naive(),
            coloured,
            detail,
            told: None,
            failed: None,
        }
    }

    /// Lays out a record; the first one of another day comes with a line that names the day.
    ///
    /// Nothing for what the line before has said: that a session was started, or started again, with
    /// a message means that the message is delivered, and that none could be that the attempt failed.
    pub(super) fn lines(&mut self, record: &Record) -> Vec<String> {
        if self.is_told(record) {
            return Vec::new();
        }
        let told = describe(record);
        let day = local(told.time).date_naive();
        let mut lines = Vec::new();
        if day != self.day {
            self.day = day;
            let text = format!("── {} ──", day.format("%Y-%m-%d"));
            lines.push(self.paint(&text, Paint::Dim));
        }
        lines.push(self.line(&told, record));
        lines
    }

    fn is_told(&mut self, record: &Record) -> bool {
        let delivery = record.number("delivery");
        match record.event.as_str() {
            "session.spawned" | "session.respawned" | "session.respawn_averted" => {
                self.told = delivery;
                false
            }
            "dispatch.succeeded" if self.detail == Detail::Brief => {
                delivery.is_some() && delivery == self.told
            }
            "session.spawn_failed" => {
                self.failed = delivery;
                false
            }
            "dispatch.failed" => delivery.is_some() && delivery == self.failed.take(),
            _ => false,
        }
    }

    fn line(&mut self, told: &Line, record: &Record) -> String {
        self.subject = self.subject.max(width(&told.subject));
        let time = local(told.time).format("%H:%M:%S").to_string();
        let verb = pad(&told.verb, VERB);
        let line = format!(
            "{}  {}  {}  {}",
            self.paint(&time, Paint::Dim),
            pad(&told.subject, self.subject),
            self.paint(&verb, colour(record)),
            told.detail
        );
        line.trim_end().to_owned()
    }

    fn paint(&self, text: &str, colour: Paint) -> String {
        paint(text, if self.coloured { colour } else { Paint::Plain })
    }
}

fn local(at: DateTime<Utc>) -> DateTime<Local> {
    at.with_timezone(&Local)
}

fn colour(record: &Record) -> Paint {
    match (record.level, record.event.as_str()) {
        (Level::Error, _) => Paint::Bad,
        (Level::Warning, _) | (_, "dispatch.held") => Paint::Warn,
        (Level::Debug, _) => Paint::Dim,
        (Level::Info, "dispatch.succeeded" | "session.spawned" | "session.respawned") => {
            Paint::Good
        }
        (Level::Info, _) => Paint::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ts: &str, item: &str, level: &str) -> Record {
        let json = format!(
            r#"{{"ts":"{ts}","source":"poll","event":"dispatch.held","level":"{level}","pid":7,"host":"h","work_item":"github:{item}","kind":"issue_comment","actor":"ada","reason":"no-agent"}}"#
        );
        Record::parse(json.as_bytes()).unwrap()
    }

    fn now() -> String {
        Utc::now().format("%Y-%m-%dT%H:%M:%S.000Z").to_string()
    }

    #[test]
    fn columns_are_as_wide_as_the_longest_subject_so_far() {
        let mut decisions = Decisions::new(["octo/application"].into_iter(), false, Detail::Brief);
        let short = decisions
            .lines(&record(&now(), "o/r#1", "info"))
            .pop()
            .unwrap();
        assert_eq!(
            &short[8..],
            "  o/r#1             held       comment by @ada: pane runs a shell, not an agent"
        );
        let long = "octo/application-two#1234";
        decisions.lines(&record(&now(), long, "info"));
        let after = decisions
            .lines(&record(&now(), "o/r#1", "info"))
            .pop()
            .unwrap();
        assert_eq!(after.find("held"), Some(8 + 2 + long.len() + 2));
    }

    #[test]
    fn another_day_is_named_once() {
        let mut decisions = Decisions::new(std::iter::empty(), false, Detail::Brief);
        let old = record("2025-01-02T12:00:00.000Z", "o/r#1", "info");
        assert_eq!(decisions.lines(&old)[0], "── 2025-01-02 ──");
        assert_eq!(decisions.lines(&old).len(), 1);
        assert_eq!(decisions.lines(&record(&now(), "o/r#1", "info")).len(), 2);
    }

    #[test]
    fn a_message_that_started_its_session_is_told_once() {
        let about = |event: &str, delivery: u64| {
            let json = format!(
                r#"{{"ts":"{}","source":"poll","event":"{event}","level":"info","pid":7,"host":"h","work_item":"github:o/r#1","delivery":{delivery},"kind":"issue_comment","actor":"ada"}}"#,
                now()
            );
            Record::parse(json.as_bytes()).unwrap()
        };
        for (detail, shown) in [(Detail::Brief, 0), (Detail::Full, 1)] {
            let mut decisions = Decisions::new(std::iter::empty(), false, detail);
            assert_eq!(decisions.lines(&about("session.respawned", 3)).len(), 1);
            assert_eq!(
                decisions.lines(&about("dispatch.succeeded", 3)).len(),
                shown
            );
            assert_eq!(decisions.lines(&about("dispatch.succeeded", 4)).len(), 1);
        }
    }

    #[test]
    fn a_start_that_failed_is_told_once() {
        let failed = |event: &str, delivery: u64| {
            let json = format!(
                r#"{{"ts":"{}","source":"poll","event":"{event}","level":"error","pid":7,"host":"h","work_item":"github:o/r#1","delivery":{delivery},"kind":"issue_comment","error":"boom"}}"#,
                now()
            );
            Record::parse(json.as_bytes()).unwrap()
        };
        for detail in [Detail::Brief, Detail::Full] {
            let mut decisions = Decisions::new(std::iter::empty(), false, detail);
            for (event, delivery, shown) in [
                ("session.spawn_failed", 3, 1),
                ("dispatch.failed", 3, 0),
                ("dispatch.failed", 3, 1),
                ("session.spawn_failed", 3, 1),
                ("dispatch.failed", 4, 1),
                ("poll.spawn_failed", 3, 1),
            ] {
                let lines = decisions.lines(&failed(event, delivery));
                assert_eq!(lines.len(), shown, "{event} {delivery}");
            }
        }
    }

    #[test]
    fn colour_adds_to_the_line_and_changes_no_word_of_it() {
        let with = Decisions::new(std::iter::empty(), true, Detail::Brief)
            .lines(&record(&now(), "o/r#1", "error"))
            .pop()
            .unwrap();
        let without = Decisions::new(std::iter::empty(), false, Detail::Brief)
            .lines(&record(&now(), "o/r#1", "error"))
            .pop()
            .unwrap();
        assert!(with.contains("\u{1b}[31mheld     \u{1b}[0m"), "{with:?}");
        assert_eq!(anstream::adapter::strip_str(&with).to_string(), without);
    }
}
