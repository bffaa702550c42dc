//! What GitHub's objects look like to us: few fields, nearly all of them optional.
//!
//! GitHub leaves out and nulls more than it documents, and adds fields and values without notice.
//! Only what identifies an object is required. `user: null` is a deleted account: nobody.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::{Login, text};

use super::GitHubError;

/// The account that GitHub shows in place of deleted ones.
const GHOST_ID: u64 = 10137;
/// How much of the parser's words an error repeats.
const PROBLEM_CHARS: usize = 200;

macro_rules! object {
    ($(#[$meta:meta])* $name:ident { required { $($(#[$rdoc:meta])* $required:ident: $rtype:ty,)+ }
        optional { $($(#[$odoc:meta])* $(($json:literal))? $optional:ident: $otype:ty,)* } }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
        pub struct $name {
            $($(#[$rdoc])* pub $required: $rtype,)+
            $($(#[$odoc])* #[serde(default $(, rename = $json)?)] pub $optional: Option<$otype>,)*
        }
    };
}

mod ci;
mod work;

pub use ci::{App, CheckOutput, CheckRun, CommitStatus, PullLink, WorkflowRun};
pub use work::{Comment, Issue, IssueEvent, Pull, PullPart, Review, ReviewComment, Tip};

/// An account.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct User {
    /// Its number, which survives a rename.
    pub id: Option<u64>,
    /// Its name.
    pub login: Option<String>,
}

/// Returns the login of an account; deleted ones, by whichever sign, are nobody.
#[must_use]
pub fn login(user: Option<&User>) -> Option<Login> {
    let user = user.filter(|user| user.id != Some(GHOST_ID))?;
    let login = user.login.as_deref().filter(|login| !login.is_empty())?;
    Some(Login::new(login))
}

/// A label on an issue.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(from = "LabelForm")]
pub struct Label {
    /// Its name.
    pub name: String,
}

/// Old GHES versions list plain names.
#[derive(Deserialize)]
#[serde(untagged)]
enum LabelForm {
    Object { name: Option<String> },
    Name(String),
}

impl From<LabelForm> for Label {
    fn from(form: LabelForm) -> Self {
        Self {
            name: match form {
                LabelForm::Object { name } => name.unwrap_or_default(),
                LabelForm::Name(name) => name,
            },
        }
    }
}

object! {
    /// A repository.
    Repository {
        required {
            /// Its number, which survives renames and transfers.
            id: u64,
        }
        optional {
            /// `owner/name` as it is now.
            full_name: String,
            /// Whether it is read-only.
            archived: bool,
            /// The branch that work starts from.
            default_branch: String,
        }
    }
}

/// Returns the number that an API address ends in.
fn last_number(url: &str) -> Option<u64> {
    url.rsplit('/').next()?.parse().ok()
}

/// Reads one object.
///
/// # Errors
/// [`GitHubError::BadPayload`] with the line and column.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8], url: &str) -> Result<T, GitHubError> {
    serde_json::from_slice(body).map_err(|error| bad(url, &error))
}

/// Reads a list: the answer itself, or the member `key` of it.
///
/// An element that cannot be read is reported beside the others.
///
/// # Errors
/// [`GitHubError::BadPayload`] when the whole is no list.
pub(super) fn parse_list<T: DeserializeOwned>(
    body: &[u8],
    key: Option<&str>,
    url: &str,
) -> Result<(Vec<T>, Vec<GitHubError>), GitHubError> {
    // The short way for the usual answer: no intermediate tree.
    if key.is_none()
        && let Ok(items) = serde_json::from_slice(body)
    {
        return Ok((items, Vec::new()));
    }
    let whole: serde_json::Value = parse(body, url)?;
    let list = match key {
        Some(key) => whole.get(key),
        None => Some(&whole),
    };
    let Some(serde_json::Value::Array(list)) = list else {
        return Err(GitHubError::BadPayload {
            url: url.to_owned(),
            place: key.unwrap_or("the answer").to_owned(),
            problem: "a list was expected".to_owned(),
        });
    };
    let mut items = Vec::with_capacity(list.len());
    let mut bad = Vec::new();
    for (index, element) in list.iter().enumerate() {
        match T::deserialize(element) {
            Ok(item) => items.push(item),
            Err(error) => bad.push(GitHubError::BadPayload {
                url: url.to_owned(),
                place: format!("element {index}"),
                problem: unquoted(&error.to_string()),
            }),
        }
    }
    Ok((items, bad))
}

fn bad(url: &str, error: &serde_json::Error) -> GitHubError {
    let problem = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    GitHubError::BadPayload {
        url: url.to_owned(),
        place: suffix.trim_start_matches(" at ").to_owned(),
        problem: unquoted(problem.strip_suffix(&suffix).unwrap_or(&problem)),
    }
}

/// Returns the parser's words without the value that it quotes, which can be a whole comment: errors
/// go to the log, and comments never do.
fn unquoted(problem: &str) -> String {
    let quote = problem.find('"').zip(problem.rfind('"'));
    let without = match quote {
        Some((from, to)) if from < to => format!("{}…{}", &problem[..from], &problem[to + 1..]),
        _ => problem.to_owned(),
    };
    text::one_line(&without, PROBLEM_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_element_does_not_hide_the_others() {
        let body = br#"[{"id":1,"body":null,"user":null,"new_field":{}},{"id":"x"},7,{"id":3,"user":{"login":"ada"}}]"#;
        let (comments, bad) = parse_list::<Comment>(body, None, "http://h/c").unwrap();

        assert_eq!(
            comments
                .iter()
                .map(|comment| comment.id)
                .collect::<Vec<_>>(),
            [1, 3]
        );
        assert_eq!(comments[0].user, None);
        let places: Vec<String> = bad.iter().map(ToString::to_string).collect();
        assert!(places[0].contains("http://h/c at element 1"), "{places:?}");
        assert!(places[1].contains("element 2"), "{places:?}");
    }

    #[test]
    fn a_report_never_repeats_what_somebody_wrote() {
        let body = br#"[{"id":"my \"private\" words"}]"#;
        let (_, bad) = parse_list::<Comment>(body, None, "u").unwrap();
        let error = bad[0].to_string();
        assert!(
            error.contains("invalid type: string …, expected u64"),
            "{error}"
        );
        let error = parse::<Comment>(br#"{"id":"my words"}"#, "u").unwrap_err();
        assert!(!error.to_string().contains("my words"), "{error}");
    }

    #[test]
    fn an_answer_that_was_cut_off_is_reported_with_its_place() {
        let error = parse_list::<Comment>(b"[{\"id\":1},\n{\"id\":", None, "u").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unreadable answer from u at line 2 column 6: EOF while parsing a value"
        );
        let error = parse_list::<Comment>(br#"{"message":"x"}"#, None, "u").unwrap_err();
        assert!(error.to_string().contains("a list was expected"), "{error}");
        let error = parse_list::<CheckRun>(b"{}", Some("check_runs"), "u").unwrap_err();
        assert!(error.to_string().contains("at check_runs"), "{error}");
    }

    #[test]
    fn deleted_accounts_are_nobody() {
        let user = |id, login: &str| User {
            id,
            login: Some(login.to_owned()),
        };
        assert_eq!(login(None), None);
        assert_eq!(login(Some(&user(Some(10137), "ghost"))), None);
        assert_eq!(login(Some(&user(Some(1), ""))), None);
        assert_eq!(login(Some(&user(None, "Ada"))), Some(Login::new("ada")));
    }

    #[test]
    fn labels_are_read_in_both_forms() {
        let issue: Issue =
            serde_json::from_str(r#"{"number":1,"labels":["Loop",{"name":"bug","color":"f00"}]}"#)
                .unwrap();
        let labels = issue.labels.into_iter().flatten();
        let names: Vec<String> = labels.map(|label| label.name).collect();
        assert_eq!(names, ["Loop", "bug"]);
    }

    #[test]
    fn the_number_is_the_end_of_the_address() {
        let comment: Comment =
            serde_json::from_str(r#"{"id":1,"issue_url":"https://h/repos/o/my.repo/issues/15"}"#)
                .unwrap();
        assert_eq!(comment.number(), Some(15));
    }
}
