//! `state`: where the program keeps what must survive.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::key_path::KeyPath;
use super::show::Settings;

/// Where the program keeps what must survive.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct StateFile {
    /// The folder of the database, the event log and the locks. Programs that share it work
    /// together.
    #[schemars(extend("x-default" = "the config file's folder"))]
    root: Option<String>,
    /// How long the texts of settled events are kept; their keys stay longer, so that nothing is
    /// said twice.
    #[schemars(range(min = 1))]
    retention_days: u32,
}

impl Default for StateFile {
    fn default() -> Self {
        Self {
            root: None,
            retention_days: 30,
        }
    }
}

/// Where the program keeps what must survive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The folder of the database, the event log and the locks; absolute.
    pub root: PathBuf,
    /// How many days the payloads of settled events are kept.
    pub retention_days: u32,
}

impl StateFile {
    pub(super) fn validate(self, checker: &mut Checker<'_>) -> State {
        let key = KeyPath::of("state.root");
        let root = match self.root {
            Some(root) => checker.path(&key, &root),
            None => checker.folder().to_owned(),
        };
        if root.exists() && !root.is_dir() {
            checker.problem(&key, "is not a folder");
        }
        State {
            root,
            retention_days: self.retention_days,
        }
    }
}

impl State {
    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        out.put("state.root", &self.root);
        out.put("state.retentionDays", self.retention_days);
    }
}
