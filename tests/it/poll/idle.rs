//! What a cycle costs when nothing happens.

use the_loop::demo::github::Logged;

use super::rig::{REPO, Rig};

fn assert_idle(asked: &[Logged], repos: usize) {
    assert_eq!(asked.len(), 4 * repos, "{asked:#?}");
    for request in asked {
        assert_eq!(request.status, 304, "{request:?}");
    }
}

#[tokio::test]
async fn an_idle_cycle_is_four_requests_all_unchanged() {
    let rig = Rig::new().await;
    rig.look().await;
    rig.look().await;
    assert_idle(&rig.asked_by_next_cycle().await, 1);
    assert_idle(&rig.asked_by_next_cycle().await, 1);
}

#[tokio::test]
async fn with_a_hundred_items_and_their_comments_too() {
    let rig = Rig::new().await;
    for number in 0..90 {
        rig.pass(1);
        let issue = rig.labelled_issue();
        if number % 3 == 0 {
            rig.comment(issue, "ada", "a remark");
        }
    }
    for number in 0..10 {
        let pull = rig.pull(&format!("branch-{number}"), "");
        rig.label(pull, "ada");
        rig.github
            .review(REPO, pull, "ada", "APPROVED", "")
            .unwrap();
    }
    // A head without any CI is watched for half an hour.
    for _ in 0..40 {
        rig.look().await;
    }
    assert_idle(&rig.asked_by_next_cycle().await, 1);
    let report = rig.look().await;
    assert_eq!(
        (report.requests, report.unchanged, report.items),
        (4, 4, 100)
    );
    assert!(!report.is_news());
}

#[tokio::test]
async fn four_for_each_repository() {
    let rig = Rig::watching(&["demo/app", "demo/my.repo", "o/third"]).await;
    for repo in ["demo/app", "demo/my.repo", "o/third"] {
        let issue = rig.github.open_issue(repo, "ada", "A title", "");
        rig.github
            .label(repo, issue, "ada", super::rig::LABEL)
            .unwrap();
    }
    for _ in 0..4 {
        rig.look().await;
    }
    assert_idle(&rig.asked_by_next_cycle().await, 3);
}

#[tokio::test]
async fn an_idle_cycle_writes_no_line() {
    let rig = Rig::new().await;
    rig.labelled_issue();
    for _ in 0..3 {
        rig.look().await;
    }
    let cycles = rig.said(&["poll.cycle"]).len();
    rig.look().await;
    assert_eq!(rig.said(&["poll.cycle"]).len(), cycles);
}

#[tokio::test]
async fn an_idle_cycle_writes_nothing_to_the_database() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.comment(issue, "ada", "a remark");
    for _ in 0..3 {
        rig.look().await;
    }
    let database = rig.store.path().to_owned();
    let log = database.with_extension("db-wal");
    let content = || [&database, &log].map(|file| std::fs::read(file).unwrap_or_default());
    let before = content();
    rig.look().await;
    assert!(content() == before, "the database changed");
}
