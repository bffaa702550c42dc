//! When attempts are spent, and what is known then.

use super::*;

#[tokio::test]
async fn a_run_counts_by_itself_what_it_delivered_and_what_failed() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    world.comment(ITEM, 1).await;
    world.tmux(timed_out);
    let failed = Tally {
        delivered: 0,
        failed: 1,
    };
    assert_eq!(world.work().await, failed);

    world.pass(60);
    world.tmux(move |call| nothing_unsent(call, &session, "2"));
    let delivered = Tally {
        delivered: 1,
        failed: 0,
    };
    assert_eq!(world.work().await, delivered);
    assert_eq!(world.work().await, Tally::default());
}

#[tokio::test]
async fn a_spent_delivery_is_given_up_only_when_its_last_paste_can_do_nothing_any_more() {
    for (value, end) in [
        ("2", DeliveryState::Delivered),
        ("", DeliveryState::Abandoned),
    ] {
        let world = World::new().await;
        world.configure(&json!({ "polling.maxRetries": 1 }));
        let session = world.active_session(Agent::Runs).await;
        let delivery = world.comment(ITEM, 1).await;
        world.tmux(timed_out);

        world.work().await;

        assert_eq!(world.state(delivery).await, DeliveryState::Pending);
        assert_eq!(world.attempts(delivery).await, 1);
        world.pass(21);
        let shown = session.clone();
        world.tmux(move |call| {
            assert!(!is_paste(call), "a spent delivery is not pasted again");
            nothing_unsent(call, &shown, value)
        });
        world.work().await;
        assert_eq!(world.state(delivery).await, end);
        let row = world.store.queue().get(delivery).await.unwrap().unwrap();
        let error = row.error.unwrap();
        assert!(error.contains("did not answer"), "the cause stays: {error}");
    }
}

#[tokio::test]
async fn a_spent_delivery_waits_for_a_tmux_that_does_not_say_whether_it_was_pasted() {
    let world = World::new().await;
    world.configure(&json!({ "polling.maxRetries": 1 }));
    world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    world.tmux(timed_out);
    world.work().await;
    for _ in 0..3 {
        world.pass(21);
        world.work().await;
    }

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    assert_eq!(world.attempts(delivery).await, 1);
}

#[tokio::test]
async fn what_fails_before_it_begins_is_given_up_too() {
    let world = World::new().await;
    world.active_session(Agent::Runs).await;
    world.configure(&json!({
        "harnesses": { "agent": { "command": "/nowhere/agent" } },
    }));
    let delivery = world.comment(ITEM, 1).await;

    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Abandoned);
}

#[tokio::test]
async fn a_silent_tmux_costs_a_first_spawn_no_attempt() {
    let world = World::new().await;
    world.tmux(timed_out);
    let delivery = world.comment(ITEM, 1).await;
    world.work().await;
    let met_the_silence = world.attempts(delivery).await;
    for _ in 0..5 {
        world.pass(60);
        world.work().await;
    }

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    assert_eq!(world.attempts(delivery).await, met_the_silence);
}

#[tokio::test]
async fn a_text_that_the_last_attempt_typed_is_told_again_when_its_agent_has_ended() {
    for typed in [true, false] {
        let world = World::new().await;
        world.configure(&json!({ "polling.maxRetries": 1 }));
        let session = world.active_session(Agent::Gone).await;
        world.comment(ITEM, 1).await;
        world.tmux(timed_out);
        world.work().await;
        world.pass(21);
        world.tmux(move |call| match &call.commands[..] {
            [TmuxCommand::DisplayMessage { .. }] => token(&session, if typed { "1" } else { "" }),
            _ => no_server(call),
        });

        world.work().await;

        let has_begun = world.folder.path().join("run").exists();
        assert_eq!(has_begun, typed, "a respawn");
    }
}
