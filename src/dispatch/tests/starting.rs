//! What a dispatcher leaves alone when it starts, and what it says where nothing can be started.

use super::*;

#[tokio::test]
async fn a_start_asks_nothing_about_a_session_for_which_nothing_is_due() {
    for agent in [Agent::Runs, Agent::Gone] {
        let world = World::new().await;
        let before = world.active_session(agent).await;
        let asked = Arc::new(AtomicU32::new(0));
        let questions = Arc::clone(&asked);
        world.tmux(move |call| {
            questions.fetch_add(1, Ordering::SeqCst);
            no_server(call)
        });

        let stop = CancellationToken::new();
        world.dispatcher.drain(&stop).await.unwrap();

        assert_eq!(asked.load(Ordering::SeqCst), 0);
        assert_eq!(world.session().await, Some(before));
        let spawns = world.folder.path().join("run");
        assert!(!spawns.exists(), "nothing was prepared");
    }
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

#[tokio::test]
async fn an_agent_is_told_nothing_before_it_is_ready() {
    let world = World::new().await;
    world.configure(&json!({ "harnesses.agent.readyDelaySeconds": 10 }));
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    world.tmux(pace::takes_everything(session));
    world.pass(9);

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.reason.as_deref(), Some("starting"));
    world.pass(1);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
}
