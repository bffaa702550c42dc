//! Compares the file with the schema and names every difference.
//!
//! The walk returns the file's value with all that is wrong replaced by something harmless, so that
//! the rest can be checked further and everything is reported at once. Where nothing is wrong, the
//! value is the file's.

use serde_json::{Map, Value, json};

use super::key_path::KeyPath;
use super::problem::{Place, Problem};
use super::retired;
use super::schema;
use super::tree::{Entry, Kind, Node};
use super::{secret, suggest};
use crate::model::text::one_line;

/// Compares the whole file.
pub(super) fn walk(tree: &Node) -> (Value, Vec<Problem>) {
    let mut walk = Walk {
        problems: Vec::new(),
    };
    let value = if tree.kind == Kind::Null {
        json!({})
    } else {
        walk.check(tree, schema::value(), &KeyPath::default())
    };
    (value, walk.problems)
}

struct Walk {
    problems: Vec<Problem>,
}

impl Walk {
    fn problem(&mut self, place: Place, path: &KeyPath, message: &str) {
        self.problems.push(Problem::new(Some(place), path, message));
    }

    fn check(&mut self, node: &Node, schema: &'static Value, path: &KeyPath) -> Value {
        let schema = schema::resolve(schema);
        let checked = match (Type::of(schema), &node.kind) {
            (Type::Map, Kind::Map(entries)) => Some(self.map(entries, schema, path)),
            (Type::List, Kind::List(items)) => Some(self.list(items, schema, path)),
            (Type::Truth, Kind::Bool(value)) => Some((*value).into()),
            (Type::Whole | Type::Number, Kind::Number(number)) => in_range(number, schema),
            (Type::Word, Kind::Text(text)) => words(schema)
                .contains(&text.as_str())
                .then(|| text.as_str().into()),
            (Type::Text, Kind::Text(text)) => return self.text(node, text, path),
            _ => None,
        };
        checked.unwrap_or_else(|| {
            self.problem(node.place, path, &mismatch(node, schema, path));
            harmless(schema)
        })
    }

    fn text(&mut self, node: &Node, text: &str, path: &KeyPath) -> Value {
        if text
            .chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t')
        {
            self.problem(node.place, path, "holds a control character; delete it");
            return "".into();
        }
        text.into()
    }

    fn list(&mut self, items: &[Node], schema: &'static Value, path: &KeyPath) -> Value {
        items
            .iter()
            .enumerate()
            .map(|(at, item)| self.check(item, &schema["items"], &path.index(at)))
            .collect()
    }

    fn map(&mut self, entries: &[Entry], schema: &'static Value, path: &KeyPath) -> Value {
        let mut map = Map::new();
        let chosen_by_user =
            Some(&schema["additionalProperties"]).filter(|inner| inner.is_object());
        for entry in entries {
            let path = path.key(&entry.key);
            let known = schema::properties(schema).and_then(|known| known.get(&entry.key));
            let is_known = known.is_some();
            let Some(inner) = known.or(chosen_by_user) else {
                self.unknown(entry, schema, &path);
                continue;
            };
            let value = match entry.value.kind {
                // A key whose value is left out is a key that is not given.
                Kind::Null if is_known => continue,
                Kind::Null if Type::of(schema::resolve(inner)) == Type::Map => json!({}),
                _ => self.check(&entry.value, inner, &path),
            };
            map.insert(entry.key.clone(), value);
        }
        map.into()
    }

    fn unknown(&mut self, entry: &Entry, schema: &'static Value, path: &KeyPath) {
        let message = if let Some(fate) = retired::fate(&path.pattern()) {
            fate.message(matches!(entry.value.kind, Kind::Map(_)))
        } else {
            let here = schema::properties(schema)
                .into_iter()
                .flatten()
                .map(|(key, _)| key.as_str());
            match suggest::nearest(&entry.key, here) {
                Some(near) => format!("unknown key; did you mean {near}?"),
                None => match elsewhere(&entry.key) {
                    Some(place) => format!("unknown key here; did you mean {place}?"),
                    None => "unknown key; `the-loop config schema` lists every key".to_owned(),
                },
            }
        };
        self.problem(entry.key_place, path, &message);
    }
}

/// Finds the one place where a key of this name is valid.
fn elsewhere(key: &str) -> Option<String> {
    let mut places = schema::keys()
        .into_iter()
        .map(|known| known.path)
        .filter(|path| path.rsplit('.').next() == Some(key));
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

/// What kind of value the schema asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Map,
    List,
    Truth,
    Whole,
    Number,
    Word,
    Text,
}

