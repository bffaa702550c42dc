use super::*;
use crate::model::{DropReason, HoldReason};

#[tokio::test]
async fn deliveries_of_an_item_come_one_at_a_time_in_order() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    let first = world.comment("o/r#1").await;
    let second = world.comment("o/r#1").await;
    let other = world.comment("o/r#2").await;

    let one = world.claimed().await;
    assert_eq!(one.first().id, first);
    let two = world.claimed().await;
    assert_eq!(two.first().id, other, "the busy item is passed over");
    assert!(world.claim().await.is_none());

    world.delivered(&one).await;
    assert_eq!(world.claimed().await.first().id, second);
}

#[tokio::test]
async fn a_delivery_that_waits_for_its_next_attempt_blocks_those_behind_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let first = world.comment("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&claim).await.unwrap();
    let retry = Release::Retry { at: at(60) };
    deduper.release(&claim, retry).await.unwrap();

    assert!(world.claim().await.is_none());
    assert_eq!(deduper.next_due().await.unwrap(), Some(at(60)));
    world.pass(60);
    let again = world.claimed().await;
    assert_eq!(again.first().id, first);
    assert_eq!(again.attempts(), 1);
}

#[tokio::test]
async fn a_clock_that_is_put_back_delays_a_delivery_by_minutes_at_most() {
    let world = World::new().await;
    let deduper = world.store.deduper();
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let retry = Release::Retry { at: at(60) };
    deduper.release(&claim, retry).await.unwrap();
    assert!(world.claim().await.is_none());

    world.pass(-3 * 3_600);

    let claim = world.claimed().await;
    let far = Release::Retry { at: at(3 * 3_600) };
    deduper.release(&claim, far).await.unwrap();
    assert!(world.claim().await.is_none(), "it waits for minutes");
    world.pass(600);
    assert!(world.claim().await.is_some());
}

#[tokio::test]
async fn a_command_never_waits_behind_events() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let held = Release::Held {
        reason: HoldReason::TmuxSilent,
        look_again_at: at(1_000),
    };
    world.store.deduper().release(&claim, held).await.unwrap();
    let stop = world.command("o/r#1").await;

    let claim = world.claimed().await;

    assert_eq!(claim.first().id, stop);
    assert_eq!(claim.class, Class::Control);
    let mut dropped = Vec::new();
    world
        .store
        .deduper()
        .drop_queued(&claim, DropReason::SessionStopped, None, |waiting| {
            dropped = waiting;
        })
        .await
        .unwrap();
    assert_eq!(dropped.len(), 1);
}

#[tokio::test]
async fn nothing_overtakes_a_command_that_waits_to_be_tried_again() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    world.comment("o/r#1").await;
    let stop = world.command("o/r#1").await;
    let claim = world.claimed().await;
    assert_eq!(claim.first().id, stop);
    let later = world.command("o/r#1").await;
    let other = world.comment("o/r#2").await;
    let deduper = world.store.deduper();
    let held = Release::Held {
        reason: HoldReason::TmuxSilent,
        look_again_at: at(2),
    };
    deduper.release(&claim, held).await.unwrap();

    let next = world.claimed().await;
    assert_eq!(next.first().id, other, "other items go on");
    world.delivered(&next).await;
    assert!(world.claim().await.is_none());
    world.pass(2);
    let again = world.claimed().await;
    assert_eq!(again.first().id, stop);

    // A start that failed makes no later command wait.
    let retry = Release::RetryStart { at: at(60) };
    deduper.release(&again, retry).await.unwrap();
    assert_eq!(world.claimed().await.first().id, later);
}

#[tokio::test]
async fn no_event_overtakes_a_start_that_waits_to_be_tried_again() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let start = world.command("o/r#1").await;
    let claim = world.claimed().await;
    let retry = Release::RetryStart { at: at(60) };
    world.store.deduper().release(&claim, retry).await.unwrap();
    world.comment("o/r#1").await;

    assert!(world.claim().await.is_none());

    world.pass(60);
    assert_eq!(world.claimed().await.first().id, start);
}

