use super::*;
use crate::model::DropReason;
use crate::model::HoldReason;

#[tokio::test]
async fn the_same_version_from_the_other_ingress_is_a_duplicate() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let first = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    let ArrivalOutcome::New { delivery, .. } = first else {
        panic!("{first:?}");
    };

    let second = world.arrive(comment("O/R#1", 1, "v1"), EVENT).await;
    assert_eq!(
        second,
        ArrivalOutcome::Duplicate {
            delivery,
            state: DeliveryState::Pending,
            superseded: Vec::new(),
        }
    );

    let claim = world.claimed().await;
    world.delivered(&claim).await;
    let third = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    assert!(matches!(
        third,
        ArrivalOutcome::Duplicate {
            state: DeliveryState::Delivered,
            ..
        }
    ));
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn an_edit_replaces_the_version_that_was_not_delivered_yet() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;

    let edited = world.arrive(comment("o/r#1", 1, "v2"), EVENT).await;

    assert!(matches!(edited, ArrivalOutcome::New { superseded, .. } if superseded.len() == 1));
    let claim = world.claimed().await;
    assert_eq!(
        claim.first().event.key.as_str(),
        "github.com:issue_comment:1@v2"
    );
    world.delivered(&claim).await;
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn an_edit_leaves_alone_what_is_typed_and_replaces_what_waits_for_anything_else() {
    for (typed, reason, replaced) in [
        (true, HoldReason::Unsent, 0),
        (true, HoldReason::TmuxSilent, 0),
        (false, HoldReason::EnterPending, 1),
        (false, HoldReason::PaneInMode, 1),
    ] {
        let world = World::new().await;
        world.know("o/r#1").await;
        world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
        let claim = world.claimed().await;
        let held = Release::Held {
            reason,
            look_again_at: at(0),
        };
        claim.set_typed(typed);
        world.store.deduper().release(&claim, held).await.unwrap();

        let edited = world.arrive(comment("o/r#1", 1, "v2"), EVENT).await;

        assert_eq!(edited.superseded().len(), replaced, "{reason}");
    }
}

#[tokio::test]
async fn an_edit_leaves_alone_what_is_being_delivered_or_was() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    let claim = world.claimed().await;

    let edited = world.arrive(comment("o/r#1", 1, "v2"), EVENT).await;

    assert!(matches!(edited, ArrivalOutcome::New { superseded, .. } if superseded.is_empty()));
    world.delivered(&claim).await;
    let next = world.claimed().await;
    assert_eq!(
        next.first().event.key.as_str(),
        "github.com:issue_comment:1@v2"
    );
}

#[tokio::test]
async fn an_edit_that_may_not_speak_still_silences_the_text_it_replaced() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;

    let drop = Disposition::Drop(DropReason::UnauthorizedActor);
    let edited = world.arrive(comment("o/r#1", 1, "v2"), drop).await;

    assert!(matches!(edited, ArrivalOutcome::Dropped { superseded, .. } if superseded.len() == 1));
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn a_version_that_comes_late_replaces_nothing_newer() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let newer = Event {
        occurred_at: at(60),
        ..comment("o/r#1", 1, "v2")
    };
    world.arrive(newer, EVENT).await;

    let late = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;

    assert!(matches!(late, ArrivalOutcome::New { superseded, .. } if superseded.is_empty()));
}

#[tokio::test]
async fn a_text_that_is_edited_back_before_it_was_told_is_told() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let first = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    let ArrivalOutcome::New { delivery, .. } = first else {
        panic!("{first:?}");
    };
    world.arrive(comment("o/r#1", 1, "v2"), EVENT).await;
    assert!(!world.knows("github.com:issue_comment:1@v1").await);

    let back = world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;

    assert_eq!(back.superseded().len(), 1);
    assert!(
        matches!(back, ArrivalOutcome::New { delivery: same, .. } if same == delivery),
        "its token in tmux is its number's: {back:?}"
    );
    let claim = world.claimed().await;
    assert_eq!(claim.first().id, delivery);
    world.delivered(&claim).await;
    assert!(world.claim().await.is_none());
    assert!(world.knows("github.com:issue_comment:1@v1").await);
}

