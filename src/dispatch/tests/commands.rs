//! What commands do to a session, and what is written down of them.

use super::after_a_crash::{begin_respawn, failed_after, taken};
use super::*;
use crate::model::{Ending, OperatorCommand, Phase, SessionStatus};

fn said(body: &str) -> Event {
    Event {
        body: body.to_owned(),
        ..comment(ITEM, 1)
    }
}

pub(super) fn operator(command: OperatorCommand, id: u64) -> Event {
    Event {
        kind: EventKind::Command,
        key: EventKey::new("github.com", EventKind::Command, &id.to_string(), "1"),
        detail: Detail::Command { command },
        ..comment(ITEM, id)
    }
}

async fn session_that_is(world: &World, status: SessionStatus) -> Session {
    let session = world.active_session(Agent::Gone).await;
    if status == SessionStatus::Paused {
        world.change(SessionChange::Pause(session.id)).await;
    }
    session
}

#[tokio::test]
async fn a_command_changes_the_session_only_where_it_makes_a_difference() {
    use SessionStatus::{Active, Paused};
    let (effect, reason) = ("effect", "reason");
    for (command, before, told, after) in [
        (said("the-loop start"), Active, (effect, "noop"), Active),
        (said("the-loop start"), Paused, (effect, "resumed"), Active),
        (said("the-loop pause"), Active, (effect, "paused"), Paused),
        (said("the-loop pause"), Paused, (effect, "noop"), Paused),
        (said("the-loop resume"), Paused, (effect, "resumed"), Active),
        (
            said("the-loop resume"),
            Active,
            (reason, "nothing-to-resume"),
            Active,
        ),
        (
            operator(OperatorCommand::Start, 1),
            Paused,
            (effect, "resumed"),
            Active,
        ),
        (
            operator(OperatorCommand::Pause, 1),
            Active,
            (effect, "paused"),
            Paused,
        ),
    ] {
        let world = World::new().await;
        session_that_is(&world, before).await;
        let what = format!("{} {:?} when {before:?}", command.body, command.detail);
        let via = match command.kind {
            EventKind::Command => "cli",
            _ => "comment",
        };
        world.command(command).await;

        world.work().await;

        assert_eq!(world.session().await.unwrap().status, after, "{what}");
        let said = world.records(&["control.command", "control.rejected"]);
        assert_eq!(said.len(), 1, "{what}");
        assert_eq!(said[0].fields[told.0], told.1, "{what}");
        assert_eq!(said[0].fields["via"], via, "{what}");
    }
}

/// What is written down when a session ends, oldest first.
const OF_AN_END: &[&str] = &[
    "session.harness_terminated",
    "session.retained",
    "session.closed",
    "session.autoclosed",
];

#[tokio::test]
async fn a_stop_ends_the_agent_and_keeps_the_session_as_configured() {
    let (terminated, retained, closed) = (OF_AN_END[0], OF_AN_END[1], OF_AN_END[2]);
    for (agent, keep, kill, expected) in [
        (Agent::Gone, false, true, vec![terminated, closed]),
        (Agent::Gone, false, false, vec![terminated, closed]),
        (Agent::Gone, true, true, vec![terminated, retained, closed]),
        (Agent::Gone, true, false, vec![retained, closed]),
        (Agent::Runs, false, true, vec![terminated, retained, closed]),
    ] {
        let world = World::new().await;
        world.configure(&json!({
            "routing.tmux": { "keepSessionOnClose": keep, "killHarnessOnClose": kill },
        }));
        world.active_session(agent).await;
        let stop = world.command(said("the-loop stop")).await;

        world.work().await;

        assert_eq!(world.state(stop).await, DeliveryState::Delivered);
        assert_eq!(world.session().await, None);
        let written = world.records(OF_AN_END);
        let written: Vec<_> = written.iter().map(|record| &record.event).collect();
        assert_eq!(written, expected, "{agent:?} {keep} {kill}");
    }
}

#[tokio::test]
async fn a_session_ends_with_its_work_item() {
    let world = World::new().await;
    world.active_session(Agent::Gone).await;
    let ended = world
        .command(Event {
            kind: EventKind::Closed,
            detail: Detail::Closed { merged: false },
            ..comment(ITEM, 1)
        })
        .await;

    world.work().await;

    assert_eq!(world.state(ended).await, DeliveryState::Delivered);
    assert_eq!(world.session().await, None);
    assert_eq!(world.records(&["session.autoclosed"]).len(), 1);
}

#[tokio::test]
async fn a_stop_goes_through_whatever_a_respawn_that_was_left_behind_came_to() {
    let clean = Phase::Ended {
        harness: Some(gone()),
        ending: Ending::Code(0),
        at_ms: start().timestamp_millis(),
    };
    let late = failed_after(TimeDelta::seconds(3));
    for phase in [failed_after(TimeDelta::seconds(1)), clean, late] {
        let world = World::new().await;
        let session = world.active_session(Agent::Gone).await;
        world.comment(ITEM, 1).await;
        let claim = world.claim_and_die().await;
        let attempt = begin_respawn(&world, &claim, &session, HarnessSessionId::mint()).await;
        taken(&world, &attempt.owner, &boot_id(), phase.clone());
        let given_up = Settlement::Abandoned {
            version: "1.0.0",
            rearm: crate::store::Rearm::ByHand,
        };
        let deduper = world.store.deduper();
        deduper.settle(&claim, given_up, None).await.unwrap();
        let stop = Event {
            body: "the-loop stop".to_owned(),
            ..comment(ITEM, 2)
        };
        let stop = world.command(stop).await;

        world.work().await;

        assert_eq!(
            world.state(stop).await,
            DeliveryState::Delivered,
            "{phase:?}"
        );
        assert_eq!(world.session().await, None, "{phase:?}");
    }
}

