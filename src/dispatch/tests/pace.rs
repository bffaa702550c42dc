//! How often the dispatcher looks, and when a one-shot run ends.

use super::*;
use crate::store::Release;

impl World {
    /// Lets time go on by itself, a hundred times as fast.
    fn ticking(&self) -> tokio::task::JoinHandle<()> {
        let clock = self.clock.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                clock.advance(TimeDelta::milliseconds(500));
            }
        })
    }
}

/// A one-shot run comes to its end while time goes on.
async fn ends_within(world: &World, horizon: Duration) {
    let ticking = world.ticking();
    let stop = CancellationToken::new();
    let drained = world.dispatcher.drain_within(horizon, &stop);
    tokio::time::timeout(Duration::from_secs(20), drained)
        .await
        .expect("it ends")
        .unwrap();
    ticking.abort();
}

#[tokio::test]
async fn a_one_shot_run_ends_while_something_waits_for_a_person() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let pause = SessionChange::Pause(session.id);
    world.pass(1);
    world.change(pause).await;

    ends_within(&world, Duration::from_millis(2_500)).await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
}

#[tokio::test]
async fn a_one_shot_run_ends_while_a_text_waits_for_a_person_who_scrolls() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let scrolls = move |call: &Invocation| {
        if is_paste(call) {
            let (owner, host) = (&session.owner, own().pid);
            return said(format!("loop-refused|$3|{owner}|{host}|0|0|1|0||\n"));
        }
        token(&session, "")
    };
    world.tmux(scrolls);

    ends_within(&world, Duration::from_millis(2_500)).await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
}

#[tokio::test]
async fn a_one_shot_run_waits_for_what_is_due_soon_also_after_it_delivered_something() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let first = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let at = start() + TimeDelta::seconds(10);
    let release = Release::Retry { at };
    let deduper = world.store.deduper();
    deduper.release(&claim, release).await.unwrap();
    world.know("github:o/r#2").await;
    let second = world.comment("github:o/r#2", 2).await;
    world.tmux(takes_everything(session));
    let ticking = world.ticking();

    let stop = CancellationToken::new();
    let drained = world.dispatcher.drain(&stop);
    drained.await.unwrap();

    ticking.abort();
    assert_eq!(world.state(first).await, DeliveryState::Delivered);
    assert!(world.attempts(second).await > 0, "it was worked before");
}

#[tokio::test]
async fn where_nothing_waits_nothing_is_due() {
    let world = World::new().await;
    let until_due = async || world.dispatcher.until_due().await.unwrap();
    assert_eq!(until_due().await, None);
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let at = start() + TimeDelta::seconds(7);
    let release = Release::Retry { at };
    world
        .store
        .deduper()
        .release(&claim, release)
        .await
        .unwrap();
    assert_eq!(until_due().await, Some(Duration::from_secs(7)));
    world.pass(8);
    assert_eq!(until_due().await, Some(Duration::ZERO));
}

#[tokio::test]
async fn there_are_as_many_places_as_the_configuration_gives() {
    let world = World::new().await;
    world.configure(&json!({ "routing.maxConcurrentDispatches": 2 }));
    for number in 2..5 {
        let item = format!("github:o/r#{number}");
        world.know(&item).await;
        world.comment(&item, number).await;
    }
    let mut work = JoinSet::new();

    world.dispatcher.fill(&mut work).await.unwrap();

    assert_eq!(work.len(), 2);
    work.abort_all();
}

#[tokio::test]
async fn a_dispatcher_without_a_free_place_does_not_look_for_what_is_due() {
    let world = World::new().await;
    world.know("github:o/r#2").await;
    world.comment(ITEM, 1).await;
    world.comment("github:o/r#2", 2).await;
    let mut work = JoinSet::new();

    let pause = world.dispatcher.fill(&mut work).await.unwrap();

    assert_eq!(work.len(), 1, "there is one place");
    assert_eq!(pause, LOOK_AGAIN);
    work.abort_all();
}