impl Type {
    /// Reads it from the schema of a value, references followed.
    pub(super) fn of(schema: &Value) -> Self {
        if schema["enum"].is_array() || schema["oneOf"].is_array() {
            return Self::Word;
        }
        let name = match &schema["type"] {
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .find(|name| *name != "null"),
            name => name.as_str(),
        };
        match name {
            Some("object") => Self::Map,
            Some("array") => Self::List,
            Some("boolean") => Self::Truth,
            Some("integer") => Self::Whole,
            Some("number") => Self::Number,
            _ => Self::Text,
        }
    }
}

/// Returns the words that an enumeration allows.
pub(super) fn words(schema: &Value) -> Vec<&str> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let documented = schema["oneOf"].as_array().into_iter().flatten();
    plain
        .filter_map(Value::as_str)
        .chain(documented.flat_map(|word| {
            let listed = word["enum"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            word["const"].as_str().into_iter().chain(listed)
        }))
        .collect()
}

fn in_range(number: &serde_json::Number, schema: &Value) -> Option<Value> {
    if Type::of(schema) == Type::Whole && !number.is_i64() && !number.is_u64() {
        return None;
    }
    let value = number.as_f64()?;
    // Whole numbers are read into 32 bits; no key means anything beyond.
    if Type::of(schema) == Type::Whole && value > f64::from(u32::MAX) {
        return None;
    }
    let above = schema["minimum"]
        .as_f64()
        .is_none_or(|least| value >= least);
    let below = schema["maximum"].as_f64().is_none_or(|most| value <= most);
    (above && below).then(|| number.clone().into())
}

fn mismatch(node: &Node, schema: &Value, path: &KeyPath) -> String {
    let expected = expectation(schema, path.last_key().unwrap_or_default());
    let found = found(node, path);
    let advice = match (Type::of(schema), &node.kind) {
        (Type::Text, Kind::Bool(_) | Kind::Number(_)) => "; put it in quotes".to_owned(),
        (Type::Truth, Kind::Text(text)) if matches!(text.as_str(), "true" | "false") => {
            "; write it without quotes".to_owned()
        }
        (Type::Word, Kind::Text(text)) => suggest::nearest(text, words(schema))
            .map_or_else(String::new, |near| format!("; did you mean {near}?")),
        _ => String::new(),
    };
    format!("expected {expected}, found {found}{advice}")
}

/// Says what a value must be: `a whole number of seconds ≥ 1`.
pub(super) fn expectation(schema: &Value, key: &str) -> String {
    let unit = ["Milliseconds", "Seconds", "Days", "Bytes"]
        .into_iter()
        .find(|unit| key.ends_with(unit))
        .map_or_else(String::new, |unit| {
            format!(" of {}", unit.to_ascii_lowercase())
        });
    match Type::of(schema) {
        Type::Map => "a map of keys".to_owned(),
        Type::List => "a list".to_owned(),
        Type::Truth => "true or false".to_owned(),
        Type::Whole => format!("a whole number{unit}{}", range(schema)),
        Type::Number => format!("a number{unit}{}", range(schema)),
        Type::Text => "text".to_owned(),
        Type::Word => match words(schema).as_slice() {
            [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
            words => words.join(", "),
        },
    }
}

/// Says the bounds of a number, in words that fit behind it; a bound beyond reach is left out.
fn range(schema: &Value) -> String {
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" ≥ {least}"),
        (None, Some(most)) => format!(" ≤ {most}"),
        (None, None) => String::new(),
    }
}

fn found(node: &Node, path: &KeyPath) -> String {
    let is_secret = path.last_key().is_some_and(secret::is_secret_name);
    match &node.kind {
        Kind::Null => "nothing".to_owned(),
        Kind::List(_) => "a list".to_owned(),
        Kind::Map(_) => "a map of keys".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Number(_) if is_secret => "a number".to_owned(),
        Kind::Number(number) => number.to_string(),
        Kind::Text(_) if is_secret => "a text".to_owned(),
        Kind::Text(text) => format!("\"{}\"", one_line(text, 40)),
    }
}

/// Returns a value that fits the schema, in place of one that does not.
fn harmless(schema: &Value) -> Value {
    match Type::of(schema) {
        Type::Map => json!({}),
        Type::List => json!([]),
        Type::Truth => json!(false),
        Type::Whole | Type::Number => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Type::Word => words(schema).first().map_or(json!(""), |word| json!(word)),
        Type::Text => json!(""),
    }
}

#[cfg(test)]
mod tests;
