//! What a configuration amounts to, for people and for programs.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::key_path::KeyPath;
use super::load::Loaded;
use super::problem::{Verdict, table};
use super::tree::{Kind, Node};
use super::{Config, FoundBy};
use crate::model::text::count;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The file, in this line.
    File {
        /// The line, from 1.
        line: usize,
    },
    /// An option of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
}

/// Where each value of a configuration comes from.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    pub(super) fn of(tree: &Node) -> Self {
        let mut origins = Self::default();
        origins.collect(tree, &KeyPath::default());
        origins
    }

    fn collect(&mut self, node: &Node, path: &KeyPath) {
        match &node.kind {
            Kind::Map(entries) => {
                for entry in entries
                    .iter()
                    .filter(|entry| entry.value.kind != Kind::Null)
                {
                    let path = path.key(&entry.key);
                    let line = entry.key_place.line;
                    self.0.insert(path.to_string(), Origin::File { line });
                    self.collect(&entry.value, &path);
                }
            }
            Kind::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.collect(item, &path.index(at));
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
        }
    }

    /// Returns where the value of this key comes from: `polling.intervalSeconds`.
    #[must_use]
    pub fn of_key(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Notes that something outside the file decided the value of this key.
    pub fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), origin);
    }
}

/// One effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key's path.
    pub key: String,
    /// The value, in the units of the file; secrets are hidden.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// Collects effective values; each section adds its own.
pub(super) struct Settings<'a> {
    origins: &'a Origins,
    list: Vec<Setting>,
}

impl Settings<'_> {
    pub(super) fn put(&mut self, key: &str, value: impl Serialize) {
        let origin = self.origins.of_key(key);
        self.add(key.to_owned(), value, origin);
    }

    pub(super) fn put_at(&mut self, path: &KeyPath, value: impl Serialize) {
        self.put(&path.to_string(), value);
    }

    /// Adds a value that a second key contributes to.
    pub(super) fn put_joined(&mut self, path: &KeyPath, also: &KeyPath, value: impl Serialize) {
        let key = path.to_string();
        let origin = match self.origins.of_key(&key) {
            Origin::Default => self.origins.of_key(&also.to_string()),
            origin => origin,
        };
        self.add(key, value, origin);
    }

    fn add(&mut self, key: String, value: impl Serialize, origin: Origin) {
        // Only a path that is not UTF-8 cannot be shown, and the file, which is, holds none.
        let value = serde_json::to_value(value).unwrap_or_default();
        self.list.push(Setting { key, value, origin });
    }
}

impl Config {
    /// Returns every effective value, section by section.
    #[must_use]
    pub fn settings(&self, origins: &Origins) -> Vec<Setting> {
        let mut out = Settings {
            origins,
            list: Vec::new(),
        };
        self.state.settings(&mut out);
        self.polling.settings(&mut out);
        self.routing.settings(&mut out);
        for (name, harness) in &self.harnesses {
            harness.settings(name, &mut out);
        }
        self.event_log.settings(&mut out);
        self.integrations.settings(&mut out);
        out.list
    }
}

impl Loaded {
    /// Returns the text of `config show`: one value a line, with its origin where it is not a default.
    #[must_use]
    pub fn show(&self) -> String {
        let settings = self.config.settings(&self.origins);
        let rows: Vec<(String, String, String)> = settings
            .into_iter()
            .map(|setting| {
                let origin = self.describe(&setting.origin);
                (setting.key, plain(&setting.value), origin)
            })
            .collect();
        let width = |cells: &mut dyn Iterator<Item = usize>, most: usize| {
            cells.max().unwrap_or(0).min(most)
        };
        let keys = width(&mut rows.iter().map(|row| row.0.chars().count()), 48);
        let values = width(&mut rows.iter().map(|row| row.1.chars().count()), 40);
        let mut text = format!("# {} ({})\n", self.shown_path, self.found_by.describe());
        for (key, value, origin) in rows {
            text.push_str(format!("{key:<keys$}   {value:<values$}   {origin}").trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the object that `config show --json` prints.
    #[must_use]
    pub fn show_json(&self) -> Value {
        let settings: Vec<Value> = self
            .config
            .settings(&self.origins)
            .into_iter()
            .map(|setting| {
                let mut row = json!({
                    "key": setting.key,
                    "value": setting.value,
                    "origin": match setting.origin {
                        Origin::Default => "default",
                        Origin::File { .. } => "file",
                        Origin::Flag(_) => "flag",
                        Origin::Variable(_) => "environment",
                    },
                });
                match setting.origin {
                    Origin::Default => {}
                    Origin::File { line } => row["line"] = line.into(),
                    Origin::Flag(name) | Origin::Variable(name) => row["name"] = name.into(),
                }
                row
            })
            .collect();
        json!({
            "file": self.path.as_deref().map(Path::to_string_lossy),
            "foundBy": match self.found_by {
                FoundBy::Flag => "flag",
                FoundBy::Variable => "environment",
                FoundBy::Default => "default",
            },
            "settings": settings,
        })
    }

    /// Returns the text of `config check` for a file without problems.
    #[must_use]
    pub fn check_report(&self) -> String {
        let polling = &self.config.polling;
        let repos = polling
            .sources
            .iter()
            .map(|source| source.repos.len() as u64)
            .sum();
        let users = &self.config.routing.authorized_users;
        let users = if users.is_empty() {
            "nobody".to_owned()
        } else {
            users
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut parts = vec![format!(
            "{} is valid ({}): {}, acting for {users}\n",
            self.shown_path,
            self.found_by.describe(),
            count(repos, "repository"),
        )];
        if !self.warnings.is_empty() {
            let title = count(self.warnings.len() as u64, "warning");
            parts.push(format!("{title}\n\n{}\n", table(&self.warnings)));
        }
        parts.extend(self.notes.iter().map(|note| format!("note: {note}\n")));
        parts.join("\n")
    }

    /// Returns the object that `config check --json` prints for a file without problems.
    #[must_use]
    pub fn check_json(&self) -> Value {
        Verdict {
            file: self.path.as_deref(),
            valid: true,
            problems: &[],
            warnings: &self.warnings,
            notes: &self.notes,
        }
        .json()
    }

    fn describe(&self, origin: &Origin) -> String {
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::File { line } => format!("{}:{line}", self.shown_path),
            Origin::Flag(name) => (*name).to_owned(),
            Origin::Variable(name) => format!("${name}"),
        }
    }
}

/// Shows a value as it could be written into the file, on one line.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        // 3.0 is how a number is kept; 3 is how it is written.
        Value::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        // A multi-line text would break the table; JSON's escapes are YAML's too.
        Value::String(text) if text.contains(['\n', ',', '[', ']']) => value.to_string(),
        scalar => serde_yaml::to_string(scalar)
            .map_or_else(|_| scalar.to_string(), |text| text.trim_end().to_owned()),
    }
}
