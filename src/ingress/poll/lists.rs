//! The lists that say which items moved, and what all lists have in common.
//!
//! Three of the four are asked "since", oldest first, and begin where the last reading ended. The URL
//! stays the same while nothing happens, so GitHub's answer is "unchanged" and costs nothing. A
//! list's cursor moves once its rows are accepted: a crash in between reads them a second time.

use chrono::{DateTime, TimeDelta, Utc};

use super::repo::{RepoCycle, StepError};
use crate::github::{Cursor, Elements, Listing};
use crate::model::{EventKey, ItemKind};
use crate::store::{Acceptance, CursorUpdate, Freshness, ItemSighting, StoreError, Track};

/// How far behind the first listing the other lists begin; what is seen twice is one event.
pub(super) const OVERLAP: TimeDelta = TimeDelta::seconds(60);

/// How many rows one transaction takes; a list of thousands must not hold the database.
const BATCH: usize = 200;

pub(super) const ISSUES: &str = "issues";
const PULLS: &str = "pulls";
pub(super) const COMMENTS: &str = "comments";
pub(super) const REVIEW_COMMENTS: &str = "review-comments";

/// Whether the copies of GitHub's database that answered say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    Agree,
    Differ,
}

impl RepoCycle<'_> {
    /// Every issue and pull request that changed: labels, closures, titles.
    pub(super) async fn issues(&mut self) -> Result<(), StepError> {
        let cursor = self.position(ISSUES).await?;
        let question = self.poller.github.issues_since(self.repo, &cursor);
        let listing = self.ask(question).await?;
        let server_time = self.server_time(listing.date);
        let next = self.next(ISSUES, &listing);
        let mut items = Vec::new();
        let mut held = None;
        for issue in self.readable(listing.news) {
            match self.issue_sighting(&issue, server_time).await {
                Ok(sighting) => items.extend(sighting),
                Err(error) => Self::hold_back(&mut held, error)?,
            }
        }
        let copies = self.accept_items(&items, &mut held).await?;
        match (held, copies) {
            (Some(error), _) => Err(error),
            (None, Copies::Agree) => self.finish(next).await,
            // The cursor was set to read this once more.
            (None, Copies::Differ) => Ok(()),
        }
    }

    /// Every open pull request, latest change first: heads, and which of them moved.
    pub(super) async fn pulls(&mut self) -> Result<(), StepError> {
        let known = self
            .poller
            .store
            .ledger()
            .cursor(&self.cursor_name(PULLS))
            .await?;
        let etag = known.as_ref().and_then(|cursor| cursor.etag.as_deref());
        let question = self.poller.github.open_pulls(self.repo, etag);
        let listing = self.ask(question).await?;
        let server_time = self.server_time(listing.date);
        let Some(mut page) = listing.news else {
            return Ok(());
        };
        let mut newest = known.as_ref().and_then(|cursor| cursor.since);
        let mut held = None;
        loop {
            let oldest = page.items.iter().filter_map(|pull| pull.updated_at).min();
            newest = newest.max(page.items.iter().filter_map(|pull| pull.updated_at).max());
            let next_page = page.next.clone();
            let mut items = Vec::new();
            for pull in self.readable(Some(page)) {
                match self.pull_sighting(&pull, server_time).await {
                    Ok(sighting) => items.extend(sighting),
                    Err(error) => Self::hold_back(&mut held, error)?,
                }
            }
            self.accept_items(&items, &mut held).await?;
            // Latest first: a page that reaches back behind the last cycle ends the walk.
            let reached = known
                .as_ref()
                .and_then(|cursor| cursor.since)
                .is_some_and(|since| oldest < Some(since));
            match next_page {
                Some(link) if !reached => {
                    page = self.ask(self.poller.github.more_pulls(&link)).await?;
                }
                _ => break,
            }
        }
        if let Some(error) = held {
            return Err(error);
        }
        // The cursor moves last: what was not accepted by then is read again.
        let cursor = self.update(PULLS, listing.cursor.etag, newest);
        self.finish(cursor).await
    }

    /// Accepts sightings, marks what needs details, and tells whether they fit what is known; what
    /// concerns one of them alone is held back.
    pub(super) async fn accept_items(
        &mut self,
        items: &[ItemSighting],
        held: &mut Option<StepError>,
    ) -> Result<Copies, StepError> {
        if self.calls_for_all_pulls(items).await? {
            self.read_pulls_again().await?;
        }
        let mut contested = Vec::new();
        for batch in items.chunks(BATCH) {
            match self.accept_sightings(batch).await {
                Ok(seconds) => contested.extend(seconds),
                Err(error) if error.ends_the_step() => return Err(error),
                // Nothing of it was accepted: each alone shows which it was.
                Err(_) => {
                    for alone in batch.chunks(1) {
                        match self.accept_sightings(alone).await {
                            Ok(seconds) => contested.extend(seconds),
                            Err(error) => Self::hold_back(held, error)?,
                        }
                    }
                }
            }
        }
        let Some(second) = contested.into_iter().min() else {
            return Ok(Copies::Agree);
        };
        self.read_issues_again(second).await?;
        Ok(Copies::Differ)
    }

    /// Accepts sightings in one transaction, and returns the seconds of those that contradict what is
    /// known.
    async fn accept_sightings(
        &mut self,
        items: &[ItemSighting],
    ) -> Result<Vec<DateTime<Utc>>, StepError> {
        // Marked in the same transaction: once the row says when the item moved, nothing else does.
        let mut mark_dirty = Vec::new();
        for seen in items {
            if seen.kind == ItemKind::PullRequest && self.moved(seen).await? {
                mark_dirty.push(seen.item.clone());
            }
        }
        let accepted = self
            .accept(Acceptance {
                items: items.to_vec(),
                mark_dirty,
                ..Acceptance::default()
            })
            .await?;
        let contested = accepted.sightings.iter();
        Ok(contested
            .filter(|sighted| sighted.freshness == Freshness::Contested)
            .map(|sighted| sighted.item.updated_at)
            .collect())
    }

    /// Lets the next reading of the pull requests look at all of them.
    pub(super) async fn read_pulls_again(&mut self) -> Result<(), StepError> {
        let from_the_start = self.update(PULLS, None, None);
        self.finish(from_the_start).await
    }

    /// Lets the next cycle read, without a condition, which issues and pull requests changed in this
    /// second: only that list shows both the open and the closed ones.
    async fn read_issues_again(&mut self, second: DateTime<Utc>) -> Result<(), StepError> {
        let Some(since) = self.position(ISSUES).await?.since else {
            return Ok(());
        };
        let again = self.update(ISSUES, None, Some(since.min(second)));
        self.finish(again).await
    }

    /// Tells whether all pull requests are to be looked at again: those that were there before may
    /// serve an issue that becomes known, and one that a command introduced still lacks its head.
    async fn calls_for_all_pulls(&self, items: &[ItemSighting]) -> Result<bool, StepError> {
        for seen in items {
            let calls = match self.poller.store.ledger().item(&seen.item).await {
                Ok(Some(row)) => !row.was_shown(),
                Ok(None) => seen.kind == ItemKind::Issue && seen.track == Track::Always,
                // A row that cannot be read is there.
                Err(StoreError::BadRow { .. }) => false,
                Err(error) => return Err(error.into()),
            };
            if calls {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Accepts what may be too much for one transaction.
    ///
    /// What needs details is marked in the first and the cursor moves in the last, so that a crash in
    /// between reads once too often.
    pub(super) async fn accept_whole(&mut self, whole: Acceptance) -> Result<(), StepError> {
        let mut last = whole;
        let mut held = None;
        // As it happened, in whatever order the list came.
        last.arrivals
            .sort_by_key(|arrival| (arrival.version_at, arrival.event.key.number()));
        while last.arrivals.len() > BATCH {
            let later = last.arrivals.split_off(BATCH);
            let batch = Acceptance {
                arrivals: std::mem::replace(&mut last.arrivals, later),
                mark_dirty: std::mem::take(&mut last.mark_dirty),
                read_anew: std::mem::take(&mut last.read_anew),
                ..Acceptance::default()
            };
            self.accept_what_can_be(batch, &mut held).await?;
        }
        if held.is_some() {
            last = without_progress(last);
        }
        // A list that stands where it stood is not written again: an idle cycle only reads.
        if last != Acceptance::default() {
            self.accept_what_can_be(last, &mut held).await?;
        }
        held.map_or(Ok(()), Err)
    }

    /// Accepts a batch; where one of its items cannot be read, what concerns the others, and then what
    /// the batch stands for is read once more.
    async fn accept_what_can_be(
        &mut self,
        mut batch: Acceptance,
        held: &mut Option<StepError>,
    ) -> Result<(), StepError> {
        match self.accept_batch(&batch).await {
            Ok(_) => return Ok(()),
            Err(error) if error.ends_the_step() => return Err(error),
            // Nothing of it was accepted: each alone shows which it was.
            Err(_) => {}
        }
        for arrival in std::mem::take(&mut batch.arrivals) {
            let key = arrival.event.key.clone();
            let alone = Acceptance {
                arrivals: vec![arrival],
                ..Acceptance::default()
            };
            if let Err(error) = self.accept(alone).await {
                self.leave_out(&key, error, held).await?;
            }
        }
        if held.is_some() {
            batch = without_progress(batch);
        }
        match self.accept(batch).await {
            Ok(_) => Ok(()),
            Err(error) => Self::hold_back(held, error),
        }
    }

    /// Leaves a text out whose row cannot be read. One that is known was accepted before, so that its
    /// list goes on; any other is read once more.
    async fn leave_out(
        &mut self,
        key: &EventKey,
        error: StepError,
        held: &mut Option<StepError>,
    ) -> Result<(), StepError> {
        let is_unreadable = matches!(error, StepError::Store(StoreError::BadRow { .. }));
        if is_unreadable && self.poller.store.inbox().knows(key).await? {
            self.problem(key.as_str(), &error);
            return Ok(());
        }
        Self::hold_back(held, error)
    }

    /// Moves a list's cursor, after everything that it stands for was accepted.
    pub(super) async fn finish(&mut self, cursor: CursorUpdate) -> Result<(), StepError> {
        let cursor = self.if_moved(cursor).await?;
        self.accept_whole(Acceptance {
            cursors: cursor.into_iter().collect(),
            ..Acceptance::default()
        })
        .await
    }

    /// Returns the cursor of a list that does not stand where it stood.
    pub(super) async fn if_moved(
        &self,
        cursor: CursorUpdate,
    ) -> Result<Option<CursorUpdate>, StepError> {
        let known = self.poller.store.ledger().cursor(&cursor.name).await?;
        let stands =
            known.is_some_and(|known| known.etag == cursor.etag && known.since == cursor.since);
        Ok((!stands).then_some(cursor))
    }

    /// Returns what of a list could be read, and reports the rest.
    pub(super) fn readable<T>(&mut self, news: Option<Elements<T>>) -> Vec<T> {
        let Some(news) = news else { return Vec::new() };
        for bad in news.bad {
            let what = bad.to_string();
            self.problem(&what, &StepError::GitHub(bad));
        }
        news.items
    }

    pub(super) async fn position(&self, list: &str) -> Result<Cursor, StepError> {
        let known = self
            .poller
            .store
            .ledger()
            .cursor(&self.cursor_name(list))
            .await?;
        Ok(match known {
            Some(cursor) => Cursor {
                since: cursor.since,
                etag: cursor.etag,
            },
            // Never by our own clock: what was baselined is known, and read once more.
            None => Cursor::default(),
        })
    }

    pub(super) fn next<T>(&self, list: &str, listing: &Listing<T>) -> CursorUpdate {
        self.update(list, listing.cursor.etag.clone(), listing.cursor.since)
    }

    pub(super) fn update(
        &self,
        list: &str,
        etag: Option<String>,
        since: Option<DateTime<Utc>>,
    ) -> CursorUpdate {
        CursorUpdate {
            name: self.cursor_name(list),
            etag,
            since,
            last_success: self.poller.clock.now(),
        }
    }

    async fn moved(&self, sighting: &ItemSighting) -> Result<bool, StepError> {
        let row = self.poller.store.ledger().item(&sighting.item).await?;
        Ok(row.is_some_and(|row| row.updated_at < sighting.updated_at))
    }
}

/// What of a batch may be accepted while a part of it is held back: nothing that says it is done.
fn without_progress(batch: Acceptance) -> Acceptance {
    Acceptance {
        cursors: Vec::new(),
        clear_dirty: Vec::new(),
        ..batch
    }
}
