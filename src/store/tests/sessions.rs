use super::*;
use crate::model::{HoldReason, SessionStatus};

#[tokio::test]
async fn while_a_session_is_spawning_only_its_boot_delivery_is_claimed() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let boot = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let session = world.spawn(&claim).await;
    assert_eq!(session.status, SessionStatus::Spawning);
    assert_eq!(session.boot_delivery, Some(boot));
    let held = Release::Held {
        reason: HoldReason::TmuxSilent,
        look_again_at: at(30),
    };
    world.store.deduper().release(&claim, held).await.unwrap();
    world.command("o/r#1").await;

    assert!(
        world.claim().await.is_none(),
        "the command waits for the spawn"
    );
    world.pass(30);
    let claim = world.claimed().await;
    assert_eq!(claim.first().id, boot);
    world
        .store
        .registry()
        .abandon_attempt(&claim, session.id)
        .await
        .unwrap();
    world.delivered(&claim).await;
    assert_eq!(world.claimed().await.class, Class::Control);
}

#[tokio::test]
async fn a_spawn_whose_delivery_is_settled_blocks_nobody() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    world.spawn(&claim).await;
    world.abandon(&claim, "1.0.0", Rearm::ByHand).await;

    let next = world.comment("o/r#1").await;

    assert_eq!(world.claimed().await.first().id, next);
}

#[tokio::test]
async fn a_spawn_under_way_is_not_held_up_by_what_was_given_up_before_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let given_up = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let rearm = Rearm::ByAnotherVersion;
    world.abandon(&claim, "1.0.0", rearm).await;
    let boot = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    world.spawn(&claim).await;
    let retry = Release::Retry { at: at(0) };
    let deduper = world.store.deduper();
    deduper.release(&claim, retry).await.unwrap();

    let rearmed = world
        .store
        .queue()
        .rearm_given_up("1.1.0", |_| {})
        .await
        .unwrap();

    assert_eq!(rearmed[0].delivery, given_up);
    assert_eq!(world.claimed().await.first().id, boot);
}

#[tokio::test]
async fn a_failed_first_spawn_leaves_no_session() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let session = world.spawn(&claim).await;
    let registry = world.store.registry();

    registry.abandon_attempt(&claim, session.id).await.unwrap();

    assert_eq!(world.latest("o/r#1").await, None);
    let next = world.spawn(&claim).await;
    assert!(next.id > session.id, "numbers are never given twice");
}

#[tokio::test]
async fn a_work_item_has_one_open_session() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.session("o/r#1").await;
    world.comment("o/r#1").await;
    let claim = world.claimed().await;

    let second = world
        .store
        .registry()
        .begin_spawn(&claim, &new_session(&claim))
        .await;

    assert!(matches!(second, Err(StoreError::SessionOpen { .. })));
}

#[tokio::test]
async fn a_failed_respawn_loses_no_conversation() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let before = world.session("o/r#1").await;
    world.pass(100);
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let registry = world.store.registry();
    let attempt = NewAttempt {
        owner: OwnerId::mint(),
        harness_session_id: HarnessSessionId::mint(),
        boot_delivery: claim.first().id,
    };
    registry
        .begin_respawn(&claim, before.id, &attempt)
        .await
        .unwrap();

    let during = registry.open_session(claim.item.id).await.unwrap().unwrap();
    let under_way = during.attempt.clone().unwrap();
    assert_eq!(under_way.owner, attempt.owner);
    assert_eq!(under_way.boot_delivery, claim.first().id);
    assert_eq!(
        (
            &during.owner,
            &during.harness_session_id,
            during.status,
            &during.target
        ),
        (
            &before.owner,
            &before.harness_session_id,
            before.status,
            &before.target
        )
    );
    registry.abandon_attempt(&claim, before.id).await.unwrap();
    assert_eq!(world.latest("o/r#1").await.unwrap(), before);

    registry
        .begin_respawn(&claim, before.id, &attempt)
        .await
        .unwrap();
    let registered = Registered {
        session: before.id,
        owner: attempt.owner.clone(),
        target: Some(target("%9")),
        harness_session_id: attempt.harness_session_id.clone(),
    };
    registry
        .register_saying(&claim, &registered, || {})
        .await
        .unwrap();
    let after = world.latest("o/r#1").await.unwrap();
    assert_eq!(after.owner, attempt.owner);
    assert_eq!(after.harness_session_id, attempt.harness_session_id);
    assert_eq!(after.target, Some(target("%9")));
    assert_eq!(after.attempt, None);
    assert_eq!(after.registered_at, Some(at(100)));
    assert_eq!(after.created_at, before.created_at);
}

