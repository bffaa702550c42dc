use super::*;

fn armed(text: &str) -> ItemSighting {
    ItemSighting {
        arming: Arming::ByAct(Some(Login::new("alice"))),
        ..sighting(text)
    }
}

fn closed(text: &str, seconds: i64) -> ItemSighting {
    ItemSighting {
        open: false,
        closed_at: Some(at(seconds)),
        updated_at: at(seconds),
        ..sighting(text)
    }
}

fn pull(text: &str, binds_to: Option<&str>) -> ItemSighting {
    ItemSighting {
        kind: ItemKind::PullRequest,
        pull: Some(Pull {
            head_sha: "abc".to_owned(),
            head_branch: "topic".to_owned(),
            same_repo: true,
            binds_to: binds_to.map(item),
        }),
        ..sighting(text)
    }
}

#[tokio::test]
async fn the_first_sight_sets_the_baseline_and_asks_for_details() {
    let world = World::new().await;

    let seen = world
        .see(ItemSighting {
            baseline_at: at(42),
            ..sighting("o/r#1")
        })
        .await;
    assert!(seen.first_sight);
    assert_eq!(seen.item.baseline_at, at(42));
    assert!(seen.item.dirty.is_some());
    assert_eq!(seen.item.kind, ItemKind::Issue);
    assert_eq!(seen.item.author, Some(Login::new("alice")));
    assert_eq!(seen.item.closed_at, None);
    assert_eq!(seen.deliveries, []);

    let again = world
        .see(ItemSighting {
            seen_at: at(99),
            baseline_at: at(99),
            ..sighting("O/R#1")
        })
        .await;
    assert!(!again.first_sight);
    assert_eq!(again.item.baseline_at, at(42));
    assert_eq!(again.item.listed_at, Some(at(99)));

    let over = world.see(closed("o/r#2", 5)).await;
    assert!(!over.item.open);
    assert_eq!(over.item.closed_at, Some(at(5)));
}

#[tokio::test]
async fn what_a_command_introduced_is_the_item_that_is_seen_and_news_by_the_servers_clock() {
    let world = World::new().await;
    let introduced = ItemSighting {
        repo_id: None,
        updated_at: DateTime::UNIX_EPOCH,
        source: Source::Cli,
        ..sighting("o/r#1")
    };
    let before = world.see(introduced.clone()).await;
    assert!(!before.item.was_shown());
    world.pass(40);
    let still = world.see(introduced).await;
    assert_eq!(still.item.baseline_at, at(0), "nothing tells the time yet");
    world.pass(60);

    let seen = world
        .see(ItemSighting {
            updated_at: at(900),
            seen_at: at(1000),
            ..sighting("o/r#1")
        })
        .await;

    assert!(!seen.first_sight);
    assert_eq!(seen.item.id, before.item.id);
    assert!(seen.item.was_shown());
    assert_eq!(seen.item.baseline_at, at(900), "a hundred seconds ago");
}

#[tokio::test]
async fn open_items_are_counted_and_listed_by_repository() {
    let world = World::new().await;
    let open = world.know("o/r#1").await;
    world.see(closed("o/r#2", 5)).await;
    let other = ItemSighting {
        repo_id: Some(78),
        ..sighting("o/other#1")
    };
    world.see(other).await;
    let ledger = world.store.ledger();

    assert_eq!(ledger.count_open_items().await.unwrap(), 2);
    let listed = ledger.open_items_of(open.item.repo()).await.unwrap();
    assert_eq!(listed, [open]);
}

#[tokio::test]
async fn an_unknown_item_that_need_not_be_tracked_stays_unknown() {
    let world = World::new().await;
    let acceptance = Acceptance {
        items: vec![ItemSighting {
            track: Track::OnlyIfKnown,
            ..sighting("o/r#1")
        }],
        arrivals: vec![arrival(comment("o/r#1", 1, "v1"), EVENT)],
        ..Acceptance::default()
    };

    let accepted = world.store.inbox().accept(&acceptance).await.unwrap();

    assert_eq!(accepted.sightings, []);
    assert_eq!(accepted.arrivals, [ArrivalOutcome::UnknownItem]);
    let known = world.store.ledger().item(&item("o/r#1")).await.unwrap();
    assert_eq!(known, None);
}

