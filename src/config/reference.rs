//! The generated references: `docs/config.schema.json` and the tables of `docs/configuration.md`.
//!
//! `UPDATE_REFERENCES=1 cargo test references` writes them again.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::schema::{self, Key};
use super::walk::{Type, expectation, words};
use super::{Config, Environment, Loaded, PLACEHOLDERS};
use crate::references::{assert_up_to_date, docs, lower_first, spliced};

const KEYS: [&str; 2] = [
    "<!-- reference: begin (generated from the types in src/config) -->",
    "<!-- reference: end -->",
];
const PLACES: [&str; 2] = [
    "<!-- placeholders: begin (generated from src/config/template.rs) -->",
    "<!-- placeholders: end -->",
];

fn reference() -> String {
    let mut sections: Vec<(String, String, Vec<Key>)> = Vec::new();
    for key in schema::keys() {
        match key.path.split_once('.') {
            None => sections.push((key.path.clone(), description(&key), Vec::new())),
            Some(_) => {
                if let Some((_, _, keys)) = sections.last_mut()
                    && is_value(&key)
                {
                    keys.push(key);
                }
            }
        }
    }
    sections
        .into_iter()
        .map(|(name, description, keys)| {
            let rows: String = keys.iter().map(row).collect();
            format!(
                "### `{name}`\n\n{description}\n\n| key | value | default | meaning |\n|---|---|---|---|\n{rows}"
            )
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn row(key: &Key) -> String {
    let schema = schema::resolve(key.usage);
    let last = key.path.rsplit('.').next().unwrap_or_default();
    format!(
        "| `{}` | {} | {} | {} |\n",
        key.path,
        kind(schema, last),
        default(key),
        meaning(key)
    )
}

/// Sections and lists of sections are described by the keys in them.
fn is_value(key: &Key) -> bool {
    let schema = schema::resolve(key.usage);
    let items_are_maps = schema["items"].is_object() && {
        let reference = schema["items"]["$ref"].as_str();
        reference.is_some()
    };
    !items_are_maps && (Type::of(schema) != Type::Map || schema["additionalProperties"].is_object())
}

fn description(key: &Key) -> String {
    let own = key.usage["description"].as_str();
    let inherited = schema::resolve(key.usage)["description"].as_str();
    own.or(inherited)
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn meaning(key: &Key) -> String {
    let words = &schema::resolve(key.usage)["oneOf"];
    let words = words.as_array().into_iter().flatten().filter_map(|word| {
        let (name, meaning) = (word["const"].as_str()?, word["description"].as_str()?);
        Some(format!("`{name}`: {}", lower_first(meaning)))
    });
    let parts: Vec<String> = std::iter::once(description(key)).chain(words).collect();
    parts.join(" ").replace('|', "\\|")
}

fn kind(schema: &Value, key: &str) -> String {
    match Type::of(schema) {
        Type::Word => words(schema)
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Type::List => "list of texts".to_owned(),
        Type::Map => "map".to_owned(),
        Type::Truth | Type::Whole | Type::Number | Type::Text => expectation(schema, key),
    }
}

fn default(key: &Key) -> String {
    let default = &key.usage["default"];
    match (key.usage["x-default"].as_str(), default) {
        (Some(words), _) => words.to_owned(),
        (None, Value::Null) => "none".to_owned(),
        (None, Value::Array(items)) if items.is_empty() => "none".to_owned(),
        (None, Value::String(text)) => format!("`{text}`"),
        // 3.0 is how a number is kept; 3 is how it is written.
        (None, value) => format!("`{}`", value.to_string().trim_end_matches(".0")),
    }
}

/// The places of the operator's templates, as the configuration page lists them.
fn placeholders() -> String {
    let rows: String = PLACEHOLDERS
        .iter()
        .map(|place| format!("| `${}` | {} |\n", place.name, place.meaning))
        .collect();
    format!("| placeholder | stands for |\n|---|---|\n{rows}")
}

#[test]
fn generated_references_are_up_to_date() {
    assert_up_to_date("config.schema.json", &schema::text());
    let page = fs::read_to_string(docs("configuration.md")).unwrap();
    let page = spliced(&page, KEYS, &reference());
    let page = spliced(&page, PLACES, &placeholders());
    assert_up_to_date("configuration.md", &page);
}

#[test]
fn every_example_on_the_page_loads() {
    let page = fs::read_to_string(docs("configuration.md")).unwrap();
    let examples: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(example, _)| example))
        .collect();
    assert_eq!(examples.len(), 2);
    assert_eq!(examples[0], super::MINIMAL);
    for example in examples {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["src/app", ".the-loop/prompts"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let folder = dir.path().join(".the-loop");
        for prompt in ["event.md", "first.md"] {
            fs::write(folder.join("prompts").join(prompt), "$work_item").unwrap();
        }
        let file = folder.join("cli-config.yaml");
        fs::write(&file, example).unwrap();
        let env = Environment {
            home: Some(dir.path().to_owned()),
            ..Environment::default()
        };
        let loaded = Config::load(Some(&file), &env).unwrap();
        assert_eq!(loaded.warnings, []);
    }
}

#[test]
fn the_full_example_names_every_key() {
    let page = fs::read_to_string(docs("configuration.md")).unwrap();
    let example = page
        .split("```yaml\n")
        .nth(2)
        .unwrap()
        .split_once("```")
        .unwrap()
        .0;
    for key in schema::keys() {
        let name = key.path.rsplit('.').next().unwrap_or_default();
        assert!(
            name == "<name>" || example.contains(&format!("{name}:")),
            "{} is not in the example",
            key.path
        );
    }
}

#[test]
fn the_defaults_of_the_program_are_those_of_the_reference() {
    let env = Environment {
        home: Some("/nowhere".into()),
        ..Environment::default()
    };
    let loaded = Loaded::defaults(&env).unwrap();
    let effective: BTreeMap<String, Value> = loaded
        .config
        .settings(&loaded.origins)
        .into_iter()
        .map(|setting| {
            (
                setting
                    .key
                    .replace("harnesses.claude.", "harnesses.<name>."),
                setting.value,
            )
        })
        .collect();
    let merged_elsewhere = ["harnesses", "harnesses.<name>.env", "routing.harnessArgs"];
    let mut compared = 0;
    for key in schema::keys().into_iter().filter(is_value) {
        if key.path.contains("[]") || merged_elsewhere.contains(&key.path.as_str()) {
            continue;
        }
        let value = effective.get(&key.path);
        assert!(value.is_some(), "show lacks {}", key.path);
        if key.usage["x-default"].is_null() {
            assert_eq!(value, Some(&key.usage["default"]), "{}", key.path);
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}
