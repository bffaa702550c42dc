//! Which records somebody wants to see.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};

use super::{Level, Record};
use crate::model::{EventKey, WorkItemRef};

/// What a record must be like; an empty filter takes all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Type names, where `*` stands for any text and `?` for any character; one must match.
    pub types: Vec<String>,
    /// The work item that it names, as its own or in a list.
    pub work_item: Option<WorkItemRef>,
    /// A delivery's number, an event's key, or a key without host and version (`issue_comment:2451`).
    pub delivery: Option<String>,
    /// The part of the program that wrote it.
    pub source: Option<String>,
    /// The quietest level.
    pub min_level: Option<Level>,
    /// The earliest time.
    pub since: Option<DateTime<Utc>>,
}

impl Filter {
    /// Tells whether a record is wanted.
    #[must_use]
    pub fn takes(&self, record: &Record) -> bool {
        let type_matches =
            self.types.is_empty() || self.types.iter().any(|glob| matches(glob, &record.event));
        type_matches
            && self.min_level.is_none_or(|level| record.level >= level)
            && self.since.is_none_or(|since| record.ts >= since)
            && self
                .source
                .as_ref()
                .is_none_or(|source| *source == record.source)
            && self.work_item.as_ref().is_none_or(|item| {
                let key = item.key();
                record
                    .work_items()
                    .any(|named| named.eq_ignore_ascii_case(&key))
            })
            && self
                .delivery
                .as_deref()
                .is_none_or(|wanted| is_about(record, wanted))
    }
}

fn is_about(record: &Record, wanted: &str) -> bool {
    let number = wanted.parse().ok();
    if number.is_some() {
        let listed = record
            .fields
            .get("deliveries")
            .and_then(|list| list.as_array());
        return record.number("delivery") == number
            || listed.is_some_and(|list| list.iter().any(|delivery| delivery.as_u64() == number));
    }
    record.text("gh_delivery") == Some(wanted)
        || record.text("key").is_some_and(|key| {
            let stored = EventKey::from_stored(key.to_owned());
            let object = stored.object();
            let without_host = |text: &str| {
                text.strip_suffix(wanted)
                    .is_some_and(|host| host.ends_with(':'))
            };
            key == wanted || object == wanted || without_host(object) || without_host(key)
        })
}

/// Matches without backtracking over more than the last `*`, so no pattern is slow.
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut g, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                g += 1;
                n += 1;
            }
            _ => {
                let Some((star_g, star_n)) = star else {
                    return false;
                };
                star = Some((star_g, star_n + 1));
                g = star_g + 1;
                n = star_n + 1;
            }
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

/// A text that says no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a time: write a span (90s, 15m, 2h, 7d), a date (2026-11-30) or a time in UTC (2026-11-30T14:05:00Z)"
)]
pub struct BadSince {
    /// What was given.
    pub text: String,
}

