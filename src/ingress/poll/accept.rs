//! From a text on GitHub to an arrival in the inbox: key, author of the act, guards, baseline.

use chrono::{DateTime, TimeDelta, Utc};

use super::inputs::{self, Text};
use super::records;
use super::repo::{RepoCycle, StepError};
use crate::eventlog::Decision;
use crate::github::GitHubError;
use crate::model::{Class, Edit, Event, EventKey, Source};
use crate::routing::guard::{Verdict, judge};
use crate::store::{Acceptance, Accepted, Arrival, ArrivalOutcome, Change, Disposition, ItemRow};

/// How long a text waits for GitHub to say who edited it.
const EDITOR_WITHIN: TimeDelta = TimeDelta::days(1);

impl RepoCycle<'_> {
    /// Accepts a batch in one transaction, says what comes of it, and returns it.
    pub(super) async fn accept(&mut self, batch: Acceptance) -> Result<Accepted, StepError> {
        self.accept_batch(&batch).await
    }

    /// Accepts a batch that its owner may still need.
    pub(super) async fn accept_batch(&mut self, batch: &Acceptance) -> Result<Accepted, StepError> {
        let inbox = self.poller.store.inbox();
        let say = |accepted: &Accepted| self.say(batch, accepted);
        let accepted = inbox.accept_saying(batch, say).await?;
        for (arrival, outcome) in batch.arrivals.iter().zip(&accepted.arrivals) {
            if matches!(outcome, ArrivalOutcome::New { .. }) {
                tracing::debug!(key = arrival.event.key.as_str(), "stored");
            }
        }
        let waits = accepted
            .arrivals
            .iter()
            .any(|outcome| matches!(outcome, ArrivalOutcome::New { .. }))
            || accepted
                .sightings
                .iter()
                .any(|sighted| !sighted.deliveries.is_empty());
        if waits {
            self.poller.wake.notify_one();
        }
        Ok(accepted)
    }

    fn say(&mut self, batch: &Acceptance, accepted: &Accepted) {
        for sighted in &accepted.sightings {
            if sighted.first_sight {
                self.report.first_sights += 1;
            }
            self.report.accepted += sighted.deliveries.len() as u64;
            for change in &sighted.changes {
                self.changed(&sighted.item, *change);
            }
        }
        for (arrival, outcome) in batch.arrivals.iter().zip(&accepted.arrivals) {
            let record = match outcome {
                ArrivalOutcome::New { delivery, .. } => {
                    self.report.accepted += 1;
                    records::accepted(&arrival.event, *delivery)
                }
                ArrivalOutcome::Dropped { reason, .. } => {
                    self.report.dropped += 1;
                    records::dropped(&arrival.event, *reason)
                }
                ArrivalOutcome::Duplicate { .. } => records::duplicate(&arrival.event),
                ArrivalOutcome::Baselined | ArrivalOutcome::UnknownItem => continue,
            };
            self.poller.log.emit(&record);
            for older in outcome.superseded() {
                self.poller.log.emit(&records::superseded(older));
            }
        }
    }

    fn changed(&mut self, row: &ItemRow, change: Change) {
        let work_item = row.item.clone();
        let record = match change {
            Change::Armed => Decision::ItemArmed {
                work_item,
                actor: row.armed_by.clone(),
                count: row.armed_count,
            },
            Change::Disarmed => Decision::ItemDisarmed {
                work_item,
                actor: None,
            },
            Change::Reopened => Decision::ItemReopened {
                work_item,
                actor: None,
            },
            Change::Closed => {
                self.report.closures += 1;
                Decision::PollClosureDetected {
                    work_item,
                    item_kind: row.kind,
                    merged: row.merged,
                }
            }
        };
        self.poller.log.emit(&record);
    }

    /// Turns a text into an arrival; none where it is no event. A version that is known already becomes
    /// one too, and the inbox says that it is a duplicate.
    pub(super) async fn arrival(
        &self,
        row: &ItemRow,
        text: Text,
    ) -> Result<Option<Arrival>, StepError> {
        let item = inputs::item(row);
        let Some(draft) = text.event(&item) else {
            return Ok(None);
        };
        let version_at = text.updated_at;
        if self.poller.store.inbox().knows(&draft.key).await? {
            return Ok(Some(placed(draft, version_at, Disposition::Baseline)));
        }
        // What was there before the first sight is known by its key once the thread was read. GitHub's
        // times tick in seconds: what carries the second of the first sight may be younger than it, and
        // a text said once too often is better than one that is lost.
        let old = row.details_at.is_none() && text.updated_at < row.baseline_at;
        // Nobody is told it, so that its editor matters only where it may command.
        if old && !matches!(judge(&draft, &self.policy()), Verdict::Control(_)) {
            return Ok(Some(placed(draft, version_at, Disposition::Baseline)));
        }
        // Nobody else's text is delivered, whoever edited it.
        let edit = if self.policy().authorizes(draft.actor.as_ref()) {
            self.edit_of(&text, &draft.key).await?
        } else {
            Edit::Never
        };
        let Some(event) = text.with_edit(edit).event(&item) else {
            return Ok(None);
        };
        // Who reads a thread for the first time is not told all of it; a control word that nobody
        // acted on yet is the exception, and `details` picks it.
        let disposition = if old {
            Disposition::Baseline
        } else {
            self.disposition(&event)
        };
        Ok(Some(placed(event, version_at, disposition)))
    }

    fn disposition(&self, event: &Event) -> Disposition {
        match judge(event, &self.policy()) {
            Verdict::Drop(reason) => Disposition::Drop(reason),
            Verdict::Deliver => Disposition::Deliver {
                class: Class::Event,
            },
            Verdict::Control(_) => Disposition::Deliver {
                class: Class::Control,
            },
        }
    }

    /// Learns whether a text was edited, and by whom.
    async fn edit_of(&self, text: &Text, key: &EventKey) -> Result<Edit, StepError> {
        // Times tick in seconds; another text under the same id was changed whatever they say.
        if !text.may_be_edited() && !self.poller.store.inbox().knows_object(key).await? {
            return Ok(Edit::Never);
        }
        let Some(node_id) = text.node_id.as_deref() else {
            return Ok(Edit::ByNobody);
        };
        match self.ask(self.poller.github.last_edit(node_id)).await {
            Ok(edit) => Ok(edit),
            // A wrong answer now would be kept; the list is read again instead, for a day. A text that
            // GitHub does not find is on the next list, or is gone from it.
            Err(StepError::GitHub(source))
                if (source.is_transient() || matches!(source, GitHubError::NotFound { .. }))
                    && !self.is_stale(text) =>
            {
                Err(StepError::Editor {
                    node_id: node_id.to_owned(),
                    source,
                })
            }
            // An editor that cannot be learned is nobody.
            Err(StepError::GitHub(error)) => {
                tracing::warn!("cannot learn who edited {node_id}: {error}");
                Ok(Edit::ByNobody)
            }
            Err(error) => Err(error),
        }
    }

    fn is_stale(&self, text: &Text) -> bool {
        self.server_now
            .is_some_and(|now| now - text.updated_at > EDITOR_WITHIN)
    }

    /// Makes an arrival of an event that needs no baseline: a verdict of CI.
    pub(super) fn judged(&self, event: Event) -> Arrival {
        let disposition = self.disposition(&event);
        let version_at = event.occurred_at;
        placed(event, version_at, disposition)
    }
}

fn placed(event: Event, version_at: DateTime<Utc>, disposition: Disposition) -> Arrival {
    Arrival {
        event,
        version_at,
        source: Source::Poll,
        guid: None,
        disposition,
    }
}
