//! Says a record as a step of a story: a whole sentence, for who asks why.

use super::Record;
use super::describe::describe;
use super::phrases::{drop_phrase, hold_phrase, spawn_phrase};
use super::sentences::{Words, closing};
use crate::model::text::{count, one_line};

/// The longest step; errors of tools can be pages.
const MAX_STEP: usize = 600;

/// Says what happened in this step, on one line; the reader knows what the story is about.
#[must_use]
pub fn tell(record: &Record) -> String {
    // However long an error is: what becomes of it is told too.
    format!("{}{}", one_line(&sentence(record), MAX_STEP), again(record))
}

/// Says it of an attempt that failed as the one before it did, or of giving up after such a one.
#[must_use]
pub fn tell_same_failure(record: &Record) -> String {
    match record.number("attempts") {
        Some(attempts) => format!("given up after {}", count(attempts, "attempt")),
        None => format!(
            "attempt {} failed for the same reason{}",
            record.number("attempt").unwrap_or_default(),
            again(record)
        ),
    }
}

/// What becomes of an attempt that failed.
fn again(record: &Record) -> &'static str {
    let is_attempt = matches!(
        record.event.as_str(),
        "dispatch.failed" | "dispatch.error" | "session.spawn_failed"
    );
    match is_attempt && Words::new(record).flag("will_retry") {
        true => "; it is tried again",
        false => "",
    }
}

fn sentence(record: &Record) -> String {
    let w = Words::new(record);
    let source = &record.source;
    let because = |head: &str, field: &str| match w.get(field) {
        "" => head.to_owned(),
        text => format!("{head}: {text}"),
    };
    let by = w.by();
    match record.event.as_str() {
        "routing.dropped" => {
            let why = drop_phrase(w.get("reason"));
            format!("seen by {source}, and decided against: {why}")
        }
        "inbox.accepted" => {
            format!("seen by {source} and stored; it cannot be lost any more")
        }
        "inbox.duplicate" => format!("seen again by {source}: this version is stored already"),
        "dispatch.held" => {
            let why = hold_phrase(w.get("reason"));
            match w.get("detail") {
                "" => format!("waits, at no cost: {why}"),
                detail => format!("waits, at no cost: {why} ({detail})"),
            }
        }
        "dispatch.failed" | "dispatch.error" => match w.number("attempt") {
            0 => because("an attempt broke down", "error"),
            attempt => because(
                &format!("attempt {attempt} of {} failed", w.number("max_attempts")),
                "error",
            ),
        },
        "dispatch.dropped" if w.get("kind") == "armed" && w.get("reason") == "awaiting-start" => {
            "no agent is started yet: it waits for the-loop start".to_owned()
        }
        "dispatch.dropped" if w.get("reason") == "superseded" => {
            "this older version is not delivered: the newer one counts".to_owned()
        }
        "dispatch.dropped" => because(
            &format!("decided against: {}", drop_phrase(w.get("reason"))),
            "error",
        ),
        "dispatch.succeeded" => {
            let repeat = match w.get("possible_repeat") {
                "possible" => "; its header says that it may be a repeat",
                _ => "",
            };
            // The failure of a check has no text of its own.
            let chars = match w.number("chars") {
                0 => String::new(),
                chars => format!(", {} of its own", count(chars, "character")),
            };
            let attempt = match w.number("attempt") {
                0 | 1 => String::new(),
                attempt => format!(", at attempt {attempt}"),
            };
            format!(
                "typed into {} as one message{chars}{attempt}{repeat}",
                w.get("tmux_target")
            )
        }
        "session.spawned" => format!(
            "{} started in {}, with this as its first message",
            w.get("harness"),
            w.get("tmux_target")
        ),
        "session.spawn_failed" => because(
            &format!(
                "attempt {}: no agent could be started in {}: {}",
                w.number("attempt"),
                w.get("tmux_target"),
                spawn_phrase(w.get("reason"))
            ),
            "error",
        ),
        "session.respawned" => {
            let how = match w.get("ended") {
                "" => String::new(),
                ended => format!(" ({})", ended.replace(':', " ")),
            };
            let conversation = match w.flag("resumed") {
                true => "its conversation resumed",
                false => "a fresh conversation",
            };
            format!(
                "the agent had ended{how}; started again in {} with {conversation}, and with this as its first message",
                w.get("tmux_target")
            )
        }
        "session.respawn_averted" => format!(
            "the agent had seemed to have ended, but lives in {}; nothing was started",
            w.get("tmux_target")
        ),
        "session.resume_failed" => {
            because("the recorded conversation could not be resumed", "error")
        }
        "poll.comment_failed" | "poll.spawn_failed" => because(
            &format!("given up after {}", count(w.number("attempts"), "attempt")),
            "error",
        ),
        "poll.rearmed" => format!(
            "version {} tries again what an older one had given up",
            w.get("version")
        ),
        "control.command" => format!("{}: {}", said(&w), effect(w.get("effect"))),
        "control.rejected" => {
            let why = drop_phrase(w.get("reason"));
            format!("{}, which is refused: {why}", said(&w))
        }
        "session.harness_terminated" => {
            let agent = format!("{} in {}", w.get("harness"), w.get("tmux_target"));
            match w.flag("ok") {
                true => format!("the agent, {agent}, was asked to end, and has ended"),
                false => because(
                    &format!("the agent, {agent}, was asked to end, and did not"),
                    "error",
                ),
            }
        }
        "session.retained" => format!(
            "the tmux session {} stays, so that it can be read",
            w.get("tmux_target")
        ),
        "session.closed" => {
            format!("the session is closed{by}: nothing more is delivered into it")
        }
        "session.autoclosed" => format!("the session is closed: {}", closing(w.get("reason"))),
        "session.reset" => format!(
            "reset{by}: what was recorded of the item is forgotten ({})",
            w.list("removed").join(", ")
        ),
        "item.armed" => format!("it may get an agent from now on{}", of_label(&by)),
        "item.disarmed" => "it no longer carries the label".to_owned(),
        "item.reopened" => format!("opened again{by}"),
        "inbox.baselined" => format!(
            "first seen; {} there before it, known and not said to any agent",
            match w.number("count") {
                1 => "1 text was".to_owned(),
                texts => format!("{texts} texts were"),
            }
        ),
        "poll.closure_detected" if w.flag("merged") => "found merged".to_owned(),
        "poll.closure_detected" => "found closed".to_owned(),
        _ => {
            let line = describe(record);
            match (line.verb.as_str(), line.detail.as_str()) {
                ("", _) => record.event.clone(),
                (_, "") => line.verb,
                (verb, detail) => format!("{verb}: {detail}"),
            }
        }
    }
}

