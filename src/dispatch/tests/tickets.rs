//! Tickets whose host went away without a word.

use super::after_a_crash::{newest_prompt, taken};
use super::*;
use crate::model::{HostPaths, OperatorCommand, Phase, TmuxFate};
use crate::process::ticket::{self, TicketState};

/// A pid that no system gives out.
const NOBODY: i32 = i32::MAX;

/// Lets tmux make every session with a host that ends at once, having done this with its ticket.
fn every_host_ends(world: &World, with: impl Fn(&HostPaths) + Send + 'static) {
    let root = world.folder.path().to_owned();
    world.tmux(move |call| {
        let Some(TmuxCommand::NewSession { name, program, .. }) = call.commands.first() else {
            return no_server(call);
        };
        let ticket = std::path::Path::new(&program[2]);
        let folder = ticket.parent().unwrap().file_name().unwrap();
        let owner: OwnerId = folder.to_str().unwrap().parse().unwrap();
        with(&HostPaths::new(&root, &owner));
        let server = own().pid;
        said(format!(
            "loop-made|{server}|$3|%5|{NOBODY}|/nowhere/socket\nloop-ready|{owner}|{name}\n"
        ))
    });
}

impl World {
    fn tickets(&self) -> Vec<TicketState> {
        let root = self.folder.path();
        let owners = ticket::all(root).unwrap();
        let paths = owners.iter().map(|owner| HostPaths::new(root, owner));
        paths.map(|paths| ticket::state(&paths).unwrap()).collect()
    }
}

#[tokio::test]
async fn a_host_that_ended_before_it_took_its_ticket_leaves_none_open() {
    for (agent, left) in [
        (None, TicketState::Revoked),
        (Some(Agent::Gone), TicketState::Revoked),
        (None, TicketState::Taken),
    ] {
        let world = World::new().await;
        if let Some(agent) = agent {
            world.active_session(agent).await;
        }
        let delivery = world.comment(ITEM, 1).await;
        every_host_ends(&world, move |paths| {
            if left == TicketState::Taken {
                fs::rename(paths.ticket(), paths.taken()).unwrap();
            }
        });

        world.work().await;

        assert_eq!(world.tickets(), [left]);
        assert_eq!(world.state(delivery).await, DeliveryState::Pending);
        assert_eq!(world.attempts(delivery).await, 1);
        assert!(
            world
                .session()
                .await
                .is_none_or(|open| open.attempt.is_none())
        );
    }
}

/// Its disk took no record, and it started the agent all the same, for all that is known.
#[tokio::test]
async fn what_a_host_without_a_record_was_to_tell_is_told_again_as_a_possible_repeat() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    taken(&world, &session.owner, &boot_id(), Phase::Starting);
    let paths = HostPaths::new(world.folder.path(), &session.owner);
    fs::remove_file(paths.record()).unwrap();

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;
    let prompt = newest_prompt(&world, &session.owner);
    assert!(prompt.contains("This may be a repeat"), "{prompt}");
}

/// Puts a record where a host of a newer version has left it, in a phase that this one does not know.
fn recorded_later(world: &World, owner: &OwnerId, host: ProcessId) {
    taken(world, owner, &boot_id(), Phase::Starting);
    let record = HostPaths::new(world.folder.path(), owner).record();
    let later =
        json!({ "v": 2, "owner": owner, "host": host, "boot": boot_id(), "phase": "dreaming" });
    fs::write(record, later.to_string()).unwrap();
}

#[tokio::test]
async fn a_record_that_is_not_understood_holds_nothing_up_once_its_processes_are_gone() {
    let world = World::new().await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    recorded_later(&world, &session.owner, own());
    world.work().await;
    let held = world.records(&["dispatch.held"]);
    let named = format!("process {}", own());
    assert!(held[0].text("detail").unwrap().contains(&named), "{held:?}");
    assert_eq!(world.session().await.map(|open| open.id), Some(session.id));

    recorded_later(&world, &session.owner, gone());
    world.pass(60);
    world.work().await;

    assert_eq!(world.session().await, None);
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.pass(60);
    world.work().await;
    let prompt = newest_prompt(&world, &session.owner);
    assert!(prompt.contains("This may be a repeat"), "{prompt}");
}

#[tokio::test]
async fn a_session_whose_start_left_a_record_that_is_not_understood_can_be_closed() {
    let world = World::new().await;
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    recorded_later(&world, &session.owner, gone());
    let mut close = comment(ITEM, 2);
    let tmux = TmuxFate::AsConfigured;
    close.kind = EventKind::Command;
    close.detail = Detail::Command {
        command: OperatorCommand::Close { tmux },
    };
    let closed = world.command(close).await;

    world.work().await;

    assert_eq!(world.session().await, None);
    assert!(world.state(closed).await.is_final());
}

#[tokio::test]
async fn a_record_without_its_processes_is_waited_for_under_its_name() {
    let world = World::new().await;
    world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    taken(&world, &session.owner, &boot_id(), Phase::Starting);
    let record = HostPaths::new(world.folder.path(), &session.owner).record();
    fs::write(&record, "").unwrap();

    world.work().await;

    let held = world.records(&["dispatch.held"]);
    let named = record.display().to_string();
    assert!(held[0].text("detail").unwrap().contains(&named), "{held:?}");
    assert_eq!(world.session().await.map(|open| open.id), Some(session.id));
}
