//! People who look on by a session of their own, which shares the agent's windows.

use std::time::Duration;

use the_loop::model::{DeliveryId, WorkItemRef};
use the_loop::process::signal::{Signal, signal};
use the_loop::runner::{Address, DeliverOutcome, EnterState, Probe, TokenState, Unanswered};

use crate::rig::{Rig, address, message, open, option, pasted};

#[tokio::test]
async fn a_text_and_its_enter_reach_an_agent_whose_windows_are_shared() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let session = format!("={}:", it.name);
    rig.tmux
        .ok(&["new-session", "-d", "-s", "view", "-t", &session]);

    assert_eq!(rig.runner.probe(&it).await, Probe::Live);
    let outcome = rig.runner.deliver(&it, &message(1, "hello"), &open).await;

    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    assert_eq!(rig.typed(1, "\r"), pasted("hello"));
    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::Pasted));
    assert!(rig.runner.capture(&it).await.unwrap().is_some());
}

#[tokio::test]
async fn an_enter_is_seen_to_in_the_session_of_the_agent_though_its_windows_are_shared() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let session = format!("={}:", it.name);
    rig.tmux
        .ok(&["new-session", "-d", "-s", "view", "-t", &session]);
    let mut slow = message(1, "hello");
    slow.submit_gap = Duration::from_secs(600);
    rig.runner.deliver(&it, &slow, &open).await.unwrap();
    assert_eq!(option(&rig, &it, "@loop_enter"), "1");

    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;

    assert_eq!(state, Ok(EnterState::Pressed));
    assert_eq!(rig.typed(1, "\r"), pasted("hello"));
}

/// tmux names a session that shares windows after the one whose they are: `loop-…-r-1-1` is `o/r-1#1`.
#[tokio::test]
async fn a_view_that_tmux_gave_the_name_of_another_item_is_not_that_items_session() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let session = format!("={}:", it.name);
    rig.tmux.ok(&["new-session", "-d", "-t", &session]);
    let item: WorkItemRef = "github:o/r-1#1".parse().unwrap();
    let other = Address {
        name: item.session_name().unwrap(),
        ..address(1)
    };
    assert!(rig.tmux.sessions().contains(&other.name.to_string()));

    let view = Unanswered::ViewOfAnother {
        session: it.name.to_string(),
    };
    assert_eq!(rig.runner.probe(&other).await, Probe::Unknown(view.clone()));
    assert_eq!(rig.runner.occupant(&other).await, Err(view.clone()));
    assert!(rig.runner.clear(&other, &open).await.is_err());

    // Also once the agent has ended, whose windows they are.
    let harness = it.target.clone().unwrap().harness;
    signal(&harness, Signal::Kill).unwrap();
    crate::tmux::wait_for("the end of the agent", || {
        !option(&rig, &it, "@loop_exit").is_empty()
    });
    assert_eq!(rig.runner.probe(&other).await, Probe::Unknown(view));
    assert!(matches!(rig.runner.probe(&it).await, Probe::Dead(_)));
}
