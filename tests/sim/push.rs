//! What is accepted without being asked for, as an ingress does to which GitHub pushes.

use chrono::DateTime;
use the_loop::clock::Clock as _;
use the_loop::model::{
    Class, Detail, Edit, Event, EventKey, EventKind, ItemKind, Login, Source, WorkItemRef,
};
use the_loop::store::{Acceptance, Arming, Arrival, Disposition, ItemSighting, Track};

use crate::story::item;
use crate::world::World;

/// The key of a comment.
pub(crate) fn key(item: &WorkItemRef, id: &str) -> EventKey {
    EventKey::new(item.repo().host(), EventKind::IssueComment, id, "1")
}

/// Accepts that an item is there and armed.
pub(crate) async fn armed(world: &World, number: u64) {
    let now = world.clock.now();
    let seen = ItemSighting {
        item: item(number),
        repo_id: Some(77),
        kind: ItemKind::Issue,
        title: format!("Title {number}"),
        url: format!("https://github.com/demo/app/issues/{number}"),
        author: Some(Login::new("ada")),
        open: true,
        closed_at: None,
        merged: false,
        updated_at: now,
        arming: Arming::ByAct(Some(Login::new("ada"))),
        pull: None,
        seen_at: now,
        baseline_at: DateTime::UNIX_EPOCH,
        source: Source::Poll,
        track: Track::Always,
    };
    accept(
        world,
        Acceptance {
            items: vec![seen],
            ..Acceptance::default()
        },
    )
    .await;
}

/// Accepts a comment, and returns its key.
pub(crate) async fn comment(
    world: &World,
    number: u64,
    id: u64,
    text: &str,
    class: Class,
) -> EventKey {
    let item = item(number);
    let event = Event {
        key: key(&item, &format!("{number}-{id}")),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(77),
        number,
        on: ItemKind::Issue,
        actor: Some(Login::new("ada")),
        edit: Edit::Never,
        title: format!("Title {number}"),
        body: text.to_owned(),
        url: String::new(),
        occurred_at: world.clock.now(),
        detail: Detail::None,
    };
    let key = event.key.clone();
    let arrival = Arrival {
        version_at: event.occurred_at,
        event,
        source: Source::Poll,
        guid: None,
        disposition: Disposition::Deliver { class },
    };
    accept(
        world,
        Acceptance {
            arrivals: vec![arrival],
            ..Acceptance::default()
        },
    )
    .await;
    key
}

async fn accept(world: &World, acceptance: Acceptance) {
    world.store.inbox().accept(&acceptance).await.unwrap();
    world.wake.notify_one();
}
