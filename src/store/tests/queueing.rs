use super::*;
use crate::model::DropReason;

async fn given_up(world: &World, version: &str, rearm: Rearm) -> DeliveryId {
    let delivery = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    world.store.deduper().begin_attempt(&claim).await.unwrap();
    world.abandon(&claim, version, rearm).await;
    delivery
}

#[tokio::test]
async fn another_version_tries_what_was_given_up_again_exactly_once() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let delivery = given_up(&world, "1.0", Rearm::ByAnotherVersion).await;
    let queue = world.store.queue();

    assert_eq!(queue.rearm_given_up("1.0", |_| {}).await.unwrap(), []);
    let rearmed = queue.rearm_given_up("1.1", |_| {}).await.unwrap();
    assert_eq!((rearmed.len(), rearmed[0].delivery), (1, delivery));
    assert_eq!(queue.rearm_given_up("1.1", |_| {}).await.unwrap(), []);

    let claim = world.claimed().await;
    assert_eq!(claim.attempts(), 0, "with a full budget");
    world.abandon(&claim, "1.1", Rearm::ByAnotherVersion).await;
    assert_eq!(queue.rearm_given_up("1.1", |_| {}).await.unwrap(), []);
    assert_eq!(queue.rearm_given_up("1.0", |_| {}).await.unwrap(), []);
    assert_eq!(queue.rearm_given_up("1.2", |_| {}).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_given_up_object_is_not_rearmed_by_being_seen() {
    let world = World::new().await;
    world.know("o/r#1").await;
    given_up(&world, "1.0", Rearm::ByAnotherVersion).await;

    let seen = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;

    assert!(matches!(
        seen,
        ArrivalOutcome::Duplicate {
            state: DeliveryState::Abandoned,
            ..
        }
    ));
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn a_text_that_was_edited_since_is_not_tried_again() {
    let world = World::new().await;
    world.know("o/r#1").await;
    given_up(&world, "1.0", Rearm::ByAnotherVersion).await;
    world.arrive(comment("o/r#1", 1, "v2"), EVENT).await;

    assert_eq!(
        world
            .store
            .queue()
            .rearm_given_up("1.1", |_| {})
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn a_given_up_first_spawn_waits_for_a_person() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let delivery = given_up(&world, "1.0", Rearm::ByHand).await;
    let queue = world.store.queue();

    assert_eq!(queue.rearm_given_up("1.1", |_| {}).await.unwrap(), []);
    assert!(queue.retry(delivery).await.unwrap());
    assert!(!queue.retry(delivery).await.unwrap());
    assert_eq!(world.claimed().await.first().id, delivery);
}

#[tokio::test]
async fn a_given_up_command_is_never_carried_out_by_another_version() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let stop = world.command("o/r#1").await;
    let claim = world.claimed().await;
    world.abandon(&claim, "1.0", Rearm::ByAnotherVersion).await;
    let queue = world.store.queue();

    assert_eq!(queue.rearm_given_up("1.1", |_| {}).await.unwrap(), []);

    assert!(world.claim().await.is_none());
    assert!(queue.retry(stop).await.unwrap(), "a person can");
}

#[tokio::test]
async fn a_paste_that_may_still_take_effect_is_not_tried_again_yet() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let intent = Intent {
        owner: OwnerId::mint(),
        expires_at: at(30),
    };
    world
        .store
        .deduper()
        .store_intent(&claim, &intent)
        .await
        .unwrap();
    world.abandon(&claim, "1.0", Rearm::ByAnotherVersion).await;
    let queue = world.store.queue();

    assert_eq!(queue.rearm_given_up("1.1", |_| {}).await.unwrap(), []);
    world.pass(31);
    assert_eq!(queue.rearm_given_up("1.1", |_| {}).await.unwrap().len(), 1);
    assert_eq!(world.claimed().await.intent(), Some(&intent));
}

#[tokio::test]
async fn status_sees_what_is_not_done() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    given_up(&world, "1.0", Rearm::ByHand).await;
    world.comment("o/r#1").await;
    world.pass(5);
    world.comment("o/r#1").await;
    world.comment("o/r#2").await;
    let claim = world.claimed().await;
    world
        .store
        .deduper()
        .note_error(&claim, "tmux said no")
        .await
        .unwrap();
    let queue = world.store.queue();

    let counts = queue.counts().await.unwrap();
    assert_eq!(
        (
            counts.pending,
            counts.claimed,
            counts.held,
            counts.abandoned
        ),
        (2, 1, 0, 1)
    );
    assert_eq!(counts.oldest_pending, Some(at(5)));
    let open = queue.list(QueueFilter::Open, 10).await.unwrap();
    assert_eq!(open.len(), 3);
    assert_eq!(open[0].error.as_deref(), Some("tmux said no"));
    assert_eq!(
        queue.list(QueueFilter::Abandoned, 10).await.unwrap().len(),
        1
    );
    let whose = item("o/r#1");
    assert_eq!(
        queue.list(QueueFilter::Of(&whose), 10).await.unwrap().len(),
        3
    );
}

