//! The reference page of the vocabulary, made from the code.

use std::fmt::Write;

use super::{About, EventType, FIELDS, TYPES};

/// Returns `docs/event-types.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Event types\n\n\
         Generated from the code; do not edit. `the-loop events --types` prints the same list, and\n\
         [logging](logging.md) explains the log.\n\n\
         The first level is the usual one; the others are taken where the fields say so, for example a\n\
         dropped event of an account that is not authorised is a warning.\n\n\
         ## Types\n\n\
         | type | level | what it means | fields |\n|---|---|---|---|\n",
    );
    for kind in TYPES {
        // Writing to a string cannot fail.
        let _infallible = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            kind.name,
            levels(kind),
            kind.description,
            fields(kind)
        );
    }
    page.push_str("\n## Fields\n\n| field | what it says |\n|---|---|\n");
    for field in FIELDS {
        let _infallible = writeln!(page, "| `{}` | {} |", field.name, field.meaning);
    }
    page
}

fn levels(kind: &EventType) -> String {
    let words: Vec<&str> = kind.levels.iter().map(|level| level.as_str()).collect();
    words.join(", ")
}

fn fields(kind: &EventType) -> String {
    let words: Vec<String> = kind
        .all_fields()
        .map(|field| format!("`{field}`"))
        .collect();
    words.join(", ")
}

impl EventType {
    /// The fields of its records by name, with those of the delivery one by one.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().flat_map(|field| match *field {
            "about" => About::FIELDS.iter().copied(),
            _ => std::slice::from_ref(field).iter().copied(),
        })
    }
}
