//! Work items: identity, display, and the name of their tmux session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DEFAULT_HOST, RefError, RepoRef};

/// tmux keeps longer names, but every file name and message that carries one stays below 255 bytes.
const MAX_SLUG: usize = 240;

/// One issue or pull request that the loop may work on.
///
/// Written `github:[<host>/]<owner>/<repo>#<number>`; issues and pull requests of one repository
/// share their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkItemRef {
    repo: RepoRef,
    number: u64,
}

impl WorkItemRef {
    pub(super) fn of(repo: RepoRef, number: u64) -> Self {
        Self { repo, number }
    }

    /// Returns the repository.
    #[must_use]
    pub fn repo(&self) -> &RepoRef {
        &self.repo
    }

    /// Returns the issue or pull request number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the identity, the lower-cased ref; what the store keys on.
    #[must_use]
    pub fn key(&self) -> String {
        self.to_string().to_ascii_lowercase()
    }

    /// Reads a ref as a person means it whose only GitHub is `host`: without a host it is that one.
    #[must_use]
    pub fn meant_on(self, host: &str) -> Self {
        if self.repo.host() != DEFAULT_HOST {
            return self;
        }
        match RepoRef::new(host, self.repo.owner(), self.repo.name()) {
            Ok(repo) => repo.item(self.number),
            Err(_) => self,
        }
    }

    /// Returns the short form for people: `octo/app#15`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}#{}", self.repo, self.number)
    }

    /// Mints the name of the item's tmux session, `loop-<slug>`; the one place that does.
    ///
    /// The slug is reversible and free of collisions, and tmux keeps it as it is. It is the
    /// lower-cased `github`, `[host]--owner--repo` and the number, joined by `-`; inside a name
    /// `[a-z0-9]` and a single inner `-` stand for themselves and the rest is escaped with `_`:
    ///
    /// | character | slug | | work item | session |
    /// |---|---|---|---|---|
    /// | `.` | `_d` | | `github:octo/app#15` | `loop-github-octo--app-15` |
    /// | `_` | `_u` | | `github:o/my.repo#1` | `loop-github-o--my_drepo-1` |
    /// | `:` | `_c` | | `github:o/my_repo#1` | `loop-github-o--my_urepo-1` |
    /// | other `-` | `_h` | | `github:ghe.example/o/r#2` | `loop-github-ghe_dexample--o--r-2` |
    ///
    /// A `-` is escaped at either end of a name and after another `-`, so `--` only ever separates.
    ///
    /// # Errors
    /// [`RefError::TooLong`] when the slug would exceed 240 bytes.
    pub fn session_name(&self) -> Result<SessionName, RefError> {
        let mut slug = String::from("github-");
        if !self.repo.host().eq_ignore_ascii_case(DEFAULT_HOST) {
            push_escaped(&mut slug, self.repo.host());
            slug.push_str("--");
        }
        push_escaped(&mut slug, self.repo.owner());
        slug.push_str("--");
        push_escaped(&mut slug, self.repo.name());
        slug.push('-');
        slug.push_str(&self.number.to_string());
        if slug.len() > MAX_SLUG {
            return Err(RefError::TooLong {
                text: self.to_string(),
            });
        }
        Ok(SessionName(format!("loop-{slug}")))
    }

    /// Returns the work item whose session has this name, for a name that was found in tmux.
    #[must_use]
    pub fn of_session(name: &str) -> Option<Self> {
        let item = SessionName(name.to_owned()).work_item()?;
        let minted = item.session_name().ok()?;
        (minted.0 == name).then_some(item)
    }
}

