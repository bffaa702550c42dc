//! What a dispatcher sees to when it starts, and what it leaves alone.

use std::sync::atomic::AtomicU32;

use super::*;

impl World {
    async fn first_drain(&self) {
        let stop = CancellationToken::new();
        self.dispatcher.drain(&stop).await.unwrap();
    }
}

#[tokio::test]
async fn an_enter_that_a_daemon_left_outstanding_is_pressed_at_the_next_start() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let pressed = Arc::new(AtomicU32::new(0));
    let presses = Arc::clone(&pressed);
    world.tmux(move |call| match &call.commands[..] {
        [TmuxCommand::DisplayMessage { .. }] => outstanding(&session.owner, 0, "7"),
        [TmuxCommand::IfShell { .. }] => {
            presses.fetch_add(1, Ordering::SeqCst);
            said("loop-done\n".to_owned())
        }
        other => panic!("only the Enter is seen to: {other:?}"),
    });

    world.first_drain().await;

    assert_eq!(pressed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_agent_that_died_is_left_to_its_next_event_when_the_daemon_starts() {
    let world = World::new().await;
    let before = world.active_session(Agent::Gone).await;
    let asked = Arc::new(AtomicU32::new(0));
    let questions = Arc::clone(&asked);
    world.tmux(move |call| {
        questions.fetch_add(1, Ordering::SeqCst);
        no_server(call)
    });

    world.first_drain().await;

    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(world.session().await, Some(before));
    let spawns = world.folder.path().join("run");
    assert!(!spawns.exists(), "nothing was prepared");
}

#[tokio::test]
async fn a_server_that_ends_as_it_is_started_is_said_with_what_its_configuration_may_hold() {
    let world = World::new().await;
    world.comment(ITEM, 1).await;
    world.tmux(|call| match &call.commands[0] {
        TmuxCommand::NewSession { .. } => no_server(call).map(|answer| Answer {
            words: "server exited unexpectedly".to_owned(),
            ..answer
        }),
        _ => no_server(call),
    });

    world.work().await;

    let failed = world.records(&["session.spawn_failed"]);
    let error = failed[0].text("error").unwrap();
    for word in ["server exited unexpectedly", "window-size", "~/.tmux.conf"] {
        assert!(error.contains(word), "{error}");
    }
}
