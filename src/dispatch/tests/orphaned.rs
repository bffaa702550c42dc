//! Spawns that outlived their delivery, and occupants that may have been told already.

use super::after_a_crash::{begin_respawn, newest_prompt, taken, taken_by};
use super::*;
use crate::model::Phase;

/// Leaves a spawn behind whose own delivery was given up.
async fn orphan(world: &World) -> Session {
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let given_up = Settlement::Abandoned {
        version: "1.0.0",
        rearm: crate::store::Rearm::ByHand,
    };
    let deduper = world.store.deduper();
    deduper.settle(&claim, given_up, None).await.unwrap();
    session
}

#[tokio::test]
async fn a_spawn_without_its_delivery_that_never_ran_makes_way() {
    let world = World::new().await;
    let orphan = orphan(&world).await;
    let delivery = world.comment(ITEM, 2).await;

    world.work().await;

    assert_eq!(world.session().await, None, "and the next spawn failed");
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    let prompt = newest_prompt(&world, &orphan.owner);
    assert!(prompt.contains("comment 2"), "{prompt}");
}

#[tokio::test]
async fn an_agent_that_runs_without_its_delivery_becomes_the_session_and_is_told_the_next() {
    let world = World::new().await;
    let orphan = orphan(&world).await;
    taken(
        &world,
        &orphan.owner,
        &boot_id(),
        Phase::Running { harness: own() },
    );
    world.configure(&json!({ "routing.tmux.resumeProbeSeconds": 0.01 }));
    let said = Arc::new(Mutex::new(Vec::new()));
    let (heard, owner) = (Arc::clone(&said), orphan.owner.clone());
    world.tmux(move |call| occupied(call, &owner, &heard));
    let delivery = world.comment(ITEM, 2).await;

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let session = world.session().await.unwrap();
    assert_eq!(session.status, crate::model::SessionStatus::Active);
    assert_eq!(session.owner, orphan.owner);
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("comment 2"), "{said:?}");
}

/// Leaves a spawn behind whose own delivery nobody can read any more, and which was put aside.
async fn unreadable(world: &World) -> (DeliveryId, Session) {
    let carried = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    world
        .sql("UPDATE events SET payload = '{}' WHERE id = (SELECT max(id) FROM events)")
        .await;
    world.work().await;
    (carried, session)
}

#[tokio::test]
async fn an_agent_whose_delivery_cannot_be_read_is_neither_doubled_nor_ended_and_hears_the_next() {
    let world = World::new().await;
    let (carried, orphan) = unreadable(&world).await;
    let running = Phase::Running { harness: own() };
    taken(&world, &orphan.owner, &boot_id(), running);
    world.configure(&json!({ "routing.tmux.resumeProbeSeconds": 0.01 }));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (said, owner) = (Arc::clone(&heard), orphan.owner.clone());
    world.tmux(move |call| occupied(call, &owner, &said));
    let next = world.comment(ITEM, 2).await;

    world.work().await;

    assert_eq!(world.state(carried).await, DeliveryState::Held);
    assert_eq!(world.state(next).await, DeliveryState::Delivered);
    let session = world.session().await.unwrap();
    assert_eq!((session.id, session.owner), (orphan.id, orphan.owner));
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1);
    assert!(heard[0].contains("comment 2"), "{heard:?}");
}

#[tokio::test]
async fn a_spawn_whose_delivery_cannot_be_read_does_not_keep_its_item_from_being_stopped() {
    let world = World::new().await;
    let (carried, _) = unreadable(&world).await;
    let stop = Event {
        body: "the-loop stop".to_owned(),
        ..comment(ITEM, 2)
    };
    let stop = world.command(stop).await;

    world.work().await;

    assert_eq!(world.state(stop).await, DeliveryState::Dropped);
    assert_eq!(world.state(carried).await, DeliveryState::Dropped);
    assert_eq!(world.session().await, None);
}

