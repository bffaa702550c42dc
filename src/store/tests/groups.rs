use super::*;
use crate::model::HoldReason;

fn line(id: u64, review_id: u64) -> Event {
    version(id, review_id, "v1")
}

fn version(id: u64, review_id: u64, version: &str) -> Event {
    Event {
        key: EventKey::new(
            "github.com",
            EventKind::ReviewComment,
            &id.to_string(),
            version,
        ),
        kind: EventKind::ReviewComment,
        detail: Detail::Line {
            review_id: Some(review_id),
            path: "src/lib.rs".to_owned(),
            line: Some(3),
            diff_hunk: String::new(),
        },
        ..comment("o/r#1", id, "v1")
    }
}

#[tokio::test]
async fn the_rows_of_a_review_wait_for_each_other_and_go_as_one() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    world.pass(2);
    world.arrive(line(2, 9), EVENT).await;
    world.pass(2);
    assert!(
        world.claim().await.is_none(),
        "the newest is two seconds old"
    );
    assert_eq!(world.store.deduper().next_due().await.unwrap(), Some(at(5)));

    world.pass(1);
    let claim = world.claimed().await;

    let keys = |events: &[Event]| -> Vec<EventKey> {
        events.iter().map(|event| event.key.clone()).collect()
    };
    assert_eq!(claim.first().event.key, line(1, 9).key);
    assert_eq!(keys(&claim.others()), [line(2, 9).key]);
    assert_eq!(claim.held_before, Some(HoldReason::Grouping));
    world.delivered(&claim).await;
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn a_review_that_goes_on_waits_no_longer_than_fifteen_seconds() {
    let world = World::new().await;
    world.know("o/r#1").await;
    for id in 0..8 {
        world.arrive(line(id, 9), EVENT).await;
        world.pass(2);
    }

    assert_eq!(world.claimed().await.rows.len(), 8);
}

#[tokio::test]
async fn what_is_not_told_of_a_review_waits_for_nothing() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let drop = Disposition::Drop(crate::model::DropReason::SelfAuthored);
    let ArrivalOutcome::Dropped { delivery, .. } = world.arrive(line(1, 9), drop).await else {
        panic!("it is dropped");
    };
    assert_eq!(world.state(delivery).await, Some(DeliveryState::Dropped));
}

#[tokio::test]
async fn two_reviews_and_what_stands_between_them_keep_their_order() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    let between = world.comment("o/r#1").await;
    world.arrive(line(2, 9), EVENT).await;
    world.arrive(line(3, 10), EVENT).await;
    assert!(world.claim().await.is_none(), "the review is ahead");
    world.pass(3);

    let review = world.claimed().await;
    assert_eq!(review.rows.len(), 2);
    world.delivered(&review).await;
    let comment = world.claimed().await;
    assert_eq!(comment.first().id, between);
    world.delivered(&comment).await;
    assert_eq!(world.claimed().await.rows.len(), 1);
}

#[tokio::test]
async fn a_row_that_comes_after_the_attempt_began_is_a_message_of_its_own() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    world.pass(3);
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&claim).await.unwrap();
    world.arrive(line(2, 9), EVENT).await;
    let retry = Release::Retry { at: at(3) };
    deduper.release(&claim, retry).await.unwrap();
    world.pass(10);

    let again = world.claimed().await;
    assert_eq!(
        again.rows.len(),
        1,
        "what may be in the pane already is not added to"
    );
    assert_eq!(again.first().id, claim.first().id);
    world.delivered(&again).await;
    assert_eq!(world.claimed().await.rows.len(), 1);
}

#[tokio::test]
async fn a_row_that_comes_while_the_review_is_held_goes_with_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    world.pass(3);
    let claim = world.claimed().await;
    let held = Release::Held {
        reason: HoldReason::Starting,
        look_again_at: at(8),
    };
    world.store.deduper().release(&claim, held).await.unwrap();
    world.arrive(line(2, 9), EVENT).await;
    world.pass(10);

    assert_eq!(world.claimed().await.rows.len(), 2);
}

