//! Sockets that were removed under a running server.

use the_loop::model::DeliveryId;
use the_loop::process::identity::{Life, life};
use the_loop::process::signal::{Signal, signal};
use the_loop::runner::{Probe, Remains, TokenState, Unanswered};

use crate::rig::{Loss, Rig, address, message, open, spawned};
use crate::tmux::wait_for;

#[tokio::test]
async fn a_removed_socket_is_made_again_by_its_server() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    std::fs::remove_file(rig.tmux.socket()).unwrap();

    let probe = rig.runner.probe(&it).await;

    assert_eq!(probe, Probe::Live);
    assert!(rig.tmux.socket().exists());
}

/// A delivery whose attempt met the loss reads only its token, and an outstanding Enter only itself.
#[tokio::test]
async fn a_token_and_an_enter_are_found_though_the_socket_was_removed() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let text = message(1, "[the-loop] a");
    rig.runner.deliver(&it, &text, &open).await.unwrap();
    rig.typed(1, "\r");

    std::fs::remove_file(rig.tmux.socket()).unwrap();
    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::Pasted));

    std::fs::remove_file(rig.tmux.socket()).unwrap();
    let enter = rig.runner.settle_enter(&it, None, &open).await;
    assert!(enter.is_ok(), "{enter:?}");
}

#[tokio::test]
async fn a_socket_that_stays_away_leaves_everything_unknown() {
    let rig = Rig::hasty();
    let it = rig.start(1, "exec sleep 600").await;
    rig.freeze();
    std::fs::remove_file(rig.tmux.socket()).unwrap();

    let probe = rig.runner.probe(&it).await;

    assert!(
        matches!(probe, Probe::Unknown(Unanswered::SocketLost { .. })),
        "{probe:?}"
    );
    rig.thaw_and_see_live(&it).await;
}

#[tokio::test]
async fn a_server_that_is_gone_leaves_a_free_name() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    signal(&rig.tmux.server(), Signal::Kill).unwrap();
    let target = it.target.clone().unwrap();
    wait_for("the end of server and agent", || {
        [target.server, target.harness]
            .iter()
            .all(|process| life(process) == Life::Gone)
    });

    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::NameFree));
    assert_eq!(
        rig.runner.probe(&address(2)).await,
        Probe::Dead(Remains::NameFree)
    );
}

#[tokio::test]
async fn a_server_that_another_process_is_starting_is_asked_once_more() {
    let rig = Rig::new();
    rig.start(2, "exec sleep 600").await;
    // The look before the spawn comes too early, and the creation that may start no server as well.
    for losses in [vec![Loss::TooEarly], vec![Loss::Unasked, Loss::TooEarly]] {
        let runner = rig.another(losses);
        let plan = rig.plan(1, "exec sleep 600");

        let pane = spawned(runner.spawn(&plan, &open, &|_| {}).await.unwrap());

        let id = pane.session_id.to_string();
        rig.tmux.ok(&["kill-session", "-t", &id]);
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_not_asked_for_ever() {
    let rig = Rig::new();
    rig.start(2, "exec sleep 600").await;
    let runner = rig.another(vec![Loss::TooEarly, Loss::TooEarly]);

    let probe = runner.probe(&address(1)).await;

    let unreachable = matches!(probe, Probe::Unknown(Unanswered::Unreachable { .. }));
    assert!(unreachable, "{probe:?}");
}
