//! How often the dispatcher looks, and when a one-shot run ends.

use super::*;
use crate::store::Release;

#[tokio::test]
async fn a_one_shot_run_ends_while_something_waits_for_a_person() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let pause = SessionChange::Pause(session.id);
    world.pass(1);
    world.store.registry().change(&pause).await.unwrap();
    let clock = world.clock.clone();
    // Time goes on by itself, a hundred times as fast.
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            clock.advance(TimeDelta::milliseconds(500));
        }
    });
    let stop = CancellationToken::new();

    let drained = world
        .dispatcher
        .drain_within(Duration::from_millis(2_500), &stop);
    tokio::time::timeout(Duration::from_secs(20), drained)
        .await
        .expect("it ends")
        .unwrap();

    ticking.abort();
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
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
async fn an_event_makes_no_way_for_a_command_that_cannot_be_claimed_yet() {
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
    world.tmux(move |call| {
        if is_paste(call) {
            said("loop-done|1\n".to_owned())
        } else {
            token(&session, "")
        }
    });

    let worked = tokio::time::timeout(Duration::from_secs(20), world.work());
    worked.await.expect("it does not go round in circles");

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
    world.tmux(move |call| {
        if is_paste(call) {
            said("loop-done|1\n".to_owned())
        } else {
            token(&session, "")
        }
    });

    world.work().await;

    assert_eq!(world.state(first).await, DeliveryState::Delivered);
    assert_eq!(world.attempts(second).await, 1, "it did not wait");
}

#[tokio::test(start_paused = true)]
async fn an_enter_is_pressed_however_long_somebody_scrolls() {
    let owner = OwnerId::mint();
    let name = ITEM.parse::<crate::model::WorkItemRef>().unwrap();
    let address = Address {
        name: name.session_name().unwrap(),
        owner: Some(owner.clone()),
        target: Some(target(Agent::Runs)),
    };
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (count, shown) = (Arc::clone(&asked), owner.clone());
    let script: Script = Box::new(move |call| {
        if call.commands.len() == 2 {
            return said("loop-is|1\nloop-client|0\n".to_owned());
        }
        let look = count.fetch_add(1, Ordering::SeqCst);
        let (mode, enter) = if look < 40 { ("1", "7") } else { ("0", "") };
        said(format!("loop-is|$3|{shown}|{mode}|{enter}\n"))
    });
    let runner = TmuxRunner::new(
        ScriptedTmux(Arc::new(Mutex::new(script))),
        LocalMachine::new("/nowhere".into()),
        TmuxSocket::Default,
        Limits::default(),
    );
    let watched = Arc::new(enter::Watched::default());
    assert!(watched.begin(&owner));
    assert!(!watched.begin(&owner), "one watch per session");

    enter::watch(
        Arc::new(runner),
        address,
        owner.clone(),
        Duration::from_millis(150),
        Arc::clone(&watched),
        CancellationToken::new(),
    )
    .await;

    assert_eq!(asked.load(Ordering::SeqCst), 41);
    assert!(watched.begin(&owner), "the watch is over");
}
