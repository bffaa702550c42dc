//! The sentence of each type.

use std::time::Duration;

use serde_json::Value;

use super::Record;
use super::phrases::{act, drop_phrase, hold_phrase, spawn_phrase};
use crate::model::text::count;

/// Reads fields for sentences; what is missing is left out of them.
pub(super) struct Words<'a>(&'a Record);

impl<'a> Words<'a> {
    pub(super) fn new(record: &'a Record) -> Self {
        Self(record)
    }

    pub(super) fn get(&self, field: &str) -> &'a str {
        self.0.text(field).unwrap_or_default()
    }

    pub(super) fn flag(&self, field: &str) -> bool {
        self.0
            .fields
            .get(field)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    pub(super) fn number(&self, field: &str) -> u64 {
        self.0.number(field).unwrap_or_default()
    }

    pub(super) fn by(&self) -> String {
        match self.get("actor") {
            "" => String::new(),
            actor => format!(" by @{actor}"),
        }
    }

    pub(super) fn list(&self, field: &str) -> Vec<&'a str> {
        let values = self.0.fields.get(field).and_then(Value::as_array);
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// `text: because`, or `text` where nothing is known.
    fn because(text: &str, because: &str) -> String {
        match (text, because) {
            (text, "") => text.to_owned(),
            ("", because) => because.to_owned(),
            (text, because) => format!("{text}: {because}"),
        }
    }

    fn attempt(&self) -> String {
        let retry = if self.flag("will_retry") {
            "; will retry"
        } else {
            "; given up"
        };
        match (self.number("attempt"), self.number("max_attempts")) {
            (0, _) => retry.trim_start_matches("; ").to_owned(),
            (attempt, 0) => format!("attempt {attempt}{retry}"),
            (attempt, max) => format!("attempt {attempt} of {max}{retry}"),
        }
    }
}

/// Returns what happened, in a word or two, and to what and why.
pub(super) fn words(record: &Record) -> (String, String) {
    let w = Words::new(record);
    let act = act(&w, &w.by());
    let (area, last) = record.event.split_once('.').unwrap_or((&record.event, ""));
    let (verb, detail) = match area {
        "dispatch" => dispatch(&w, last, &act),
        "session" => session(&w, last, &act),
        "control" => control(&w, last),
        "poll" | "poller" => poll(&w, &record.event, &act),
        _ => None,
    }
    .or_else(|| routing(&w, &record.event, &act))
    .unwrap_or_else(|| (last.replace('_', " "), plain(&w, &act)));
    (verb, detail)
}

/// What every record can say, for types that this version does not know.
fn plain(w: &Words<'_>, act: &str) -> String {
    let reason = match w.get("reason") {
        "" => w.get("detail"),
        reason => reason,
    };
    Words::because(&Words::because(act, reason), w.get("error"))
}

type Said = Option<(String, String)>;

fn said(verb: &str, detail: impl Into<String>) -> Said {
    Some((verb.to_owned(), detail.into()))
}

fn routing(w: &Words<'_>, event: &str, act: &str) -> Said {
    let count = w.number("count");
    match event {
        "routing.dropped" => said("dropped", Words::because(act, drop_phrase(w.get("reason")))),
        "inbox.accepted" => said("stored", act),
        "inbox.duplicate" => said("dropped", format!("{act}: already stored")),
        "inbox.baselined" => said(
            "first seen",
            format!("{count} older texts are known and will not be said"),
        ),
        "inbox.pruned" => said("pruned", format!("{count} payloads")),
        "item.armed" | "item.disarmed" | "item.reopened" => {
            said(event.trim_start_matches("item."), w.by().trim_start())
        }
        _ => None,
    }
}

fn dispatch(w: &Words<'_>, last: &str, act: &str) -> Said {
    match last {
        "succeeded" => {
            let held = match w.number("held_ms") {
                // Nobody notices less than a second.
                0..1000 => String::new(),
                held => format!(" (held {})", span(held)),
            };
            // The failure of a check has no text of its own.
            let chars = match w.number("chars") {
                0 => String::new(),
                chars => format!(", {chars} chars"),
            };
            let repeat = match w.get("possible_repeat") {
                "possible" => " (may be a repeat)",
                _ => "",
            };
            said("delivered", format!("{act}{chars}{held}{repeat}"))
        }
        "dropped" => {
            let reason = Words::because(act, drop_phrase(w.get("reason")));
            said("dropped", Words::because(&reason, w.get("error")))
        }
        "held" => {
            let reason = Words::because(act, hold_phrase(w.get("reason")));
            said("held", Words::because(&reason, w.get("detail")))
        }
        "failed" | "error" => said(
            "failed",
            format!("{act}: {} ({})", w.get("error"), w.attempt()),
        ),
        _ => None,
    }
}

