//! Says a record in words: one line, the subject first, the reason always.
//!
//! Works on records, not on decisions, so that lines of other versions are told as well.

use super::Record;
use super::sentences::words;
use crate::model::text::one_line;
use chrono::{DateTime, Utc};

/// The longest detail; errors of tools can be pages.
const MAX_DETAIL: usize = 300;

/// A record in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub time: DateTime<Utc>,
    /// What it is about: `octo/app#15`, a repository, or the part of the program.
    pub subject: String,
    /// What happened, in a word or two.
    pub verb: String,
    /// To what, and why.
    pub detail: String,
}

/// Says what a record means.
#[must_use]
pub fn describe(record: &Record) -> Line {
    let (verb, detail) = words(record);
    Line {
        time: record.ts,
        subject: subject(record),
        verb: one_line(&verb, 40),
        detail: one_line(&detail, MAX_DETAIL),
    }
}

fn subject(record: &Record) -> String {
    let items: Vec<&str> = record.work_items().collect();
    let named = match items[..] {
        [] => record.text("repo"),
        [first, ..] => Some(first.strip_prefix("github:").unwrap_or(first)),
    };
    let part = || record.event.split('.').next().unwrap_or_default();
    let mut subject = one_line(named.unwrap_or_else(part), 80);
    if items.len() > 1 {
        subject.push_str(", …");
    }
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, fields: &str) -> String {
        let json = format!(
            r#"{{"ts":"2026-11-30T14:05:41.000Z","source":"poll","event":"{event}","level":"info","pid":7,"host":"h",{fields}}}"#
        );
        let said = describe(&Record::parse(json.as_bytes()).unwrap());
        format!("{:<12}  {:<9}  {}", said.subject, said.verb, said.detail)
            .trim_end()
            .to_owned()
    }

    #[test]
    fn each_line_names_subject_verb_and_reason() {
        let about = r#""work_item":"github:octo/app#15","kind":"issue_comment","actor":"octocat""#;
        let with = |more: &str| format!("{about},{more}");
        for (event, fields, expected) in [
            (
                "routing.dropped",
                r#""work_items":["github:octo/app#15"],"kind":"issue_comment","actor":"mallory","reason":"unauthorized-actor""#.to_owned(),
                "octo/app#15   dropped    comment by @mallory: not in routing.authorizedUsers",
            ),
            (
                "dispatch.succeeded",
                with(r#""chars":88,"held_ms":165000,"possible_repeat":"no""#),
                "octo/app#15   delivered  comment by @octocat, 88 chars (held 2 m 45 s)",
            ),
            (
                "session.spawned",
                with(r#""harness":"claude","tmux_target":"loop-github-octo--app-15""#),
                "octo/app#15   start      @octocat → claude in loop-github-octo--app-15",
            ),
            (
                "session.respawned",
                with(r#""resumed":true,"ended":"signal:9""#),
                "octo/app#15   respawned  session had ended (signal 9); conversation resumed; comment by @octocat delivered",
            ),
            (
                "dispatch.failed",
                with(r#""error":"tmux did not answer","attempt":1,"max_attempts":3,"will_retry":true"#),
                "octo/app#15   failed     comment by @octocat: tmux did not answer (attempt 1 of 3; will retry)",
            ),
            (
                "dispatch.held",
                with(r#""reason":"enter-pending""#),
                "octo/app#15   held       comment by @octocat: the message before it waits for its Enter",
            ),
            (
                "poller.blocked",
                r#""holder":4711,"lock":"/x""#.to_owned(),
                "poller        not started  poller 4711 holds /x",
            ),
            (
                "later.thing_done",
                with(r#""reason":"why-not","error":"boom""#),
                "octo/app#15   thing done  comment by @octocat: why-not: boom",
            ),
        ] {
            assert_eq!(line(event, &fields), expected, "{event}");
        }
    }

    #[test]
    fn a_record_cannot_break_out_of_its_line() {
        let said = line(
            "dispatch.held",
            r#""work_item":"github:o/r#1","reason":"x","detail":"a\nb\u001b[2Jc""#,
        );
        assert_eq!(said, "o/r#1         held       x: a b[2Jc");
    }

    #[test]
    fn every_type_is_told_without_a_panic() {
        for kind in crate::eventlog::TYPES {
            assert!(!line(kind.name, r#""x":1"#).trim().is_empty());
        }
    }
}