#[tokio::test]
async fn what_came_in_after_a_command_is_not_dropped_by_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let before = world.comment("o/r#1").await;
    world.command("o/r#1").await;
    let after = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let deduper = world.store.deduper();

    deduper
        .drop_queued(&claim, DropReason::ItemClosed, None, |_| {})
        .await
        .unwrap();

    assert_eq!(world.state(before).await, Some(DeliveryState::Dropped));
    assert_eq!(world.state(after).await, Some(DeliveryState::Pending));
}

#[tokio::test]
async fn commands_go_in_their_order_and_overtake_only_a_start_that_waits() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let start = world.command("o/r#1").await;
    let stop = world.command("o/r#1").await;
    let claim = world.claimed().await;
    assert_eq!(claim.first().id, start);
    let deduper = world.store.deduper();
    let retry = Release::Retry { at: at(60) };
    deduper.release(&claim, retry).await.unwrap();
    assert!(
        world.claim().await.is_none(),
        "commands that fail otherwise keep their order"
    );

    world.pass(60);
    let claim = world.claimed().await;
    let held = Release::Held {
        reason: HoldReason::StartRetry,
        look_again_at: at(1_000),
    };
    deduper.release(&claim, held).await.unwrap();
    assert_eq!(world.claimed().await.first().id, stop);
}

#[tokio::test]
async fn work_on_an_event_makes_way_when_a_command_waits() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    assert_eq!(deduper.hold_fence(&claim).await.unwrap(), Fence::Go);

    world.command("o/r#1").await;

    assert_eq!(
        deduper.hold_fence(&claim).await.unwrap(),
        Fence::ControlWaits
    );
    world.spawn(&claim).await;
    let during_spawn = deduper.hold_fence(&claim).await.unwrap();
    assert_eq!(during_spawn, Fence::Go, "a command waits for a spawn");
}

#[track_caller]
fn lost<T: std::fmt::Debug>(done: &Result<T, StoreError>) {
    assert!(matches!(done, Err(StoreError::Lost { .. })), "{done:?}");
}

#[tokio::test]
async fn a_lapsed_claim_is_taken_over_and_its_former_holder_can_write_nothing() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let delivery = world.comment("o/r#1").await;
    let former = world.claimed().await;
    let deduper = world.store.deduper();
    deduper.begin_attempt(&former).await.unwrap();
    world.pass(59);
    deduper.renew(&former.reference()).await.unwrap();
    world.pass(59);
    assert!(world.claim().await.is_none(), "it was renewed");
    world.pass(1);

    let claim = world.claimed().await;

    assert_eq!(claim.first().id, delivery);
    let intent = Intent {
        owner: OwnerId::mint(),
        expires_at: at(500),
    };
    let new = new_session(&former);
    let delivered = Settlement::Delivered {
        possible_repeat: false,
    };
    let registry = world.store.registry();
    let ledger = world.store.ledger();
    lost(&deduper.renew(&former.reference()).await);
    lost(&deduper.hold_fence(&former).await);
    lost(&deduper.begin_attempt(&former).await);
    lost(&deduper.store_intent(&former, &intent).await);
    lost(&deduper.settle(&former, delivered, None).await);
    let retry = Release::Retry { at: at(0) };
    lost(&deduper.release(&former, retry).await);
    lost(&registry.begin_spawn(&former, &new).await);
    lost(&ledger.clear_control(&former).await);
    let reset = DropReason::Reset;
    lost(&deduper.drop_queued(&former, reset, None, |_| {}).await);
    assert_eq!(registry.open_session(claim.item.id).await.unwrap(), None);
}

