//! The store's rules, each on a database of its own in a temporary folder.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod accepting;
mod claiming;
mod groups;
mod hostile;
mod opening;
mod put_aside;
mod queueing;
mod sessions;
mod sighting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::TimeDelta;
use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::model::{
    BootId, Class, DeliveryId, DeliveryState, Detail, Edit, Event, EventKey, EventKind,
    HarnessName, HarnessSessionId, ItemKind, Login, OwnerId, ProcessId, Source, TmuxSocket,
    TmuxTarget, WorkItemRef,
};

pub(super) struct World {
    pub(super) store: Store,
    pub(super) clock: ManualClock,
    pub(super) folder: TempDir,
    ids: AtomicU64,
}

pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

pub(super) fn item(text: &str) -> WorkItemRef {
    text.parse().unwrap()
}

pub(super) fn owner(pid: i32) -> ClaimOwner {
    ClaimOwner {
        process: ProcessId { pid, start: 7 },
        boot: BootId("boot-1".to_owned()),
    }
}

pub(super) fn nobody_is_dead(_: &ProcessId, _: &BootId) -> bool {
    false
}

pub(super) const EVENT: Disposition = Disposition::Deliver {
    class: Class::Event,
};
pub(super) const CONTROL: Disposition = Disposition::Deliver {
    class: Class::Control,
};

impl World {
    pub(super) async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let clock = ManualClock::starting_at(at(0));
        let path = folder.path().join("state/loop.db");
        let store = Store::open(&path, "host-a", Arc::new(clock.clone()))
            .await
            .unwrap();
        Self {
            store,
            clock,
            folder,
            ids: AtomicU64::new(1),
        }
    }

    /// The same database as another host sees it.
    pub(super) async fn as_host(&self, machine: &str) -> Store {
        Store::open(self.store.path(), machine, Arc::new(self.clock.clone()))
            .await
            .unwrap()
    }

    pub(super) fn pass(&self, seconds: i64) {
        self.clock.advance(TimeDelta::seconds(seconds));
    }

    pub(super) async fn see(&self, seen: ItemSighting) -> Sighted {
        let acceptance = Acceptance {
            items: vec![seen],
            ..Acceptance::default()
        };
        let accepted = self.store.inbox().accept(&acceptance).await.unwrap();
        accepted.sightings.into_iter().next().unwrap()
    }

    /// Makes an item known.
    pub(super) async fn know(&self, text: &str) -> ItemRow {
        self.see(sighting(text)).await.item
    }

    pub(super) async fn arrive(&self, event: Event, disposition: Disposition) -> ArrivalOutcome {
        let acceptance = Acceptance {
            arrivals: vec![arrival(event, disposition)],
            ..Acceptance::default()
        };
        let accepted = self.store.inbox().accept(&acceptance).await.unwrap();
        accepted.arrivals.into_iter().next().unwrap()
    }

    pub(super) async fn knows(&self, key: &str) -> bool {
        let key = EventKey::from_stored(key.to_owned());
        self.store.inbox().knows(&key).await.unwrap()
    }

    /// Accepts a new comment and returns its delivery.
    pub(super) async fn comment(&self, text: &str) -> DeliveryId {
        self.deliver(text, EVENT).await
    }

    pub(super) async fn command(&self, text: &str) -> DeliveryId {
        self.deliver(text, CONTROL).await
    }

    async fn deliver(&self, text: &str, disposition: Disposition) -> DeliveryId {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        match self.arrive(comment(text, id, "v1"), disposition).await {
            ArrivalOutcome::New { delivery, .. } => delivery,
            other => panic!("not new: {other:?}"),
        }
    }

    pub(super) async fn claim(&self) -> Option<Claim> {
        self.store
            .deduper()
            .claim_next(&owner(10), &nobody_is_dead)
            .await
            .unwrap()
    }

    pub(super) async fn claimed(&self) -> Claim {
        self.claim().await.expect("something is due")
    }

    pub(super) async fn settle(&self, claim: &Claim, settlement: Settlement<'_>) {
        self.store
            .deduper()
            .settle(claim, settlement, None)
            .await
            .unwrap();
    }

    pub(super) async fn delivered(&self, claim: &Claim) {
        self.settle(
            claim,
            Settlement::Delivered {
                possible_repeat: false,
            },
        )
        .await;
    }

    pub(super) async fn abandon(&self, claim: &Claim, version: &str, rearm: Rearm) {
        self.settle(claim, Settlement::Abandoned { version, rearm })
            .await;
    }

    pub(super) async fn state(&self, delivery: DeliveryId) -> Option<DeliveryState> {
        let row = self.store.queue().get(delivery).await.unwrap();
        row.map(|row| row.state)
    }

    pub(super) async fn change(&self, change: SessionChange) -> Result<(), StoreError> {
        let mut tx = self.store.begin().await.unwrap();
        let changed = effects::apply(&mut tx, &change, self.store.now_ms()).await;
        tx.commit().await.unwrap();
        changed.map_err(self.store.explain("changing a session"))
    }

    pub(super) async fn spawn(&self, claim: &Claim) -> crate::model::Session {
        let registry = self.store.registry();
        registry
            .begin_spawn(claim, &new_session(claim))
            .await
            .unwrap()
    }

    /// The newest session of an item, open or closed.
    pub(super) async fn latest(&self, text: &str) -> Option<crate::model::Session> {
        let registry = self.store.registry();
        registry.latest(&item(text)).await.unwrap()
    }

    /// Gives the item of `text` an active session.
    pub(super) async fn session(&self, text: &str) -> crate::model::Session {
        self.comment(text).await;
        let claim = self.claimed().await;
        let session = self.spawn(&claim).await;
        let registered = registered(&session);
        self.store
            .deduper()
            .settle(
                &claim,
                Settlement::Delivered {
                    possible_repeat: false,
                },
                Some(SessionChange::Register(registered)),
            )
            .await
            .unwrap();
        self.latest(text).await.unwrap()
    }
}

