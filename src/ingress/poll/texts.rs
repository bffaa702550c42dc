//! The two lists of what people write: comments in conversations, and comments on lines.

use super::inputs::Text;
use super::lists::{COMMENTS, REVIEW_COMMENTS};
use super::repo::{RepoCycle, StepError};
use crate::model::WorkItemRef;
use crate::store::{Acceptance, Arrival, CursorUpdate, ItemRow};

impl RepoCycle<'_> {
    /// Every new or edited comment in a conversation.
    pub(super) async fn comments(&mut self) -> Result<(), StepError> {
        let cursor = self.position(COMMENTS).await?;
        let question = self.poller.github.issue_comments(self.repo, &cursor);
        let listing = self.ask(question).await?;
        self.server_time(listing.date);
        let next = self.next(COMMENTS, &listing);
        let mut arrivals = Vec::new();
        let mut held = None;
        for comment in self.readable(listing.news) {
            let Some(row) = self.read_row(comment.number()).await? else {
                continue;
            };
            let Some(text) = Text::of_comment(&comment) else {
                continue;
            };
            match self.arrival(&row, text).await {
                Ok(arrival) => arrivals.extend(arrival),
                Err(error) => Self::hold_back(&mut held, error)?,
            }
        }
        self.accept_texts(arrivals, Vec::new(), next, held).await
    }

    /// Every new or edited comment on a line of a pull request.
    pub(super) async fn review_comments(&mut self) -> Result<(), StepError> {
        let cursor = self.position(REVIEW_COMMENTS).await?;
        let question = self.poller.github.review_comments(self.repo, &cursor);
        let listing = self.ask(question).await?;
        self.server_time(listing.date);
        let next = self.next(REVIEW_COMMENTS, &listing);
        let mut arrivals = Vec::new();
        let mut moved: Vec<WorkItemRef> = Vec::new();
        let mut held = None;
        for comment in self.readable(listing.news) {
            let Some(row) = self.read_row(comment.number()).await? else {
                continue;
            };
            let Some(text) = Text::of_review_comment(&comment) else {
                continue;
            };
            match self.arrival(&row, text).await {
                Ok(Some(arrival)) => {
                    // The review that a new comment belongs to is in no list of its own.
                    if arrival.is_news() && !moved.contains(&row.item) {
                        moved.push(row.item.clone());
                    }
                    arrivals.push(arrival);
                }
                Ok(None) => {}
                Err(error) => Self::hold_back(&mut held, error)?,
            }
        }
        self.accept_texts(arrivals, moved, next, held).await
    }

    /// Accepts what a list holds and moves its cursor with it, unless something of it was held back.
    async fn accept_texts(
        &mut self,
        arrivals: Vec<Arrival>,
        mark_dirty: Vec<WorkItemRef>,
        next: CursorUpdate,
        held: Option<StepError>,
    ) -> Result<(), StepError> {
        let cursors = match &held {
            Some(_) => Vec::new(),
            None => self.if_moved(next).await?.into_iter().collect(),
        };
        self.accept_whole(Acceptance {
            arrivals,
            mark_dirty,
            cursors,
            ..Acceptance::default()
        })
        .await?;
        held.map_or(Ok(()), Err)
    }

    /// Returns the row of an item whose thread has been read once; until then that reading finds
    /// what the lists show.
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
}