#[tokio::test]
async fn a_dead_owner_of_this_host_is_replaced_at_once_and_the_attempt_is_not_counted_twice() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let former = world.claimed().await;
    let deduper = world.store.deduper();
    assert_eq!(deduper.begin_attempt(&former).await.unwrap(), 1);
    let intent = Intent {
        owner: OwnerId::mint(),
        expires_at: at(500),
    };
    deduper.store_intent(&former, &intent).await.unwrap();

    let is_dead = |process: &ProcessId, _: &BootId| process.pid == 10;
    let elsewhere = world.as_host("host-b").await;
    let refused = elsewhere.deduper().claim_next(&owner(11), &is_dead).await;
    assert!(
        refused.unwrap().is_none(),
        "only its own host can prove a death"
    );
    let claim = deduper
        .claim_next(&owner(11), &is_dead)
        .await
        .unwrap()
        .unwrap();

    assert_eq!(claim.intent(), Some(&intent));
    assert_eq!(deduper.begin_attempt(&claim).await.unwrap(), 1);
    assert_eq!(claim.attempts(), 1);
}

#[tokio::test]
async fn waiting_costs_no_attempt_and_a_failed_one_does() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let deduper = world.store.deduper();
    let claim = world.claimed().await;
    deduper.begin_attempt(&claim).await.unwrap();
    let held = Release::Held {
        reason: HoldReason::EnterPending,
        look_again_at: at(0),
    };
    deduper.release(&claim, held).await.unwrap();

    let claim = world.claimed().await;
    assert_eq!(claim.attempts(), 0);
    assert_eq!(claim.held_before, Some(HoldReason::EnterPending));
    deduper.begin_attempt(&claim).await.unwrap();
    let retry = Release::Retry { at: at(0) };
    deduper.release(&claim, retry).await.unwrap();

    let claim = world.claimed().await;
    assert_eq!((claim.attempts(), claim.held_before), (1, None));
}

#[tokio::test]
async fn held_deliveries_go_on_when_their_condition_is_met() {
    let world = World::new().await;
    let deduper = world.store.deduper();
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let held = Release::Held {
        reason: HoldReason::TmuxSilent,
        look_again_at: at(60),
    };
    let claim = world.claimed().await;
    deduper.release(&claim, held).await.unwrap();

    assert_eq!(deduper.wake(HoldReason::Rate).await.unwrap(), 0);
    assert!(world.claim().await.is_none());
    assert_eq!(deduper.wake(HoldReason::TmuxSilent).await.unwrap(), 1);
    assert!(world.claim().await.is_some());
}

#[tokio::test]
async fn only_the_host_of_an_open_session_claims_for_its_item() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.session("o/r#1").await;
    world.comment("o/r#1").await;
    let elsewhere = world.as_host("host-b").await;

    let refused = elsewhere
        .deduper()
        .claim_next(&owner(11), &nobody_is_dead)
        .await;
    assert!(refused.unwrap().is_none());
    assert_eq!(elsewhere.deduper().next_due().await.unwrap(), None);
    assert!(world.claim().await.is_some());
}

#[tokio::test]
async fn a_command_line_claims_its_own_row_only_when_the_item_is_free() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let busy = world.claimed().await;
    let command = world.command("o/r#1").await;
    let deduper = world.store.deduper();

    assert!(deduper.claim(command, &owner(12)).await.unwrap().is_none());
    world.delivered(&busy).await;
    let claim = deduper.claim(command, &owner(12)).await.unwrap().unwrap();
    assert_eq!(claim.first().id, command);
    world.delivered(&claim).await;
    assert_eq!(world.state(command).await, Some(DeliveryState::Delivered));
    assert!(deduper.claim(command, &owner(12)).await.unwrap().is_none());
}

#[tokio::test]
async fn the_index_allows_one_claim_per_item_whatever_the_select_said() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    world.comment("o/r#1").await;
    world.claimed().await;

    let forced = sqlx::query(
        "UPDATE deliveries SET state = 'claimed', claim_token = 'x', claim_lead = 1 \
         WHERE state = 'pending'",
    )
    .execute(&mut *world.store.writing().await.unwrap())
    .await;

    assert!(Fault::from(forced.unwrap_err()).is_unique_violation());
}