#[tokio::test]
async fn a_text_that_is_edited_back_after_it_was_told_withdraws_the_edit() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.arrive(comment("o/r#1", 1, "v1"), EVENT).await;
    let claim = world.claimed().await;
    world.delivered(&claim).await;
    world.arrive(comment("o/r#1", 1, "v2"), EVENT).await;

    let back = world
        .arrive(comment("o/r#1", 1, "v1"), Disposition::Baseline)
        .await;

    assert!(matches!(
        &back,
        ArrivalOutcome::Duplicate { state: DeliveryState::Delivered, superseded, .. }
            if superseded.len() == 1
    ));
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn a_text_that_is_edited_back_stands_behind_what_its_own_item_waits_for() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.know("o/r#2").await;
    world.arrive(comment("o/r#2", 100, "v1"), EVENT).await;
    world.arrive(comment("o/r#2", 100, "v2"), EVENT).await;
    let other = world.comment("o/r#2").await;
    // From now on its comments are for the issue.
    let bound = ItemSighting {
        kind: ItemKind::PullRequest,
        pull: Some(Pull {
            head_sha: "abc".to_owned(),
            head_branch: "topic".to_owned(),
            same_repo: true,
            binds_to: Some(item("o/r#1")),
        }),
        ..sighting("o/r#2")
    };
    assert_eq!(world.see(bound).await.item.bound_to, Some(item("o/r#1")));

    world.arrive(comment("o/r#2", 100, "v1"), EVENT).await;

    assert_eq!(world.claimed().await.first().id, other);
}

#[tokio::test]
async fn an_answer_that_lags_behind_brings_no_older_version_back() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let shown = |version: &str, second: i64| Event {
        occurred_at: at(second),
        ..comment("o/r#1", 1, version)
    };
    world.arrive(shown("v1", 0), EVENT).await;
    world.arrive(shown("v2", 60), EVENT).await;

    let late = world.arrive(shown("v1", 0), EVENT).await;
    assert!(
        matches!(&late, ArrivalOutcome::Duplicate { superseded, .. } if superseded.is_empty()),
        "{late:?}"
    );

    world.arrive(shown("v1", 90), EVENT).await;
    world.arrive(shown("v2", 60), EVENT).await;
    let claim = world.claimed().await;
    assert_eq!(
        claim.first().event.key.as_str(),
        "github.com:issue_comment:1@v1"
    );
    world.delivered(&claim).await;
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn baselined_and_dropped_events_are_known_and_never_said() {
    let world = World::new().await;
    world.know("o/r#1").await;

    let old = world
        .arrive(comment("o/r#1", 1, "v1"), Disposition::Baseline)
        .await;
    assert_eq!(old, ArrivalOutcome::Baselined);
    let drop = Disposition::Drop(DropReason::SelfAuthored);
    let own = world.arrive(comment("o/r#1", 2, "v1"), drop).await;
    assert!(matches!(
        own,
        ArrivalOutcome::Dropped {
            reason: DropReason::SelfAuthored,
            ..
        }
    ));

    for (id, state) in [(1, DeliveryState::Baselined), (2, DeliveryState::Dropped)] {
        let again = world.arrive(comment("o/r#1", id, "v1"), EVENT).await;
        assert!(
            matches!(again, ArrivalOutcome::Duplicate { state: same, .. } if same == state),
            "{again:?}"
        );
    }
    assert!(world.claim().await.is_none());
}

#[tokio::test]
async fn an_acceptance_is_whole_or_not_at_all() {
    let world = World::new().await;
    let since = at(5);
    let acceptance = Acceptance {
        items: vec![sighting("o/r#1")],
        arrivals: vec![arrival(comment("o/r#1", 1, "v1"), EVENT)],
        cursors: vec![CursorUpdate {
            name: "comments:o/r".to_owned(),
            etag: Some("\"e1\"".to_owned()),
            since: Some(since),
            last_success: at(6),
        }],
        ..Acceptance::default()
    };
    world.store.inbox().accept(&acceptance).await.unwrap();
    let ledger = world.store.ledger();
    let cursor = ledger.cursor("comments:o/r").await.unwrap().unwrap();
    assert_eq!(
        (cursor.etag.as_deref(), cursor.since),
        (Some("\"e1\""), Some(since))
    );
    assert_eq!(ledger.cursor("other").await.unwrap(), None);
}