#[tokio::test]
async fn an_outcome_and_its_session_change_are_one() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let session = world.session("o/r#1").await;
    assert_eq!(session.status, SessionStatus::Active);
    assert_eq!(session.last_event_at, Some(at(0)));
    world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let deduper = world.store.deduper();
    world
        .change(SessionChange::Close(session.id))
        .await
        .unwrap();
    let delivered = Settlement::Delivered {
        possible_repeat: false,
    };

    let pause = Some(SessionChange::Pause(session.id));
    let settled = deduper.settle(&claim, delivered, pause).await;

    assert!(matches!(settled, Err(StoreError::SessionMoved { .. })));
    deduper
        .renew(&claim.reference())
        .await
        .expect("the claim still stands");
}

#[tokio::test]
async fn a_session_is_paused_resumed_and_closed_for_good() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let session = world.session("o/r#1").await;
    let registry = world.store.registry();
    let paused = SessionFilter::In(SessionStatus::Paused);
    assert_eq!(registry.list(paused).await.unwrap(), []);
    world.pass(5);
    world
        .change(SessionChange::Pause(session.id))
        .await
        .unwrap();
    let paused = registry
        .list(SessionFilter::In(SessionStatus::Paused))
        .await
        .unwrap();
    assert_eq!((paused.len(), paused[0].status_since), (1, at(5)));
    world.pass(5);
    world
        .change(SessionChange::Pause(session.id))
        .await
        .unwrap();
    let still = world.latest("o/r#1").await.unwrap();
    assert_eq!(still.status_since, at(5), "it is what it was");
    world
        .change(SessionChange::Resume(session.id))
        .await
        .unwrap();
    world
        .change(SessionChange::Close(session.id))
        .await
        .unwrap();
    world
        .change(SessionChange::Close(session.id))
        .await
        .unwrap();

    let resumed = world.change(SessionChange::Resume(session.id)).await;
    assert!(matches!(resumed, Err(StoreError::SessionMoved { .. })));
    assert_eq!(registry.list(SessionFilter::Open).await.unwrap(), []);
    assert_eq!(registry.list(SessionFilter::All).await.unwrap().len(), 1);
    for (filter, shown) in [(SessionFilter::Open, 0), (SessionFilter::All, 1)] {
        let faces = registry.faces(filter).await.unwrap();
        assert_eq!(faces.readable.len(), shown, "{filter:?}");
    }
    let latest = registry.latest(&item("o/r#1")).await.unwrap().unwrap();
    assert_eq!(latest.closed_at, Some(at(10)));
}

#[tokio::test]
async fn what_waited_for_a_paused_session_goes_on_when_it_is_resumed() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let session = world.session("o/r#1").await;
    world
        .change(SessionChange::Pause(session.id))
        .await
        .unwrap();
    let waiting = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    let held = Release::Held {
        reason: HoldReason::SessionPaused,
        look_again_at: at(500),
    };
    world.store.deduper().release(&claim, held).await.unwrap();
    assert!(world.claim().await.is_none());

    world
        .change(SessionChange::Resume(session.id))
        .await
        .unwrap();

    assert_eq!(world.state(waiting).await, Some(DeliveryState::Pending));
    assert_eq!(world.claimed().await.first().id, waiting);
}

#[tokio::test]
async fn a_session_is_at_the_socket_that_it_was_registered_at() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let session = world.session("o/r#1").await;
    for socket in [
        TmuxSocket::Default,
        TmuxSocket::Name("default".to_owned()),
        TmuxSocket::Path("/run/tmux:1/default".into()),
    ] {
        let target = TmuxTarget {
            socket,
            ..target("%1")
        };
        let moved = Registered {
            target: Some(target.clone()),
            ..registered(&session)
        };
        world.change(SessionChange::Register(moved)).await.unwrap();
        assert_eq!(world.latest("o/r#1").await.unwrap().target, Some(target));
    }
}

#[tokio::test]
async fn a_reset_takes_all_named_items_or_none() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let session = world.session("o/r#1").await;
    let waiting = world.comment("o/r#1").await;
    let registry = world.store.registry();
    let both = [item("o/r#1"), item("o/r#404")];

    let refused = registry.reset(&both, ResetMode::Apply).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, StoreError::UnknownItems { .. }));
    assert_eq!(
        refused.to_string(),
        "not known: github:o/r#404; nothing was changed"
    );
    let dry = registry.reset(&both[..1], ResetMode::DryRun).await.unwrap();
    assert_eq!((dry[0].sessions.len(), dry[0].queued), (1, 1));
    assert!(world.latest("o/r#1").await.is_some());

    let open = registry.reset(&both[..1], ResetMode::Apply).await;
    assert!(matches!(open, Err(StoreError::SessionOpen { .. })));
    world
        .change(SessionChange::Close(session.id))
        .await
        .unwrap();

    registry.reset(&both[..1], ResetMode::Apply).await.unwrap();

    assert_eq!(world.latest("o/r#1").await, None);
    assert_eq!(world.state(waiting).await, Some(DeliveryState::Dropped));
    let again = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    assert!(
        matches!(again, ArrivalOutcome::Duplicate { .. }),
        "keys stay"
    );
}

