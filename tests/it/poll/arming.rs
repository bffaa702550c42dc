//! What lets an item have a session: label, policy, and whose label it is.

use serde_json::json;
use the_loop::model::{EventKind, Login};

use super::rig::{LABEL, REPO, Rig};

#[tokio::test]
async fn a_label_arms_and_a_start_follows_it() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "mallory", "A title", "");
    rig.look().await;
    rig.label(issue, "ada");
    rig.look().await;
    assert!(rig.row(issue).await.armed);
    assert_eq!(rig.said(&["item.armed"]).len(), 1);
    rig.comment(issue, "ada", "the-loop start");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["the-loop start"]);
}

#[tokio::test]
async fn a_label_counts_in_any_case() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    let label = "The-Loop: Auto-Execute";
    rig.github.label(REPO, issue, "ada", label).unwrap();
    rig.look().await;
    assert!(rig.row(issue).await.armed);
}

#[tokio::test]
async fn the_one_who_put_the_sources_own_label_on_counts() {
    let mut rig = Rig::new().await;
    rig.set("routing.control", json!({ "requireStartCommand": false }));
    let sources = json!([{ "repos": [REPO], "label": "agent: go" }]);
    rig.set("polling.sources", sources);
    let issue = rig.github.open_issue(REPO, "mallory", "A title", "");
    rig.github.label(REPO, issue, "ada", "agent: go").unwrap();
    rig.github.label(REPO, issue, "mallory", LABEL).unwrap();
    rig.look().await;
    assert_eq!(rig.row(issue).await.armed_by, Some(Login::new("ada")));
}

#[tokio::test]
async fn another_label_in_the_configuration_disarms_what_bears_the_old_one() {
    let mut rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    let sources = json!([{ "repos": [REPO], "label": "agent: go" }]);
    rig.set("polling.sources", sources);
    rig.look().await;
    assert!(!rig.row(issue).await.armed);
}

#[tokio::test]
async fn taking_the_label_off_disarms_and_what_people_write_still_arrives() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    rig.hear().await;
    rig.github.unlabel(REPO, issue, "ada", LABEL).unwrap();
    rig.look().await;
    assert!(!rig.row(issue).await.armed);
    assert_eq!(rig.said(&["item.disarmed"]).len(), 1);
    rig.comment(issue, "ada", "still here");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["still here"]);
}

#[tokio::test]
async fn an_item_is_armed_again_with_its_label() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    rig.github.unlabel(REPO, issue, "ada", LABEL).unwrap();
    rig.look().await;
    rig.label(issue, "ada");
    rig.look().await;
    assert_eq!(rig.row(issue).await.armed_count, 2);
    // What was armed and not acted on is overtaken.
    let kinds: Vec<_> = rig
        .hear()
        .await
        .into_iter()
        .flat_map(|one| one.kinds)
        .collect();
    assert_eq!(kinds, [EventKind::Armed]);
}

#[tokio::test]
async fn without_a_start_command_the_one_who_labelled_counts() {
    let mut rig = Rig::new().await;
    rig.set("routing.control", json!({ "requireStartCommand": false }));
    let by_ada = rig.github.open_issue(REPO, "mallory", "A title", "");
    let by_mallory = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.label(by_ada, "ada");
    rig.label(by_mallory, "mallory");
    rig.look().await;
    assert_eq!(rig.row(by_ada).await.armed_by, Some(Login::new("ada")));
    assert_eq!(
        rig.row(by_mallory).await.armed_by,
        Some(Login::new("mallory"))
    );
}

#[tokio::test]
async fn never_arms_nothing_though_the_item_is_known() {
    let mut rig = Rig::new().await;
    rig.set("routing.spawnOnUnmatched", json!("never"));
    let issue = rig.labelled_issue();
    rig.look().await;
    assert!(!rig.row(issue).await.armed);
    assert_eq!(rig.hear().await, []);
}

