//! A GitHub account name.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A GitHub login: compared without case, shown as it was written.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Login(String);

impl Login {
    /// Wraps a login as GitHub or the configuration spells it; a leading `@` is not part of it.
    #[must_use]
    pub fn new(login: &str) -> Self {
        Self(login.trim().trim_start_matches('@').to_owned())
    }

    /// Returns the login as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Login {}

impl Hash for Login {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_ascii_lowercase().hash(state);
    }
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_compare_without_case_and_show_as_written() {
        assert_eq!(Login::new("Alice"), Login::new("@alice"));
        assert_ne!(Login::new("alice"), Login::new("alice[bot]"));
        assert_eq!(Login::new("Alice").to_string(), "@Alice");
    }
}
