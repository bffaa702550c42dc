//! The four lists that say what moved.
//!
//! Three of them are asked "since", oldest first, and begin where the last reading ended. The URL
//! stays the same while nothing happens, so GitHub's answer is "unchanged" and costs nothing. Each
//! list's rows and its cursor are accepted in one transaction.

use chrono::{DateTime, TimeDelta, Utc};

use super::inputs::Text;
use super::repo::{RepoCycle, StepError};
use crate::github::{Cursor, Elements, Listing};
use crate::model::{ItemKind, WorkItemRef};
use crate::store::{Acceptance, Arrival, CursorUpdate, ItemRow, ItemSighting};

/// How far behind the first listing the other lists begin; what is seen twice is one event.
const OVERLAP: TimeDelta = TimeDelta::seconds(60);

/// How many rows one transaction takes; a list of thousands must not hold the database.
const BATCH: usize = 200;

const ISSUES: &str = "issues";
const PULLS: &str = "pulls";
const COMMENTS: &str = "comments";
const REVIEW_COMMENTS: &str = "review-comments";

impl RepoCycle<'_> {
    /// The first time a repository and label are watched: all open items with the label.
    pub(super) async fn first_listing(&mut self) -> Result<(), StepError> {
        let name = format!("{}:{}", self.cursor_name("labelled"), self.source.label);
        if self.poller.store.ledger().cursor(&name).await?.is_some() {
            return Ok(());
        }
        let listing = self
            .poller
            .github
            .open_issues(self.repo, Some(&self.source.label), None)
            .await?;
        let server_time = self.server_time(listing.date);
        let mut items = Vec::new();
        for issue in self.readable(listing.news) {
            items.extend(self.issue_sighting(&issue, server_time).await?);
        }
        self.accept_items(items, Vec::new()).await?;
        // The lists begin where this one was read, unless they have begun already.
        for list in [ISSUES, COMMENTS, REVIEW_COMMENTS] {
            if self
                .poller
                .store
                .ledger()
                .cursor(&self.cursor_name(list))
                .await?
                .is_none()
            {
                let cursor = self.update(list, None, Some(server_time - OVERLAP));
                self.accept(Acceptance {
                    cursor: Some(cursor),
                    ..Acceptance::default()
                })
                .await?;
            }
        }
        let done = CursorUpdate {
            name,
            etag: None,
            since: None,
            last_success: self.poller.clock.now(),
        };
        self.accept(Acceptance {
            cursor: Some(done),
            ..Acceptance::default()
        })
        .await
    }

    /// Every issue and pull request that changed: labels, closures, titles.
    pub(super) async fn issues(&mut self) -> Result<(), StepError> {
        let cursor = self.position(ISSUES).await?;
        let listing = self.poller.github.issues_since(self.repo, &cursor).await?;
        let server_time = self.server_time(listing.date);
        let next = self.next(ISSUES, &listing);
        let mut items = Vec::new();
        let mut moved = Vec::new();
        for issue in self.readable(listing.news) {
            let Some(sighting) = self.issue_sighting(&issue, server_time).await? else {
                continue;
            };
            if sighting.kind == ItemKind::PullRequest && self.moved(&sighting).await? {
                moved.push(sighting.item.clone());
            }
            items.push(sighting);
        }
        self.accept_items(items, moved).await?;
        self.finish(next).await
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
        let listing = self.poller.github.open_pulls(self.repo, etag).await?;
        let server_time = self.server_time(listing.date);
        let Some(mut page) = listing.news else {
            return Ok(());
        };
        let mut newest = known.as_ref().and_then(|cursor| cursor.since);
        loop {
            let oldest = page.items.iter().filter_map(|pull| pull.updated_at).min();
            newest = newest.max(page.items.iter().filter_map(|pull| pull.updated_at).max());
            let next_page = page.next.clone();
            let mut items = Vec::new();
            let mut moved = Vec::new();
            for pull in self.readable(Some(page)) {
                let Some(sighting) = self.pull_sighting(&pull, server_time).await? else {
                    continue;
                };
                if self.moved(&sighting).await? {
                    moved.push(sighting.item.clone());
                }
                items.push(sighting);
            }
            self.accept_items(items, moved).await?;
            // Latest first: a page that reaches back behind the last cycle ends the walk.
            let reached = known
                .as_ref()
                .and_then(|cursor| cursor.since)
                .is_some_and(|since| oldest < Some(since));
            match next_page {
                Some(link) if !reached => page = self.poller.github.more_pulls(&link).await?,
                _ => break,
            }
        }
        // The cursor moves last: what was not accepted by then is read again.
        let cursor = self.update(PULLS, listing.cursor.etag, newest);
        self.finish(cursor).await
    }

    /// Every new or edited comment in a conversation.
    pub(super) async fn comments(&mut self) -> Result<(), StepError> {
        let cursor = self.position(COMMENTS).await?;
        let listing = self
            .poller
            .github
            .issue_comments(self.repo, &cursor)
            .await?;
        let next = self.next(COMMENTS, &listing);
        let mut arrivals = Vec::new();
        for comment in self.readable(listing.news) {
            let Some(row) = self.read_row(comment.number()).await? else {
                continue;
            };
            let Some(text) = Text::of_comment(&comment) else {
                continue;
            };
            arrivals.extend(self.arrival(&row, text).await?);
        }
        self.accept_arrivals(arrivals, Vec::new()).await?;
        self.finish(next).await
    }

    /// Every new or edited comment on a line of a pull request.
    pub(super) async fn review_comments(&mut self) -> Result<(), StepError> {
        let cursor = self.position(REVIEW_COMMENTS).await?;
        let listing = self
            .poller
            .github
            .review_comments(self.repo, &cursor)
            .await?;
        let next = self.next(REVIEW_COMMENTS, &listing);
        let mut arrivals = Vec::new();
        let mut moved: Vec<WorkItemRef> = Vec::new();
        for comment in self.readable(listing.news) {
            let Some(row) = self.read_row(comment.number()).await? else {
                continue;
            };
            let Some(text) = Text::of_review_comment(&comment) else {
                continue;
            };
            let arrival = self.arrival(&row, text).await?;
            // The review that a new comment belongs to is in no list of its own.
            if arrival.is_some() && !moved.contains(&row.item) {
                moved.push(row.item.clone());
            }
            arrivals.extend(arrival);
        }
        self.accept_arrivals(arrivals, moved).await?;
        self.finish(next).await
    }

    /// Returns the row of an item whose thread has been read once; what is older than that reading
    /// was baselined by it, so everything else in a list is new.
    async fn read_row(&self, number: Option<u64>) -> Result<Option<ItemRow>, StepError> {
        let Some(number) = number else {
            return Ok(None);
        };
        let row = self
            .poller
            .store
            .ledger()
            .item(&self.repo.item(number))
            .await?;
        Ok(row.filter(|row| row.details_at.is_some()))
    }

    async fn accept_items(
        &mut self,
        items: Vec<ItemSighting>,
        moved: Vec<WorkItemRef>,
    ) -> Result<(), StepError> {
        for batch in items.chunks(BATCH) {
            self.accept(Acceptance {
                items: batch.to_vec(),
                ..Acceptance::default()
            })
            .await?;
        }
        if !moved.is_empty() {
            self.accept(Acceptance {
                mark_dirty: moved,
                ..Acceptance::default()
            })
            .await?;
        }
        Ok(())
    }

    /// Accepts arrivals, and first marks what needs details: a crash in between asks once too often.
    pub(super) async fn accept_arrivals(
        &mut self,
        arrivals: Vec<Arrival>,
        mark_dirty: Vec<WorkItemRef>,
    ) -> Result<(), StepError> {
        if !mark_dirty.is_empty() {
            self.accept(Acceptance {
                mark_dirty,
                ..Acceptance::default()
            })
            .await?;
        }
        for batch in arrivals.chunks(BATCH) {
            self.accept(Acceptance {
                arrivals: batch.to_vec(),
                ..Acceptance::default()
            })
            .await?;
        }
        Ok(())
    }

    /// Moves a list's cursor, after everything that it stands for was accepted.
    ///
    /// A list that stands where it stood is not written again: an idle cycle only reads.
    async fn finish(&mut self, cursor: CursorUpdate) -> Result<(), StepError> {
        let known = self.poller.store.ledger().cursor(&cursor.name).await?;
        if known.is_some_and(|known| known.etag == cursor.etag && known.since == cursor.since) {
            return Ok(());
        }
        self.accept(Acceptance {
            cursor: Some(cursor),
            ..Acceptance::default()
        })
        .await
    }

    /// Returns what of a list could be read, and reports the rest.
    pub(super) fn readable<T>(&mut self, news: Option<Elements<T>>) -> Vec<T> {
        let Some(news) = news else { return Vec::new() };
        for bad in news.bad {
            self.problem(&StepError::GitHub(bad));
        }
        news.items
    }

    async fn position(&self, list: &str) -> Result<Cursor, StepError> {
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
            None => Cursor::since(self.poller.clock.now() - OVERLAP),
        })
    }

    fn next<T>(&self, list: &str, listing: &Listing<T>) -> CursorUpdate {
        self.update(list, listing.cursor.etag.clone(), listing.cursor.since)
    }

    fn update(
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

    fn server_time(&self, date: Option<DateTime<Utc>>) -> DateTime<Utc> {
        date.unwrap_or_else(|| self.poller.clock.now())
    }

    async fn moved(&self, sighting: &ItemSighting) -> Result<bool, StepError> {
        let row = self.poller.store.ledger().item(&sighting.item).await?;
        Ok(row.is_some_and(|row| row.updated_at < sighting.updated_at))
    }
}
