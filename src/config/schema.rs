//! The JSON Schema of the configuration file, made from the types that read it.
//!
//! It is what `the-loop config schema` prints, what the checker walks along, and what the reference
//! page is generated from.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event_log::EventLogFile;
use super::github::IntegrationsFile;
use super::harnesses::HarnessesFile;
use super::polling::PollingFile;
use super::routing::RoutingFile;
use super::state::StateFile;

/// The configuration of the-loop, `cli-config.yaml`.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "the-loop configuration")]
pub(super) struct ConfigFile {
    /// Where the program keeps what must survive.
    pub(super) state: StateFile,
    /// What is watched on GitHub, and how often.
    pub(super) polling: PollingFile,
    /// Who may act, which items get a session, and how sessions run.
    pub(super) routing: RoutingFile,
    /// The agent programs, by name; `claude` is built in and may be changed here.
    pub(super) harnesses: HarnessesFile,
    /// The record of every decision.
    pub(super) event_log: EventLogFile,
    /// Other services.
    pub(super) integrations: IntegrationsFile,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(ConfigFile).to_value();
    tidy(&mut schema);
    schema
});

/// Returns the schema.
pub(super) fn value() -> &'static Value {
    &SCHEMA
}

/// Returns the JSON Schema of the configuration file, indented, with a final newline.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", *SCHEMA)
}

/// Removes what says nothing to a reader: integer formats, defaults of whole sections, null defaults.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A property may be called `format` or `default`; a schema keyword never holds these.
            if map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            if map
                .get("default")
                .is_some_and(|default| default.is_null() || default.is_object())
                && !map.contains_key("properties")
            {
                map.remove("default");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Follows a `$ref` and the optional half of an `anyOf`.
pub(super) fn resolve(schema: &'static Value) -> &'static Value {
    let Some(name) = schema["$ref"].as_str() else {
        return schema;
    };
    name.strip_prefix('#')
        .and_then(|pointer| SCHEMA.pointer(pointer))
        .unwrap_or(schema)
}

/// Returns the schema of an object's known keys.
pub(super) fn properties(schema: &'static Value) -> Option<&'static Map<String, Value>> {
    schema["properties"].as_object()
}

/// One key of the configuration, as the reference page and "did you mean" need it.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// The path, with `[]` for list items and `<name>` for keys that the user chooses.
    pub(super) path: String,
    /// Its schema where it is used: description and default; may be a reference.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only the generated reference page reads it")
    )]
    pub(super) usage: &'static Value,
}

/// Returns every key, sections before what they hold.
pub(super) fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    collect(&SCHEMA, "", &mut keys);
    keys
}

fn collect(schema: &'static Value, path: &str, keys: &mut Vec<Key>) {
    let schema = resolve(schema);
    for (name, usage) in properties(schema).into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        keys.push(Key {
            path: path.clone(),
            usage,
        });
        collect(usage, &path, keys);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], &format!("{path}[]"), keys);
    }
    if schema["additionalProperties"].is_object() {
        collect(
            &schema["additionalProperties"],
            &format!("{path}.<name>"),
            keys,
        );
    }
}
