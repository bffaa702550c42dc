//! The event log's words for what the poller accepted and decided against.

use crate::eventlog::{About, Decision};
use crate::model::{DeliveryId, DropReason, Event};
use crate::store::Waiting;

pub(super) fn accepted(event: &Event, delivery: DeliveryId) -> Decision {
    Decision::InboxAccepted {
        key: event.key.clone(),
        kind: event.kind,
        work_items: vec![event.item()],
        deliveries: vec![delivery],
        actor: event.actor.clone(),
        url: Some(event.url.clone()),
        gh_delivery: None,
    }
}

pub(super) fn dropped(event: &Event, reason: DropReason) -> Decision {
    Decision::RoutingDropped {
        reason,
        key: event.key.clone(),
        kind: event.kind,
        work_items: vec![event.item()],
        actor: event.actor.clone(),
        url: Some(event.url.clone()),
    }
}

/// A version that nobody was told yet, and that an edit replaced.
pub(super) fn superseded(older: &Waiting) -> Decision {
    let about = About::of(&older.item, older.delivery, &older.event);
    Decision::dropped(about, DropReason::Superseded, None)
}

pub(super) fn duplicate(event: &Event) -> Decision {
    Decision::InboxDuplicate {
        key: event.key.clone(),
        kind: event.kind,
        work_items: vec![event.item()],
        gh_delivery: None,
    }
}
