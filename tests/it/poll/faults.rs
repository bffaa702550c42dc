//! What GitHub does wrong, and what clocks do.

use std::time::Duration;

use chrono::TimeDelta;
use the_loop::demo::github::Fault;

use super::rig::{REPO, Rig};

#[tokio::test]
async fn a_502_that_passes_is_nothing() {
    let (rig, issue) = Rig::with_issue().await;
    rig.comment(issue, "ada", "hello");
    rig.github.fail("/issues/comments", 2, Fault::Status(502));
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["hello"]);
}

#[tokio::test]
async fn a_cycle_that_breaks_down_says_so_and_the_next_one_loses_nothing() {
    let (rig, issue) = Rig::with_issue().await;
    rig.comment(issue, "ada", "hello");
    rig.break_at("inbox.accepted");
    rig.pass(60);
    let report = rig.cycle().await;
    assert!(report.errors[0].contains("a defect"), "{report:?}");
    assert_eq!(rig.said(&["poll.provider_error"]).len(), 1);
    rig.comment(issue, "ada", "again");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["hello", "again"]);
    // Nothing is accepted before its line is in the event log; here it is there twice.
    assert_eq!(rig.said(&["inbox.accepted"]).len(), 3);
}

#[tokio::test]
async fn half_an_answer_loses_nothing() {
    let (rig, issue) = Rig::with_issue().await;
    rig.comment(issue, "ada", "hello");
    for part in ["/issues/comments", "/issues?", "/pulls?", "/pulls/comments"] {
        rig.github.fail(part, 1, Fault::Truncated);
    }
    rig.pass(60);
    let report = rig.cycle().await;
    assert!(!report.errors.is_empty());
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["hello"]);
}

#[tokio::test]
async fn half_a_thread_at_first_sight_loses_nothing() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.comment(issue, "ada", "old");
    rig.comment(issue, "ada", "the-loop start");
    rig.github
        .fail(&format!("/issues/{issue}/comments"), 1, Fault::Truncated);
    rig.pass(60);
    let report = rig.cycle().await;
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    rig.comment(issue, "ada", "new");
    rig.pass(60);
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["the-loop start", "new"]);
}

#[tokio::test]
async fn a_rate_limit_stops_the_cycle_says_so_and_passes() {
    let second = Some(Duration::from_secs(1));
    for fault in [
        Fault::HourlyLimit(Duration::ZERO),
        Fault::TooManyRequests(second),
        Fault::SecondaryLimit(second),
    ] {
        let (rig, issue) = Rig::with_issue().await;
        rig.comment(issue, "ada", "hello");
        rig.forget_said();
        rig.github.forget_requests();
        rig.github.fail("/issues?", 1, fault);
        rig.pass(60);
        let report = rig.cycle().await;
        assert!(report.rate_limited_until.is_some());
        assert_eq!(rig.github.requests().len(), 1, "nothing more is asked");
        assert_eq!(rig.said(&["poll.rate_limited"]).len(), 1);
        assert_eq!(rig.said(&["poll.provider_error"]).len(), 0);
        let now = the_loop::clock::Clock::now(&rig.clock);
        let pause = report.pause(Duration::from_secs(60), now);
        assert!((59..=61).contains(&pause.as_secs()), "{pause:?}");
        tokio::time::sleep(Duration::from_millis(1100)).await;
        rig.look().await;
        assert_eq!(rig.hear_texts().await, ["hello"]);
    }
}

#[tokio::test]
async fn how_long_a_rate_limit_lasts_does_not_depend_on_our_clock() {
    for hours in [-3, 3] {
        let (rig, _) = Rig::with_issue().await;
        rig.clock.advance(TimeDelta::hours(hours));
        rig.github
            .fail("/issues?", 1, Fault::HourlyLimit(Duration::from_secs(600)));
        let report = rig.cycle().await;
        let now = the_loop::clock::Clock::now(&rig.clock);
        let pause = report.pause(Duration::from_secs(60), now);
        assert!((599..=602).contains(&pause.as_secs()), "{pause:?}");
    }
}

#[tokio::test]
async fn a_clock_that_is_hours_off_loses_nothing_and_tells_nothing_old() {
    for hours in [-5, 5] {
        let rig = Rig::new().await;
        rig.clock.advance(TimeDelta::hours(hours));
        let issue = rig.labelled_issue();
        let pull = rig.pull("feature", &format!("Fixes #{issue}"));
        rig.comment(issue, "ada", "old");
        rig.look().await;
        for text in ["one", "two"] {
            rig.comment(issue, "ada", text);
            rig.look().await;
        }
        rig.github
            .review(REPO, pull, "ada", "APPROVED", "three")
            .unwrap();
        rig.look().await;
        assert_eq!(rig.hear_texts().await, ["one", "two", "three"], "{hours} h");
    }
}

#[tokio::test]
async fn a_date_header_that_lags_behind_loses_nothing() {
    let rig = Rig::new().await;
    rig.github.skew_date(TimeDelta::hours(-5));
    let issue = rig.labelled_issue();
    rig.look().await;
    rig.hear().await;
    for text in ["one", "two"] {
        rig.comment(issue, "ada", text);
        rig.look().await;
    }
    assert_eq!(rig.hear_texts().await, ["one", "two"]);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_github_that_hangs() {
    let (rig, _) = Rig::with_issue().await;
    rig.github.fail("/issues/comments", 10, Fault::Hang);
    let stop = async {
        while rig.github.count("GET", "/issues/comments") < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rig.stop.cancel();
    };
    let both = async { tokio::join!(rig.cycle(), stop) };
    let (report, ()) = tokio::time::timeout(Duration::from_secs(5), both)
        .await
        .expect("the cycle ends");
    assert!(report.interrupted);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
}
