//! What the lists do not say: the thread of an item seen for the first time, and the reviews of a
//! pull request that moved.

use super::inputs::Text;
use super::repo::{RepoCycle, StepError};
use crate::eventlog::Decision;
use crate::model::{Class, ItemKind};
use crate::routing::guard::{Verdict, judge};
use crate::store::{Acceptance, Arrival, Disposition, ItemRow};

impl RepoCycle<'_> {
    /// Asks for the details of every dirty item; a failing one stays dirty and stops no other.
    pub(super) async fn details(&mut self) -> Result<(), StepError> {
        let rows = self.poller.store.ledger().dirty(self.repo).await?;
        for row in rows {
            if self.stop.is_cancelled() {
                self.report.interrupted = true;
                return Ok(());
            }
            let what = format!("{} details", row.item.key());
            if !self.poller.failures.may_ask(&what, self.poller.clock.now()) {
                continue;
            }
            match self.detail(&row).await {
                Ok(()) => self.poller.failures.worked(&what),
                Err(error) if error.ends_the_step() => return Err(error),
                Err(error) => self.item_problem(&what, &row.item, &error),
            }
        }
        Ok(())
    }

    async fn detail(&mut self, row: &ItemRow) -> Result<(), StepError> {
        // Cleared only if nobody marked it again while it was read.
        let Some(mark) = row.dirty else { return Ok(()) };
        // Until GitHub has shown it, it is not known what is old, nor which of the two kinds it is.
        if !row.was_shown() {
            return Ok(());
        }
        let mut held = None;
        let mut arrivals = Vec::new();
        if row.details_at.is_none() {
            arrivals.extend(self.thread(row, &mut held).await?);
        }
        if row.kind == ItemKind::PullRequest {
            arrivals.extend(self.reviews(row, &mut held).await?);
        }
        if row.details_at.is_none() {
            self.keep_last_control_word(row, &mut arrivals);
            let old = arrivals.iter().filter(|arrival| !arrival.is_news()).count();
            if old > 0 {
                self.poller.log.emit(&Decision::InboxBaselined {
                    work_item: row.item.clone(),
                    count: old as u64,
                });
            }
        }
        if let Some(error) = held {
            let whole = Acceptance {
                arrivals,
                ..Acceptance::default()
            };
            self.accept_whole(whole).await?;
            return Err(error);
        }
        // GitHub's times tick in seconds: a review that follows in the second of the last change moves
        // no list, so that the item is read once more when that second is over.
        let may_follow = row.kind == ItemKind::PullRequest
            && self.server_now.is_none_or(|now| now <= row.updated_at);
        let again = may_follow.then(|| row.item.clone());
        self.accept_whole(Acceptance {
            arrivals,
            mark_dirty: again.into_iter().collect(),
            clear_dirty: vec![(row.item.clone(), mark)],
            ..Acceptance::default()
        })
        .await
    }

    /// Reads the whole conversation, and the comments on lines.
    async fn thread(
        &mut self,
        row: &ItemRow,
        held: &mut Option<StepError>,
    ) -> Result<Vec<Arrival>, StepError> {
        let comments = self.ask(self.poller.github.comments_of(&row.item)).await?;
        let comments = self.readable(Some(comments));
        let texts = comments.iter().filter_map(Text::of_comment).collect();
        let mut arrivals = self.arrivals(row, texts, held).await?;
        if row.kind == ItemKind::PullRequest {
            arrivals.extend(self.line_comments(row, held).await?);
        }
        Ok(arrivals)
    }

    async fn line_comments(
        &mut self,
        row: &ItemRow,
        held: &mut Option<StepError>,
    ) -> Result<Vec<Arrival>, StepError> {
        let comments = self
            .ask(self.poller.github.review_comments_of(&row.item))
            .await?;
        let comments = self.readable(Some(comments));
        let texts = comments
            .iter()
            .filter_map(Text::of_review_comment)
            .collect();
        self.arrivals(row, texts, held).await
    }

    async fn reviews(
        &mut self,
        row: &ItemRow,
        held: &mut Option<StepError>,
    ) -> Result<Vec<Arrival>, StepError> {
        let reviews = self.ask(self.poller.github.reviews(&row.item)).await?;
        let reviews = self.readable(Some(reviews));
        // A pending review is a draft that only its author sees.
        let texts = reviews.iter().filter_map(Text::of_review).collect();
        let mut arrivals = self.arrivals(row, texts, held).await?;
        // One review is one message: its comments on lines are accepted together with it.
        if row.details_at.is_some() && arrivals.iter().any(Arrival::is_news) {
            arrivals.extend(self.line_comments(row, held).await?);
        }
        Ok(arrivals)
    }

    async fn arrivals(
        &self,
        row: &ItemRow,
        texts: Vec<Text>,
        held: &mut Option<StepError>,
    ) -> Result<Vec<Arrival>, StepError> {
        let mut arrivals = Vec::new();
        for text in texts {
            match self.arrival(row, text).await {
                Ok(arrival) => arrivals.extend(arrival),
                Err(error) => Self::hold_back(held, error)?,
            }
        }
        Ok(arrivals)
    }

    /// Lets the last control word of an old thread count, if nobody acted on one yet.
    ///
    /// A daemon that is started after the comment `the-loop start` must not wait for a second one;
    /// earlier words of the same thread are overtaken by the last.
    fn keep_last_control_word(&self, row: &ItemRow, arrivals: &mut [Arrival]) {
        if row.control.is_some() {
            return;
        }
        let policy = self.policy();
        let last = arrivals
            .iter_mut()
            .filter(|arrival| matches!(arrival.disposition, Disposition::Baseline))
            .filter(|arrival| matches!(judge(&arrival.event, &policy), Verdict::Control(_)))
            .max_by_key(|arrival| arrival.event.occurred_at);
        if let Some(arrival) = last {
            arrival.disposition = Disposition::Deliver {
                class: Class::Control,
            };
        }
    }
}