#[tokio::test]
async fn a_review_keeps_the_name_of_its_message_when_its_first_row_leaves_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    world.arrive(line(2, 9), EVENT).await;
    world.pass(3);
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&claim).await.unwrap();
    let retry = Release::Retry { at: at(4) };
    deduper.release(&claim, retry).await.unwrap();
    let edited = world.arrive(version(1, 9, "v2"), EVENT).await;
    assert!(
        matches!(edited.superseded(), [older] if older.delivery == claim.first().id),
        "{edited:?}"
    );
    world.pass(10);

    let again = world.claimed().await;

    assert_eq!(again.rows.len(), 1);
    assert_ne!(again.first().id, claim.first().id);
    assert_eq!(again.message(), claim.message(), "it may be in the pane");
}

#[tokio::test]
async fn a_review_whose_first_row_is_dropped_while_it_is_claimed_is_given_back() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    world.arrive(line(2, 9), EVENT).await;
    world.pass(3);
    // What another process does between finding and claiming, on a database that allows it.
    sqlx::query(
        "CREATE TRIGGER dropped AFTER UPDATE OF claim_token ON deliveries WHEN NEW.claim_lead = 1 \
         BEGIN UPDATE deliveries SET state = 'dropped', claim_lead = 0, claim_token = NULL \
         WHERE id = NEW.id; END",
    )
    .execute(&mut *world.store.writing().await.unwrap())
    .await
    .unwrap();

    assert!(world.claim().await.is_none());

    sqlx::query("DROP TRIGGER dropped")
        .execute(&mut *world.store.writing().await.unwrap())
        .await
        .unwrap();
    let rest = world.claimed().await;
    assert_eq!(rest.rows.len(), 1);
    assert_eq!(rest.rows[0].event.key, line(2, 9).key);
}

#[tokio::test]
async fn a_given_up_review_is_tried_again_whole() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(line(1, 9), EVENT).await;
    world.arrive(line(2, 9), EVENT).await;
    let other = world.arrive(line(3, 10), EVENT).await;
    world.pass(3);
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&claim).await.unwrap();
    world.abandon(&claim, "1.0", Rearm::ByHand).await;
    let second = claim.rows[1].id;
    let unrelated = world.claimed().await;
    world.abandon(&unrelated, "1.0", Rearm::ByHand).await;

    assert!(world.store.queue().retry(second).await.unwrap());

    let again = world.claimed().await;
    assert_eq!(again.rows.len(), 2);
    assert_eq!(again.message(), claim.message());
    let ArrivalOutcome::New { delivery, .. } = other else {
        panic!("{other:?}")
    };
    let left = world.state(delivery).await;
    assert_eq!(left, Some(DeliveryState::Abandoned));
}

#[tokio::test]
async fn an_edit_leaves_alone_every_row_of_a_review_that_a_start_under_way_carries() {
    for respawns in [false, true] {
        let world = World::new().await;
        world.know("o/r#1").await;
        let session = match respawns {
            true => Some(world.session("o/r#1").await),
            false => None,
        };
        world.arrive(line(1, 9), EVENT).await;
        world.arrive(line(2, 9), EVENT).await;
        world.pass(3);
        let claim = world.claimed().await;
        world.store.deduper().begin_attempt(&claim).await.unwrap();
        match session {
            Some(session) => {
                let attempt = NewAttempt {
                    owner: OwnerId::mint(),
                    harness_session_id: HarnessSessionId::mint(),
                    boot_delivery: claim.message(),
                };
                let registry = world.store.registry();
                registry
                    .begin_respawn(&claim, session.id, &attempt)
                    .await
                    .unwrap();
            }
            None => {
                world.spawn(&claim).await;
            }
        }
        let held = Release::Held {
            reason: HoldReason::StartUnresolved,
            look_again_at: at(9),
        };
        world.store.deduper().release(&claim, held).await.unwrap();

        for id in [1, 2] {
            let edited = world.arrive(version(id, 9, "v2"), EVENT).await;
            assert_eq!(edited.superseded().len(), 0, "{respawns} {id}");
        }
    }
}
