//! Templates with named places.

use super::message::Values;

/// A place in a template, and what comes to stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder {
    /// Its name, without the `$`.
    pub name: &'static str,
    /// What it stands for, in one line.
    pub meaning: &'static str,
}

/// Every placeholder that a template may use.
pub const PLACEHOLDERS: &[Placeholder] = &[
    Placeholder {
        name: "actor",
        meaning: "login of the one who acted, with `@`; `nobody` where there is none",
    },
    Placeholder {
        name: "event",
        meaning: "what happened: `comment`, `review (approved)`, `CI failure`, …",
    },
    Placeholder {
        name: "interaction",
        meaning: "where to ask, as `routing.interaction.mode` says",
    },
    Placeholder {
        name: "marker",
        meaning: "the line that must end everything the agent writes on GitHub",
    },
    Placeholder {
        name: "repository",
        meaning: "the work item's repository: `octo/app`",
    },
    Placeholder {
        name: "text",
        meaning: "what was said, with what it refers to; added at the end where a template lacks it",
    },
    Placeholder {
        name: "title",
        meaning: "the item's title, fenced and labelled as the text of others",
    },
    Placeholder {
        name: "url",
        meaning: "where the event stands on GitHub",
    },
    Placeholder {
        name: "work_item",
        meaning: "the work item: `octo/app#15`",
    },
];

/// A template names a place that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: ${name} is no placeholder{}", hint(*nearest))]
pub struct UnknownPlaceholder {
    /// What it says.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The placeholder that was probably meant.
    pub nearest: Option<&'static str>,
}

fn hint(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(
        || String::from("; write $$ for a dollar sign"),
        |name| format!("; did you mean ${name}?"),
    )
}

/// A text with places for `$name` or `${name}`; `$$` is a dollar sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(&'static str),
}

impl Template {
    /// Reads a template.
    ///
    /// A `$` that begins no name stands for itself.
    ///
    /// # Errors
    /// [`UnknownPlaceholder`] for the first name that is not in [`PLACEHOLDERS`].
    pub fn parse(text: &str) -> Result<Self, UnknownPlaceholder> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(more) = after.strip_prefix('$') {
                plain.push('$');
                rest = more;
                continue;
            }
            let Some((name, length)) = name(after) else {
                plain.push('$');
                rest = after;
                continue;
            };
            let Some(known) = PLACEHOLDERS.iter().find(|place| place.name == name) else {
                return Err(unknown(name, &text[..text.len() - rest.len() + at]));
            };
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Place(known.name));
            rest = &after[length..];
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self(parts))
    }

    /// The built-in template of a message into a session.
    pub(super) fn builtin_event() -> Self {
        Self::builtin(include_str!("templates/event.md"))
    }

    /// The built-in template of a new agent's first message.
    pub(super) fn builtin_spawn() -> Self {
        Self::builtin(include_str!("templates/spawn.md"))
    }

    fn builtin(text: &str) -> Self {
        #[expect(clippy::expect_used, reason = "a test parses every built-in template")]
        Self::parse(text).expect("built-in templates use known placeholders only")
    }

    /// Puts the values in their places, once: what a value contains is text.
    pub(super) fn render(&self, values: &Values) -> String {
        let mut rendered = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => rendered.push_str(text),
                Part::Place(name) => rendered.push_str(values.get(name)),
            }
        }
        if !self.0.contains(&Part::Place("text")) {
            rendered.push_str("\n\n");
            rendered.push_str(values.get("text"));
        }
        rendered
    }
}

/// Reads the name after a `$`; returns it and the length of what it takes with its braces.
fn name(text: &str) -> Option<(&str, usize)> {
    if let Some(braced) = text.strip_prefix('{') {
        let end = braced
            .find(['}', '\n'])
            .filter(|end| braced[*end..].starts_with('}'))?;
        return Some((&braced[..end], end + 2));
    }
    let length = text
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count();
    let begins_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins_name.then(|| (&text[..length], length))
}

fn unknown(name: &str, before: &str) -> UnknownPlaceholder {
    let last_line = before.rsplit('\n').next().unwrap_or_default();
    let distance = |place: &&Placeholder| strsim::damerau_levenshtein(place.name, name);
    UnknownPlaceholder {
        name: name.to_owned(),
        line: before.matches('\n').count() + 1,
        column: last_line.chars().count() + 1,
        nearest: PLACEHOLDERS
            .iter()
            .min_by_key(distance)
            .filter(|place| distance(place) <= 1 + place.name.len() / 3)
            .map(|place| place.name),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn built_in_templates_are_sound() {
        assert!(Template::builtin_event().0.contains(&Part::Place("text")));
        for place in ["text", "title", "interaction", "marker", "work_item"] {
            assert!(
                Template::builtin_spawn().0.contains(&Part::Place(place)),
                "{place}"
            );
        }
    }

    #[test]
    fn an_unknown_placeholder_is_named_with_its_place_and_the_nearest() {
        let error = Template::parse("ok $text\n  é ${work_itme} x").unwrap_err();
        assert_eq!(
            (error.line, error.column, error.nearest),
            (2, 5, Some("work_item"))
        );
        assert_eq!(
            error.to_string(),
            "line 2, column 5: $work_itme is no placeholder; did you mean $work_item?"
        );
        let error = Template::parse("$payload_excerpt").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1, column 1: $payload_excerpt is no placeholder; write $$ for a dollar sign"
        );
        assert!(Template::parse("${}").is_err());
        assert!(Template::parse("${text }").is_err());
    }

    #[test]
    fn a_dollar_without_a_name_is_a_dollar() {
        for (text, expected) in [
            ("$5 $ $$ $$text ${\n", "$5 $ $ $text ${\n"),
            ("$", "$"),
            ("a$$$$b", "a$$b"),
        ] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.0, [Part::Text(expected.to_owned())], "{text}");
        }
    }

    #[test]
    fn a_name_ends_where_its_letters_end() {
        let template = Template::parse("$url.${text}s").unwrap();
        let place = |name| Part::Place(name);
        let text = |text: &str| Part::Text(text.to_owned());
        assert_eq!(
            template.0,
            [text(""), place("url"), text("."), place("text"), text("s")]
        );
        assert_eq!(Template::parse("$texts").unwrap_err().nearest, Some("text"));
    }

    #[test]
    fn placeholders_are_listed_in_order() {
        assert!(PLACEHOLDERS.is_sorted_by_key(|place| place.name));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s)[${}a-z_é\\n]{0,40}") {
            drop(Template::parse(&text));
        }
    }
}