fn push_escaped(slug: &mut String, name: &str) {
    let bytes = name.as_bytes();
    let mut after_plain_hyphen = true;
    for (at, byte) in bytes.iter().enumerate() {
        let plain_hyphen = *byte == b'-' && !after_plain_hyphen && at + 1 < bytes.len();
        match byte {
            b'.' => slug.push_str("_d"),
            b'_' => slug.push_str("_u"),
            b':' => slug.push_str("_c"),
            b'-' if plain_hyphen => slug.push('-'),
            b'-' => slug.push_str("_h"),
            other => slug.push(char::from(other.to_ascii_lowercase())),
        }
        after_plain_hyphen = plain_hyphen;
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '_' => match chars.next()? {
                'd' => '.',
                'u' => '_',
                'c' => ':',
                'h' => '-',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(name)
}

/// The name of a work item's tmux session: `loop-<slug>`.
///
/// Only [`WorkItemRef::session_name`] makes one, so no file or payload can choose what is killed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionName(String);

impl SessionName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the work item that this name was minted for.
    #[must_use]
    pub fn work_item(&self) -> Option<WorkItemRef> {
        let rest = self.0.strip_prefix("loop-github-")?;
        let (names, number) = rest.rsplit_once('-')?;
        let names = names
            .split("--")
            .map(unescape)
            .collect::<Option<Vec<_>>>()?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let repo = match names[..] {
            [owner, name] => RepoRef::new(DEFAULT_HOST, owner, name),
            [host, owner, name] => RepoRef::new(host, owner, name),
            _ => return None,
        };
        Some(repo.ok()?.item(number.parse().ok()?))
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `github:[<host>/]<owner>/<repo>#<number>`.
impl fmt::Display for WorkItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "github:{}#{}", self.repo, self.number)
    }
}

/// Reads `github:o/r#15`, and what people type: `o/r#15` and the URL of an issue or pull request.
impl FromStr for WorkItemRef {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let bad = || RefError::NotAWorkItem {
            text: text.to_owned(),
        };
        let (repo, number) = if let Some(url) = text.strip_prefix("https://") {
            let parts: Vec<&str> = url.trim_end_matches('/').split('/').collect();
            match parts[..] {
                [host, owner, name, "issues" | "pull", number] => {
                    (RepoRef::new(host, owner, name).map_err(|_| bad())?, number)
                }
                _ => return Err(bad()),
            }
        } else {
            let (repo, number) = text
                .strip_prefix("github:")
                .unwrap_or(text)
                .split_once('#')
                .ok_or_else(bad)?;
            (repo.parse().map_err(|_| bad())?, number)
        };
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        match number.parse() {
            Ok(number) if digits && number > 0 => Ok(Self { repo, number }),
            _ => Err(bad()),
        }
    }
}

impl TryFrom<String> for WorkItemRef {
    type Error = RefError;

    fn try_from(text: String) -> Result<Self, RefError> {
        text.parse()
    }
}

