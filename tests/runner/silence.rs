//! A server that is too busy to answer.

use std::collections::BTreeSet;
use std::time::Duration;

use the_loop::model::{DeliveryId, TmuxSocket};
use the_loop::runner::{
    DeliverOutcome, Limits, Probe, RunnerError, SpawnOutcome, TokenState, Unanswered,
};

use crate::rig::{Rig, message, open, pasted};

#[tokio::test]
async fn a_frozen_server_is_unknown_and_its_agent_is_left_alone() {
    let rig = Rig::hasty();
    let it = rig.start_recorder(1).await;
    rig.freeze();

    let probe = rig.runner.probe(&it).await;

    assert!(
        matches!(probe, Probe::Unknown(Unanswered::TimedOut { .. })),
        "{probe:?}"
    );
    rig.thaw();
    assert!(crate::rig::runs(&it));
}

/// A longer wait would hide what a busy server means, a shorter one would invent it.
#[test]
fn no_configuration_changes_how_long_an_answer_is_waited_for() {
    assert_eq!(Limits::default().answer, Duration::from_secs(10));
    let schema = include_str!("../../docs/config.schema.json");
    let times: BTreeSet<&str> = schema
        .split('"')
        .filter(|word| word.chars().all(char::is_alphanumeric))
        .filter(|word| word.ends_with("econds") || word.to_lowercase().contains("timeout"))
        .collect();
    let of_other_things = [
        "harnessKillGraceSeconds",
        "intervalSeconds",
        "readyDelaySeconds",
        "resumeProbeSeconds",
        "submitGapMilliseconds",
    ];
    assert_eq!(times, BTreeSet::from(of_other_things));
}

#[tokio::test]
async fn a_text_that_timed_out_is_typed_once_when_the_server_wakes() {
    let rig = Rig::hasty();
    let it = rig.start_recorder(1).await;
    rig.freeze();

    let error = rig
        .runner
        .deliver(&it, &message(1, "text"), &open)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RunnerError::Unanswered(Unanswered::TimedOut { .. })),
        "{error}"
    );
    rig.thaw_and_see_live(&it).await;

    // Whether tmux still did it or not, the token tells, and another attempt makes it exactly one.
    let token = rig.runner.read_token(&it, DeliveryId(1)).await.unwrap();
    let mut again = message(1, "text");
    again.attempt = 2;
    let outcome = rig.runner.deliver(&it, &again, &open).await.unwrap();
    match token {
        TokenState::Pasted => assert_eq!(outcome, DeliverOutcome::AlreadyDelivered),
        TokenState::NotPasted => assert_eq!(outcome, DeliverOutcome::Delivered),
        TokenState::NoSession => panic!("the session is there"),
    }
    assert_eq!(rig.typed(1, "\r"), pasted("text"));
    let third = rig.runner.deliver(&it, &again, &open).await;
    assert_eq!(third, Ok(DeliverOutcome::AlreadyDelivered));
}

#[tokio::test]
async fn after_two_unanswered_calls_a_server_is_left_alone_until_it_answers() {
    let rig = Rig::hasty();
    let it = rig.start_recorder(1).await;
    rig.freeze();
    let first = rig.runner.deliver(&it, &message(1, "text"), &open).await;
    assert!(first.is_err());
    assert!(!rig.runner.is_silent(&it));
    rig.runner.probe(&it).await;
    assert!(rig.runner.is_silent(&it));

    let started = std::time::Instant::now();
    let error = rig
        .runner
        .deliver(&it, &message(2, "more"), &open)
        .await
        .unwrap_err();

    assert!(started.elapsed() < Duration::from_millis(400));
    assert!(
        matches!(error, RunnerError::Unanswered(Unanswered::Silent { .. })),
        "{error}"
    );
    rig.thaw_and_see_live(&it).await;
    assert!(!rig.runner.is_silent(&it));
}

#[tokio::test]
async fn a_frozen_server_is_not_spawned_over() {
    let rig = Rig::hasty();
    let it = rig.start_recorder(1).await;
    rig.freeze();
    let mut plan = rig.plan(1, "exec sleep 600");
    plan.address = it.clone();

    let error = rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap_err();

    assert!(matches!(error, RunnerError::Unanswered(_)), "{error}");
    rig.thaw();
    assert!(crate::rig::runs(&it));
    let patient = rig.another(Vec::new());
    let outcome = patient.spawn(&plan, &open, &|_| {}).await;
    assert_eq!(outcome, Ok(SpawnOutcome::LiveOccupant));
    assert_eq!(rig.session_count(), 1);
}

#[tokio::test]
async fn a_missing_program_is_unknown_too() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let nothing = the_loop::runner::TmuxRunner::new(
        the_loop::runner::RealTmux::new("/no/such/tmux".into()),
        the_loop::runner::LocalMachine::new(rig.dir.path().join("state")),
        TmuxSocket::Path(rig.tmux.socket()),
        Limits::default(),
    );

    let probe = nothing.probe(&it).await;

    assert!(
        matches!(probe, Probe::Unknown(Unanswered::NotRun { .. })),
        "{probe:?}"
    );
    assert!(!nothing.is_silent(&it));
}
