//! Repositories: identity and display.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::WorkItemRef;

/// The host that is left out of every ref.
pub const DEFAULT_HOST: &str = "github.com";

/// Why a text is not a repository or a work item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    /// The text does not follow the grammar.
    #[error(
        "{text:?} is not a work item: write github:[<host>/]<owner>/<repo>#<number>, for example github:octo/app#15"
    )]
    NotAWorkItem {
        /// What was given.
        text: String,
    },
    /// The text does not follow the grammar.
    #[error("{text:?} is not a repository: write [<host>/]<owner>/<repo>, for example octo/app")]
    NotARepository {
        /// What was given.
        text: String,
    },
    /// The names are so long that the session's name would not be reversible within tmux's bounds.
    #[error("{text:?} is too long: its session name would exceed 240 bytes")]
    TooLong {
        /// What was given.
        text: String,
    },
}

/// One repository on one GitHub host.
///
/// GitHub names are case-insensitive: equality, hashing and [`key`](Self::key) use the lower-cased
/// names, display keeps the spelling.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoRef {
    host: String,
    owner: String,
    name: String,
}

impl RepoRef {
    /// Makes a repository from its three names.
    ///
    /// # Errors
    /// [`RefError::NotARepository`] when a name has characters that GitHub does not give.
    pub fn new(host: &str, owner: &str, name: &str) -> Result<Self, RefError> {
        let valid_host = !host.is_empty()
            && host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b".-:".contains(&b))
            && !host.starts_with(['.', '-', ':'])
            && (host.contains('.') || host.contains(':') || host.eq_ignore_ascii_case("localhost"));
        if valid_host && is_name(owner) && is_name(name) {
            Ok(Self {
                host: host.to_owned(),
                owner: owner.to_owned(),
                name: name.to_owned(),
            })
        } else {
            let text = if host == DEFAULT_HOST {
                format!("{owner}/{name}")
            } else {
                format!("{host}/{owner}/{name}")
            };
            Err(RefError::NotARepository { text })
        }
    }

    /// Returns the host: `github.com`, or a GHES host with its port if it has one.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the owner as it was written.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the repository's name as it was written.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the identity: the lower-cased display form.
    #[must_use]
    pub fn key(&self) -> String {
        self.to_string().to_ascii_lowercase()
    }

    /// Returns the work item with this number.
    #[must_use]
    pub fn item(&self, number: u64) -> WorkItemRef {
        WorkItemRef::of(self.clone(), number)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && name.len() <= 100
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

impl PartialEq for RepoRef {
    fn eq(&self, other: &Self) -> bool {
        self.host.eq_ignore_ascii_case(&other.host)
            && self.owner.eq_ignore_ascii_case(&other.owner)
            && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl Eq for RepoRef {}

impl Hash for RepoRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// `owner/repo`, or `host/owner/repo` where the host is not github.com.
impl fmt::Display for RepoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.host.eq_ignore_ascii_case(DEFAULT_HOST) {
            write!(f, "{}/", self.host)?;
        }
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl FromStr for RepoRef {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            [owner, name] => Self::new(DEFAULT_HOST, owner, name),
            [host, owner, name] => Self::new(host, owner, name),
            _ => Err(RefError::NotARepository {
                text: text.to_owned(),
            }),
        }
        .map_err(|_| RefError::NotARepository {
            text: text.to_owned(),
        })
    }
}

impl TryFrom<String> for RepoRef {
    type Error = RefError;

    fn try_from(text: String) -> Result<Self, RefError> {
        text.parse()
    }
}

impl From<RepoRef> for String {
    fn from(repo: RepoRef) -> Self {
        repo.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(text: &str) -> RepoRef {
        text.parse().unwrap()
    }

    #[test]
    fn a_repository_is_its_host_its_owner_and_its_name_in_any_case() {
        let app = repo("octo/app");
        assert_eq!(app, repo("Octo/App"));
        assert_eq!(repo("GHE.example/Octo/App").key(), "ghe.example/octo/app");
        for other in ["ghe.example/octo/app", "other/app", "octo/other"] {
            assert_ne!(app, repo(other));
            assert_ne!(app.key(), repo(other).key());
        }
    }

    #[test]
    fn a_name_has_characters_that_github_gives() {
        let longest = "a".repeat(100);
        for name in ["a", "A.b_c-9", "...", longest.as_str()] {
            assert!(RepoRef::new(DEFAULT_HOST, "octo", name).is_ok(), "{name}");
        }
        let too_long = "a".repeat(101);
        for name in ["", ".", "..", "a b", "a/b", "é", too_long.as_str()] {
            assert!(RepoRef::new(DEFAULT_HOST, "octo", name).is_err(), "{name}");
            assert!(RepoRef::new(DEFAULT_HOST, name, "app").is_err(), "{name}");
        }
    }
}
