//! Sockets that were removed under a running server.

use the_loop::model::DeliveryId;
use the_loop::process::identity::{Life, life};
use the_loop::process::signal::{Signal, signal};
use the_loop::runner::{BoxFuture, EnterState, FenceLost, Probe, Remains, TokenState, Unanswered};

use crate::rig::{Loss, Rig, address, open, spawned};
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

/// Whoever asks first: a delivery that was cut off asks for its token and probes nothing.
#[tokio::test]
async fn a_question_about_a_paste_or_its_enter_brings_a_removed_socket_back() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    std::fs::remove_file(rig.tmux.socket()).unwrap();

    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::NotPasted));

    std::fs::remove_file(rig.tmux.socket()).unwrap();
    let free = || -> BoxFuture<Result<(), FenceLost>> { Box::pin(std::future::ready(Ok(()))) };
    let enter = rig.runner.settle_enter(&it, DeliveryId(1), &free).await;
    assert_eq!(enter, Ok(EnterState::Pressed));
    assert!(rig.tmux.socket().exists());
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
