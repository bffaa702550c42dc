//! Deliveries that cannot be read, and claims.

use super::*;
use crate::model::HoldReason;

impl World {
    /// Makes an event one that cannot be read, and returns what it was.
    async fn garble(&self, event: i64) -> String {
        let sound = sqlx::query_scalar("SELECT payload FROM events WHERE id = $1").bind(event);
        let mut conn = self.store.writing().await.unwrap();
        let sound = sound.fetch_one(&mut *conn).await.unwrap();
        drop(conn);
        self.restore(event, r#"{"from":"the future"}"#).await;
        sound
    }

    async fn restore(&self, event: i64, payload: &str) {
        let statement = sqlx::query("UPDATE events SET payload = $2 WHERE id = $1");
        let restored = self.store.change(statement.bind(event).bind(payload));
        assert_eq!(restored.await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_put_aside_and_stops_no_other_item() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    let broken = world.comment("o/r#1").await;
    let sound = world.comment("o/r#2").await;
    world.garble(1).await;

    assert_eq!(world.claimed().await.first().id, sound);

    let listed = world
        .store
        .queue()
        .list(QueueFilter::Open, 10)
        .await
        .unwrap();
    let row = listed.iter().find(|row| row.delivery == broken).unwrap();
    assert_eq!(row.state, DeliveryState::Held);
    assert!(row.error.as_ref().unwrap().contains("cannot be read"));
}

#[tokio::test]
async fn what_comes_behind_a_row_that_cannot_be_read_passes_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let broken = world.comment("o/r#1").await;
    let behind = world.comment("o/r#1").await;
    // It waited before, for something that says no more why it waits.
    let claim = world.claimed().await;
    assert_eq!(claim.first().id, broken);
    let held = Release::Held {
        reason: HoldReason::Starting,
        look_again_at: at(0),
    };
    world.store.deduper().release(&claim, held).await.unwrap();
    assert!(
        world
            .store
            .deduper()
            .claim(behind, &owner(12))
            .await
            .unwrap()
            .is_none()
    );
    world.garble(1).await;

    assert_eq!(world.claimed().await.first().id, behind);

    let row = world.store.queue().get(broken).await.unwrap().unwrap();
    assert_eq!(row.reason, None);
}

#[tokio::test]
async fn what_a_spawn_carries_and_cannot_be_read_locks_nobody_out_of_its_item() {
    for is_event in [true, false] {
        let world = World::new().await;
        world.know("o/r#1").await;
        let carried = world.comment("o/r#1").await;
        let claim = world.claimed().await;
        world.spawn(&claim).await;
        let behind = match is_event {
            true => world.comment("o/r#1").await,
            false => world.command("o/r#1").await,
        };
        world.garble(1).await;
        world.pass(60);
        // Its holder is gone: it is taken over and put aside, and the same look goes on behind it.
        assert_eq!(world.claimed().await.first().id, behind);
        let row = world.store.queue().get(carried).await.unwrap().unwrap();
        assert_eq!((row.state, row.reason), (DeliveryState::Held, None));
    }
}

#[tokio::test]
async fn what_is_put_aside_in_the_middle_of_its_spawn_may_have_been_read() {
    for spawns in [true, false] {
        let world = World::new().await;
        world.know("o/r#1").await;
        let carried = world.comment("o/r#1").await;
        let claim = world.claimed().await;
        if spawns {
            world.spawn(&claim).await;
        }
        let sound = world.garble(1).await;
        world.pass(60);
        assert!(world.claim().await.is_none());
        world.restore(1, &sound).await;
        world.pass(600);

        let again = world.claimed().await;

        assert_eq!(again.first().id, carried);
        assert_eq!(again.first().maybe_read, spawns);
    }
}

#[tokio::test]
async fn a_claim_of_process_1_is_alive_until_its_lease_ends() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    let held = world.comment("o/r#1").await;
    let deduper = world.store.deduper();
    let first_process = owner(1);
    let everybody_is_dead = |_: &ProcessId, _: &BootId| true;
    let claim = deduper
        .claim_next(&first_process, &everybody_is_dead)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(claim.first().id, held);
    let other = world.comment("o/r#2").await;

    for expected in [Some(other), None] {
        let next = deduper.claim_next(&first_process, &everybody_is_dead).await;
        assert_eq!(next.unwrap().map(|claim| claim.first().id), expected);
    }
    world.pass(60);
    assert_eq!(world.claimed().await.first().id, held);
}

#[tokio::test]
async fn a_claim_whose_holder_cannot_be_read_stops_no_other_item() {
    for (unreadable, lapsed) in [
        ("claim_pid = NULL", DeliveryState::Claimed),
        ("claim_start = NULL", DeliveryState::Claimed),
        ("claim_boot = NULL", DeliveryState::Claimed),
        ("claim_token = x'ff'", DeliveryState::Claimed),
        ("lease_until = NULL", DeliveryState::Held),
        ("lease_until = 'later'", DeliveryState::Held),
    ] {
        let world = World::new().await;
        world.know("o/r#1").await;
        world.know("o/r#2").await;
        let held = world.comment("o/r#1").await;
        world.claimed().await;
        let other = world.comment("o/r#2").await;
        let statement = format!("UPDATE deliveries SET {unreadable} WHERE claim_lead = 1");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut *world.store.writing().await.unwrap())
            .await
            .unwrap();

        let everybody_is_dead = |_: &ProcessId, _: &BootId| true;
        let deduper = world.store.deduper();
        let next = deduper.claim_next(&owner(10), &everybody_is_dead).await;
        let next = next.unwrap().unwrap();
        assert_eq!(next.first().id, other, "{unreadable}");
        world.delivered(&next).await;

        assert_eq!(world.state(held).await, Some(lapsed), "{unreadable}");
        world.pass(600);
        let again = world.claimed().await;
        assert_eq!(again.first().id, held, "{unreadable}");
    }
}
