//! What holds for every payload: properties, for the tests and for the fuzz targets.

use serde::Deserialize;
use serde_json::Value;

use super::inputs::{self, CiResult, Progress, Text};
use crate::config::SpawnPolicy;
use crate::github::payload::{self, User};
use crate::model::{Edit, Event, EventKind, ItemKind, Login, RepoRef};
use crate::routing::guard::{Verdict, judge};
use crate::routing::payload::ItemInput;
use crate::routing::policy::{ControlWords, Policy};

const HOME: u64 = 7;

/// Any payload is an event of the item that it was asked for, nothing, or an error; and it is told only
/// where a listed account did the act, or where it is CI of this repository.
pub fn a_payload_is_an_event_nothing_or_an_error(bytes: &[u8]) {
    let Ok(repo) = RepoRef::new("github.com", "octo", "app") else {
        return;
    };
    let item = ItemInput {
        repo,
        repo_id: Some(HOME),
        number: 20,
        on: ItemKind::PullRequest,
        title: "A title".to_owned(),
        url: String::new(),
    };
    let whole: Option<Value> = read(bytes);
    let said = |key: &str| Some(whole.as_ref()?.get(key)?.as_str()?.to_owned());
    let sha = said("head_sha").unwrap_or_else(|| "abc".to_owned());

    if let Some(comment) = read::<payload::Comment>(bytes) {
        let _number = comment.number();
        text(&item, Text::of_comment(&comment), comment.user.as_ref());
    }
    if let Some(review) = read::<payload::Review>(bytes) {
        text(&item, Text::of_review(&review), review.user.as_ref());
    }
    if let Some(comment) = read::<payload::ReviewComment>(bytes) {
        let _number = comment.number();
        text(
            &item,
            Text::of_review_comment(&comment),
            comment.user.as_ref(),
        );
    }
    if let Some(run) = read::<payload::WorkflowRun>(bytes) {
        let result = inputs::workflow_run(&run, &item, &sha);
        let home = run.head_repository.as_ref().map_or(HOME, |it| it.id);
        assert!(
            result.is_none() || home == HOME,
            "a fork's run is a verdict"
        );
        ci(&item, result);
        assert!(inputs::workflow_run(&run, &item, "another").is_none() || sha == "another");
    }
    if let Some(check) = read::<payload::CheckRun>(bytes) {
        ci(&item, inputs::check_run(&check, &item, &sha));
    }
    if let Some(status) = read::<payload::CommitStatus>(bytes) {
        ci(&item, inputs::status(&status, &item, &sha));
    }
    // These make no event by themselves, and are read all the same.
    drop(read::<payload::Issue>(bytes));
    drop(read::<payload::Pull>(bytes));
    drop(read::<payload::IssueEvent>(bytes));
}

fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

fn policy() -> Policy {
    let words = ControlWords::default();
    Policy::new([Login::new("octocat")], SpawnPolicy::Labeled, Some(words))
}

fn text(item: &ItemInput, text: Option<Text>, user: Option<&User>) {
    let Some(text) = text else { return };
    let _may_be = text.may_be_edited();
    let author = payload::login(user);
    for edit in [Edit::Never, Edit::ByNobody, Edit::By(Login::new("mallory"))] {
        let Some(event) = text.clone().with_edit(edit).event(item) else {
            return;
        };
        assert!(event.kind.is_text());
        assert_eq!(event.actor, author, "the act is its author's");
        belongs_and_is_kept(item, &event);
        if !matches!(judge(&event, &policy()), Verdict::Drop(_)) {
            assert_eq!(author, Some(Login::new("octocat")), "told, and not listed");
            assert_eq!(event.edit, Edit::Never, "told, and edited by a stranger");
        }
    }
}

fn ci(item: &ItemInput, result: Option<CiResult>) {
    let Some(result) = result else { return };
    let Some(event) = result.event else { return };
    assert_eq!(result.progress, Progress::Finished);
    let is_ci = matches!(
        event.kind,
        EventKind::WorkflowRun | EventKind::CheckRun | EventKind::Status
    );
    assert!(
        is_ci && event.body.is_empty(),
        "CI says no words of its own"
    );
    belongs_and_is_kept(item, &event);
}