#[tokio::test]
async fn a_reset_forgets_what_was_given_up() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let given_up = world.comment("o/r#1").await;
    let claim = world.claimed().await;
    world.abandon(&claim, "1.0", Rearm::ByAnotherVersion).await;
    let registry = world.store.registry();

    let reports = registry.reset(&[item("o/r#1")], ResetMode::Apply).await;

    assert_eq!(reports.unwrap()[0].queued, 1);
    assert_eq!(world.state(given_up).await, Some(DeliveryState::Dropped));
    let queue = world.store.queue();
    assert_eq!(queue.counts().await.unwrap().abandoned, 0);
    assert!(
        queue
            .rearm_given_up("2.0", |_| {})
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn ids_that_a_hostile_hand_wrote_are_reported_and_never_acted_on() {
    for (column, value) in [
        ("pane", "'%5;kill-server'"),
        ("tmux_session_id", "'=loop-x:'"),
        ("owner", "'../../etc'"),
        ("harness_session_id", "'--dangerously'"),
        ("minted_ref", "'github:o/../r#1'"),
        ("tmux_socket", "'/tmp/x'"),
        ("harness_pid", "1"),
        ("host_pid", "-1"),
        ("server_pid", "4294967296"),
    ] {
        let world = World::new().await;
        world.know("o/r#1").await;
        world.session("o/r#1").await;
        let statement = format!("UPDATE sessions SET {column} = {value}");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut *world.store.writing().await.unwrap())
            .await
            .unwrap();

        let registry = world.store.registry();
        let error = registry.latest(&item("o/r#1")).await.unwrap_err();

        let said = error.to_string();
        assert!(
            said.contains("of table sessions") && said.contains("cannot be read"),
            "{column}: {said}"
        );
    }
}

#[tokio::test]
async fn one_row_that_cannot_be_read_hides_no_other_session() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    let bad = world.session("o/r#1").await;
    let good = world.session("o/r#2").await;
    sqlx::query("UPDATE sessions SET status = 'dreaming' WHERE id = $1")
        .bind(bad.id)
        .execute(&mut *world.store.writing().await.unwrap())
        .await
        .unwrap();
    let registry = world.store.registry();

    let faces = registry.faces(SessionFilter::Open).await.unwrap();

    assert_eq!(faces.readable.len(), 1);
    assert_eq!(faces.readable[0].session.id, good.id);
    let [unreadable] = &faces.unreadable[..] else {
        panic!("{faces:?}");
    };
    assert_eq!(unreadable.session, bad.id);
    assert_eq!(unreadable.work_item, Some(item("o/r#1")));
    assert!(unreadable.detail.contains("dreaming"), "{unreadable:?}");
    assert_eq!(registry.count_open().await.unwrap(), 2);
}

#[tokio::test]
async fn what_a_first_spawn_carries_is_dropped_by_nobody_else() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let carried = match world.arrive(comment("o/r#1", 900, "v1"), EVENT).await {
        ArrivalOutcome::New { delivery, .. } => delivery,
        other => panic!("{other:?}"),
    };
    let claim = world.claimed().await;
    world.spawn(&claim).await;
    let look_again_at = at(5);
    let reason = HoldReason::TmuxSilent;
    let deduper = world.store.deduper();
    let held = Release::Held {
        reason,
        look_again_at,
    };
    deduper.release(&claim, held).await.unwrap();

    let edited = world.arrive(comment("o/r#1", 900, "v2"), EVENT).await;
    assert!(
        matches!(&edited, ArrivalOutcome::New { superseded, .. } if superseded.is_empty()),
        "{edited:?}"
    );
    assert_eq!(world.state(carried).await, Some(DeliveryState::Held));
}

#[tokio::test]
async fn only_servers_at_the_same_socket_are_asked_for_and_a_broken_row_names_none() {
    let world = World::new().await;
    for (text, name) in [("o/r#1", "a"), ("o/r#2", "b"), ("o/r#3", "a")] {
        world.know(text).await;
        let session = world.session(text).await;
        let target = TmuxTarget {
            socket: TmuxSocket::Name(name.to_owned()),
            ..target("%1")
        };
        let moved = Registered {
            target: Some(target),
            ..registered(&session)
        };
        world.change(SessionChange::Register(moved)).await.unwrap();
    }
    sqlx::query("UPDATE sessions SET server_pid = 'x' WHERE id = 3")
        .execute(&mut *world.store.writing().await.unwrap())
        .await
        .unwrap();
    let servers = |name: &str| {
        let (registry, socket) = (world.store.registry(), TmuxSocket::Name(name.to_owned()));
        async move { registry.servers_on(&socket).await.unwrap() }
    };

    let recorded = (BootId("boot-1".to_owned()), ProcessId { pid: 20, start: 1 });
    assert_eq!(servers("a").await, std::slice::from_ref(&recorded));
    assert_eq!(servers("b").await, [recorded]);
    assert_eq!(servers("c").await, []);
}
