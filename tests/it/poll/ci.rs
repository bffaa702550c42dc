//! CI of the heads that are watched.

use the_loop::demo::github::{Fault, PullOptions, Run};
use the_loop::model::{EventKind, ItemKind};

use super::rig::{REPO, Rig};

const SHA: &str = "1111111111111111111111111111111111111111";
const NEXT: &str = "3333333333333333333333333333333333333333";

async fn failures(rig: &Rig) -> usize {
    let heard = rig.hear().await;
    heard
        .iter()
        .flat_map(|one| &one.kinds)
        .filter(|kind| kind.is_ci())
        .count()
}

fn run(sha: &str, conclusion: &str) -> Run {
    Run::completed("feature", sha, conclusion)
}

#[tokio::test]
async fn a_failure_is_told_once_and_a_second_attempt_again() {
    let (rig, _) = Rig::with_pull().await;
    let id = rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
    rig.look().await;
    assert_eq!(failures(&rig).await, 0);
    rig.github.update_run(REPO, id, |run| {
        run.attempt = 2;
        run.status = "in_progress".to_owned();
        run.conclusion = None;
    });
    rig.look().await;
    assert_eq!(failures(&rig).await, 0);
    rig.github.update_run(REPO, id, |run| {
        run.status = "completed".to_owned();
        run.conclusion = Some("failure".to_owned());
    });
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
}

#[tokio::test]
async fn success_is_no_news_and_statuses_of_other_ci_are() {
    let (rig, pull) = Rig::with_pull().await;
    rig.github.workflow_run(REPO, run(SHA, "success"));
    rig.github.status(REPO, SHA, "build", "success", "ok");
    rig.look().await;
    assert_eq!(failures(&rig).await, 0);
    rig.github.status(REPO, SHA, "lint", "failure", "3 errors");
    rig.look().await;
    let kinds: Vec<_> = rig
        .hear()
        .await
        .into_iter()
        .flat_map(|one| one.kinds)
        .collect();
    assert_eq!(kinds, [EventKind::Status]);
    assert!(rig.row(pull).await.open);
}

#[tokio::test]
async fn a_token_that_may_read_neither_statuses_nor_checks_still_hears_of_workflows() {
    let (rig, _) = Rig::with_pull().await;
    rig.github.fail("/status", u32::MAX, Fault::Status(403));
    rig.github.fail("/check-runs", u32::MAX, Fault::Status(404));
    rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
}

#[tokio::test]
async fn statuses_that_the_token_may_not_read_are_said_once_for_all_heads_and_now_and_then() {
    let (rig, _) = Rig::with_pull().await;
    let second = PullOptions {
        author: "ada",
        title: "Another",
        head_branch: "other",
        head_sha: NEXT,
        ..PullOptions::default()
    };
    let second = rig.github.open_pull(REPO, &second);
    rig.label(second, "ada");
    rig.github.fail("/check-runs", u32::MAX, Fault::Status(403));
    rig.look().await;
    assert_eq!(rig.said(&["poll.provider_error"]).len(), 0);
    for status in [403, 404] {
        rig.github.heal();
        rig.look().await;
        rig.forget_said();
        rig.github.fail("/status", u32::MAX, Fault::Status(status));
        for said in [1, 2, 2] {
            rig.pass(60);
            let report = rig.cycle().await;
            assert_eq!(
                report.errors,
                Vec::<String>::new(),
                "it goes on with the rest"
            );
            let records = rig.said(&["poll.provider_error"]);
            assert_eq!(records.len(), said, "{records:?}");
            let error = records[0].text("error").unwrap();
            assert!(error.contains("commit statuses"), "{error}");
            assert!(error.contains(&status.to_string()), "{error}");
        }
    }
}

#[tokio::test]
async fn an_outdated_head_and_a_fork_are_nobodys_failures() {
    let (rig, pull) = Rig::with_pull().await;
    rig.github.push(REPO, pull, NEXT).unwrap();
    rig.look().await;
    rig.github.workflow_run(REPO, run(SHA, "failure"));
    let fork = rig.github.open_pull(
        REPO,
        &PullOptions {
            author: "ada",
            title: "From outside",
            head_branch: "feature",
            head_sha: "4444444444444444444444444444444444444444",
            fork: Some("ada/app"),
            ..PullOptions::default()
        },
    );
    rig.label(fork, "ada");
    rig.github.workflow_run(
        REPO,
        run("4444444444444444444444444444444444444444", "failure"),
    );
    rig.look().await;
    rig.look().await;
    assert_eq!(failures(&rig).await, 0);
    rig.github.workflow_run(REPO, run(NEXT, "failure"));
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
}

#[tokio::test]
async fn a_head_that_has_come_to_rest_costs_no_requests() {
    let (rig, pull) = Rig::with_pull().await;
    rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    for _ in 0..12 {
        rig.look().await;
    }
    assert_eq!(rig.asked_by_next_cycle().await.len(), 4);
    rig.github.push(REPO, pull, NEXT).unwrap();
    rig.look().await;
    assert!(rig.github.count("GET", "/actions/runs") > 0);
}

#[tokio::test]
async fn a_workflow_that_begins_after_another_has_ended_is_waited_for() {
    let (rig, _) = Rig::with_pull().await;
    rig.github.workflow_run(REPO, run(SHA, "success"));
    rig.look().await;
    rig.pass(60);
    rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
}

#[tokio::test]
async fn a_head_without_any_ci_is_watched_for_a_while_whatever_our_clock_says() {
    let (rig, _) = Rig::with_pull().await;
    rig.clock.advance(chrono::TimeDelta::hours(5));
    rig.look().await;
    rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
}

#[tokio::test]
async fn an_attempt_long_after_the_first_is_told_while_an_agent_is_there() {
    let (rig, pull) = Rig::with_pull().await;
    rig.comment(pull, "ada", "Have a look at this.");
    rig.look().await;
    rig.open_session().await;
    let id = rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
    for _ in 0..12 {
        rig.look().await;
    }
    assert_eq!(rig.asked_by_next_cycle().await.len(), 4, "it is at rest");

    rig.pass(600);
    let asked = rig.asked_by_next_cycle().await;
    assert_eq!(asked.len(), 7, "looked at once: {asked:#?}");
    assert!(asked.iter().all(|one| one.status == 304), "{asked:#?}");
    assert_eq!(rig.asked_by_next_cycle().await.len(), 4);

    rig.github.update_run(REPO, id, |run| run.attempt = 2);
    rig.pass(480);
    rig.look().await;
    assert_eq!(failures(&rig).await, 1);
    assert!(rig.asked_by_next_cycle().await.len() > 4, "watched again");
}

#[tokio::test]
async fn the_ci_of_a_pull_request_that_a_command_introduced_is_watched() {
    let rig = Rig::new().await;
    let pull = rig.pull("feature", "");
    rig.look().await;
    rig.look().await;
    rig.introduce(pull).await;
    rig.github.workflow_run(REPO, run(SHA, "failure"));
    rig.look().await;
    assert_eq!(rig.row(pull).await.kind, ItemKind::PullRequest);
    assert_eq!(failures(&rig).await, 1);
}
