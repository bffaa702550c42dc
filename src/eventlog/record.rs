//! One line of the log, read back.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

/// How loud a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever looks closely.
    Debug,
    /// The ordinary course.
    Info,
    /// Somebody may want to know.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    /// Every level, the quietest first.
    pub const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warning, Self::Error];

    /// Returns the level as the log writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == word)
            .ok_or_else(|| format!("{word:?} is not a level: use debug, info, warning or error"))
    }
}

/// One record: the envelope and what its type adds.
///
/// Types, sources and fields that this version does not know are kept as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When it was written.
    pub ts: DateTime<Utc>,
    /// Which part of the program wrote it.
    pub source: String,
    /// The name of its type.
    pub event: String,
    /// How loud it is.
    pub level: Level,
    /// The process that wrote it.
    pub pid: u32,
    /// The machine that wrote it.
    pub host: String,
    /// What its type adds.
    pub fields: Map<String, Value>,
}

impl Record {
    /// Reads one line; nothing where it is no record.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let ts = fields.remove("ts")?;
        let ts = DateTime::parse_from_rfc3339(ts.as_str()?).ok()?;
        let event = fields.remove("event")?.as_str()?.to_owned();
        let mut word = |key: &str| match fields.remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (source, level, host) = (word("source"), word("level"), word("host"));
        let pid = fields.remove("pid").and_then(|pid| pid.as_u64());
        Some(Self {
            ts: ts.to_utc(),
            source,
            event,
            level: level.parse().unwrap_or(Level::Info),
            pid: pid.and_then(|pid| pid.try_into().ok()).unwrap_or_default(),
            host,
            fields,
        })
    }

    /// Returns the record as the log writes it, without the line's end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let head = Head {
            ts: stamp(self.ts),
            source: &self.source,
            event: &self.event,
            level: self.level,
            pid: self.pid,
            host: &self.host,
        };
        // A map of JSON values always serialises.
        join(
            &head,
            &serde_json::to_string(&self.fields).unwrap_or_default(),
        )
    }

    /// Returns a field's text, where it is there and is one.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    /// Returns a field's number, where it is there and is one.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(Value::as_u64)
    }

    /// Returns the work items that the record names, as refs.
    pub fn work_items(&self) -> impl Iterator<Item = &str> {
        let many = self.fields.get("work_items").and_then(Value::as_array);
        let many = many.into_iter().flatten().filter_map(Value::as_str);
        self.text("work_item").into_iter().chain(many)
    }
}

/// The envelope as it is written.
#[derive(Debug, Serialize)]
pub(super) struct Head<'a> {
    pub(super) ts: String,
    pub(super) source: &'a str,
    pub(super) event: &'a str,
    pub(super) level: Level,
    pub(super) pid: u32,
    pub(super) host: &'a str,
}

/// Returns a time as the log writes it.
pub(super) fn stamp(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Joins the envelope and a JSON object of fields into one object, the envelope first.
pub(super) fn join(head: &Head<'_>, fields: &str) -> String {
    // Plain strings and numbers always serialise.
    let head = serde_json::to_string(head).unwrap_or_default();
    let head = head.trim_end_matches('}');
    match fields.strip_prefix('{') {
        None | Some("}") => format!("{head}}}"),
        Some(fields) => format!("{head},{fields}"),
    }
}