#[tokio::test]
async fn an_event_waits_for_commands_that_are_tried_again_and_nothing_goes_in_circles() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    world.command(comment(ITEM, 1)).await;
    let first = world.claim_and_die().await;
    let at = world.clock.now() + TimeDelta::seconds(60);
    let release = Release::Retry { at };
    world
        .store
        .deduper()
        .release(&first, release)
        .await
        .unwrap();
    world.command(comment(ITEM, 2)).await;
    let event = world.comment(ITEM, 3).await;
    world.tmux(takes_everything(session));

    let worked = tokio::time::timeout(Duration::from_secs(20), world.work());
    worked.await.expect("it does not go round in circles");
    assert_eq!(world.state(event).await, DeliveryState::Pending);

    world.pass(60);
    world.work().await;
    assert_eq!(world.state(event).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn the_first_answer_of_a_silent_tmux_lets_everything_go_on() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    world.know("github:o/r#2").await;
    let first = world.comment(ITEM, 1).await;
    let second = world.comment("github:o/r#2", 2).await;
    let deduper = world.store.deduper();
    for (claim, wait) in [
        (world.claim_and_die().await, 0),
        (world.claim_and_die().await, 10),
    ] {
        let held = Release::Held {
            reason: crate::model::HoldReason::TmuxSilent,
            look_again_at: start() + TimeDelta::seconds(wait),
        };
        deduper.release(&claim, held).await.unwrap();
    }
    world.tmux(takes_everything(session));

    world.work().await;

    assert_eq!(world.state(first).await, DeliveryState::Delivered);
    assert_eq!(world.attempts(second).await, 1, "it did not wait");
}

/// A world whose agent takes its Enter soon after the text.
async fn world_in_a_hurry() -> World {
    let world = World::new().await;
    world.configure(&json!({ "harnesses.agent.submitGapMilliseconds": 20 }));
    world
}

/// What a tmux answers that takes every paste.
pub(super) fn takes_everything(
    session: Session,
) -> impl FnMut(&Invocation) -> Result<Answer, Unanswered> {
    move |call| {
        if is_paste(call) {
            said("loop-done|1\n".to_owned())
        } else if asks_for_enter(call) {
            outstanding(&session.owner, 0, "")
        } else {
            token(&session, "")
        }
    }
}

#[tokio::test]
async fn comments_that_answer_each_other_are_held_and_none_is_lost() {
    let world = world_in_a_hurry().await;
    tell_too_much(&world).await;
    world.pass(60);
    let next = world.comment(ITEM, 25).await;
    let after = world.comment(ITEM, 26).await;

    world.work().await;

    let held = world.store.queue().get(next).await.unwrap().unwrap();
    assert_eq!(held.state, DeliveryState::Held);
    assert_eq!(held.reason.as_deref(), Some("rate"));
    assert_eq!(held.attempts, 0);
    world.pass(28 * 60);
    world.work().await;
    assert_eq!(world.state(next).await, DeliveryState::Held);
    world.pass(60);
    world.work().await;
    assert_eq!(world.state(next).await, DeliveryState::Delivered);
    assert_eq!(world.state(after).await, DeliveryState::Delivered);
}

