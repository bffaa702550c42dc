//! The whole list of work items, labelled ones or all that are open: read when a repository is first watched, and again every hour.
//!
//! What changes shows in the other lists. What is deleted or transferred shows in none: it is missed
//! here, and asked about.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::lists::{COMMENTS, ISSUES, OVERLAP, REVIEW_COMMENTS};
use super::repo::{RepoCycle, StepError};
use crate::github::GitHubError;
use crate::github::payload::Issue;
use crate::model::Source;
use crate::store::{Acceptance, Arming, Cursor, CursorUpdate, ItemRow, ItemSighting, Track};

/// The cursor of the whole list; its `since` is the first look.
const LISTING: &str = "listing";
/// How often the whole list is read.
const EVERY: TimeDelta = TimeDelta::hours(1);

/// Which reading of the list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    First,
    Again,
}

/// What became of an item that left the list.
enum Fate {
    /// It is there; the list was read beside a change.
    There(Box<Issue>),
    /// It was deleted, or is another repository's now.
    Over,
}

impl RepoCycle<'_> {
    /// The first time a repository is watched for a label, or for every open item: all of them.
    pub(super) async fn first_listing(&mut self) -> Result<(), StepError> {
        if self.listing_cursor().await?.is_some() {
            return Ok(());
        }
        self.whole_list(Reading::First).await
    }

    /// Reads the whole list again once it is an hour old.
    pub(super) async fn missing(&mut self) -> Result<(), StepError> {
        let Some(cursor) = self.listing_cursor().await? else {
            return Ok(());
        };
        let age = self.poller.clock.now() - cursor.last_success;
        // A clock that was set back must not put it off for as long.
        if age.abs() < EVERY {
            return Ok(());
        }
        self.whole_list(Reading::Again).await
    }

    /// Tells which list it is: what lets an item be on it.
    fn listing_kind(&self) -> String {
        let bearing = match self.policy().required_label(&self.source.label) {
            Some(label) => format!("labelled {label}"),
            None => "open".to_owned(),
        };
        let monitor = &self.source.monitor;
        format!(
            "issues={} pulls={} {bearing}",
            monitor.issues, monitor.pull_requests
        )
    }

    /// Returns where the list was read that is watched now. Its tag is ours and says which list that
    /// was: one that was left and is watched again begins anew.
    async fn listing_cursor(&self) -> Result<Option<Cursor>, StepError> {
        let name = self.cursor_name(LISTING);
        let cursor = self.poller.store.ledger().cursor(&name).await?;
        let kind = self.listing_kind();
        Ok(cursor.filter(|cursor| cursor.etag.as_ref() == Some(&kind)))
    }

    /// Tells whether the list was watched at that time, by GitHub's clock.
    pub(super) async fn watched_at(&self, time: Option<DateTime<Utc>>) -> Result<bool, StepError> {
        let first_look = self.listing_cursor().await?.and_then(|cursor| cursor.since);
        Ok(matches!((time, first_look), (Some(time), Some(first)) if time >= first))
    }

    async fn whole_list(&mut self, reading: Reading) -> Result<(), StepError> {
        let label = self.policy().required_label(&self.source.label);
        // Without a condition: what came and went since the last reading leaves the list as it was.
        let question = self.poller.github.open_issues(self.repo, label);
        let listing = self.ask(question).await?;
        let server_time = self.server_time(listing.date);
        let complete = listing
            .news
            .as_ref()
            .filter(|news| news.next.is_none() && news.bad.is_empty())
            .map(|news| news.items.iter().map(|issue| issue.number).collect());
        let mut items = Vec::new();
        let mut held = None;
        for issue in self.readable(listing.news) {
            match self.issue_sighting(&issue, server_time).await {
                Ok(sighting) => items.extend(sighting),
                Err(error) => Self::hold_back(&mut held, error)?,
            }
        }
        self.accept_items(&items, &mut held).await?;
        if reading == Reading::First {
            self.begin_lists(server_time).await?;
            // Whichever concern us now were none of our business before.
            self.read_pulls_again().await?;
        }
        // A part of a list proves nothing about what is not in it. The first list of another label
        // or policy lacks what only the last one armed.
        if let Some(listed) = complete {
            self.ask_about_missing(&listed, server_time).await?;
        }
        if let Some(error) = held {
            // Without its cursor the list is read again in the next cycle; the others go on.
            let what = self.cursor_name(LISTING);
            self.problem(&what, &error);
            return Ok(());
        }
        let first_look = self.listing_cursor().await?.and_then(|cursor| cursor.since);
        let done = CursorUpdate {
            name: self.cursor_name(LISTING),
            etag: Some(self.listing_kind()),
            since: first_look.or(Some(server_time)),
            last_success: self.poller.clock.now(),
        };
        self.accept(Acceptance {
            cursors: vec![done],
            ..Acceptance::default()
        })
        .await?;
        Ok(())
    }

    /// Lets the other lists begin where this one was read, unless they have begun already.
    async fn begin_lists(&mut self, server_time: DateTime<Utc>) -> Result<(), StepError> {
        for list in [ISSUES, COMMENTS, REVIEW_COMMENTS] {
            let name = self.cursor_name(list);
            if self.poller.store.ledger().cursor(&name).await?.is_none() {
                let cursor = self.update(list, None, Some(server_time - OVERLAP));
                self.finish(cursor).await?;
            }
        }
        Ok(())
    }

    /// Asks about each item that should be on the list and is not.
    async fn ask_about_missing(
        &mut self,
        listed: &HashSet<u64>,
        server_time: DateTime<Utc>,
    ) -> Result<(), StepError> {
        for row in self.poller.store.ledger().open_items_of(self.repo).await? {
            if listed.contains(&row.item.number()) {
                continue;
            }
            let what = format!("{} missing", row.item.key());
            match self.ask_where_it_matters(&row, server_time).await {
                Ok(()) => self.poller.failures.worked(&what),
                Err(error) if error.ends_the_step() => return Err(error),
                // Not found can also mean not visible: that ends nobody's agent.
                Err(error) => self.item_problem(&what, &row.item, &error),
            }
        }
        Ok(())
    }

    async fn ask_where_it_matters(
        &mut self,
        row: &ItemRow,
        server_time: DateTime<Utc>,
    ) -> Result<(), StepError> {
        if self.matters(row).await? {
            self.ask_about(row, server_time).await?;
        }
        Ok(())
    }

    /// Asks GitHub what a known item looks like now, and accepts that.
    pub(super) async fn ask_about(
        &mut self,
        row: &ItemRow,
        server_time: DateTime<Utc>,
    ) -> Result<(), StepError> {
        let sighting = match self.fate(row).await? {
            Fate::There(issue) => self.issue_sighting(&issue, server_time).await?,
            Fate::Over => Some(over(row, server_time)),
        };
        let mut held = None;
        self.accept_items(sighting.as_slice(), &mut held).await?;
        held.map_or(Ok(()), Err)
    }

    async fn matters(&self, row: &ItemRow) -> Result<bool, StepError> {
        let registry = self.poller.store.registry();
        Ok(row.armed || registry.open_session(row.id).await?.is_some())
    }

    async fn fate(&self, row: &ItemRow) -> Result<Fate, StepError> {
        let github = &self.poller.github;
        let to = match self.ask(github.issue(&row.item)).await {
            Ok(issue) => return Ok(Fate::There(Box::new(issue))),
            Err(StepError::GitHub(GitHubError::Gone { .. })) => return Ok(Fate::Over),
            Err(StepError::GitHub(GitHubError::Moved { to, .. })) => to,
            Err(error) => return Err(error),
        };
        let there = match self.ask(github.issue_at(&to)).await {
            Ok(issue) => issue,
            // It moved to where this token sees nothing.
            Err(StepError::GitHub(GitHubError::NotFound { .. })) => return Ok(Fate::Over),
            Err(error) => return Err(error),
        };
        // A renamed repository answers with a redirect as well, and its items are the same ones.
        let repository = self.ask(github.repository(self.repo)).await?;
        let name = repository.full_name.unwrap_or_default().to_lowercase();
        let home = there.repository_url.as_deref().unwrap_or_default();
        let is_same =
            there.number == row.item.number() && home.to_lowercase().ends_with(&format!("/{name}"));
        Ok(if is_same {
            Fate::There(Box::new(there))
        } else {
            Fate::Over
        })
    }
}

/// An item that is not there any more, as its closing.
fn over(row: &ItemRow, server_time: DateTime<Utc>) -> ItemSighting {
    ItemSighting {
        item: row.item.clone(),
        repo_id: row.repo_id,
        kind: row.kind,
        title: row.title.clone(),
        url: row.url.clone(),
        author: row.author.clone(),
        open: false,
        closed_at: Some(server_time),
        merged: false,
        updated_at: row.updated_at.max(server_time),
        arming: Arming::Disarmed,
        pull: None,
        seen_at: server_time,
        baseline_at: server_time,
        source: Source::Poll,
        track: Track::OnlyIfKnown,
    }
}
