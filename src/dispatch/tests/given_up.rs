//! When attempts are spent, and what is known then.

use super::pace::takes_everything;
use super::*;
use crate::model::HoldReason;
use crate::store::{Intent, Release};

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
        let due = world.store.deduper().next_due().await.unwrap();
        assert_eq!(due, Some(start() + TimeDelta::seconds(21)), "its life ends");
        world.pass(21);
        let shown = session.clone();
        world.tmux(move |call| {
            assert!(!is_paste(call), "a spent delivery is not pasted again");
            nothing_unsent(call, &shown, value)
        });
        world.work().await;
        assert_eq!(world.state(delivery).await, end);
        for said in world.records(&["dispatch.succeeded"]) {
            assert_eq!(said.fields.get("possible_repeat"), Some(&json!("no")));
        }
        assert!(!world.is_possible_repeat(delivery).await);
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
    for (typed, retries) in [(true, 1), (true, 2), (false, 1)] {
        let world = World::new().await;
        world.configure(&json!({ "polling.maxRetries": retries }));
        let session = world.active_session(Agent::Gone).await;
        let delivery = world.comment(ITEM, 1).await;
        world.tmux(timed_out);
        world.work().await;
        world.pass(60);
        world.tmux(move |call| match &call.commands[..] {
            [TmuxCommand::DisplayMessage { .. }] => token(&session, if typed { "1" } else { "" }),
            _ => no_server(call),
        });

        world.work().await;

        let has_begun = world.folder.path().join("run").exists();
        assert_eq!(has_begun, typed, "a respawn");
        assert_eq!(world.attempts(delivery).await, retries, "the last is one");
    }
}

impl World {
    /// Leaves a paste behind that is in tmux's hands until then, by a process that died, and a claim that
    /// was given back like this.
    async fn paste_and_die(&self, owner: &OwnerId, until: DateTime<Utc>, release: Option<Release>) {
        let claim = self.claim_and_die().await;
        let intent = Intent {
            owner: owner.clone(),
            expires_at: until,
        };
        let deduper = self.store.deduper();
        deduper.store_intent(&claim, &intent).await.unwrap();
        if let Some(release) = release {
            deduper.release(&claim, release).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_paste_that_may_still_arrive_is_sent_again_on_its_budget_and_else_waited_for() {
    for (retries, seconds, end) in [
        (2, 60, DeliveryState::Delivered),
        (1, 60, DeliveryState::Held),
        (1, 0, DeliveryState::Held),
        (1, -1, DeliveryState::Delivered),
    ] {
        let world = World::new().await;
        world.configure(&json!({ "polling.maxRetries": retries }));
        let session = world.active_session(Agent::Runs).await;
        let delivery = world.comment(ITEM, 1).await;
        let until = start() + TimeDelta::seconds(seconds);
        world.paste_and_die(&session.owner, until, None).await;
        world.tmux(takes_everything(session));

        world.work().await;

        assert_eq!(world.state(delivery).await, end, "{retries} {seconds}");
    }
}

#[tokio::test]
async fn a_text_that_was_typed_when_it_was_looked_at_last_is_told_again_though_its_attempts_are_spent()
 {
    for (typed, reason) in [
        (true, HoldReason::Unsent),
        (true, HoldReason::TmuxSilent),
        (true, HoldReason::AgentOutlivesSession),
        (false, HoldReason::AgentOutlivesSession),
    ] {
        let world = World::new().await;
        world.configure(&json!({ "polling.maxRetries": 1 }));
        let session = world.active_session(Agent::Gone).await;
        world.comment(ITEM, 1).await;
        let expired = start() - TimeDelta::seconds(1);
        world
            .paste_and_die(
                &session.owner,
                expired,
                Some(Release::Retry { at: start() }),
            )
            .await;
        let claim = world.claim_and_die().await;
        claim.set_typed(typed);
        let held = Release::Held {
            reason,
            look_again_at: start(),
        };
        world.store.deduper().release(&claim, held).await.unwrap();

        world.work().await;

        assert_eq!(
            world.folder.path().join("run").exists(),
            typed,
            "a respawn: {reason}"
        );
    }
}

#[tokio::test]
async fn a_typed_text_whose_agent_has_ended_is_given_up_by_no_question_without_an_answer() {
    let makes_a_session =
        |call: &Invocation| matches!(call.commands[0], TmuxCommand::NewSession { .. });
    let asks_anything = |_: &Invocation| true;
    for unanswered in [makes_a_session as fn(&Invocation) -> bool, asks_anything] {
        let world = World::new().await;
        world.configure(&json!({ "polling.maxRetries": 1 }));
        let session = world.active_session(Agent::Gone).await;
        let delivery = world.comment(ITEM, 1).await;
        let expired = start() - TimeDelta::seconds(1);
        let retry = Release::Retry { at: start() };
        world
            .paste_and_die(&session.owner, expired, Some(retry))
            .await;
        world.tmux(move |call| match &call.commands[..] {
            [TmuxCommand::DisplayMessage { .. }] => token(&session, "1"),
            _ if unanswered(call) => timed_out(call),
            _ => no_server(call),
        });
        for _ in 0..3 {
            world.work().await;
            assert_eq!(world.state(delivery).await, DeliveryState::Held);
            world.pass(21);
        }

        world.tmux(no_server);
        world.work().await;

        assert_eq!(world.state(delivery).await, DeliveryState::Abandoned);
        let error = world.records(&["poll.comment_failed"])[0]
            .text("error")
            .unwrap()
            .to_owned();
        assert!(error.contains("no server running"), "the respawn: {error}");
    }
}