#[tokio::test]
async fn arming_makes_one_delivery_and_arming_again_another() {
    let world = World::new().await;

    let first = world.see(armed("o/r#1")).await;
    assert_eq!(first.changes, [Change::Armed]);
    assert_eq!(first.deliveries.len(), 1);
    assert_eq!(world.see(armed("o/r#1")).await.changes, []);
    let later = |seen: ItemSighting| ItemSighting {
        seen_at: at(60),
        ..seen
    };
    let disarmed = world.see(later(sighting("o/r#1"))).await;
    assert_eq!(disarmed.changes, [Change::Disarmed]);
    let again = world.see(later(armed("o/r#1"))).await;
    assert_eq!(again.changes, [Change::Armed]);

    let claim = world.claimed().await;
    assert_eq!(claim.first().event.key.as_str(), "github.com:armed:77#1@2");
    assert_eq!(claim.first().event.actor, Some(Login::new("alice")));
    assert_eq!(claim.class, Class::Event);
}

#[tokio::test]
async fn a_closing_is_told_once_and_each_further_closing_once_more() {
    let world = World::new().await;
    world.see(armed("o/r#1")).await;

    let seen = world.see(closed("o/r#1", 10)).await;
    assert_eq!(seen.changes, [Change::Closed]);
    assert!(!seen.item.open && !seen.item.armed);
    assert_eq!(world.see(closed("o/r#1", 10)).await.changes, []);

    let again = world
        .see(ItemSighting {
            updated_at: at(22),
            ..closed("o/r#1", 20)
        })
        .await;
    assert_eq!(again.changes, [Change::Reopened, Change::Closed]);
    assert_eq!(again.deliveries.len(), 1);
    let claim = world.claimed().await;
    assert_eq!(claim.class, Class::Control);
    assert_eq!(claim.first().event.kind, EventKind::Closed);
    assert_eq!(claim.first().event.occurred_at, at(20));
}

#[tokio::test]
async fn reopening_forgets_the_command_keeps_the_baseline_and_arms_anew() {
    let world = World::new().await;
    world.see(armed("o/r#1")).await;
    let claim = world.claimed().await;
    let ledger = world.store.ledger();
    let alice = Login::new("alice");
    ledger
        .set_control(&claim, crate::model::ControlCommand::Start, Some(&alice))
        .await
        .unwrap();
    world.delivered(&claim).await;
    let row = ledger.item(&item("o/r#1")).await.unwrap().unwrap();
    assert_eq!(
        row.control.unwrap().command,
        crate::model::ControlCommand::Start
    );
    world.see(closed("o/r#1", 10)).await;

    let seen = world
        .see(ItemSighting {
            updated_at: at(20),
            seen_at: at(20),
            ..armed("o/r#1")
        })
        .await;

    assert_eq!(seen.changes, [Change::Reopened, Change::Armed]);
    assert_eq!(seen.item.control, None);
    assert_eq!(seen.item.closed_at, None);
    assert_eq!(seen.item.baseline_at, at(0));
    assert_eq!(seen.item.armed_count, 2);
}

#[tokio::test]
async fn an_older_look_at_an_item_reopens_nothing() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.see(closed("o/r#1", 10)).await;

    let seen = world
        .see(ItemSighting {
            updated_at: at(9),
            ..armed("o/r#1")
        })
        .await;

    assert_eq!(seen.changes, []);
    assert!(!seen.item.open);
}

#[tokio::test]
async fn a_bound_pull_request_feeds_its_issue_and_is_never_unbound() {
    let world = World::new().await;
    let issue = world.know("o/r#1").await;

    let seen = world
        .see(ItemSighting {
            arming: Arming::ByAct(None),
            ..pull("o/r#2", Some("o/r#1"))
        })
        .await;
    assert_eq!(seen.changes, [Change::Armed]);
    assert_eq!(seen.deliveries, [], "the issue's session serves it");
    let again = world.see(pull("o/r#2", None)).await;
    assert_eq!(again.item.bound_to, Some(item("o/r#1")));
    assert_eq!(again.item.kind, ItemKind::PullRequest);
    assert_eq!(again.item.head.unwrap().sha, "abc");

    world.comment("o/r#2").await;
    let claim = world.claimed().await;
    assert_eq!(claim.item.id, issue.id);
    assert_eq!(claim.first().event.item(), item("o/r#2"));
}

