//! Looking at processes where there is no `/proc`, through the system's `ps`.
//!
//! The start time has a resolution of one second there, so two processes of one pid within one
//! second are taken for the same.

use chrono::NaiveDateTime;

use super::child::{Answer, ask};
use super::identity::{Found, Look, State};

pub(super) fn look(pid: i32) -> Found {
    let pid = pid.to_string();
    // One option each: an empty heading ends only with its argument.
    match ask("/bin/ps", &["-o", "lstart=", "-o", "state=", "-p", &pid]) {
        Answer::Text(line) => parse(&line).map_or(Found::Silence, Found::Process),
        Answer::Nothing => Found::Nothing,
        Answer::Silence => Found::Silence,
    }
}

pub(super) fn boot_id() -> Option<String> {
    match ask("/usr/sbin/sysctl", &["-n", "kern.bootsessionuuid"]) {
        Answer::Text(id) => Some(id.trim().to_owned()),
        Answer::Nothing | Answer::Silence => None,
    }
}

/// There is but one.
pub(super) fn pid_namespace() -> Option<String> {
    None
}

/// Reads `Mon Nov 30 17:07:25 2026 S+`.
fn parse(line: &str) -> Option<Look> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (state, started) = words.split_last()?;
    let started = NaiveDateTime::parse_from_str(&started.join(" "), "%a %b %d %H:%M:%S %Y").ok()?;
    // `ask` runs the tool in UTC: local time jumps, and a machine may change its zone meanwhile.
    let started = started.and_utc();
    Some(Look {
        start: u64::try_from(started.timestamp_micros()).ok()?,
        state: match state.chars().next()? {
            'Z' => State::Zombie,
            'T' => State::Stopped,
            _ => State::Active,
        },
    })
}