fn belongs_and_is_kept(item: &ItemInput, event: &Event) {
    assert_eq!((&event.repo, event.number), (&item.repo, item.number));
    let object = format!("github.com:{}:", event.kind);
    assert!(event.key.as_str().starts_with(&object), "{:?}", event.key);
    let kept = serde_json::to_string(event).ok();
    let again = kept.and_then(|text| read::<Event>(text.as_bytes()));
    assert_eq!(again.as_ref(), Some(event), "kept in the store as it was");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SHAPES: [&str; 9] = [
        include_str!("../../../fuzz/corpus/payload/comment.json"),
        include_str!("../../../fuzz/corpus/payload/review.json"),
        include_str!("../../../fuzz/corpus/payload/review_comment.json"),
        include_str!("../../../fuzz/corpus/payload/workflow_run.json"),
        include_str!("../../../fuzz/corpus/payload/check_run.json"),
        include_str!("../../../fuzz/corpus/payload/status.json"),
        include_str!("../../../fuzz/corpus/payload/issue.json"),
        include_str!("../../../fuzz/corpus/payload/pull.json"),
        include_str!("../../../fuzz/corpus/payload/issue_event.json"),
    ];

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            Just(json!(u64::MAX)),
            any::<f64>().prop_map(Value::from),
            prop::sample::select(vec![
                "octocat",
                "mallory",
                "ghost",
                "the-loop stop",
                "<!-- the-loop:agent-comment -->",
                "APPROVED",
                "failure",
                "github-actions",
                "+262142-12-31T23:59:59Z",
                "-262143-01-01T00:00:00Z",
                "2016-12-31T23:59:60Z",
                "\u{0}\u{1b}[201~",
            ])
            .prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("id|user|login|number|[a-z_]{1,9}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// A real shape in which a few values are something else.
    fn any_mutated_shape() -> impl Strategy<Value = Value> {
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any_json()), 0..4);
        (prop::sample::select(&SHAPES[..]), changes).prop_map(|(shape, changes)| {
            let mut value: Value = serde_json::from_str(shape).unwrap();
            for (at, with) in changes {
                let mut at = at.index(count(&value));
                replace(&mut value, &mut at, &with);
            }
            value
        })
    }

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(fields) => fields.values().map(count).sum(),
            _ => 0,
        }
    }

    /// Replaces the node with this number, counted from the top.
    fn replace(value: &mut Value, at: &mut usize, with: &Value) -> bool {
        if *at == 0 {
            *value = with.clone();
            return true;
        }
        *at -= 1;
        match value {
            Value::Array(items) => items.iter_mut().any(|item| replace(item, at, with)),
            Value::Object(fields) => fields.values_mut().any(|field| replace(field, at, with)),
            _ => false,
        }
    }

    #[test]
    fn every_shape_of_these_tests_is_what_github_sends() {
        for shape in SHAPES {
            a_payload_is_an_event_nothing_or_an_error(shape.as_bytes());
        }
        let comment: payload::Comment = serde_json::from_str(SHAPES[0]).unwrap();
        let run: payload::WorkflowRun = serde_json::from_str(SHAPES[3]).unwrap();
        assert_eq!(comment.number(), Some(20));
        assert_eq!(run.head_repository.unwrap().id, HOME);
    }

    proptest! {
        #[test]
        fn any_json_is_an_event_nothing_or_an_error(value in any_json()) {
            a_payload_is_an_event_nothing_or_an_error(value.to_string().as_bytes());
        }

        #[test]
        fn a_payload_of_any_changed_shape_is_told_only_where_a_listed_account_acted(value in any_mutated_shape()) {
            a_payload_is_an_event_nothing_or_an_error(value.to_string().as_bytes());
        }

        #[test]
        fn a_payload_that_was_cut_off_is_an_error(shape in prop::sample::select(&SHAPES[..]), cut in any::<prop::sample::Index>()) {
            let cut = cut.index(shape.trim_end().len());
            prop_assert!(serde_json::from_str::<Value>(&shape[..cut]).is_err());
            a_payload_is_an_event_nothing_or_an_error(&shape.as_bytes()[..cut]);
        }
    }
}
