//! Which issue a pull request serves.

use serde_json::json;
use the_loop::demo::github::PullOptions;

use super::rig::{REPO, Rig};

fn from_fork(rig: &Rig, author: &str, branch: &str, body: &str) -> u64 {
    let options = PullOptions {
        author,
        title: "A change",
        body,
        head_branch: branch,
        head_sha: "2222222222222222222222222222222222222222",
        fork: Some("mallory/app"),
        draft: false,
    };
    rig.github.open_pull(REPO, &options)
}

/// What is said on a pull request, and to which work item it goes.
async fn goes_to(rig: &Rig, pull: u64) -> Vec<String> {
    rig.look().await;
    rig.hear().await;
    rig.comment(pull, "ada", "a remark");
    rig.look().await;
    let heard = rig.hear().await;
    heard.into_iter().map(|one| one.item).collect()
}

#[tokio::test]
async fn a_pull_request_that_closes_an_issue_speaks_to_its_session() {
    let (rig, issue) = Rig::with_issue().await;
    let pull = rig.pull("anything", &format!("Fixes #{issue}"));
    assert_eq!(goes_to(&rig, pull).await, [format!("{REPO}#{issue}")]);
}

#[tokio::test]
async fn a_pull_request_serves_an_issue_that_a_command_introduces_later() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    let pull = rig.pull("anything", &format!("Fixes #{issue}"));
    rig.look().await;
    rig.look().await;
    rig.introduce(issue).await;
    rig.look().await;
    // Nothing happened on the pull request meanwhile.
    assert_eq!(rig.row(pull).await.bound_to, Some(rig.item(issue)));
}

#[tokio::test]
async fn a_pull_request_that_serves_an_issue_gets_no_agent_of_its_own() {
    for policy in ["always", "labeled"] {
        let mut rig = Rig::new().await;
        rig.set("routing.control", json!({ "requireStartCommand": false }));
        rig.set("routing.spawnOnUnmatched", json!(policy));
        rig.look().await;
        let issue = rig.labelled_issue();
        rig.look().await;
        rig.open_session().await;
        let pull = rig.pull("anything", &format!("Fixes #{issue}"));
        rig.label(pull, "ada");

        rig.look().await;

        assert_eq!(rig.hear().await, [], "{policy}");
        assert_eq!(rig.row(pull).await.bound_to, Some(rig.item(issue)));
        assert_eq!(goes_to(&rig, pull).await, [format!("{REPO}#{issue}")]);
    }
}

#[tokio::test]
async fn a_branch_named_for_an_issue_speaks_to_its_session() {
    let (rig, issue) = Rig::with_issue().await;
    let pull = rig.pull(&format!("ada/issue-{issue}-fix"), "");
    assert_eq!(goes_to(&rig, pull).await, [format!("{REPO}#{issue}")]);
}

#[tokio::test]
async fn a_branch_that_only_ends_like_one_speaks_to_nobody() {
    let (rig, issue) = Rig::with_issue().await;
    let pull = rig.pull(&format!("tissue-{issue}"), "");
    assert_eq!(goes_to(&rig, pull).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_strangers_fork_speaks_to_nobody_and_a_listed_ones_does() {
    let (rig, issue) = Rig::with_issue().await;
    let branch = format!("issue-{issue}");
    let body = format!("Fixes #{issue}");
    let hers = from_fork(&rig, "mallory", &branch, &body);
    assert_eq!(goes_to(&rig, hers).await, Vec::<String>::new());
    let adas = from_fork(&rig, "ada", &branch, &body);
    assert_eq!(goes_to(&rig, adas).await, [format!("{REPO}#{issue}")]);
}

#[tokio::test]
async fn a_pull_request_that_was_there_before_its_issue_was_known_speaks_to_it() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    let pull = rig.pull("anything", &format!("Fixes #{issue}"));
    rig.look().await;
    rig.look().await;
    rig.label(issue, "ada");
    rig.look().await;
    rig.hear().await;
    rig.comment(pull, "ada", "the first remark");
    rig.look().await;
    let heard = rig.hear().await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].item, format!("{REPO}#{issue}"));
}

#[tokio::test]
async fn what_was_said_on_it_before_it_was_first_seen_is_news_to_the_agent() {
    let (rig, issue) = Rig::with_issue().await;
    let pull = rig.pull("anything", &format!("Fixes #{issue}"));
    rig.pass(5);
    rig.comment(pull, "ada", "quick as lightning");
    let review = rig.github.review(REPO, pull, "grace", "APPROVED", "fine");
    review.unwrap();
    rig.look().await;
    let mut heard = rig.hear_texts().await;
    heard.sort();
    assert_eq!(heard, ["fine", "quick as lightning"]);
}

#[tokio::test]
async fn a_number_of_an_unknown_item_binds_nothing() {
    let (rig, _) = Rig::with_issue().await;
    let pull = rig.pull("issue-285", "Fixes #285");
    assert_eq!(goes_to(&rig, pull).await, Vec::<String>::new());
    assert!(rig.known(285).await.is_none());
}

#[tokio::test]
async fn reviews_of_a_serving_pull_request_go_to_the_issue() {
    let (rig, issue) = Rig::with_issue().await;
    let pull = rig.pull("anything", &format!("Closes #{issue}"));
    rig.look().await;
    rig.github
        .review(REPO, pull, "ada", "CHANGES_REQUESTED", "no")
        .unwrap();
    rig.look().await;
    let heard = rig.hear().await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].item, format!("{REPO}#{issue}"));
}