#[tokio::test]
async fn no_step_of_a_delivery_reads_what_is_settled() {
    let world = World::new().await;
    for statement in [
        claims::LOOK,
        claims::CLAIM_OLDEST_DUE,
        claims::LOOK_AT_THIS_ONE,
        claims::CLAIM_THIS_ONE,
        deduper::NEXT_DUE,
        settle::SETTLE,
        queue::NOT_DONE,
    ] {
        for step in plan(&world, statement).await {
            let open_rows = [
                "one_claim",
                "waiting",
                "due",
                "queue",
                "by_token",
                "abandoned",
            ];
            let partial = open_rows.iter().any(|index| step.contains(index));
            let named = ["SCAN lead", "SCAN wanted", "SCAN (subquery"];
            let few = step.contains("CONSTANT ROW") || named.iter().any(|n| step.starts_with(n));
            let whole = step.starts_with("SCAN") && !few;
            assert!(!whole || partial, "{statement}: {step}");
        }
    }
}

#[tokio::test]
async fn one_claim_reads_neither_a_backlog_nor_what_is_held_to_its_end() {
    let world = World::new().await;
    for (statement, index) in [
        (claims::LOOK, "deliveries_waiting"),
        (claims::CLAIM_OLDEST_DUE, "deliveries_waiting"),
        (deduper::NEXT_DUE, "deliveries_due"),
    ] {
        let plan = plan(&world, statement).await;
        assert!(
            plan.contains(&format!("SCAN d USING INDEX {index}")),
            "{plan:#?}"
        );
        assert!(
            !plan.iter().any(|step| step.contains("TEMP B-TREE")),
            "{plan:#?}"
        );
    }
    for statement in [claims::CLAIM_OLDEST_DUE, claims::CLAIM_THIS_ONE] {
        let plan = plan(&world, statement).await;
        let review = "SEARCH m USING INDEX deliveries_queue (item_id=? AND class=?)";
        assert!(plan.contains(&review.to_owned()), "{plan:#?}");
    }
}

async fn plan(world: &World, statement: &'static str) -> Vec<String> {
    let explained = format!("EXPLAIN QUERY PLAN {statement}");
    sqlx::query(sqlx::AssertSqlSafe(explained))
        .fetch_all(&mut *world.store.reading().await.unwrap())
        .await
        .unwrap()
        .iter()
        .map(|row| row.get("detail"))
        .collect()
}

#[tokio::test]
async fn a_fence_leaves_a_fresh_lease_alone_and_extends_one_that_runs_out() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let first = lease_end(&world).await;
    for (passed, extended) in [(0, 0), (15, 0), (1, 16), (20, 36)] {
        world.pass(passed);
        world.store.deduper().hold_fence(&claim).await.unwrap();
        let end = lease_end(&world).await;
        assert_eq!(end - first, extended * 1000, "{passed} s later");
    }
}

async fn lease_end(world: &World) -> i64 {
    sqlx::query_scalar("SELECT lease_until FROM deliveries WHERE claim_lead = 1")
        .fetch_one(&mut *world.store.reading().await.unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn an_intent_that_another_session_replaces_leaves_behind_that_it_may_have_been_read() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let deduper = world.store.deduper();
    let (former, later) = (OwnerId::mint(), OwnerId::mint());
    for (owner, maybe_read) in [(&former, false), (&former, false), (&later, true)] {
        let claim = world.claimed().await;
        let intent = Intent {
            owner: owner.clone(),
            expires_at: at(500),
        };
        deduper.store_intent(&claim, &intent).await.unwrap();
        let retry = Release::Retry { at: at(0) };
        deduper.release(&claim, retry).await.unwrap();
        let again = world.claimed().await;
        assert_eq!(again.intent().map(|intent| &intent.owner), Some(owner));
        assert_eq!(again.first().maybe_read, maybe_read, "{owner}");
        deduper.release(&again, retry).await.unwrap();
    }
}