#[tokio::test]
async fn a_wish_for_details_that_came_meanwhile_is_not_cleared() {
    let world = World::new().await;
    let seen = world.know("o/r#1").await;
    let ledger = world.store.ledger();
    let repo = seen.item.repo().clone();
    let mark = seen.dirty.unwrap();
    let inbox = world.store.inbox();
    let wish = Acceptance {
        mark_dirty: vec![item("o/r#1")],
        ..Acceptance::default()
    };
    inbox.accept(&wish).await.unwrap();

    let clear = |mark| Acceptance {
        clear_dirty: vec![(item("o/r#1"), mark)],
        ..Acceptance::default()
    };
    inbox.accept(&clear(mark)).await.unwrap();
    let dirty = ledger.dirty(&repo).await.unwrap();
    assert_eq!(dirty.len(), 1);
    assert!(dirty[0].details_at.is_some());

    inbox.accept(&clear(dirty[0].dirty.unwrap())).await.unwrap();
    assert_eq!(ledger.dirty(&repo).await.unwrap(), []);
    let row = ledger.item(&item("o/r#1")).await.unwrap().unwrap();
    assert_eq!(row.dirty, None);

    let anew = Acceptance {
        read_anew: vec![item("o/r#1")],
        ..Acceptance::default()
    };
    inbox.accept(&anew).await.unwrap();
    let row = ledger.item(&item("o/r#1")).await.unwrap().unwrap();
    assert!(row.dirty.is_some() && row.details_at.is_none(), "{row:?}");
}

#[tokio::test]
async fn an_object_is_known_by_any_of_its_versions() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let first = comment("o/r#1", 1, "v1");
    let old = arrival(first.clone(), Disposition::Baseline);
    assert!(!old.is_news());
    assert!(arrival(first.clone(), EVENT).is_news());

    world.arrive(first, Disposition::Baseline).await;

    let inbox = world.store.inbox();
    let edited = comment("o/r#1", 1, "v2").key;
    assert!(inbox.knows_object(&edited).await.unwrap());
    assert!(!inbox.knows(&edited).await.unwrap());
    let other = comment("o/r#1", 2, "v1").key;
    assert!(!inbox.knows_object(&other).await.unwrap());
}

#[tokio::test]
async fn the_ci_of_a_head_is_watched_until_it_is_settled() {
    let world = World::new().await;
    let head = |sha: &str| ItemSighting {
        kind: ItemKind::PullRequest,
        pull: Some(Pull {
            head_sha: sha.to_owned(),
            head_branch: "topic".to_owned(),
            same_repo: true,
            binds_to: None,
        }),
        ..sighting("o/r#2")
    };
    let row = world.see(head("aaa")).await.item;
    let ledger = world.store.ledger();
    let watched = async || {
        let pulls = ledger.pulls_with_watched_ci(row.item.repo()).await;
        pulls.unwrap().len()
    };

    assert_eq!(watched().await, 1);
    ledger.settle_ci(&row.item, Some("aaa")).await.unwrap();
    assert_eq!(watched().await, 0);
    ledger.settle_ci(&row.item, None).await.unwrap();
    assert_eq!(watched().await, 1);
    ledger.settle_ci(&row.item, Some("aaa")).await.unwrap();
    world.see(head("bbb")).await;
    assert_eq!(watched().await, 1);
}

#[tokio::test]
async fn the_ci_of_a_head_stays_watched_while_an_agent_may_hear_of_it() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let pull = |text: &str, binds_to: Option<&str>| ItemSighting {
        kind: ItemKind::PullRequest,
        pull: Some(Pull {
            head_sha: "aaa".to_owned(),
            head_branch: "topic".to_owned(),
            same_repo: true,
            binds_to: binds_to.map(item),
        }),
        ..sighting(text)
    };
    let ledger = world.store.ledger();
    for seen in [
        pull("o/r#2", None),
        pull("O/R#3", Some("O/R#1")),
        pull("o/r#4", None),
    ] {
        let row = world.see(seen).await.item;
        ledger.settle_ci(&row.item, Some("aaa")).await.unwrap();
    }
    let watched = async || {
        let pulls = ledger.pulls_with_watched_ci(item("o/r#1").repo()).await;
        let pulls = pulls.unwrap();
        pulls
            .iter()
            .map(|row| row.item.number())
            .collect::<Vec<_>>()
    };

    assert_eq!(watched().await, [] as [u64; 0]);
    world.session("o/r#1").await;
    let own = world.session("o/r#2").await;
    assert_eq!(watched().await, [2, 3]);
    world.change(SessionChange::Close(own.id)).await.unwrap();
    assert_eq!(watched().await, [3]);
}
