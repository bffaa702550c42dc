//! The two lists of what people write: comments in conversations, and comments on lines.

use super::inputs::Text;
use super::lists::{COMMENTS, REVIEW_COMMENTS};
use super::repo::{RepoCycle, StepError};
use crate::model::WorkItemRef;
use crate::store::{Acceptance, Arrival, CursorUpdate};

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
            let text = Text::of_comment(&comment);
            match self.arrival_on(comment.number(), text).await {
                Ok(found) => arrivals.extend(found.map(|(_, arrival)| arrival)),
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
            let text = Text::of_review_comment(&comment);
            match self.arrival_on(comment.number(), text).await {
                Ok(Some((item, arrival))) => {
                    // The review that a new comment belongs to is in no list of its own.
                    if arrival.is_news() && !moved.contains(&item) {
                        moved.push(item);
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

    /// Turns what a list shows into an arrival, if the item's thread has been read once; until then
    /// that reading finds what the lists show.
    async fn arrival_on(
        &self,
        number: Option<u64>,
        text: Option<Text>,
    ) -> Result<Option<(WorkItemRef, Arrival)>, StepError> {
        let (Some(number), Some(text)) = (number, text) else {
            return Ok(None);
        };
        let item = self.repo.item(number);
        let known = self.poller.store.ledger().item(&item).await?;
        let Some(row) = known.filter(|row| row.details_at.is_some()) else {
            return Ok(None);
        };
        let arrival = self.arrival(&row, text).await?;
        Ok(arrival.map(|arrival| (row.item, arrival)))
    }
}
