//! Tickets whose host went away without a word.

use super::*;
use crate::model::HostPaths;
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
        let spec = std::path::Path::new(&program[2]);
        let folder = spec.parent().unwrap().file_name().unwrap();
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
                fs::rename(paths.spec(), paths.taken()).unwrap();
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
