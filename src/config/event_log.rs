//! `eventLog`: the record of every decision.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::key_path::KeyPath;
use super::show::Settings;

/// The record of every decision.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct EventLogFile {
    /// Whether decisions are written down.
    enabled: bool,
    /// The file, one JSON object a line.
    #[schemars(extend("x-default" = "logs/events.jsonl below state.root"))]
    path: Option<String>,
    /// The size at which a new file is begun.
    #[schemars(range(min = 65_536))]
    max_bytes: u32,
    /// How many full files are kept beside the current one.
    #[schemars(range(min = 1))]
    keep_files: u32,
}

impl Default for EventLogFile {
    fn default() -> Self {
        Self {
            enabled: true,
            path: None,
            max_bytes: 10 * 1024 * 1024,
            keep_files: 5,
        }
    }
}

/// The record of every decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLog {
    /// Whether decisions are written down.
    pub enabled: bool,
    /// The file; absolute.
    pub path: PathBuf,
    /// The size at which a new file is begun.
    pub max_bytes: u64,
    /// How many full files are kept beside the current one; at least 1.
    pub keep_files: u32,
}

impl EventLogFile {
    pub(super) fn validate(self, state_root: &Path, checker: &mut Checker<'_>) -> EventLog {
        let key = KeyPath::of("eventLog.path");
        let path = match self.path {
            Some(path) => checker.path(&key, &path),
            None => state_root.join("logs/events.jsonl"),
        };
        if path.is_dir() {
            checker.problem(&key, "is a folder; name a file");
        }
        EventLog {
            enabled: self.enabled,
            path,
            max_bytes: self.max_bytes.into(),
            keep_files: self.keep_files,
        }
    }
}

impl EventLog {
    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        out.put("eventLog.enabled", self.enabled);
        out.put("eventLog.path", &self.path);
        out.put("eventLog.maxBytes", self.max_bytes);
        out.put("eventLog.keepFiles", self.keep_files);
    }
}
