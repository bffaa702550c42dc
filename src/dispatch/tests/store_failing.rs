//! What the work does when the store fails it half-way.

use super::after_a_crash::taken;
use super::orphaned::occupied;
use super::*;
use crate::model::Phase;

impl World {
    /// Changes the database behind the store's back.
    pub(super) async fn sql(&self, statement: &'static str) {
        let file =
            sqlx::sqlite::SqliteConnectOptions::new().filename(self.folder.path().join("loop.db"));
        let pool = sqlx::SqlitePool::connect_with(file).await.unwrap();
        sqlx::query(statement).execute(&pool).await.unwrap();
        pool.close().await;
    }

    /// Lets the database refuse that anything counts as delivered, which no waiting heals.
    async fn refuse_deliveries(&self) {
        self.sql(
            "CREATE TRIGGER refusal BEFORE UPDATE OF state ON deliveries \
             WHEN NEW.state = 'delivered' BEGIN SELECT RAISE(ABORT, 'refused'); END",
        )
        .await;
    }
}

#[tokio::test]
async fn a_last_paste_whose_end_could_not_be_stored_is_asked_for_before_it_is_given_up() {
    let world = World::new().await;
    world.configure(&json!({ "polling.maxRetries": 1 }));
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let (heard, owner) = (Arc::clone(&typed), session.owner.clone());
    world.tmux(move |call| occupied(call, &owner, &heard));
    world.refuse_deliveries().await;

    world.work().await;

    assert_eq!(typed.lock().unwrap().len(), 1);
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    world.sql("DROP TRIGGER refusal").await;
    world.tmux(move |call| nothing_unsent(call, &session, "2"));
    world.pass(21);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_store_that_refuses_for_good_ends_a_delivery_with_its_budget() {
    let world = World::new().await;
    world.configure(&json!({
        "polling.maxRetries": 1,
        "routing.tmux.resumeProbeSeconds": 0.01,
    }));
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let session = world.begin_spawn(&claim).await;
    let running = Phase::Running { harness: own() };
    taken(&world, &session.owner, &boot_id(), running);
    world.tmux(move |_| one_pane("/nowhere/socket", &session.owner));
    world.refuse_deliveries().await;

    for _ in 0..2 {
        world.work().await;
        world.pass(21);
    }

    assert_eq!(world.state(delivery).await, DeliveryState::Abandoned);
}

#[tokio::test]
async fn work_under_way_is_finished_when_the_store_fails_a_one_shot_run() {
    let world = World::new().await;
    world.configure(&json!({ "routing.maxConcurrentDispatches": 2 }));
    world.know("github:o/r#2").await;
    let worked = world.comment(ITEM, 1).await;
    assert_eq!(world.comment("github:o/r#2", 2).await, DeliveryId(4));
    world
        .sql(
            "CREATE TRIGGER refusal BEFORE UPDATE OF claim_token ON deliveries \
             WHEN NEW.id = 4 BEGIN SELECT RAISE(ABORT, 'refused'); END",
        )
        .await;

    let stop = CancellationToken::new();
    let run = world.dispatcher.drain_within(Duration::ZERO, &stop);
    run.await.unwrap_err();

    assert_eq!(world.records(&["dispatch.failed"]).len(), 1);
    assert_eq!(world.state(worked).await, DeliveryState::Pending);
    assert_eq!(world.attempts(worked).await, 1);
}

#[tokio::test]
async fn a_claim_that_cannot_be_checked_is_a_failed_attempt_and_makes_way_for_nobody() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&typed);
    world.tmux(move |call| occupied(call, &session.owner, &heard));
    world
        .sql(
            "CREATE TRIGGER unreadable AFTER UPDATE OF intent_owner ON deliveries \
             BEGIN UPDATE deliveries SET lease_until = 'x' WHERE id = NEW.id; END",
        )
        .await;

    world.work().await;

    assert!(typed.lock().unwrap().is_empty());
    assert!(world.records(&["dispatch.held"]).is_empty());
    let failed = world.records(&["dispatch.failed"]);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].fields.get("will_retry"), Some(&json!(true)));
    assert_eq!(world.state(delivery).await, DeliveryState::Pending);
}

