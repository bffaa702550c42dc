//! What is left behind by a process that ended in the middle.

use std::os::unix::fs::DirBuilderExt;

use super::*;
use crate::model::{Ending, HostPaths, PaneId, Phase, Record};
use crate::store::NewAttempt;

fn boot(name: &str) -> BootId {
    BootId(name.to_owned())
}

/// Leaves the files of a host that took its ticket and was cut off.
fn taken(world: &World, owner: &OwnerId, boot: &BootId, phase: Phase) {
    let paths = HostPaths::new(world.folder.path(), owner);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(paths.dir())
        .unwrap();
    fs::write(paths.taken(), "{}").unwrap();
    let pane: PaneId = "%5".parse().unwrap();
    let record = Record {
        v: Record::VERSION,
        owner: owner.clone(),
        host: gone(),
        boot: boot.clone(),
        pane,
        started_ms: Some(start().timestamp_millis()),
        phase,
    };
    fs::write(paths.record(), serde_json::to_vec(&record).unwrap()).unwrap();
}

#[tokio::test]
async fn a_spawn_that_went_down_with_its_machine_is_made_again_and_marked() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let harness = ProcessId { pid: 99, start: 9 };
    taken(
        &world,
        &session.owner,
        &boot("an earlier boot"),
        Phase::Running { harness },
    );

    world.work().await;

    assert_eq!(
        world.session().await,
        None,
        "nothing stays under way for ever"
    );
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;
    let prompt = newest_prompt(&world, &session.owner);
    assert!(prompt.contains("This may be a repeat"), "{prompt}");
}

/// The end of a harness that failed so long after its start.
fn failed_after(time: TimeDelta) -> Phase {
    Phase::Ended {
        harness: Some(gone()),
        ending: Ending::Code(1),
        at_ms: (start() + time).timestamp_millis(),
    }
}

#[tokio::test]
async fn an_agent_that_failed_after_its_window_while_nobody_looked_had_its_first_message() {
    for (ran, state) in [
        (TimeDelta::seconds(1), DeliveryState::Pending),
        (TimeDelta::seconds(3), DeliveryState::Delivered),
    ] {
        let world = World::new().await;
        let delivery = world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        let session = world.begin_spawn(&claim).await;
        taken(&world, &session.owner, &boot_id(), failed_after(ran));

        world.work().await;

        assert_eq!(world.state(delivery).await, state, "{ran}");
        let open = world.session().await.map(|open| open.id);
        let survived = state == DeliveryState::Delivered;
        assert_eq!(open, survived.then_some(session.id));
    }
}

#[tokio::test]
async fn a_respawned_agent_that_failed_after_its_window_while_nobody_looked_had_its_message() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    world.store.deduper().begin_attempt(&claim).await.unwrap();
    let attempt = NewAttempt {
        owner: OwnerId::mint(),
        harness_session_id: HarnessSessionId::mint(),
        resumed: false,
        boot_delivery: delivery,
    };
    let registry = world.store.registry();
    registry
        .begin_respawn(&claim, session.id, &attempt)
        .await
        .unwrap();
    let late = failed_after(TimeDelta::seconds(3));
    taken(&world, &attempt.owner, &boot_id(), late);

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let open = world.session().await.unwrap();
    assert_eq!(open.owner, attempt.owner);
    assert_eq!(open.harness_session_id, attempt.harness_session_id);
    assert_eq!(open.attempt, None);
}

#[tokio::test]
async fn a_host_that_was_killed_before_it_started_its_agent_said_nothing() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    taken(&world, &session.owner, &boot_id(), Phase::Starting);

    world.work().await;

    assert_eq!(world.session().await, None);
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;
    let prompt = newest_prompt(&world, &session.owner);
    assert!(!prompt.contains("This may be a repeat"), "{prompt}");
}

#[tokio::test]
async fn an_agent_that_runs_without_its_session_is_waited_for() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    taken(
        &world,
        &session.owner,
        &boot_id(),
        Phase::Running { harness: own() },
    );

    world.work().await;

    assert_eq!(world.session().await.map(|open| open.id), Some(session.id));
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
}

#[tokio::test]
async fn a_login_that_was_removed_in_the_middle_of_its_spawn_leaves_no_spawn_behind() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    world.begin_spawn(&claim).await;
    world.configure(&json!({ "routing.authorizedUsers": ["grace"] }));

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Dropped);
    assert_eq!(world.session().await, None);
}

#[tokio::test]
async fn a_spawn_that_never_ran_is_not_made_again_for_a_closed_item() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    world.begin_spawn(&claim).await;
    let closed = ItemSighting {
        open: false,
        updated_at: start() + TimeDelta::seconds(1),
        ..sighting(ITEM)
    };
    world
        .accept(Acceptance {
            items: vec![closed],
            ..Acceptance::default()
        })
        .await;

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Dropped);
    assert_eq!(world.session().await, None);
}

#[tokio::test]
async fn a_message_whose_agent_ended_before_it_was_confirmed_is_said_again_and_marked() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&claim).await.unwrap();
    let intent = crate::store::Intent {
        owner: session.owner.clone(),
        expires_at: start(),
    };
    deduper.store_intent(&claim, &intent).await.unwrap();
    let shown = session.clone();
    world.tmux(move |call| match &call.commands[..] {
        [TmuxCommand::DisplayMessage { .. }] => token(&shown, "1"),
        _ => no_server(call),
    });

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    let prompt = newest_prompt(&world, &session.owner);
    assert!(prompt.contains("This may be a repeat"), "{prompt}");
}

/// Returns the prompt of a ticket that is not this spawn's.
fn newest_prompt(world: &World, not: &OwnerId) -> String {
    let run = world.folder.path().join("run");
    let mut prompts: Vec<String> = fs::read_dir(run)
        .unwrap()
        .flatten()
        .filter(|folder| folder.file_name() != not.as_str())
        .filter_map(|folder| fs::read_to_string(folder.path().join("prompt")).ok())
        .collect();
    prompts.pop().expect("another spawn was tried")
}