#[tokio::test]
async fn what_was_given_up_is_shown_until_something_later_of_its_item_succeeds() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    world.comment("o/r#1").await;
    let earlier = world.claimed().await;
    world.delivered(&earlier).await;
    world.pass(1);
    given_up(&world, "1.0", Rearm::ByAnotherVersion).await;
    let queue = world.store.queue();
    for (later, dropped, shown) in [("o/r#2", false, 1), ("o/r#1", true, 1), ("o/r#1", false, 0)] {
        world.pass(1);
        world.comment(later).await;
        let claim = world.claimed().await;
        match dropped {
            true => {
                let reason = DropReason::SessionPaused;
                world.settle(&claim, Settlement::Dropped(reason)).await;
            }
            false => world.delivered(&claim).await,
        }

        let listed = queue.list(QueueFilter::Abandoned, 10).await.unwrap();
        assert_eq!(listed.len(), shown, "{later} {dropped}");
        let counts = queue.counts().await.unwrap();
        assert_eq!(counts.abandoned, shown as u64, "{later} {dropped}");
    }
    let again = queue.rearm_given_up("2.0", |_| {}).await.unwrap();
    assert_eq!(again.len(), 1, "nobody was told it");
}

#[test]
fn what_is_given_up_is_done() {
    let counts = Counts {
        pending: 1,
        claimed: 2,
        held: 4,
        abandoned: 8,
        ..Counts::default()
    };
    assert_eq!(counts.not_done(), 7);
}

#[tokio::test]
async fn only_what_is_dropped_is_said() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let comment = world.comment("o/r#1").await;
    let other = world.comment("o/r#1").await;
    let queue = world.store.queue();
    let said = AtomicU64::new(0);
    let say = || {
        said.fetch_add(1, Ordering::Relaxed);
    };

    let reason = DropReason::SelfAuthored;
    assert!(queue.drop_one(comment, reason, say).await.unwrap());
    assert!(!queue.drop_one(comment, reason, say).await.unwrap());
    assert_eq!(said.load(Ordering::Relaxed), 1);

    world.command("o/r#1").await;
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    for _ in 0..2 {
        let dropped = deduper.drop_waiting(&claim, other, reason, say).await;
        dropped.unwrap();
        assert_eq!(world.state(other).await, Some(DeliveryState::Dropped));
        assert_eq!(said.load(Ordering::Relaxed), 2);
    }
}

#[tokio::test]
async fn what_was_just_heard_of_is_claimed_without_a_look() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let deduper = world.store.deduper();
    assert!(deduper.claim_due(&owner(10)).await.unwrap().is_none());
    let comment = world.comment("o/r#1").await;
    let claim = deduper.claim_due(&owner(10)).await.unwrap().unwrap();
    assert_eq!(claim.first().id, comment);
}

#[tokio::test]
async fn a_control_command_is_forgotten_when_its_holder_says_so() {
    let world = World::new().await;
    let row = world.know("o/r#1").await;
    world.command("o/r#1").await;
    let claim = world.claimed().await;
    let ledger = world.store.ledger();
    let start = crate::model::ControlCommand::Start;
    ledger.set_control(&claim, start, None).await.unwrap();
    ledger.clear_control(&claim).await.unwrap();
    let after = ledger.item(&row.item).await.unwrap().unwrap();
    assert_eq!(after.control, None);
}

#[tokio::test]
async fn old_texts_are_forgotten_but_not_their_keys_nor_what_may_be_tried_again() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    world.delivered(&claim).await;
    given_up(&world, "1.0", Rearm::ByAnotherVersion).await;
    world.comment("o/r#1").await;
    let ledger = world.store.ledger();
    let month = TimeDelta::days(30);
    assert_eq!(ledger.prune(month).await.unwrap(), 0);
    world.pass(31 * 24 * 3600);

    assert_eq!(ledger.prune(month).await.unwrap(), 1);

    let known = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    assert!(matches!(known, ArrivalOutcome::Duplicate { .. }));
    assert_eq!(
        world
            .store
            .queue()
            .rearm_given_up("1.1", |_| {})
            .await
            .unwrap()
            .len(),
        1
    );
    assert!(world.claim().await.is_some());
}

#[tokio::test]
async fn a_command_that_waits_for_its_item_takes_no_lock() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let first = world.comment("o/r#1").await;
    let second = world.comment("o/r#1").await;
    assert_eq!(world.claimed().await.first().id, first);
    let file = sqlx::sqlite::SqliteConnectOptions::new().filename(&*world.store.path);
    let other = sqlx::SqlitePool::connect_with(file).await.unwrap();
    let _lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();

    let claim = world.store.deduper().claim(second, &owner(2)).await;

    assert!(claim.unwrap().is_none());
}

#[tokio::test]
async fn a_claim_that_another_process_made_in_the_same_moment_is_no_failure() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    world.comment("o/r#1").await;
    // What another process does between finding and claiming, on a database that allows it.
    sqlx::query(
        "CREATE TRIGGER faster BEFORE UPDATE OF claim_token ON deliveries WHEN NEW.claim_lead = 1 \
         BEGIN UPDATE deliveries SET state = 'claimed', claim_lead = 1, claim_token = 'x' WHERE item_id = NEW.item_id AND id <> NEW.id; END",
    )
    .execute(&mut *world.store.writing().await.unwrap())
    .await
    .unwrap();

    assert!(world.claim().await.is_none());
}
