//! Which command of a work item goes first.

use super::after_a_crash::taken;
use super::commands::operator;
use super::*;
use crate::model::{DropReason, Ending, OperatorCommand, Phase};

fn text(body: &str, id: u64) -> Event {
    Event {
        body: body.to_owned(),
        ..comment(ITEM, id)
    }
}

async fn reason(world: &World, delivery: DeliveryId) -> Option<String> {
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    row.reason
}

#[tokio::test]
async fn a_command_that_comes_after_a_failing_start_replaces_it_at_once() {
    let close = OperatorCommand::Close {
        tmux: crate::model::TmuxFate::AsConfigured,
    };
    let said = || text("the-loop start", 1);
    let pause = operator(OperatorCommand::Pause, 2);
    for (start, later, why) in [
        (said(), text("the-loop stop", 2), DropReason::SessionStopped),
        (said(), text("the-loop pause", 2), DropReason::SessionPaused),
        (said(), pause.clone(), DropReason::SessionPaused),
        (said(), operator(close, 2), DropReason::SessionStopped),
        (
            operator(OperatorCommand::Start, 1),
            pause,
            DropReason::SessionPaused,
        ),
    ] {
        let world = World::new().await;
        let start = world.command(start).await;
        world.work().await;
        assert_eq!(world.state(start).await, DeliveryState::Held);
        assert_eq!(reason(&world, start).await.as_deref(), Some("start-retry"));
        assert_eq!(world.attempts(start).await, 1);

        let later = world.command(later).await;
        world.work().await;

        assert_eq!(world.state(later).await, DeliveryState::Dropped);
        assert_eq!(reason(&world, later).await.as_deref(), Some("no-session"));
        assert_eq!(world.state(start).await, DeliveryState::Dropped);
        assert_eq!(reason(&world, start).await.as_deref(), Some(why.as_str()));
    }
}

#[tokio::test]
async fn a_failing_start_that_nothing_replaces_is_tried_until_its_budget_is_spent() {
    let world = World::new().await;
    let start = world.command(text("the-loop start", 1)).await;
    world.work().await;
    world.work().await;
    assert_eq!(world.attempts(start).await, 1, "not before its time");

    world.pass(60);
    world.work().await;

    assert_eq!(world.attempts(start).await, 2);
    assert_eq!(world.state(start).await, DeliveryState::Abandoned);
}

#[tokio::test]
async fn work_that_makes_way_for_a_command_says_so() {
    let world = World::new().await;
    world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    world.command(text("the-loop pause", 2)).await;

    world.dispatcher.shared.work(Arc::new(claim)).await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert!(row.next_at > start(), "the command is looked at before");
    let held = world.records(&["dispatch.held"]);
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0].text("reason"), Some("making-way"));
}

#[tokio::test]
async fn a_start_whose_agent_runs_already_is_not_refused_when_the_label_goes() {
    for (runs, state) in [
        (true, DeliveryState::Delivered),
        (false, DeliveryState::Dropped),
    ] {
        let world = World::new().await;
        let start = world.command(text("the-loop start", 1)).await;
        let claim = world.claim_and_die().await;
        let session = world.begin_spawn(&claim).await;
        if runs {
            let ended = Phase::Ended {
                harness: Some(gone()),
                ending: Ending::Code(0),
                at_ms: super::start().timestamp_millis(),
            };
            taken(&world, &session.owner, &boot_id(), ended);
        }
        let unlabelled = ItemSighting {
            arming: Arming::Disarmed,
            updated_at: super::start() + TimeDelta::seconds(1),
            ..sighting(ITEM)
        };
        world
            .accept(Acceptance {
                items: vec![unlabelled],
                ..Acceptance::default()
            })
            .await;

        world.work().await;

        assert_eq!(world.state(start).await, state);
        let open = world.session().await.map(|open| open.id);
        assert_eq!(open, runs.then_some(session.id), "no orphan is left");
        assert_eq!(
            world.records(&["control.rejected"]).len(),
            usize::from(!runs)
        );
        assert_eq!(world.records(&["session.spawned"]).len(), usize::from(runs));
    }
}

#[tokio::test]
async fn a_claim_is_renewed_while_it_is_worked_and_no_longer() {
    let world = World::new().await;
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let lease = fence::Lease::keep(world.store.deduper(), &claim);
    let renewing = lease.0.clone();
    tokio::task::yield_now().await;
    assert!(!renewing.is_finished());

    drop(lease);

    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        while !renewing.is_finished() {
            tokio::task::yield_now().await;
        }
    });
    assert!(ended.await.is_ok(), "somebody still renews it");
}
