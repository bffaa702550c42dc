use super::*;
use crate::model::{DeliveryId, HoldReason};

const DUE: DeliveryId = DeliveryId(4);

async fn settle(answers: Vec<Said>) -> (Result<EnterState, RunnerError>, usize) {
    let runner = runner(answers, Table::default().with(HARNESS, Life::Running));
    let state = runner.settle_enter(&address(), DUE, &open).await;
    (state, calls(&runner).len())
}

/// What is outstanding: session, pane, owner, in mode, input off, delivery, program, foreground.
fn outstanding(shown: &str) -> Said {
    said(&format!("loop-is|{SERVER}|{shown}"))
}

#[tokio::test]
async fn a_refused_enter_is_looked_at_again() {
    let ours = format!("$1|%2|{OWNER}|0|0|4||node");
    let cases = [
        (format!("$1|%2|{OWNER}|0|0|||node"), EnterState::Pressed),
        (
            format!("$1|%2|{OWNER}|1|0|4||node"),
            EnterState::Pending(Some(HoldReason::PaneInMode)),
        ),
        (
            format!("$1|%2|{OWNER}|0|1|4||node"),
            EnterState::Pending(Some(HoldReason::InputOff)),
        ),
        (ours.clone(), EnterState::Pending(None)),
    ];
    for (again, expected) in cases {
        let (state, made) = settle(vec![
            outstanding(&ours),
            said("loop-refused"),
            outstanding(&again),
        ])
        .await;
        assert_eq!((state, made), (Ok(expected), 3), "{again}");
    }
}

#[tokio::test]
async fn an_enter_that_tmux_says_nothing_about_is_an_error() {
    let ours = format!("$1|%2|{OWNER}|0|0|4||node");

    let (state, _) = settle(vec![outstanding(&ours), complained("no"), complained("no")]).await;

    let doing = "press Enter";
    let words = "no".to_owned();
    assert_eq!(state, Err(RunnerError::Refused { doing, words }));
}

#[tokio::test]
async fn the_enter_of_another_session_pane_or_owner_is_not_ours_to_press() {
    for shown in [
        format!("$9|%2|{OWNER}|0|0|4||node"),
        format!("$1|%2|{STRANGER}|0|0|4||node"),
        // Its pane is nowhere: the active one shows.
        format!("$1|%9|{OWNER}|0|0|4||node"),
    ] {
        let (state, made) = settle(vec![outstanding(&shown), said("loop-done")]).await;
        assert_eq!((state, made), (Ok(EnterState::Gone), 1), "{shown}");
    }
}
