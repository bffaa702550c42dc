//! Says a record as a step of a story: a whole sentence, for who asks why.

use super::Record;
use super::describe::describe;
use super::phrases::{drop_phrase, hold_phrase, spawn_phrase};
use super::sentences::Words;
use crate::model::text::{count, one_line};

/// The longest step; errors of tools can be pages.
const MAX_STEP: usize = 400;

/// Says what happened in this step, on one line; the reader knows what the story is about.
#[must_use]
pub fn tell(record: &Record) -> String {
    one_line(&sentence(record), MAX_STEP)
}

fn sentence(record: &Record) -> String {
    let w = Words::new(record);
    let source = &record.source;
    let because = |head: &str, field: &str| match w.get(field) {
        "" => head.to_owned(),
        text => format!("{head}: {text}"),
    };
    let again = |text: String| match w.flag("will_retry") {
        true => format!("{text}; it is tried again"),
        false => text,
    };
    match record.event.as_str() {
        "routing.dropped" => {
            let why = drop_phrase(w.get("reason"));
            format!("seen by {source}, and decided against: {why}")
        }
        "inbox.accepted" => {
            format!("seen by {source} and stored; it cannot be lost any more")
        }
        "inbox.duplicate" => format!("seen again by {source}: this version is stored already"),
        "dispatch.held" => because(
            &format!("waits, at no cost: {}", hold_phrase(w.get("reason"))),
            "detail",
        ),
        "dispatch.failed" | "dispatch.error" => again(match w.number("attempt") {
            0 => because("an attempt broke down", "error"),
            attempt => because(
                &format!("attempt {attempt} of {} failed", w.number("max_attempts")),
                "error",
            ),
        }),
        "dispatch.dropped" => because(
            &format!("decided against: {}", drop_phrase(w.get("reason"))),
            "error",
        ),
        "dispatch.succeeded" => {
            let repeat = match w.get("possible_repeat") {
                "possible" => "; its header says that it may be a repeat",
                _ => "",
            };
            format!(
                "typed into {} as one message of {} characters (attempt {}){repeat}",
                w.get("tmux_target"),
                w.number("chars"),
                w.number("attempt")
            )
        }
        "session.spawned" => format!(
            "{} started in {}, with this as its first message",
            w.get("harness"),
            w.get("tmux_target")
        ),
        "session.spawn_failed" => again(because(
            &format!(
                "no agent could be started in {}: {}",
                w.get("tmux_target"),
                spawn_phrase(w.get("reason"))
            ),
            "error",
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn told(event: &str, fields: &str) -> String {
        let json = format!(
            r#"{{"ts":"2026-11-30T14:05:41.000Z","source":"poll","event":"{event}","level":"info","pid":7,"host":"h",{fields}}}"#
        );
        tell(&Record::parse(json.as_bytes()).unwrap())
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
                "typed into loop-x as one message of 88 characters (attempt 2); its header says that it may be a \
                 repeat",
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
    fn every_type_is_told() {
        for kind in crate::eventlog::TYPES {
            assert!(!told(kind.name, r#""x":1"#).trim().is_empty());
        }
    }
}