/// A server with one session of this owner, which has been told nothing; what is typed is kept.
pub(super) fn occupied(
    call: &Invocation,
    owner: &OwnerId,
    said_to: &Mutex<Vec<String>>,
) -> Result<Answer, Unanswered> {
    let asks_for_token = |field: &Field| matches!(field, Field::Option(OptionName::Token(_)));
    match &call.commands[..] {
        [TmuxCommand::LoadBuffer(_), ..] => {
            said_to.lock().unwrap().extend(call.input.clone());
            said("loop-done\n".to_owned())
        }
        [TmuxCommand::DisplayMessage { fields, .. }] if fields.iter().any(asks_for_token) => {
            no_server(call)
        }
        [TmuxCommand::DisplayMessage { .. }] => outstanding(owner, 0, ""),
        _ => one_pane("/nowhere/socket", owner),
    }
}

#[tokio::test]
async fn what_a_dead_agent_may_have_read_is_said_to_its_occupant_with_the_mark() {
    for (attempted, marked) in [(true, true), (false, false)] {
        let world = World::new().await;
        let session = world.active_session(Agent::Gone).await;
        let delivery = world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        if attempted {
            let intent = crate::store::Intent {
                owner: session.owner.clone(),
                expires_at: start(),
            };
            let deduper = world.store.deduper();
            deduper.store_intent(&claim, &intent).await.unwrap();
        }
        let said = Arc::new(Mutex::new(Vec::new()));
        let (heard, other) = (Arc::clone(&said), OwnerId::mint());
        let owner = other.clone();
        world.tmux(move |call| occupied(call, &owner, &heard));

        world.work().await;

        assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
        assert_eq!(world.session().await.unwrap().owner, other);
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1);
        let mark = said[0].contains("This may be a repeat");
        assert_eq!(mark, marked, "{said:?}");
    }
}

#[tokio::test]
async fn an_occupant_is_looked_for_where_it_is_recorded_and_where_new_sessions_live() {
    let elsewhere = |pane: &str, socket: &str| TmuxTarget {
        pane: pane.parse().unwrap(),
        socket: TmuxSocket::Path(socket.into()),
        ..target(Agent::Gone)
    };
    for recorded in [
        elsewhere("%9", "/nowhere/socket"),
        elsewhere("%5", "/former/socket"),
    ] {
        let world = World::new().await;
        let session = world.session_in(recorded).await;
        let delivery = world.comment(ITEM, 1).await;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (heard, owner) = (Arc::clone(&said), session.owner.clone());
        let former = TmuxSocket::Path("/former/socket".into());
        world.tmux(move |call| {
            if call.socket == former {
                return no_server(call);
            }
            if matches!(call.commands[0], TmuxCommand::NewSession { .. }) {
                return Ok(Answer {
                    status: 1,
                    output: String::new(),
                    words: "duplicate session: loop-github-o--r-1".to_owned(),
                    listener: Listener::Present,
                });
            }
            occupied(call, &owner, &heard)
        });

        world.work().await;

        assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
        let averted = world.records(&["session.respawn_averted"]);
        assert_eq!(averted[0].fields.get("adopted"), Some(&json!(true)));
        let found = world.session().await.unwrap().target.unwrap();
        assert_eq!(found.pane, "%5".parse().unwrap());
        let socket = TmuxSocket::Path("/nowhere/socket".into());
        assert_eq!(found.socket, socket);
    }
}

#[tokio::test]
async fn what_may_still_start_an_agent_is_waited_for_and_not_given_up() {
    // Its host runs and has started nothing yet, and no session shows it.
    let starting = |world: &World, owner: &OwnerId| {
        taken_by(own(), world, owner, &boot_id(), Phase::Starting);
    };
    let world = World::new().await;
    let orphan = orphan(&world).await;
    starting(&world, &orphan.owner);
    let delivery = world.comment(ITEM, 2).await;
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    assert_eq!(world.session().await.unwrap().owner, orphan.owner);

    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let attempt = begin_respawn(&world, &claim, &session, HarnessSessionId::mint()).await;
    starting(&world, &attempt.owner);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    let under_way = world.session().await.unwrap().attempt.unwrap();
    assert_eq!(under_way.owner, attempt.owner);
}
