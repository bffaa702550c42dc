//! The two lists of what people write: comments in conversations, and comments on lines.

use super::inputs::Text;
use super::lists::{COMMENTS, REVIEW_COMMENTS};
use super::repo::{RepoCycle, StepError};
use crate::model::WorkItemRef;
use crate::store::{Acceptance, Arrival, CursorUpdate, StoreError};

/// What one reading of a list came to.
#[derive(Default)]
struct Texts {
    arrivals: Vec<Arrival>,
    /// The items whose reviews are to be asked for.
    moved: Vec<WorkItemRef>,
    /// The items whose rows cannot be read.
    unread: Vec<WorkItemRef>,
    /// The first failure that the list is read once more for.
    held: Option<StepError>,
    /// The first that it is not.
    put_off: Option<StepError>,
}

impl RepoCycle<'_> {
    /// Every new or edited comment in a conversation.
    pub(super) async fn comments(&mut self) -> Result<(), StepError> {
        let cursor = self.position(COMMENTS).await?;
        let question = self.poller.github.issue_comments(self.repo, &cursor);
        let listing = self.ask(question).await?;
        self.server_time(listing.date);
        let next = self.next(COMMENTS, &listing);
        let mut texts = Texts::default();
        for comment in self.readable(listing.news) {
            let text = Text::of_comment(&comment);
            match self.arrival_on(comment.number(), text).await {
                Ok(found) => texts.arrivals.extend(found.map(|(_, arrival)| arrival)),
                Err(error) => self.put_off(&mut texts, comment.number(), error)?,
            }
        }
        self.accept_texts(texts, next).await
    }

    /// Every new or edited comment on a line of a pull request.
    pub(super) async fn review_comments(&mut self) -> Result<(), StepError> {
        let cursor = self.position(REVIEW_COMMENTS).await?;
        let question = self.poller.github.review_comments(self.repo, &cursor);
        let listing = self.ask(question).await?;
        self.server_time(listing.date);
        let next = self.next(REVIEW_COMMENTS, &listing);
        let mut texts = Texts::default();
        for comment in self.readable(listing.news) {
            let text = Text::of_review_comment(&comment);
            match self.arrival_on(comment.number(), text).await {
                Ok(Some((item, arrival))) => {
                    // The review that a new comment belongs to is in no list of its own.
                    if arrival.is_news() && !texts.moved.contains(&item) {
                        texts.moved.push(item);
                    }
                    texts.arrivals.push(arrival);
                }
                Ok(None) => {}
                Err(error) => self.put_off(&mut texts, comment.number(), error)?,
            }
        }
        self.accept_texts(texts, next).await
    }

    /// Puts off a text whose item cannot be read: once it can, its whole thread is read anew, so that the
    /// list need not wait for it. After any other failure the list is read once more.
    fn put_off(
        &self,
        texts: &mut Texts,
        number: Option<u64>,
        error: StepError,
    ) -> Result<(), StepError> {
        let (Some(number), StepError::Store(StoreError::BadRow { .. })) = (number, &error) else {
            return Self::hold_back(&mut texts.held, error);
        };
        let item = self.repo.item(number);
        if !texts.unread.contains(&item) {
            texts.unread.push(item);
        }
        texts.put_off.get_or_insert(error);
        Ok(())
    }

    /// Accepts what a list holds and moves its cursor with it, unless something of it was held back.
    async fn accept_texts(&mut self, texts: Texts, next: CursorUpdate) -> Result<(), StepError> {
        let cursors = match &texts.held {
            Some(_) => Vec::new(),
            None => self.if_moved(next).await?.into_iter().collect(),
        };
        self.accept_whole(Acceptance {
            arrivals: texts.arrivals,
            mark_dirty: texts.moved,
            read_anew: texts.unread,
            cursors,
            ..Acceptance::default()
        })
        .await?;
        texts.held.or(texts.put_off).map_or(Ok(()), Err)
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