/// Tells an agent 25 texts, one a minute, the boot prompt among them.
async fn tell_too_much(world: &World) {
    let session = world.active_session(Agent::Runs).await;
    world.tmux(takes_everything(session));
    for id in 1..25 {
        world.pass(60);
        let told = world.comment(ITEM, id).await;
        world.work().await;
        assert_eq!(world.state(told).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn an_item_rests_on_when_the_text_that_waits_first_is_edited() {
    let world = world_in_a_hurry().await;
    tell_too_much(&world).await;
    let former = world.comment(ITEM, 25).await;
    world.work().await;
    assert_eq!(world.state(former).await, DeliveryState::Held);
    world.pass(15 * 60);
    let mut edited = comment(ITEM, 25);
    edited.key = EventKey::new("github.com", EventKind::IssueComment, "25", "v2");

    let edited = world.arrive(edited, Class::Event).await;
    world.work().await;

    assert_eq!(world.state(former).await, DeliveryState::Dropped);
    assert_eq!(world.state(edited).await, DeliveryState::Held);
    world.pass(15 * 60);
    world.work().await;
    assert_eq!(world.state(edited).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn an_item_rests_on_however_much_waits_behind() {
    let world = world_in_a_hurry().await;
    tell_too_much(&world).await;
    let first = world.comment(ITEM, 1000).await;
    let events = (1001..1600).map(|id| comment(ITEM, id));
    let arrivals = events.map(|event| Arrival {
        version_at: event.occurred_at,
        event,
        source: Source::Poll,
        guid: None,
        disposition: Disposition::Deliver {
            class: Class::Event,
        },
    });
    world
        .accept(Acceptance {
            arrivals: arrivals.collect(),
            ..Acceptance::default()
        })
        .await;

    world.work().await;

    assert_eq!(world.state(first).await, DeliveryState::Held);
}

#[tokio::test]
async fn what_was_told_by_a_clock_that_ran_ahead_makes_no_item_rest() {
    let world = world_in_a_hurry().await;
    tell_too_much(&world).await;
    world.pass(-24 * 3600);
    let next = world.comment(ITEM, 25).await;

    world.work().await;

    assert_eq!(world.state(next).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_verdict_of_ci_and_a_text_that_an_attempt_began_do_not_wait_for_the_rate() {
    for begun in [false, true] {
        let world = world_in_a_hurry().await;
        tell_too_much(&world).await;
        let mut event = comment(ITEM, 99);
        if !begun {
            event.kind = EventKind::Status;
            event.key = EventKey::new("github.com", EventKind::Status, "99", "1");
        }
        let delivery = world.arrive(event, Class::Event).await;
        if begun {
            let owner = world.session().await.unwrap().owner;
            let claim = world.claim_and_die().await;
            let intent = crate::store::Intent {
                owner,
                expires_at: start(),
            };
            let deduper = world.store.deduper();
            deduper.store_intent(&claim, &intent).await.unwrap();
        }

        world.work().await;

        assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    }
}

#[tokio::test]
async fn a_command_passes_what_is_held_for_its_rate() {
    let world = world_in_a_hurry().await;
    let session = world.active_session(Agent::Runs).await;
    world.tmux(takes_everything(session));
    for id in 1..=25 {
        world.comment(ITEM, id).await;
    }
    world.work().await;
    let held = world.store.queue().counts().await.unwrap().held;
    assert_eq!(held, 1);

    let mut pause = comment(ITEM, 99);
    pause.body = "the-loop pause".to_owned();
    world.arrive(pause, Class::Control).await;
    world.work().await;

    let session = world.session().await.unwrap();
    assert_eq!(session.status, crate::model::SessionStatus::Paused);
}

#[tokio::test]
async fn only_texts_count_for_the_rate_and_a_review_counts_once() {
    let world = world_in_a_hurry().await;
    let session = world.active_session(Agent::Runs).await;
    world.tmux(takes_everything(session));
    let mut told = Vec::new();
    for id in 0..30 {
        let mut verdict = comment(ITEM, id);
        verdict.kind = EventKind::Status;
        verdict.key = EventKey::new("github.com", EventKind::Status, &id.to_string(), "1");
        verdict.detail = Detail::Ci {
            name: "build".to_owned(),
            conclusion: "failure".to_owned(),
            head_sha: "abc".to_owned(),
            head_branch: None,
            attempt: None,
            summary: String::new(),
        };
        told.push(world.arrive(verdict, Class::Event).await);
        let mut remark = comment(ITEM, id);
        remark.kind = EventKind::ReviewComment;
        remark.key = EventKey::new("github.com", EventKind::ReviewComment, &id.to_string(), "1");
        remark.detail = Detail::Line {
            review_id: Some(7),
            path: "src/lib.rs".to_owned(),
            line: Some(id),
            diff_hunk: String::new(),
        };
        told.push(world.arrive(remark, Class::Event).await);
    }
    world.pass(16);
    world.work().await;
    for delivery in told {
        assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    }

    let last = world.comment(ITEM, 99).await;
    world.work().await;

    assert_eq!(world.state(last).await, DeliveryState::Delivered);
}