#[tokio::test]
async fn always_arms_what_bears_no_label_and_another_policy_disarms_it() {
    let mut rig = Rig::new().await;
    let (issue, pull) = (
        rig.github.open_issue(REPO, "mallory", "A title", ""),
        rig.pull("feature", ""),
    );
    let labelled = rig.labelled_issue();
    rig.look().await;
    assert_eq!(rig.known(issue).await, None);

    rig.set("routing.spawnOnUnmatched", json!("always"));
    rig.look().await;
    let later = rig.github.open_issue(REPO, "mallory", "A title", "");
    rig.look().await;
    for number in [issue, pull, later, labelled] {
        assert!(rig.row(number).await.armed, "{number}");
    }
    rig.comment(issue, "ada", "the-loop start");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["the-loop start"]);

    rig.set("routing.spawnOnUnmatched", json!("labeled"));
    rig.pass(3600);
    rig.look().await;
    for number in [issue, pull, later] {
        assert!(!rig.row(number).await.armed, "{number}");
    }
    assert!(rig.row(labelled).await.armed);
}

#[tokio::test]
async fn the_opening_counts_where_every_item_is_armed_but_not_before_the_first_look() {
    let mut rig = Rig::new().await;
    rig.set("routing.control", json!({ "requireStartCommand": false }));
    rig.set("routing.spawnOnUnmatched", json!("always"));
    let before = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    let after = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    assert!(rig.row(before).await.armed && rig.row(after).await.armed);
    assert_eq!(rig.row(before).await.armed_by, None);
    assert_eq!(rig.row(after).await.armed_by, Some(Login::new("ada")));
}

/// A rig where every open item is armed, and no start is asked for.
async fn always_without_a_start() -> Rig {
    let mut rig = Rig::new().await;
    rig.set("routing.control", json!({ "requireStartCommand": false }));
    rig.set("routing.spawnOnUnmatched", json!("always"));
    rig
}

#[tokio::test]
async fn what_another_policy_left_out_is_nobodys_act_when_every_item_is_armed_again() {
    let mut rig = always_without_a_start().await;
    let first = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    rig.set("routing.spawnOnUnmatched", json!("labeled"));
    rig.look().await;
    let meanwhile = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    rig.set("routing.spawnOnUnmatched", json!("always"));
    rig.look().await;
    rig.comment(meanwhile, "mallory", "a word");
    rig.look().await;
    for number in [first, meanwhile] {
        let row = rig.row(number).await;
        assert!(row.armed && row.armed_by.is_none(), "{row:?}");
    }
    assert_eq!(rig.hear().await, []);
    let after = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    assert_eq!(rig.row(after).await.armed_by, Some(Login::new("ada")));
}

#[tokio::test]
async fn what_was_not_monitored_is_nobodys_act_when_it_is() {
    let mut rig = always_without_a_start().await;
    let watched = |issues: bool| json!([{ "repos": [REPO], "monitor": { "issues": issues } }]);
    rig.look().await;
    rig.set("polling.sources", watched(false));
    rig.look().await;
    let unseen = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    assert_eq!(rig.known(unseen).await, None);
    rig.set("polling.sources", watched(true));
    rig.look().await;
    let row = rig.row(unseen).await;
    assert!(row.armed && row.armed_by.is_none(), "{row:?}");
    assert_eq!(rig.hear().await, []);
}

#[tokio::test]
async fn a_reopening_is_not_the_authors_act() {
    let rig = always_without_a_start().await;
    rig.look().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    rig.github.close(REPO, issue, "ada").unwrap();
    rig.look().await;
    rig.hear().await;
    rig.github.reopen(REPO, issue, "mallory").unwrap();
    rig.look().await;
    let row = rig.row(issue).await;
    assert!(row.armed && row.armed_by.is_none(), "{row:?}");
    assert_eq!(rig.hear().await, []);
}

#[tokio::test]
async fn what_is_armed_by_nobodys_act_makes_no_delivery() {
    let rig = always_without_a_start().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    assert!(rig.row(issue).await.armed);
    assert_eq!(rig.queue(issue).await, []);
    rig.comment(issue, "ada", "please look");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["please look"]);
}

#[tokio::test]
async fn one_unreadable_history_holds_up_no_other_item_and_is_asked_again() {
    let mut rig = Rig::new().await;
    rig.set("routing.control", json!({ "requireStartCommand": false }));
    let (first, second) = (rig.labelled_issue(), rig.labelled_issue());
    let fault = the_loop::demo::github::Fault::Status(502);
    rig.github
        .fail(&format!("/issues/{first}/events"), 4, fault);
    rig.pass(60);
    let report = rig.cycle().await;
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    assert!(rig.row(second).await.armed);
    rig.look().await;
    assert!(rig.row(first).await.armed);
    assert_eq!(rig.row(first).await.armed_by, Some(Login::new("ada")));
}
