//! The end of an item, and what comes after it.

use chrono::TimeDelta;
use the_loop::model::{Class, EventKind};

use super::rig::{REPO, Rig};

async fn closings(rig: &Rig) -> Vec<String> {
    let heard = rig.hear().await;
    heard
        .into_iter()
        .filter(|one| one.kinds == [EventKind::Closed])
        .map(|one| {
            assert_eq!(one.class, Class::Control);
            one.item
        })
        .collect()
}

#[tokio::test]
async fn a_closed_issue_is_noticed_once_whoever_closed_it() {
    let (rig, issue) = Rig::with_issue().await;
    rig.github.close(REPO, issue, "mallory").unwrap();
    rig.look().await;
    assert_eq!(closings(&rig).await, [format!("{REPO}#{issue}")]);
    rig.look().await;
    rig.look().await;
    assert_eq!(closings(&rig).await, Vec::<String>::new());
    assert_eq!(rig.said(&["poll.closure_detected"]).len(), 1);
    assert!(!rig.row(issue).await.open);
}

#[tokio::test]
async fn an_issue_closed_twice_ends_twice() {
    let (rig, issue) = Rig::with_issue().await;
    rig.github.close(REPO, issue, "ada").unwrap();
    rig.look().await;
    assert_eq!(closings(&rig).await.len(), 1);
    rig.github.reopen(REPO, issue, "ada").unwrap();
    rig.look().await;
    assert!(rig.row(issue).await.armed, "it still has its label");
    assert_eq!(rig.row(issue).await.control, None, "it needs a new start");
    rig.github.close(REPO, issue, "ada").unwrap();
    rig.look().await;
    assert_eq!(closings(&rig).await.len(), 1);
}

#[tokio::test]
async fn a_list_that_lags_behind_reopens_nothing_for_ever() {
    let (rig, _) = Rig::with_issue().await;
    let pull = rig.pull("feature", "");
    rig.label(pull, "ada");
    rig.look().await;
    rig.pass(60);
    rig.comment(pull, "ada", "Done.");
    rig.cycle().await;
    // Now the list of issues is asked under a condition, from before this second.
    rig.cycle().await;
    rig.github.close(REPO, pull, "ada").unwrap();
    rig.cycle().await;
    assert!(!rig.row(pull).await.open);

    // What the list of open pull requests showed earlier in this second.
    rig.github.reopen(REPO, pull, "ada").unwrap();
    rig.github
        .fail("/issues?", 9, the_loop::demo::github::Fault::Status(404));
    rig.cycle().await;
    rig.github.heal();
    rig.github.close(REPO, pull, "ada").unwrap();

    rig.look().await;
    rig.look().await;
    assert!(!rig.row(pull).await.open);
    assert_eq!(closings(&rig).await, [format!("{REPO}#{pull}")]);
    assert_eq!(rig.said(&["item.reopened"]).len(), 0);
}

#[tokio::test]
async fn an_issue_closed_and_reopened_in_one_second_is_open() {
    let (rig, issue) = Rig::with_issue().await;
    rig.pass(60);
    rig.github.close(REPO, issue, "ada").unwrap();
    rig.cycle().await;
    rig.github.reopen(REPO, issue, "ada").unwrap();
    rig.cycle().await;
    assert!(!rig.row(issue).await.open, "either may be the later one");
    rig.look().await;
    assert!(rig.row(issue).await.open);
    assert!(rig.row(issue).await.armed);
}

#[tokio::test]
async fn an_issue_closed_reopened_and_closed_between_two_looks_ends_again() {
    let (rig, issue) = Rig::with_issue().await;
    rig.github.close(REPO, issue, "ada").unwrap();
    rig.look().await;
    assert_eq!(closings(&rig).await.len(), 1);
    rig.github.reopen(REPO, issue, "ada").unwrap();
    rig.pass(5);
    rig.github.close(REPO, issue, "ada").unwrap();
    rig.look().await;
    assert_eq!(closings(&rig).await.len(), 1);
}

#[tokio::test]
async fn a_merged_pull_request_leaves_its_issue_open() {
    let (rig, issue) = Rig::with_issue().await;
    let pull = rig.pull("anything", &format!("Fixes #{issue}"));
    rig.look().await;
    rig.github.merge(REPO, pull, "ada").unwrap();
    rig.look().await;
    assert_eq!(closings(&rig).await, [format!("{REPO}#{pull}")]);
    assert!(rig.row(issue).await.open);
    assert!(rig.row(pull).await.merged);
    let closure = &rig.said(&["poll.closure_detected"])[0];
    assert_eq!(closure.fields.get("merged"), Some(&true.into()));
}

#[tokio::test]
async fn an_issue_that_was_deleted_or_moved_away_ends() {
    let (rig, _) = Rig::with_issue().await;
    let (gone, moved) = (rig.labelled_issue(), rig.labelled_issue());
    rig.look().await;
    rig.hear().await;
    rig.github.delete_issue(REPO, gone).unwrap();
    rig.github
        .transfer_issue(REPO, moved, "demo/other")
        .unwrap();
    // Neither shows in any list; both are missed when the whole list is read again.
    rig.clock.advance(TimeDelta::hours(2));
    rig.look().await;
    let mut ended = closings(&rig).await;
    ended.sort();
    assert_eq!(ended, [format!("{REPO}#{gone}"), format!("{REPO}#{moved}")]);
    rig.github.forget_requests();
    rig.clock.advance(TimeDelta::hours(2));
    rig.look().await;
    assert_eq!(rig.github.count("GET", &format!("/issues/{gone}")), 0);
    assert_eq!(rig.github.count("GET", &format!("/issues/{moved}")), 0);
}

#[tokio::test]
async fn an_issue_out_of_sight_is_kept_and_asked_about_seldom() {
    let (rig, issue) = Rig::with_issue().await;
    rig.github.hide_issue(REPO, issue).unwrap();
    for _ in 0..3 {
        rig.pass(60);
        rig.cycle().await;
    }
    rig.clock.advance(TimeDelta::hours(2));
    for _ in 0..3 {
        rig.pass(60);
        rig.cycle().await;
    }
    assert!(rig.row(issue).await.open);
    assert_eq!(closings(&rig).await, Vec::<String>::new());
    let asked = rig.github.count("GET", &format!("/issues/{issue}"));
    // Once for its thread at first sight, once because it was missed.
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn a_listing_that_fails_ends_nothing() {
    let (rig, issue) = Rig::with_issue().await;
    let fault = the_loop::demo::github::Fault::Status(404);
    rig.github.fail("/issues", 50, fault);
    rig.clock.advance(TimeDelta::hours(2));
    rig.pass(60);
    rig.cycle().await;
    assert!(rig.row(issue).await.open);
    assert_eq!(closings(&rig).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_renamed_repository_ends_nothing() {
    let (rig, issue) = Rig::with_issue().await;

    rig.github.rename_repo(REPO, "demo/renamed").unwrap();
    rig.clock.advance(TimeDelta::hours(2));
    rig.look().await;
    assert!(rig.row(issue).await.open);
    assert_eq!(closings(&rig).await, Vec::<String>::new());
    rig.github
        .comment("demo/renamed", issue, "ada", "still here")
        .unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["still here"]);
}
