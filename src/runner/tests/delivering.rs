use super::*;
use crate::model::{DeliveryId, HoldReason};
use chrono::{TimeDelta, Utc};

async fn deliver(answers: Vec<Said>) -> (Result<DeliverOutcome, RunnerError>, usize) {
    let runner = runner(answers, Table::default().with(HARNESS, Life::Running));
    let message = Message {
        delivery: DeliveryId(4),
        attempt: 1,
        text: "hello".to_owned(),
        submit_gap: Duration::from_millis(60),
        expires_at: Utc::now() + TimeDelta::minutes(5),
    };
    let outcome = runner.deliver(&address(), &message, &open).await;
    (outcome, calls(&runner).len())
}

/// What tmux shows when it refuses to paste: session, owner, pid, dead, ended, input off, in mode,
/// outstanding Enter, token.
fn refused(shown: &str) -> Said {
    said(&format!("loop-refused|{shown}"))
}

fn looks_for_what_is_there() -> RunnerError {
    RunnerError::Changed {
        detail: "something else runs in %2 of $1".to_owned(),
    }
}

#[tokio::test]
async fn a_refusal_speaks_of_the_pane_that_was_meant_only() {
    use HoldReason::InputOff;
    let held = |reason| Ok(DeliverOutcome::Held(reason));
    let lost = || Err(looks_for_what_is_there());
    let other = STRANGER;
    let cases = [
        (
            format!("$1|{OWNER}|43|0|0|0|0|4|1"),
            Ok(DeliverOutcome::AlreadyDelivered),
        ),
        (
            format!("$1|{OWNER}|43|1|0|0|0||1"),
            Ok(DeliverOutcome::AlreadyDelivered),
        ),
        (format!("$9|{OWNER}|43|0|0|0|0||1"), lost()),
        (format!("$1|{other}|43|0|0|0|0||1"), lost()),
        (
            format!("$1|{OWNER}|43|0|0|0|0|3|"),
            Ok(DeliverOutcome::EnterPending(DeliveryId(3))),
        ),
        (format!("$1|{OWNER}|43|0|0|1|0||"), held(InputOff)),
        (format!("$1|{OWNER}|99|0|0|0|0|3|"), lost()),
        (format!("$1|{OWNER}|43|1|0|0|0|3|"), lost()),
        (format!("$1|{OWNER}|43|0|1|0|0|3|"), lost()),
    ];
    for (shown, expected) in cases {
        let (outcome, _) = deliver(vec![refused(&shown), listed(&[Pane::of_host()])]).await;
        assert_eq!(outcome, expected, "{shown}");
    }
}

#[tokio::test]
async fn a_mode_that_cannot_be_left_is_looked_at_again() {
    let in_mode = format!("$1|{OWNER}|43|0|0|0|1||");
    let cases = [
        (
            in_mode.clone(),
            Ok(DeliverOutcome::Held(HoldReason::PaneInMode)),
            3,
        ),
        (
            format!("$1|{OWNER}|99|0|0|0|1||"),
            Err(looks_for_what_is_there()),
            4,
        ),
        (
            format!("$1|{OWNER}|43|0|1|0|1||"),
            Err(looks_for_what_is_there()),
            4,
        ),
        (
            format!("$1|{OWNER}|43|0|0|0|1||1"),
            Ok(DeliverOutcome::AlreadyDelivered),
            3,
        ),
    ];
    for (again, expected, count) in cases {
        let (outcome, made) = deliver(vec![
            refused(&in_mode),
            said("loop-is|0"),
            refused(&again),
            listed(&[Pane::of_host()]),
        ])
        .await;
        assert_eq!((outcome, made), (expected, count), "{again}");
    }
}