pub(super) fn new_session(claim: &Claim) -> NewSession {
    NewSession {
        item: claim.item.id,
        owner: OwnerId::mint(),
        harness: HarnessName("claude".to_owned()),
        harness_session_id: HarnessSessionId::mint(),
        cwd: "/srv/work".into(),
        boot_delivery: claim.first().id,
    }
}

pub(super) fn target(pane: &str) -> TmuxTarget {
    TmuxTarget {
        socket: TmuxSocket::Name("the-loop".to_owned()),
        server: ProcessId { pid: 20, start: 1 },
        session_id: "$3".parse().unwrap(),
        pane: pane.parse().unwrap(),
        host: ProcessId { pid: 21, start: 2 },
        harness: ProcessId { pid: 22, start: 3 },
        boot: BootId("boot-1".to_owned()),
    }
}

pub(super) fn registered(session: &crate::model::Session) -> Registered {
    Registered {
        session: session.id,
        owner: session.owner.clone(),
        target: Some(target("%5")),
        harness_session_id: session.harness_session_id.clone(),
    }
}

pub(super) fn sighting(text: &str) -> ItemSighting {
    let item = item(text);
    ItemSighting {
        repo_id: Some(77),
        kind: ItemKind::Issue,
        title: "A title".to_owned(),
        url: format!("https://github.com/o/r/issues/{}", item.number()),
        author: Some(Login::new("alice")),
        open: true,
        closed_at: None,
        merged: false,
        updated_at: at(0),
        arming: Arming::Disarmed,
        pull: None,
        seen_at: at(0),
        baseline_at: at(0),
        source: Source::Poll,
        track: Track::Always,
        item,
    }
}

pub(super) fn comment(text: &str, id: u64, version: &str) -> Event {
    let item = item(text);
    Event {
        key: EventKey::new(
            item.repo().host(),
            EventKind::IssueComment,
            &id.to_string(),
            version,
        ),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(77),
        number: item.number(),
        on: ItemKind::Issue,
        actor: Some(Login::new("alice")),
        edit: Edit::Never,
        title: "A title".to_owned(),
        body: format!("comment {id}"),
        url: String::new(),
        occurred_at: at(0),
        detail: Detail::None,
    }
}

pub(super) fn arrival(event: Event, disposition: Disposition) -> Arrival {
    Arrival {
        version_at: event.occurred_at,
        event,
        source: Source::Poll,
        guid: None,
        disposition,
    }
}