fn session(w: &Words<'_>, last: &str, act: &str) -> Said {
    let (target, harness) = (w.get("tmux_target"), w.get("harness"));
    match last {
        "spawned" => said(
            "start",
            format!("{} → {harness} in {target}", person(w, act)),
        ),
        "spawn_failed" => {
            let why = Words::because(spawn_phrase(w.get("reason")), w.get("error"));
            said(
                "failed",
                format!("no session {target}: {why} ({})", w.attempt()),
            )
        }
        "respawned" => {
            let how = match w.get("ended") {
                "" => String::new(),
                ended => format!(" ({})", ended.replace(':', " ")),
            };
            let conversation = if w.flag("resumed") {
                "conversation resumed"
            } else {
                "fresh conversation"
            };
            said(
                "respawned",
                format!("session had ended{how}; {conversation}; {act} delivered"),
            )
        }
        "respawn_averted" => said(
            "live",
            format!("{target} had seemed to have ended; {act} delivered into it"),
        ),
        "resume_failed" => said(
            "no resume",
            format!("{}; a fresh conversation begins", w.get("error")),
        ),
        "retained" => said("retained", format!("{target} stays readable")),
        "closed" => said(last, format!("{harness}{}", w.by())),
        "harness_terminated" if w.flag("ok") => said("ended", format!("{harness} in {target}")),
        "harness_terminated" => said(
            "running",
            format!("{harness} in {target} did not end: {}", w.get("error")),
        ),
        "set_aside" => said(
            "set aside",
            format!(
                "{target} holds a person's pane; it is {} now",
                w.get("renamed_to")
            ),
        ),
        "autoclosed" => said("closed", closing(w.get("reason"))),
        "reset" => said(
            "reset",
            format!("removed {}{}", w.list("removed").join(", "), w.by()),
        ),
        _ => None,
    }
}

fn person(w: &Words<'_>, act: &str) -> String {
    match w.get("actor") {
        "" => act.to_owned(),
        actor => format!("@{actor}"),
    }
}

pub(super) fn closing(reason: &str) -> &str {
    match reason {
        "issue-closed" => "issue closed",
        "pr-merged" => "pull request merged",
        "pr-closed" => "pull request closed without a merge",
        other => other,
    }
}

fn control(w: &Words<'_>, last: &str) -> Said {
    let command = w.get("command");
    match last {
        "command" => said(command, format!("{}{}", w.get("effect"), w.by())),
        "rejected" => {
            let reason = drop_phrase(w.get("reason"));
            said(
                "refused",
                Words::because(&format!("{command}{}", w.by()), reason),
            )
        }
        _ => None,
    }
}

fn poll(w: &Words<'_>, event: &str, act: &str) -> Said {
    match event {
        "poll.cycle" => said("cycle", cycle(w)),
        "poll.closure_detected" if w.flag("merged") => said("closing", "pull request merged"),
        "poll.closure_detected" => said(
            "closing",
            format!("{} closed", w.get("item_kind").replace('-', " ")),
        ),
        "poll.provider_error" | "poll.item_error" => {
            said("failed", format!("{} ({})", w.get("error"), w.attempt()))
        }
        "poll.rate_limited" => said(
            "waits",
            format!("GitHub's rate limit, until {}", w.get("until")),
        ),
        "poll.comment_failed" | "poll.spawn_failed" => {
            let attempts = w.number("attempts");
            said(
                "given up",
                format!("{act}, after {attempts} attempts: {}", w.get("error")),
            )
        }
        "poll.rearmed" => said(
            "rearmed",
            format!(
                "version {} tries again what an older one gave up",
                w.get("version")
            ),
        ),
        "poller.started" => {
            let repos = w.list("repos").join(", ");
            let every = if w.flag("once") {
                "once".to_owned()
            } else {
                format!("every {} s", w.number("interval_seconds"))
            };
            said("started", format!("{repos} {every}"))
        }
        "poller.stopped" => {
            let after = format!("after {}", count(w.number("cycles"), "cycle"));
            said("stopped", Words::because(&after, w.get("error")))
        }
        "poller.blocked" => match w.number("holder") {
            0 => said(
                "not started",
                format!("another poller holds {}", w.get("lock")),
            ),
            holder => said(
                "not started",
                format!("poller {holder} holds {}", w.get("lock")),
            ),
        },
        _ => None,
    }
}

fn cycle(w: &Words<'_>) -> String {
    let mut text = format!(
        "{}, {} new, {} closed, {} failed, {} ({} unchanged), {:.2} s",
        count(w.number("items_seen"), "item"),
        w.number("comments_forwarded"),
        w.number("closures"),
        w.number("failures"),
        count(w.number("requests"), "request"),
        w.number("unchanged"),
        Duration::from_millis(w.number("duration_ms")).as_secs_f64()
    );
    if w.flag("interrupted") {
        text.push_str(", interrupted");
    }
    Words::because(&text, &w.list("errors").join("; "))
}

/// A span as people say it: `45 s`, `2 m 45 s`, `3 h 5 m`.
fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} m {s} s"),
        (h, m, _) => format!("{h} h {m} m"),
    }
}