/// `@octocat said start`.
fn said(w: &Words<'_>) -> String {
    let command = w.get("command");
    match (w.get("actor"), w.get("via")) {
        ("", "cli") => format!("{command} was said on this machine"),
        ("", _) => format!("{command} was said"),
        (actor, _) => format!("@{actor} said {command}"),
    }
}

/// ` (labelled by @octocat)`, where that is known.
fn of_label(by: &str) -> String {
    match by {
        "" => String::new(),
        by => format!(" (labelled{by})"),
    }
}

/// What a command did; a word of another version stays as it is.
fn effect(word: &str) -> &str {
    match word {
        "spawned" => "a session begins",
        "resumed" => "the paused session goes on",
        "paused" => "the session is paused, and what comes now is not delivered",
        "stopped" => "the session is ended",
        "noop" => "it is remembered, and nothing had to be done",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(event: &str, fields: &str) -> String {
        tell(&record(event, fields))
    }

    fn record(event: &str, fields: &str) -> Record {
        let json = format!(
            r#"{{"ts":"2026-11-30T14:05:41.000Z","source":"poll","event":"{event}","level":"info","pid":7,"host":"h",{fields}}}"#
        );
        Record::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn each_step_is_a_sentence_with_its_reason() {
        for (event, fields, expected) in [
            (
                "dispatch.held",
                r#""reason":"tmux-silent""#,
                "waits, at no cost: tmux does not answer",
            ),
            (
                "dispatch.failed",
                r#""error":"tmux did not answer","attempt":1,"max_attempts":3,"will_retry":true"#,
                "attempt 1 of 3 failed: tmux did not answer; it is tried again",
            ),
            (
                "session.respawned",
                r#""ended":"signal:9","resumed":true,"tmux_target":"loop-x""#,
                "the agent had ended (signal 9); started again in loop-x with its conversation resumed, and with \
                 this as its first message",
            ),
            (
                "dispatch.succeeded",
                r#""tmux_target":"loop-x","chars":88,"attempt":2,"possible_repeat":"possible""#,
                "typed into loop-x as one message, 88 characters of its own, at attempt 2; its header says that it \
                 may be a repeat",
            ),
            (
                "dispatch.held",
                r#""reason":"tmux-silent","detail":"no answer within 10s""#,
                "waits, at no cost: tmux does not answer (no answer within 10s)",
            ),
            (
                "dispatch.dropped",
                r#""kind":"armed","reason":"awaiting-start""#,
                "no agent is started yet: it waits for the-loop start",
            ),
            (
                "dispatch.dropped",
                r#""kind":"issue_comment","reason":"superseded""#,
                "this older version is not delivered: the newer one counts",
            ),
            (
                "control.command",
                r#""command":"pause","via":"comment","effect":"paused","actor":"octocat""#,
                "@octocat said pause: the session is paused, and what comes now is not delivered",
            ),
            (
                "control.command",
                r#""command":"start","via":"cli","effect":"noop""#,
                "start was said on this machine: it is remembered, and nothing had to be done",
            ),
            (
                "control.rejected",
                r#""command":"resume","via":"comment","reason":"nothing-to-resume","actor":"octocat""#,
                "@octocat said resume, which is refused: nothing is paused",
            ),
            (
                "session.harness_terminated",
                r#""harness":"claude","tmux_target":"loop-x","ok":true"#,
                "the agent, claude in loop-x, was asked to end, and has ended",
            ),
            (
                "session.closed",
                r#""harness":"claude","actor":"octocat""#,
                "the session is closed by @octocat: nothing more is delivered into it",
            ),
            (
                "item.armed",
                r#""count":1"#,
                "it may get an agent from now on",
            ),
            (
                "later.thing_done",
                r#""reason":"why-not""#,
                "thing done: why-not",
            ),
        ] {
            assert_eq!(told(event, fields), expected, "{event}");
        }
    }

    #[test]
    fn a_step_is_one_line_whatever_a_tool_said() {
        let said = told(
            "dispatch.failed",
            r#""error":"fatal:\n  no\u001b[2J such","attempt":1,"max_attempts":3"#,
        );
        assert_eq!(said, "attempt 1 of 3 failed: fatal: no[2J such");
    }

    #[test]
    fn that_it_is_tried_again_is_told_however_long_the_error_is() {
        let long = "x".repeat(5000);
        let fields = format!(
            r#""tmux_target":"loop-x","reason":"tmux-refused","error":"{long}","attempt":1,"will_retry":true"#
        );
        let said = told("session.spawn_failed", &fields);
        assert!(
            said.starts_with("attempt 1: no agent could be started in loop-x: tmux refused: x")
        );
        assert!(said.ends_with("…; it is tried again"), "{said}");
    }

    #[test]
    fn the_same_failure_is_not_told_in_full_again() {
        for (event, fields, expected) in [
            (
                "session.spawn_failed",
                r#""error":"e","attempt":2,"will_retry":true"#,
                "attempt 2 failed for the same reason; it is tried again",
            ),
            (
                "poll.spawn_failed",
                r#""error":"e","attempts":3"#,
                "given up after 3 attempts",
            ),
        ] {
            assert_eq!(
                tell_same_failure(&record(event, fields)),
                expected,
                "{event}"
            );
        }
    }

    #[test]
    fn every_type_is_told() {
        for kind in crate::eventlog::TYPES {
            assert!(!told(kind.name, r#""x":1"#).trim().is_empty());
        }
    }
}
