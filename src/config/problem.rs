//! What is wrong in a configuration: where, which key, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::key_path::KeyPath;

/// A position in the file, both counted from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong, or worth a warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where, if it is in the file.
    pub place: Option<Place>,
    /// The key's path; empty when the file as a whole is meant.
    pub key: String,
    /// What was expected, what was found, what to do.
    pub message: String,
    #[serde(skip)]
    path: KeyPath,
}

impl Problem {
    pub(super) fn new(place: Option<Place>, path: &KeyPath, message: &str) -> Self {
        Self {
            place,
            key: path.to_string(),
            message: message.to_owned(),
            path: path.clone(),
        }
    }

    /// Tells whether this problem already says that the value of `path` cannot be used.
    pub(super) fn covers(&self, path: &KeyPath) -> bool {
        path.is_within(&self.path)
    }
}

/// One line without alignment, for logs: `12:3 routing.authorisedUsers: unknown key`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place} ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The configuration file, as programs and as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    /// Its path, absolute where it could be made so; none for the built-in defaults.
    pub path: Option<PathBuf>,
    /// As it is shown to people.
    pub shown: String,
}

impl FileName {
    pub(super) fn of(path: &Path, home: Option<&Path>) -> Self {
        Self {
            path: Some(path.to_owned()),
            shown: display_path(path, home),
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// What one file was found to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

/// All that is wrong with one file, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub file: FileName,
    /// At least one problem.
    pub list: Vec<Problem>,
    /// What is allowed but hardly meant.
    pub warnings: Vec<Problem>,
    /// What the operator should know and need not change.
    pub notes: Vec<String>,
}

impl Problems {
    pub(super) fn new(file: FileName, found: Findings, notes: Vec<String>) -> Self {
        let mut list = found.problems;
        list.sort_by_key(|problem| problem.place);
        Self {
            file,
            list,
            warnings: found.warnings,
            notes,
        }
    }
}

/// What a check found, as `config check --json` prints it.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    pub(super) file: Option<&'a Path>,
    pub(super) valid: bool,
    pub(super) problems: &'a [Problem],
    pub(super) warnings: &'a [Problem],
    pub(super) notes: &'a [String],
}

impl Verdict<'_> {
    pub(super) fn json(&self) -> Value {
        // A path that is not UTF-8 is the only thing that cannot be shown as it is.
        let file = self.file.map(Path::to_string_lossy);
        json!({
            "file": file,
            "valid": self.valid,
            "problems": self.problems,
            "warnings": self.warnings,
            "notes": self.notes,
        })
    }
}

/// The title and one aligned line per problem.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.list.len() == 1 {
            "problem"
        } else {
            "problems"
        };
        write!(
            f,
            "{} {noun} in {}\n\n{}",
            self.list.len(),
            self.file,
            table(&self.list)
        )
    }
}

/// Lays problems out in three columns: place, key, message; each line indented by two.
#[must_use]
pub fn table(problems: &[Problem]) -> String {
    let places: Vec<String> = problems
        .iter()
        .map(|problem| {
            problem
                .place
                .map_or_else(String::new, |place| place.to_string())
        })
        .collect();
    let place_width = places.iter().map(String::len).max().unwrap_or(0);
    let key_width = problems
        .iter()
        .map(|problem| problem.key.chars().count())
        .max()
        .unwrap_or(0)
        .min(48);
    let lines: Vec<String> = problems
        .iter()
        .zip(places)
        .map(|(problem, place)| {
            let key = &problem.key;
            let message = &problem.message;
            if key_width == 0 {
                format!("  {place:<place_width$}   {message}")
            } else {
                format!("  {place:<place_width$}   {key:<key_width$}   {message}")
            }
        })
        .collect();
    lines.join("\n")
}

/// Shows a path as people write it: below the home directory it begins with `~`.
#[must_use]
pub fn display_path(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_shown_in_file_order_and_aligned() {
        let at = |line, column| Some(Place { line, column });
        let problems = Problems::new(
            FileName::of(Path::new("/home/u/x.yaml"), Some(Path::new("/home/u"))),
            Findings {
                problems: vec![
                    Problem::new(at(18, 20), &KeyPath::of("polling.interval"), "too short"),
                    Problem::new(at(2, 3), &KeyPath::of("a.b"), "unknown key"),
                ],
                warnings: Vec::new(),
            },
            Vec::new(),
        );
        assert_eq!(
            problems.to_string(),
            "2 problems in ~/x.yaml\n\n  2:3     a.b                unknown key\n  18:20   polling.interval   too short"
        );
    }

    #[test]
    fn home_is_shown_as_a_tilde() {
        let home = Path::new("/home/u");
        assert_eq!(display_path(Path::new("/home/u/a/b"), Some(home)), "~/a/b");
        assert_eq!(display_path(home, Some(home)), "~");
        assert_eq!(
            display_path(Path::new("/home/user2"), Some(home)),
            "/home/user2"
        );
    }
}