#[tokio::test]
async fn a_merged_pull_request_ends_no_session_but_its_own() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let bound = world.see(pull("o/r#2", Some("o/r#1"))).await;

    world
        .see(ItemSighting {
            open: false,
            merged: true,
            closed_at: Some(at(5)),
            updated_at: at(5),
            ..pull("o/r#2", Some("o/r#1"))
        })
        .await;

    let claim = world.claimed().await;
    assert_eq!(claim.item.id, bound.item.id);
    assert_eq!(claim.first().event.detail, Detail::Closed { merged: true });
}

#[tokio::test]
async fn a_pull_request_with_a_session_of_its_own_keeps_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.see(pull("o/r#2", None)).await;
    world.session("o/r#2").await;

    let seen = world.see(pull("o/r#2", Some("o/r#1"))).await;

    assert_eq!(seen.changes, []);
    assert_eq!(seen.item.bound_to, None);
}

#[tokio::test]
async fn a_renamed_repository_keeps_its_items_and_sessions_their_names() {
    let world = World::new().await;
    let before = world.know("o/old#1").await;
    let session = world.session("o/old#1").await;

    let seen = world.see(sighting("o/new#1")).await;

    assert!(!seen.first_sight);
    assert_eq!(seen.item.id, before.id);
    assert_eq!(seen.item.item, item("o/new#1"));
    let renamed = world.latest("o/new#1").await.unwrap();
    assert_eq!(renamed.id, session.id);
    let session = renamed;
    assert_eq!(session.work_item, item("o/new#1"));
    assert_eq!(session.minted_ref, item("o/old#1"));
}

#[tokio::test]
async fn another_repository_under_a_freed_name_is_another_item() {
    let world = World::new().await;
    let before = world.know("o/r#1").await;

    let other = world
        .see(ItemSighting {
            repo_id: Some(78),
            ..sighting("o/r#1")
        })
        .await;
    assert!(other.first_sight);
    assert_ne!(other.item.id, before.id);

    let moved = world.see(sighting("o/moved#1")).await;
    assert_eq!(moved.item.id, before.id);
}

#[tokio::test]
async fn an_item_closed_twice_in_one_second_is_told_twice() {
    let world = World::new().await;
    world.know("o/r#1").await;

    let first = world.see(closed("o/r#1", 10)).await;
    let reopened = ItemSighting {
        updated_at: at(10),
        seen_at: at(20),
        ..sighting("o/r#1")
    };
    world.see(reopened).await;
    let again = ItemSighting {
        seen_at: at(20),
        ..closed("o/r#1", 10)
    };
    let second = world.see(again).await;

    assert_eq!(first.deliveries.len(), 1);
    assert_eq!(second.deliveries.len(), 1);
    assert_ne!(first.deliveries, second.deliveries);
    let key = world.claimed().await.first().event.key.clone();
    assert!(key.as_str().ends_with("Z.2"), "{key:?}");
    assert_eq!(world.see(closed("o/r#1", 10)).await.deliveries, []);
}

#[tokio::test]
async fn what_copies_say_of_one_second_counts_once_that_second_is_over() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.see(closed("o/r#1", 10)).await;
    let open_at = |seen_at: i64| ItemSighting {
        updated_at: at(10),
        seen_at: at(seen_at),
        ..armed("o/r#1")
    };

    let early = world.see(open_at(12)).await;
    assert_eq!(early.freshness, Freshness::Contested);
    assert_eq!(early.changes, []);
    assert!(!early.item.open);

    let late = world.see(open_at(20)).await;
    assert_eq!(late.freshness, Freshness::Current);
    assert_eq!(late.changes, [Change::Reopened, Change::Armed]);

    let unlabelled = ItemSighting {
        arming: Arming::Disarmed,
        ..open_at(15)
    };
    let seen = world.see(unlabelled).await;
    assert_eq!(seen.freshness, Freshness::Contested);
    assert!(seen.item.armed, "it was labelled just after");

    let seen = world.see(closed("o/r#1", 10)).await;
    assert_eq!(seen.freshness, Freshness::Contested);
    assert_eq!(seen.changes, [Change::Closed], "a closing ends what it may");
}