#[tokio::test]
async fn a_text_that_is_typed_is_not_given_up_because_its_claim_cannot_be_checked() {
    let world = World::new().await;
    world.configure(&json!({ "polling.maxRetries": 1 }));
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    world.tmux(timed_out);
    world.work().await;
    world.pass(21);
    let due = delivery.to_string();
    world.tmux(move |call| match &call.commands[..] {
        [TmuxCommand::IfShell { .. }] => said("loop-done\n".to_owned()),
        _ if asks_for_enter(call) => outstanding(&session.owner, 0, &due),
        _ => token(&session, "1"),
    });
    world
        .sql(
            "CREATE TRIGGER unreadable AFTER UPDATE OF state ON deliveries WHEN NEW.state = 'claimed' \
             BEGIN UPDATE deliveries SET lease_until = 'x' WHERE id = NEW.id; END",
        )
        .await;

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    world.sql("DROP TRIGGER unreadable").await;
    world.pass(21);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
}

/// A store that gives up at once where another process keeps it locked.
fn impatient() -> Tuning {
    Tuning {
        busy_timeout: Duration::from_millis(1),
        ..Tuning::default()
    }
}

impl World {
    /// Locks the database as another process.
    async fn lock(&self) -> sqlx::SqliteConnection {
        use sqlx::ConnectOptions;

        let file =
            sqlx::sqlite::SqliteConnectOptions::new().filename(self.folder.path().join("loop.db"));
        let mut other = file.connect().await.unwrap();
        let lock = sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await;
        lock.unwrap();
        other
    }
}

#[tokio::test]
async fn a_store_that_is_locked_for_a_moment_is_waited_for() {
    for one_shot in [true, false] {
        let world = World::with(impatient()).await;
        let session = world.active_session(Agent::Runs).await;
        let delivery = world.comment(ITEM, 1).await;
        world.tmux(pace::takes_everything(session));
        let other = world.lock().await;
        let dispatcher = world.dispatcher.clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let run = tokio::spawn(async move {
            match one_shot {
                true => {
                    let horizon = Duration::from_secs(3600);
                    dispatcher.drain_within(horizon, &stopped).await
                }
                false => dispatcher.run(stopped).await,
            }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!run.is_finished(), "it waits");
        drop(other);

        let delivered = async {
            while world.state(delivery).await != DeliveryState::Delivered {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), delivered)
            .await
            .expect("it goes on");

        stop.cancel();
        assert_eq!(run.await.unwrap().unwrap().delivered, 1);
    }
}

#[tokio::test]
async fn a_store_that_stays_locked_ends_a_one_shot_run_with_its_horizon() {
    let world = World::with(impatient()).await;
    world.comment(ITEM, 1).await;
    let _other = world.lock().await;
    let stop = CancellationToken::new();

    let run = world.dispatcher.drain_within(Duration::ZERO, &stop);

    let ended = tokio::time::timeout(Duration::from_secs(20), run).await;
    assert!(ended.expect("it ends").is_err());
}

#[tokio::test]
async fn a_store_that_fails_for_good_ends_every_run() {
    for one_shot in [true, false] {
        let world = World::new().await;
        world.store.close().await;
        let stop = CancellationToken::new();
        let run = async {
            match one_shot {
                true => {
                    let horizon = Duration::from_secs(3600);
                    world.dispatcher.drain_within(horizon, &stop).await
                }
                false => world.dispatcher.run(stop.clone()).await,
            }
        };

        let ended = tokio::time::timeout(Duration::from_secs(20), run).await;
        assert!(ended.expect("it ends").is_err());
    }
}
