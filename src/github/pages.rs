//! The pages of one list, put together.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use super::payload::{
    CheckRun, Comment, CommitStatus, Issue, IssueEvent, Pull, Review, ReviewComment, WorkflowRun,
    parse_list,
};
use super::{Answer, Elements, GitHubError, NextPage};

/// What paging needs to know of an object.
pub(super) trait Object: DeserializeOwned {
    /// What tells it from the others of its list.
    fn id(&self) -> u64;
    /// When it last changed.
    fn updated_at(&self) -> Option<DateTime<Utc>>;
}

macro_rules! objects {
    ($($name:ident: $id:ident, $updated:ident;)+) => {
        $(impl Object for $name {
            fn id(&self) -> u64 { self.$id }
            fn updated_at(&self) -> Option<DateTime<Utc>> { self.$updated }
        })+
    };
}

objects! {
    Issue: number, updated_at;
    Pull: number, updated_at;
    Comment: id, updated_at;
    ReviewComment: id, updated_at;
    Review: id, submitted_at;
    IssueEvent: id, created_at;
    WorkflowRun: id, updated_at;
    CheckRun: id, completed_at;
    CommitStatus: id, updated_at;
}

/// Pages put together: an object that moved between two requests counts once, as it was last seen.
pub(super) struct Pages<T> {
    items: Vec<T>,
    at: HashMap<u64, usize>,
    bad: Vec<GitHubError>,
    /// How many pages were read.
    pub(super) read: usize,
}

impl<T: Object> Pages<T> {
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
            at: HashMap::new(),
            bad: Vec::new(),
            read: 0,
        }
    }

    /// Adds a page; returns how many objects it had and the newest time among them.
    pub(super) fn add(
        &mut self,
        answer: &Answer,
        key: Option<&str>,
    ) -> Result<(usize, Option<DateTime<Utc>>), GitHubError> {
        let (items, bad) = parse_list::<T>(&answer.body, key, &answer.url)?;
        let count = items.len() + bad.len();
        let newest = items.iter().filter_map(Object::updated_at).max();
        self.read += 1;
        self.bad.extend(bad);
        for item in items {
            match self.at.get(&item.id()) {
                Some(at) => self.items[*at] = item,
                None => {
                    self.at.insert(item.id(), self.items.len());
                    self.items.push(item);
                }
            }
        }
        Ok((count, newest))
    }

    pub(super) fn into_elements(self, next: Option<String>) -> Elements<T> {
        Elements {
            items: self.items,
            bad: self.bad,
            next: next.map(NextPage::new),
        }
    }
}
