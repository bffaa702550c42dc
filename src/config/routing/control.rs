//! `routing.control`: the words that steer a work item in comments.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Checker;
use crate::config::key_path::KeyPath;
use crate::config::show::Settings;
use crate::model::ControlCommand;

/// The words that steer a work item in comments.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ControlFile {
    /// Whether comments can steer; otherwise only the command line does.
    enabled: bool,
    /// Whether an armed item waits for a start before it gets a session.
    require_start_command: bool,
    /// The words themselves; an empty one is switched off.
    keywords: KeywordsFile,
}

impl Default for ControlFile {
    fn default() -> Self {
        Self {
            enabled: true,
            require_start_command: true,
            keywords: KeywordsFile::default(),
        }
    }
}

/// The words themselves; an empty one is switched off.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct KeywordsFile {
    /// Starts work on the item, or resumes it.
    start: String,
    /// Ends the session and drops what waits for it.
    stop: String,
    /// Keeps the session but delivers nothing to it.
    pause: String,
    /// Delivers to a paused session again.
    resume: String,
}

impl Default for KeywordsFile {
    fn default() -> Self {
        let word = |command: ControlCommand| format!("the-loop {command}");
        Self {
            start: word(ControlCommand::Start),
            stop: word(ControlCommand::Stop),
            pause: word(ControlCommand::Pause),
            resume: word(ControlCommand::Resume),
        }
    }
}

/// The words that steer a work item in comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Whether comments can steer.
    pub enabled: bool,
    /// Whether an armed item waits for a start before it gets a session.
    pub require_start_command: bool,
    /// The words of the commands that are switched on: trimmed, not empty, all different.
    pub keywords: BTreeMap<ControlCommand, String>,
}

impl ControlFile {
    pub(super) fn validate(self, checker: &mut Checker<'_>) -> Control {
        let section = KeyPath::of("routing.control.keywords");
        let words = self.keywords;
        let mut keywords: BTreeMap<ControlCommand, String> = BTreeMap::new();
        for (command, word) in [
            (ControlCommand::Start, words.start),
            (ControlCommand::Stop, words.stop),
            (ControlCommand::Pause, words.pause),
            (ControlCommand::Resume, words.resume),
        ] {
            let key = section.key(command.as_str());
            let word = word.split_whitespace().collect::<Vec<_>>().join(" ");
            let taken = keywords
                .iter()
                .find(|(_, other)| other.to_lowercase() == word.to_lowercase())
                .map(|(other, _)| *other);
            if let Some(other) = taken {
                checker.problem(&key, &format!("is the same as the word of {other}"));
            } else if !word.is_empty() {
                keywords.insert(command, word);
            }
        }
        if self.enabled
            && self.require_start_command
            && !keywords.contains_key(&ControlCommand::Start)
        {
            checker.warning(
                &section.key("start"),
                "is switched off while requireStartCommand is true: only `the-loop sessions start` can start an agent",
            );
        }
        Control {
            enabled: self.enabled,
            require_start_command: self.require_start_command,
            keywords,
        }
    }
}

impl Control {
    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        let section = KeyPath::of("routing.control");
        out.put_at(&section.key("enabled"), self.enabled);
        out.put_at(
            &section.key("requireStartCommand"),
            self.require_start_command,
        );
        for command in ControlCommand::ALL {
            let word = self.keywords.get(&command).map_or("", String::as_str);
            out.put_at(&section.key("keywords").key(command.as_str()), word);
        }
    }
}
