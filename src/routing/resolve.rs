//! Finds the work items that a pull request belongs to.

use super::prose::spoken;
use crate::model::{RepoRef, WorkItemRef};

/// Where the head of a pull request lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// In the repository that it wants into.
    SameRepository,
    /// In another one, or in one that is gone.
    Elsewhere,
}

/// Whether the author of a pull request is in `routing.authorizedUsers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// He is.
    Listed,
    /// He is not, or the account is deleted.
    Stranger,
}

/// What is known of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest<'a> {
    /// The repository it wants into.
    pub repo: &'a RepoRef,
    /// Its number.
    pub number: u64,
    /// Its description.
    pub body: &'a str,
    /// The branch it comes from.
    pub branch: Option<&'a str>,
    /// Where that branch lies.
    pub head: Head,
    /// Who wrote it.
    pub author: Author,
}

/// Returns the work items that a pull request belongs to besides itself: the issue that its branch is
/// named for, then those that its description closes.
///
/// A stranger's pull request from elsewhere belongs to nothing: its branch name and description are
/// his to choose, and would let him speak into somebody's session.
#[must_use]
pub fn binding(pull: &PullRequest<'_>) -> Vec<WorkItemRef> {
    let mut items = Vec::new();
    if pull.head == Head::Elsewhere && pull.author == Author::Stranger {
        return items;
    }
    let own = pull.repo.item(pull.number);
    let by_branch = pull
        .branch
        .and_then(branch_issue)
        .map(|number| pull.repo.item(number));
    for item in by_branch
        .into_iter()
        .chain(closing_references(pull.body, pull.repo))
    {
        if item != own && !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

/// Returns the issue that a branch is named for: `issue-7` or `issue/7`, at the start of the name or
/// of a part of it, with anything but a letter or digit behind it.
#[must_use]
pub fn branch_issue(branch: &str) -> Option<u64> {
    let starts = std::iter::once(0).chain(branch.match_indices('/').map(|(at, _)| at + 1));
    starts.into_iter().find_map(|start| {
        let rest = strip_word(&branch[start..], "issue")?;
        let (number, after) = number(rest.strip_prefix(['-', '/'])?)?;
        (!after.starts_with(char::is_alphanumeric)).then_some(number)
    })
}

/// Longer than `owner/name` can be; what goes on without an end is no reference.
const MAX_NAME: usize = 256;

const KEYWORDS: [&str; 9] = [
    "closes", "closed", "close", "fixes", "fixed", "fix", "resolves", "resolved", "resolve",
];

/// Returns the issues that a description closes, in the forms that GitHub knows: a closing word, a
/// colon if one likes, and `#7`, `GH-7`, `owner/repo#7` or the full address; outside quotes and code.
#[must_use]
pub fn closing_references(body: &str, repo: &RepoRef) -> Vec<WorkItemRef> {
    let text = spoken(body);
    let mut items: Vec<WorkItemRef> = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let begins_word =
            !before.is_alphanumeric() && !matches!(before, '_' | '-' | '/' | '@' | '#');
        before = c;
        if !begins_word {
            continue;
        }
        let found = KEYWORDS
            .iter()
            .find_map(|word| strip_word(&text[at..], word))
            .and_then(after_keyword)
            .and_then(|rest| reference(rest, repo));
        if let Some(item) = found
            && !items.contains(&item)
        {
            items.push(item);
        }
    }
    items
}

/// Strips a word in any case; nothing where the text does not begin with it.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let start = text.get(..word.len())?;
    start
        .eq_ignore_ascii_case(word)
        .then(|| &text[word.len()..])
}

/// Strips what may stand between the closing word and the reference: a colon, blanks, or both.
fn after_keyword(text: &str) -> Option<&str> {
    let blanks = |text: &'_ str| text.len() - text.trim_start_matches([' ', '\t', '\n']).len();
    let rest = &text[blanks(text)..];
    let after = rest.strip_prefix(':').unwrap_or(rest);
    let after = &after[blanks(after)..];
    (after.len() < text.len()).then_some(after)
}

fn reference(text: &str, repo: &RepoRef) -> Option<WorkItemRef> {
    let short = text.strip_prefix('#').or_else(|| strip_word(text, "gh-"));
    let (repo, number, after) = if let Some(rest) = short {
        let (number, after) = number(rest)?;
        (repo.clone(), number, after)
    } else if let Some(rest) = strip_word(text, "https://").or_else(|| strip_word(text, "http://"))
    {
        let mut parts = rest.splitn(5, '/');
        let (host, owner, name) = (parts.next()?, parts.next()?, parts.next()?);
        if !matches!(parts.next()?, "issues" | "pull") {
            return None;
        }
        let (number, after) = number(parts.next()?)?;
        (RepoRef::new(host, owner, name).ok()?, number, after)
    } else {
        let mut near = text.char_indices().take(MAX_NAME);
        let end = near.find_map(|(at, c)| (c == '#' || c.is_whitespace()).then_some(at))?;
        let (owner, name) = text[..end].split_once('/')?;
        let (number, after) = number(text[end..].strip_prefix('#')?)?;
        (RepoRef::new(repo.host(), owner, name).ok()?, number, after)
    };
    let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ends.then(|| repo.item(number))
}

