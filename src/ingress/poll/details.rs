//! What the lists do not say: the thread of an item seen for the first time, and the reviews of a
//! pull request that moved.

use super::inputs::Text;
use super::repo::{RepoCycle, StepError};
use crate::eventlog::Decision;
use crate::github::GitHubError;
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
            match self.detail(&row).await {
                Ok(()) => {}
                Err(error) if ends_the_cycle(&error) => return Err(error),
                Err(error) => {
                    self.report
                        .errors
                        .push(format!("{}: {error}", row.item.short()));
                    self.poller.log.emit(&Decision::PollItemError {
                        work_item: row.item.clone(),
                        error: error.to_string(),
                        will_retry: true,
                    });
                }
            }
        }
        Ok(())
    }

    async fn detail(&mut self, row: &ItemRow) -> Result<(), StepError> {
        // Cleared only if nobody marked it again while it was read.
        let Some(mark) = row.dirty else { return Ok(()) };
        let mut arrivals = Vec::new();
        if row.details_at.is_none() {
            arrivals.extend(self.thread(row).await?);
        }
        if row.kind == ItemKind::PullRequest {
            arrivals.extend(self.reviews(row).await?);
        }
        if row.details_at.is_none() {
            self.keep_last_control_word(row, &mut arrivals);
            let old = arrivals
                .iter()
                .filter(|arrival| arrival.disposition == Disposition::Baseline)
                .count();
            if old > 0 {
                self.poller.log.emit(&Decision::InboxBaselined {
                    work_item: row.item.clone(),
                    count: old as u64,
                });
            }
        }
        self.accept_arrivals(arrivals, Vec::new()).await?;
        let clear_dirty = vec![(row.item.clone(), mark)];
        self.accept(Acceptance {
            clear_dirty,
            ..Acceptance::default()
        })
        .await
    }

    /// Reads the whole conversation, and the comments on lines.
    async fn thread(&mut self, row: &ItemRow) -> Result<Vec<Arrival>, StepError> {
        let mut arrivals = Vec::new();
        let comments = self.poller.github.comments_of(&row.item).await?;
        for comment in self.readable(Some(comments)) {
            let Some(text) = Text::of_comment(&comment) else {
                continue;
            };
            arrivals.extend(self.arrival(row, text).await?);
        }
        if row.kind == ItemKind::PullRequest {
            let comments = self.poller.github.review_comments_of(&row.item).await?;
            for comment in self.readable(Some(comments)) {
                let Some(text) = Text::of_review_comment(&comment) else {
                    continue;
                };
                arrivals.extend(self.arrival(row, text).await?);
            }
        }
        Ok(arrivals)
    }

    async fn reviews(&mut self, row: &ItemRow) -> Result<Vec<Arrival>, StepError> {
        let mut arrivals = Vec::new();
        let reviews = self.poller.github.reviews(&row.item).await?;
        for review in self.readable(Some(reviews)) {
            // A pending review is a draft that only its author sees.
            let Some(text) = Text::of_review(&review) else {
                continue;
            };
            arrivals.extend(self.arrival(row, text).await?);
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

fn ends_the_cycle(error: &StepError) -> bool {
    match error {
        StepError::GitHub(error) => matches!(
            error,
            GitHubError::RateLimited { .. } | GitHubError::Unauthorized { .. }
        ),
        StepError::Store(_) => true,
    }
}