impl From<WorkItemRef> for String {
    fn from(item: WorkItemRef) -> Self {
        item.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(text: &str) -> WorkItemRef {
        text.parse().unwrap()
    }

    fn session(text: &str) -> String {
        item(text).session_name().unwrap().to_string()
    }

    #[test]
    fn names_that_look_alike_get_sessions_of_their_own() {
        assert_eq!(session("github:octo/app#15"), "loop-github-octo--app-15");
        assert_eq!(session("github:a-b/c#1"), "loop-github-a-b--c-1");
        assert_eq!(session("github:a/b-c#1"), "loop-github-a--b-c-1");
        assert_eq!(session("github:o/my.repo#1"), "loop-github-o--my_drepo-1");
        assert_eq!(session("github:o/my_repo#1"), "loop-github-o--my_urepo-1");
        assert_eq!(session("github:o/-r-#1"), "loop-github-o--_hr_h-1");
        assert_eq!(session("github:o/r--s#1"), "loop-github-o--r-_hs-1");
        assert_eq!(
            session("github:ghe.example:8443/o/r#2"),
            "loop-github-ghe_dexample_c8443--o--r-2"
        );
    }

    #[test]
    fn case_is_display_only() {
        assert_eq!(item("github:Octo/App#15"), item("octo/app#15"));
        assert_eq!(item("github:Octo/App#15").to_string(), "github:Octo/App#15");
        assert_eq!(item("github:Octo/App#15").key(), "github:octo/app#15");
        assert_eq!(session("github:Octo/App#15"), session("github:octo/app#15"));
        assert_eq!(item("github:github.com/o/r#1").to_string(), "github:o/r#1");
    }

    #[test]
    fn people_may_type_short_refs_and_urls() {
        assert_eq!(item("o/r#15"), item("github:o/r#15"));
        assert_eq!(
            item("https://github.com/o/r/issues/15"),
            item("github:o/r#15")
        );
        assert_eq!(
            item("https://ghe.example/o/r/pull/15"),
            item("github:ghe.example/o/r#15")
        );
    }

    #[test]
    fn texts_outside_the_grammar_are_refused_by_name() {
        for text in [
            "",
            "o/r",
            "o/r#",
            "o/r#0",
            "o/r#-1",
            "o/r#+1",
            "o/r#1x",
            "o#1",
            "a/b/c#1",
            "o/..#1",
            "o/r r#1",
            "gitlab:o/r#1",
            "../x#1",
            "o/r#99999999999999999999999",
            "https://github.com/o/r",
        ] {
            let error = text.parse::<WorkItemRef>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_session_is_traced_back_to_its_item_only_by_a_name_that_we_would_give() {
        for name in [
            "loop-github-octo--app-15",
            "loop-github-o--my_drepo_u-1",
            "loop-github-ghe_dexample_c8443--o--_hr-2",
        ] {
            let traced = WorkItemRef::of_session(name).unwrap();
            assert_eq!(traced.session_name().unwrap().as_str(), name);
        }
        let traced = WorkItemRef::of_session("loop-github-ghe_dexample_c8443--o--_hr_u-2");
        assert_eq!(traced, Some(item("github:ghe.example:8443/o/-r_#2")));
        for other in ["loop-github-Octo--app-15", "loop-github-o--a_hb-1", "mine"] {
            assert_eq!(WorkItemRef::of_session(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_too_long_for_tmux_is_refused() {
        let long = format!("github:{}/{}#1", "o".repeat(60), ".".repeat(97));
        assert!(matches!(
            item(&long).session_name(),
            Err(RefError::TooLong { .. })
        ));
        // `github-`, the owner, `--`, the name with two bytes for a dot, and `-1`.
        let owner = "o".repeat(100);
        let of = |dots: usize| format!("{owner}/{}{}#1", "r".repeat(100 - dots), ".".repeat(dots));
        assert_eq!(session(&of(29)).len(), "loop-".len() + MAX_SLUG);
        assert!(item(&of(30)).session_name().is_err());
    }

    #[test]
    fn a_ref_without_a_host_is_meant_on_the_one_github() {
        let meant = item("octo/app#15").meant_on("ghe.example");
        assert_eq!(meant, item("github:ghe.example/octo/app#15"));
        let named = item("github:other.example/octo/app#15");
        assert_eq!(named.clone().meant_on("ghe.example"), named);
    }

    fn any_item() -> impl Strategy<Value = WorkItemRef> {
        let host = prop_oneof![
            Just("github.com"),
            Just("ghe.example"),
            Just("a-b.c:81"),
            Just("localhost")
        ];
        (
            host,
            "[A-Za-z0-9._-]{1,12}",
            "[A-Za-z0-9._-]{1,12}",
            1..u64::MAX,
        )
            .prop_filter_map("dot names", |(host, owner, name, number)| {
                Some(RepoRef::new(host, &owner, &name).ok()?.item(number))
            })
    }

    proptest! {
        #[test]
        fn a_ref_survives_its_display(item in any_item()) {
            prop_assert_eq!(item.to_string().parse::<WorkItemRef>().unwrap(), item);
        }

        #[test]
        fn a_session_name_leads_back_to_its_item_and_tmux_keeps_it(item in any_item()) {
            let name = item.session_name().unwrap();
            prop_assert_eq!(name.work_item().unwrap(), item.clone());
            prop_assert_eq!(WorkItemRef::of_session(name.as_str()), Some(item));
            prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_'));
        }

        #[test]
        fn parsing_never_panics(text in ".*") {
            let _unused = text.parse::<WorkItemRef>();
            let _unused = text.parse::<RepoRef>();
        }
    }
}
