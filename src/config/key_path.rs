//! The path of a key in the configuration: `polling.sources[0].repos`.

use std::fmt;

use crate::model::text::one_line;

/// One step down into the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a map.
    Key(String),
    /// Into a list.
    Index(usize),
}

/// The steps from the top of the file to one value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct KeyPath(pub(super) Vec<Step>);

impl KeyPath {
    /// Reads a path without list steps: `routing.tmux.binary`.
    pub(super) fn of(dotted: &str) -> Self {
        Self(
            dotted
                .split('.')
                .map(|key| Step::Key(key.to_owned()))
                .collect(),
        )
    }

    /// Returns the path of an entry of this map.
    #[must_use]
    pub(super) fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// Returns the path of an item of this list.
    #[must_use]
    pub(super) fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Returns the steps, from the top.
    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Returns the last key, or nothing at the top and in a list.
    pub(super) fn last_key(&self) -> Option<&str> {
        match self.0.last() {
            Some(Step::Key(key)) => Some(key),
            Some(Step::Index(_)) | None => None,
        }
    }

    /// Tells whether `self` is `other` or lies below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Returns the path with every list index left out: `polling.sources[].repos`.
    pub(super) fn pattern(&self) -> String {
        self.joined(|_| "[]".to_owned())
    }

    fn joined(&self, index: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for step in &self.0 {
            match step {
                Step::Key(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    if is_plain(key) {
                        text.push_str(key);
                    } else {
                        let quoted = format!("{:?}", one_line(key, 40));
                        text.push_str(&quoted);
                    }
                }
                Step::Index(at) => text.push_str(&index(*at)),
            }
        }
        text
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 80
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.joined(|at| format!("[{at}]")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_the_documentation() {
        let path = KeyPath::of("polling.sources").index(1).key("repos");
        assert_eq!(path.to_string(), "polling.sources[1].repos");
        assert_eq!(path.pattern(), "polling.sources[].repos");
        assert!(path.is_within(&KeyPath::of("polling")));
        assert!(!KeyPath::of("polling").is_within(&path));
    }

    #[test]
    fn a_key_that_could_mislead_is_quoted() {
        assert_eq!(
            KeyPath::of("routing").key("a.b\u{1b}[2J").to_string(),
            "routing.\"a.b[2J\""
        );
    }
}
