//! Who gets an agent, and who is heard by one.

use super::after_a_crash::{begin_respawn, failed_after, taken};
use super::commands::operator;
use super::*;
use crate::model::{OperatorCommand, SessionStatus};

const OTHER: &str = "github:o/r#2";

/// Makes another item known that is like this, and returns the delivery of its arming.
async fn other_item(world: &World, like: ItemSighting) -> Option<DeliveryId> {
    let accepted = world.accept(Acceptance {
        items: vec![like],
        ..Acceptance::default()
    });
    accepted.await.sightings[0].deliveries.first().copied()
}

async fn ended_as(world: &World, delivery: DeliveryId) -> (DeliveryState, Option<String>) {
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    (row.state, row.reason)
}

fn dropped(reason: &str) -> (DeliveryState, Option<String>) {
    (DeliveryState::Dropped, Some(reason.to_owned()))
}

fn began_a_spawn(world: &World) -> bool {
    world.folder.path().join("run").exists()
}

#[tokio::test]
async fn only_an_open_and_armed_item_gets_an_agent() {
    let labeled = || sighting(OTHER);
    let unlabeled = ItemSighting {
        arming: Arming::Disarmed,
        ..labeled()
    };
    let closed = ItemSighting {
        open: false,
        closed_at: Some(start()),
        ..labeled()
    };
    for (like, policy, expected) in [
        (labeled(), "labeled", None),
        (labeled(), "never", Some("spawn-policy")),
        (unlabeled, "labeled", Some("spawn-policy")),
        (closed, "labeled", Some("item-closed")),
    ] {
        let world = World::new().await;
        world.configure(&json!({ "routing.spawnOnUnmatched": policy }));
        let what = format!("{like:?} {policy}");
        other_item(&world, like).await;
        world.work().await;
        let before = began_a_spawn(&world);
        let delivery = world.comment(OTHER, 1).await;

        world.work().await;

        let ended = ended_as(&world, delivery).await;
        match expected {
            Some(reason) => {
                assert_eq!(ended, dropped(reason), "{what}");
                assert!(!before && !began_a_spawn(&world), "{what}");
            }
            None => {
                assert_eq!(ended.0, DeliveryState::Pending, "{what}");
                assert!(began_a_spawn(&world), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_item_that_waits_for_a_start_gets_its_agent_from_the_start_alone() {
    let world = World::new().await;
    world.configure(&json!({ "routing.control": { "requireStartCommand": true } }));
    let arming = other_item(&world, sighting(OTHER)).await.unwrap();
    let early = world.comment(OTHER, 1).await;
    world.pass(1);
    world.work().await;
    assert_eq!(ended_as(&world, arming).await, dropped("awaiting-start"));
    assert_eq!(ended_as(&world, early).await, dropped("awaiting-start"));
    assert!(!began_a_spawn(&world));

    let words = Event {
        body: "the-loop start".to_owned(),
        ..comment(OTHER, 2)
    };
    world.command(words).await;
    world.work().await;
    assert!(began_a_spawn(&world));
}

#[tokio::test]
async fn an_arming_that_its_start_has_overtaken_starts_no_second_agent() {
    let world = World::new().await;
    world.configure(&json!({ "routing.control": { "requireStartCommand": true } }));
    let arming = other_item(&world, sighting(OTHER)).await.unwrap();
    let text = world.comment(OTHER, 1).await;
    world.pass(1);
    let words = Event {
        body: "the-loop start".to_owned(),
        ..comment(OTHER, 2)
    };
    let start = world.command(words).await;

    for _ in 0..3 {
        world.work().await;
        world.pass(60);
    }

    assert_eq!(world.state(start).await, DeliveryState::Abandoned);
    assert_eq!(ended_as(&world, arming).await, dropped("awaiting-start"));
    let tried = world.records(&["session.spawn_failed"]);
    let by_the_text = world.attempts(text).await;
    assert!(by_the_text > 0, "a text is not overtaken");
    let by_the_start = tried.len() as u64 - by_the_text;
    assert_eq!(by_the_start, 2, "on its own budget: {tried:?}");
}

#[tokio::test]
async fn an_item_whose_agent_runs_is_not_armed_again() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let later = |seconds, arming| {
        let at = start() + TimeDelta::seconds(seconds);
        ItemSighting {
            arming,
            updated_at: at,
            seen_at: at,
            ..sighting(ITEM)
        }
    };
    other_item(&world, later(1, Arming::Disarmed)).await;
    let act = Arming::ByAct(Some(Login::new("ada")));
    let arming = other_item(&world, later(2, act)).await.unwrap();

    world.work().await;

    assert_eq!(ended_as(&world, arming).await, dropped("already-running"));
    assert_eq!(world.session().await, Some(session));
}

#[tokio::test]
async fn what_came_before_a_pause_waits_and_what_comes_in_it_is_not_heard() {
    for (comes_in_it, state) in [(false, DeliveryState::Held), (true, DeliveryState::Dropped)] {
        let world = World::new().await;
        world.active_session(Agent::Runs).await;
        let before = match comes_in_it {
            true => None,
            // In the very instant of the pause.
            false => Some(world.comment(ITEM, 1).await),
        };
        world.command(operator(OperatorCommand::Pause, 2)).await;
        world.work().await;
        let status = world.session().await.unwrap().status;
        assert_eq!(status, SessionStatus::Paused);
        world.pass(1);
        let delivery = match before {
            Some(delivery) => delivery,
            None => world.comment(ITEM, 1).await,
        };

        world.work().await;

        let expected = (state, Some("session-paused".to_owned()));
        assert_eq!(ended_as(&world, delivery).await, expected);
    }
}

#[tokio::test]
async fn what_is_not_heard_ends_no_spawn_of_another() {
    let world = World::new().await;
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let given_up = Settlement::Abandoned {
        version: "1.0.0",
        rearm: crate::store::Rearm::ByHand,
    };
    let deduper = world.store.deduper();
    deduper.settle(&claim, given_up, None).await.unwrap();
    let strangers = Event {
        actor: Some(Login::new("eve")),
        ..comment(ITEM, 2)
    };
    let delivery = world.arrive(strangers, Class::Event).await;

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Dropped);
    assert_eq!(world.session().await.unwrap().owner, session.owner);
}

#[tokio::test]
async fn who_may_speak_is_asked_again_also_where_a_start_is_asked_for() {
    let world = World::new().await;
    world.configure(&json!({ "routing.control.requireStartCommand": true }));
    world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    world.configure(&json!({
        "routing.control.requireStartCommand": true,
        "routing.authorizedUsers": ["eve"],
    }));

    world.work().await;

    assert_eq!(
        ended_as(&world, delivery).await,
        dropped("unauthorized-actor")
    );
}

#[tokio::test]
async fn what_a_respawn_has_told_is_told_also_when_its_author_may_not_speak_any_more() {
    for (ran, state) in [(3, DeliveryState::Delivered), (1, DeliveryState::Dropped)] {
        let world = World::new().await;
        let session = world.active_session(Agent::Gone).await;
        let delivery = world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        let attempt = begin_respawn(&world, &claim, &session, HarnessSessionId::mint()).await;
        let ended = failed_after(TimeDelta::seconds(ran));
        taken(&world, &attempt.owner, &boot_id(), ended);
        world.configure(&json!({ "routing.authorizedUsers": ["grace"] }));

        world.work().await;
        world.pass(60);
        world.work().await;

        assert_eq!(world.state(delivery).await, state, "{ran}");
        assert_eq!(world.session().await.unwrap().attempt, None);
    }
}

#[tokio::test]
async fn an_edit_leaves_alone_what_a_respawn_under_way_carries() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    begin_respawn(&world, &claim, &session, HarnessSessionId::mint()).await;
    let held = crate::store::Release::Held {
        reason: crate::model::HoldReason::StartUnresolved,
        look_again_at: start(),
    };
    world.store.deduper().release(&claim, held).await.unwrap();
    let edited = Event {
        key: EventKey::new("github.com", EventKind::IssueComment, "1", "v2"),
        ..comment(ITEM, 1)
    };

    world.arrive(edited, Class::Event).await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
}