/// Reads the start of a time range: a span back from `now`, or a date or time (UTC where no zone is given).
///
/// # Errors
/// [`BadSince`] when it is none of them, or lies outside the calendar.
pub fn parse_since(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, BadSince> {
    let bad = || BadSince {
        text: text.to_owned(),
    };
    let trimmed = text.trim();
    if let Some(at) = trimmed.len().checked_sub(1)
        && trimmed.is_char_boundary(at)
        && let Ok(count) = trimmed[..at].parse::<u32>()
    {
        let unit = match &trimmed[at..] {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86400,
            _ => return Err(bad()),
        };
        let span = TimeDelta::try_seconds(i64::from(count) * unit).ok_or_else(bad)?;
        return now.checked_sub_signed(span).ok_or_else(bad);
    }
    let with_zone = DateTime::parse_from_rfc3339(trimmed).map(|at| at.to_utc());
    let plain = || {
        [
            "%Y-%m-%dT%H:%M:%S%.f",
            "%Y-%m-%d %H:%M:%S%.f",
            "%Y-%m-%dT%H:%M",
            "%Y-%m-%d %H:%M",
        ]
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(trimmed, form).ok())
    };
    let date = || {
        let date = NaiveDate::parse_from_str(trimmed, "%Y-%m-%d").ok()?;
        Some(date.and_time(NaiveTime::MIN))
    };
    with_zone
        .ok()
        .or_else(|| plain().or_else(date).map(|at| at.and_utc()))
        .ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(line: &str) -> Record {
        Record::parse(line.as_bytes()).unwrap()
    }

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    #[test]
    fn each_condition_narrows_the_selection() {
        let record = record(
            r#"{"ts":"2026-11-30T14:05:41.000Z","source":"poll","event":"dispatch.dropped","level":"info","pid":7,"host":"h",
                "work_item":"github:Octo/App#15","delivery":12,"key":"github.com:issue_comment:2451@00aa","work_items":["github:o/other#1"]}"#,
        );
        let empty = Filter::default;
        for (name, filter, expected) in [
            ("all", empty(), true),
            (
                "type",
                Filter {
                    types: vec!["dispatch.*".into()],
                    ..empty()
                },
                true,
            ),
            (
                "one of the types",
                Filter {
                    types: vec!["poll.*".into(), "*.dropped".into()],
                    ..empty()
                },
                true,
            ),
            (
                "another type",
                Filter {
                    types: vec!["dispatch".into()],
                    ..empty()
                },
                false,
            ),
            (
                "item in another case",
                Filter {
                    work_item: "octo/app#15".parse().ok(),
                    ..empty()
                },
                true,
            ),
            (
                "item in the list",
                Filter {
                    work_item: "o/other#1".parse().ok(),
                    ..empty()
                },
                true,
            ),
            (
                "a longer number",
                Filter {
                    work_item: "octo/app#1".parse().ok(),
                    ..empty()
                },
                false,
            ),
            (
                "delivery",
                Filter {
                    delivery: Some("12".into()),
                    ..empty()
                },
                true,
            ),
            (
                "another delivery",
                Filter {
                    delivery: Some("1".into()),
                    ..empty()
                },
                false,
            ),
            (
                "object",
                Filter {
                    delivery: Some("issue_comment:2451".into()),
                    ..empty()
                },
                true,
            ),
            (
                "half a kind",
                Filter {
                    delivery: Some("comment:2451".into()),
                    ..empty()
                },
                false,
            ),
            (
                "whole key",
                Filter {
                    delivery: Some("github.com:issue_comment:2451@00aa".into()),
                    ..empty()
                },
                true,
            ),
            (
                "source",
                Filter {
                    source: Some("poll".into()),
                    ..empty()
                },
                true,
            ),
            (
                "any other source",
                Filter {
                    source: Some("later".into()),
                    ..empty()
                },
                false,
            ),
            (
                "level",
                Filter {
                    min_level: Some(Level::Info),
                    ..empty()
                },
                true,
            ),
            (
                "louder",
                Filter {
                    min_level: Some(Level::Warning),
                    ..empty()
                },
                false,
            ),
            (
                "since then",
                Filter {
                    since: Some(at("2026-11-30T14:05:41Z")),
                    ..empty()
                },
                true,
            ),
            (
                "since later",
                Filter {
                    since: Some(at("2026-11-30T14:05:42Z")),
                    ..empty()
                },
                false,
            ),
        ] {
            assert_eq!(filter.takes(&record), expected, "{name}");
        }
    }

    #[test]
    fn a_time_is_a_span_a_date_or_an_instant() {
        let now = at("2026-11-30T14:00:00Z");
        for (text, expected) in [
            ("90s", "2026-11-30T13:58:30Z"),
            ("15m", "2026-11-30T13:45:00Z"),
            ("2h", "2026-11-30T12:00:00Z"),
            ("7d", "2026-11-23T14:00:00Z"),
            ("2026-11-29", "2026-11-29T00:00:00Z"),
            ("2026-11-29T10:00", "2026-11-29T10:00:00Z"),
            ("2026-11-29 10:00:05", "2026-11-29T10:00:05Z"),
            ("2026-11-29T10:00:05+02:00", "2026-11-29T08:00:05Z"),
        ] {
            assert_eq!(parse_since(text, now), Ok(at(expected)), "{text}");
        }
        for text in ["", "h", "5", "5w", "-5m", "yesterday", "4294967295d", "9€"] {
            assert!(parse_since(text, now).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_glob_without_stars_matches_only_itself(name in "[a-z._]{0,12}", other in "[a-z._]{0,12}") {
            prop_assert!(matches(&name, &name));
            prop_assert_eq!(matches(&name, &other), name == other);
            let around = format!("*{name}*");
            let longer = format!("{other}{name}{other}");
            prop_assert!(matches(&around, &longer));
        }

        #[test]
        fn no_text_makes_the_time_parser_panic(text in "\\PC*") {
            drop(parse_since(&text, DateTime::<Utc>::MIN_UTC));
        }
    }
}