#[tokio::test]
async fn a_respawned_agent_that_failed_with_the_message_is_not_tried_twice_at_once() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let attempt = begin_respawn(&world, &claim, &session, HarnessSessionId::mint()).await;
    let at_once = failed_after(TimeDelta::seconds(1));
    taken(&world, &attempt.owner, &boot_id(), at_once);

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    let run = fs::read_dir(world.folder.path().join("run")).unwrap();
    assert_eq!(run.count(), 1, "its own, and no other");
}

#[tokio::test]
async fn a_start_that_was_cut_off_goes_on_with_its_spawn() {
    let world = World::new().await;
    let start = world.command(said("the-loop start")).await;
    let claim = world.claim_and_die().await;
    assert_eq!(claim.first().id, start);
    world.begin_spawn(&claim).await;

    world.work().await;

    assert_eq!(world.state(start).await, DeliveryState::Held, "tried again");
    assert_eq!(world.records(&["control.command"]).len(), 0);
    assert_eq!(world.records(&["session.spawn_failed"]).len(), 1);
}

#[tokio::test]
async fn a_pause_drops_no_text_that_waits() {
    let world = World::new().await;
    // It was a command when it came in, and is none under today's words.
    let text = world.command(comment(ITEM, 1)).await;
    world.work().await;
    assert_eq!(world.state(text).await, DeliveryState::Held);

    let pause = Event {
        body: "the-loop pause".to_owned(),
        ..comment(ITEM, 2)
    };
    let pause = world.command(pause).await;
    world.work().await;

    assert_eq!(world.state(pause).await, DeliveryState::Dropped);
    assert_eq!(world.state(text).await, DeliveryState::Held);
}

/// Every line that a command leads to, oldest first.
const OF_A_COMMAND: &[&str] = &[
    "control.command",
    "session.harness_terminated",
    "session.retained",
    "session.closed",
    "session.autoclosed",
    "dispatch.dropped",
];

#[tokio::test]
async fn what_a_command_does_is_written_down_below_the_command() {
    use SessionStatus::{Active, Paused};
    let close = OperatorCommand::Close {
        tmux: crate::model::TmuxFate::AsConfigured,
    };
    let ended = Event {
        kind: EventKind::Closed,
        detail: Detail::Closed { merged: false },
        ..comment(ITEM, 1)
    };
    for (command, before, expected, via) in [
        (
            said("the-loop stop"),
            Active,
            vec![0, 1, 2, 3, 5],
            Some("comment"),
        ),
        (
            operator(OperatorCommand::Stop, 1),
            Active,
            vec![0, 1, 2, 3, 5],
            Some("cli"),
        ),
        (operator(close, 1), Active, vec![1, 2, 3, 5], Some("cli")),
        (ended, Active, vec![4, 1, 2, 3, 5], None),
        (said("the-loop resume"), Paused, vec![0, 5], None),
    ] {
        let world = World::new().await;
        session_that_is(&world, before).await;
        world.pass(1);
        world.comment(ITEM, 7).await;
        let what = format!("{} {:?}", command.body, command.detail);
        world.command(command).await;

        world.work().await;

        let written = world.records(OF_A_COMMAND);
        let events: Vec<_> = written.iter().map(|record| record.event.as_str()).collect();
        let expected: Vec<_> = expected.into_iter().map(|at| OF_A_COMMAND[at]).collect();
        assert_eq!(events, expected, "{what}");
        let closed = world.records(&["session.closed"]);
        let said = closed.first().and_then(|record| record.text("via"));
        assert_eq!(said, via, "{what}");
    }
}

#[tokio::test]
async fn a_command_without_a_session_is_written_down_before_what_it_drops() {
    for word in ["the-loop pause", "the-loop stop"] {
        let world = World::new().await;
        let start = world.command(said("the-loop start")).await;
        world.work().await;
        assert_eq!(world.state(start).await, DeliveryState::Held);
        let command = Event {
            body: word.to_owned(),
            ..comment(ITEM, 2)
        };
        let command = world.command(command).await;

        world.work().await;

        let written = world.records(OF_A_COMMAND);
        let written: Vec<_> = written
            .iter()
            .map(|record| (record.event.as_str(), record.number("delivery").unwrap()))
            .collect();
        let (start, command) = (
            u64::try_from(start.0).unwrap(),
            u64::try_from(command.0).unwrap(),
        );
        let (said, dropped) = ("control.command", "dispatch.dropped");
        let expected = [(said, command), (dropped, start), (dropped, command)];
        assert_eq!(written, expected, "{word}");
    }
}
