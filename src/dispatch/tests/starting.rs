//! What a dispatcher leaves alone when it starts.

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
