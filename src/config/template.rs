//! Templates with named places; what comes to stand there is known to `routing` only.

use std::fmt;
use std::path::PathBuf;

use super::problem::Place;
use super::suggest;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPlaceholder {
    /// What it says.
    pub name: String,
    /// Where.
    pub place: Place,
    /// The placeholder that was probably meant.
    pub nearest: Option<&'static str>,
}

/// What is wrong, without the place.
impl fmt::Display for UnknownPlaceholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${} is no placeholder{}", self.name, hint(self.nearest))
    }
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

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text that stands as it is.
    Text(String),
    /// The name of a [`Placeholder`].
    Place(&'static str),
}

/// A template that the operator wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFile {
    /// Its file; absolute.
    pub path: PathBuf,
    /// What it said when the configuration was loaded.
    pub template: Template,
}

impl Template {
    /// Reads a template.
    ///
    /// A `$` that begins no name stands for itself.
    ///
    /// # Errors
    /// [`UnknownPlaceholder`] for each name that is not in [`PLACEHOLDERS`].
    pub fn parse(text: &str) -> Result<Self, Vec<UnknownPlaceholder>> {
        let mut parts = Vec::new();
        let mut unknowns = Vec::new();
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
            match PLACEHOLDERS.iter().find(|place| place.name == name) {
                Some(known) => {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Place(known.name));
                }
                None => unknowns.push(unknown(name, &text[..text.len() - rest.len() + at])),
            }
            rest = &after[length..];
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        if unknowns.is_empty() {
            Ok(Self(parts))
        } else {
            Err(unknowns)
        }
    }

    /// Returns its pieces, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
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
    UnknownPlaceholder {
        name: name.to_owned(),
        place: Place {
            line: before.matches('\n').count() + 1,
            column: last_line.chars().count() + 1,
        },
        nearest: suggest::nearest(name, PLACEHOLDERS.iter().map(|place| place.name)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_unknown_placeholder_is_named_with_its_place_and_the_nearest() {
        let unknowns =
            Template::parse("ok $text\n  é ${work_itme} x $payload_excerpt").unwrap_err();
        let shown: Vec<String> = unknowns
            .iter()
            .map(|unknown| format!("{} {unknown}", unknown.place))
            .collect();
        assert_eq!(
            shown,
            [
                "2:5 $work_itme is no placeholder; did you mean $work_item?",
                "2:20 $payload_excerpt is no placeholder; write $$ for a dollar sign",
            ]
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
        let unknowns = Template::parse("$texts").unwrap_err();
        assert_eq!(unknowns[0].nearest, Some("text"));
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
