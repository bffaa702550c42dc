//! Deliveries that cannot be read.

use super::*;
use crate::model::HoldReason;

#[tokio::test]
async fn a_row_that_cannot_be_read_is_put_aside_and_stops_no_other_item() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    let broken = world.comment("o/r#1").await;
    let sound = world.comment("o/r#2").await;
    sqlx::query("UPDATE events SET payload = '{\"from\":\"the future\"}' WHERE id = 1")
        .execute(&world.store.writer)
        .await
        .unwrap();

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
    sqlx::query("UPDATE events SET payload = '{\"from\":\"the future\"}' WHERE id = 1")
        .execute(&world.store.writer)
        .await
        .unwrap();

    assert_eq!(world.claimed().await.first().id, behind);

    let row = world.store.queue().get(broken).await.unwrap().unwrap();
    assert_eq!(row.reason, None);
}