/// Reads the number that the text begins with; 0 is none.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse().ok().filter(|number| *number > 0)?;
    Some((number, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repo() -> RepoRef {
        "octo/app".parse().unwrap()
    }

    fn closes(body: &str) -> Vec<String> {
        closing_references(body, &repo())
            .iter()
            .map(WorkItemRef::short)
            .collect()
    }

    #[test]
    fn a_description_closes_what_github_would_close() {
        for (body, expected) in [
            (
                "close #1, closes #2, closed #3",
                &["octo/app#1", "octo/app#2", "octo/app#3"][..],
            ),
            (
                "fix #1 fixes #2 fixed #3",
                &["octo/app#1", "octo/app#2", "octo/app#3"],
            ),
            (
                "resolve #1 Resolves #2 RESOLVED #3",
                &["octo/app#1", "octo/app#2", "octo/app#3"],
            ),
            ("Closes: #4", &["octo/app#4"]),
            ("closes:#4", &["octo/app#4"]),
            ("fixes GH-5 and gh-6", &["octo/app#5"]),
            ("fixes Octo/Site#7.", &["Octo/Site#7"]),
            (
                "fixes https://github.com/octo/site/issues/8",
                &["octo/site#8"],
            ),
            (
                "fixes https://github.com/octo/site/pull/8#issuecomment-1",
                &["octo/site#8"],
            ),
            (
                "fixes https://ghe.example/octo/site/issues/8)",
                &["ghe.example/octo/site#8"],
            ),
            ("- [x] **Fixes #9**", &["octo/app#9"]),
            ("fixes #9 and fixes octo/APP#9", &["octo/app#9"]),
            ("fixes\n#9", &["octo/app#9"]),
            ("fixes #1, #2", &["octo/app#1"]),
            ("fixes#1", &[]),
            ("hotfix #1", &[]),
            ("bug-fix #1", &[]),
            ("prefixes #1", &[]),
            ("fixing #1", &[]),
            ("fixes #0", &[]),
            ("fixes #1a", &[]),
            ("fixes #99999999999999999999999", &[]),
            ("fixes a/b/c#1", &[]),
            ("fixes x y/z#1", &[]),
            ("fixes https://github.com/octo/site/wiki/8", &[]),
            ("`fixes #1`", &[]),
            ("> fixes #1", &[]),
            ("<!-- fixes #1 -->", &[]),
            ("```\nfixes #1\n```", &[]),
            ("see #1", &[]),
        ] {
            assert_eq!(closes(body), expected, "{body:?}");
        }
    }

    #[test]
    fn a_branch_is_named_for_an_issue_only_where_a_part_of_it_begins_so() {
        for (branch, expected) in [
            ("issue-7", Some(7)),
            ("issue/7", Some(7)),
            ("Issue-7-login", Some(7)),
            ("issue-7_x", Some(7)),
            ("octocat/issue-7", Some(7)),
            ("octocat/issue/7/x", Some(7)),
            ("tissue-7", None),
            ("my-issue-7", None),
            ("issue-7x", None),
            ("issue7", None),
            ("issue-", None),
            ("issue-0", None),
            ("issues-7", None),
            ("main", None),
            ("", None),
        ] {
            assert_eq!(branch_issue(branch), expected, "{branch}");
        }
    }

    #[test]
    fn a_pull_request_binds_by_branch_then_by_description_and_never_to_itself() {
        let repo = repo();
        let pull = PullRequest {
            repo: &repo,
            number: 20,
            body: "Closes #15. Fixes #20, closes #7, resolves octo/site#1",
            branch: Some("issue-7-x"),
            head: Head::SameRepository,
            author: Author::Stranger,
        };
        let bound = |pull: &PullRequest<'_>| {
            binding(pull)
                .iter()
                .map(WorkItemRef::short)
                .collect::<Vec<_>>()
        };
        let all = ["octo/app#7", "octo/app#15", "octo/site#1"];
        assert_eq!(bound(&pull), all);
        let forked = PullRequest {
            head: Head::Elsewhere,
            ..pull.clone()
        };
        assert_eq!(bound(&forked), [""; 0]);
        let listed = PullRequest {
            author: Author::Listed,
            ..forked
        };
        assert_eq!(bound(&listed), all);
    }

    #[test]
    fn a_description_of_keywords_alone_is_read_in_one_go() {
        let body = "fix:".repeat(20_000);
        let began = std::time::Instant::now();
        assert!(closing_references(&body, &repo()).is_empty());
        assert!(began.elapsed().as_secs() < 10);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(body in "(?s).*", branch in ".*", near in "(fixes|#|:|/|https://|gh-|[0-9]| |é|\\n){0,12}") {
            drop(closing_references(&body, &repo()));
            drop(closing_references(&near, &repo()));
            prop_assert_ne!(branch_issue(&branch), Some(0));
            prop_assert_ne!(branch_issue(&near), Some(0));
        }
    }
}
