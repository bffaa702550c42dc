//! A work item as an ingress saw it.

use chrono::{DateTime, Utc};

use crate::model::{ItemKind, Login, Source, WorkItemRef};

/// Whether a sighting makes an item known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Track {
    /// The item gets a row if it has none.
    Always,
    /// An item without a row stays unknown.
    OnlyIfKnown,
}

/// What a pull request has beyond an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// The head's commit.
    pub head_sha: String,
    /// The head's branch.
    pub head_branch: String,
    /// Whether the head is in the pull request's own repository.
    pub same_repo: bool,
    /// The work item that it serves, where that could be learned.
    pub binds_to: Option<WorkItemRef>,
}

/// Whether an item may have a session of its own, and whose act lets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arming {
    /// It may not.
    Disarmed,
    /// Somebody's act lets it: a label, or the opening where every item may; nobody where it is not
    /// known who.
    ByAct(Option<Login>),
    /// The configuration lets it, and nobody acted: that is no event.
    ByPolicy,
}

impl Arming {
    /// Tells whether the item may have a session.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        *self != Self::Disarmed
    }

    pub(super) fn actor(&self) -> Option<&Login> {
        match self {
            Self::ByAct(actor) => actor.as_ref(),
            Self::Disarmed | Self::ByPolicy => None,
        }
    }
}

/// A work item as an ingress saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemSighting {
    /// Which one.
    pub item: WorkItemRef,
    /// The repository's number, where the payload has it; finds the item after a rename.
    pub repo_id: Option<u64>,
    /// Issue or pull request.
    pub kind: ItemKind,
    /// Its title.
    pub title: String,
    /// Where a person reads it.
    pub url: String,
    /// Who opened it.
    pub author: Option<Login>,
    /// Whether it is open.
    pub open: bool,
    /// When it was closed.
    pub closed_at: Option<DateTime<Utc>>,
    /// Whether it was merged.
    pub merged: bool,
    /// GitHub's time of its last change; an older sighting changes nothing.
    pub updated_at: DateTime<Utc>,
    /// Whether it may have a session.
    pub arming: Arming,
    /// The pull request's head and binding, where the payload has them.
    pub pull: Option<Pull>,
    /// Server time of the answer.
    pub seen_at: DateTime<Utc>,
    /// Since when what is said on it is news, if this is its first sight.
    pub baseline_at: DateTime<Utc>,
    /// Which ingress saw it.
    pub source: Source,
    /// Whether an unknown item becomes known.
    pub track: Track,
}

impl ItemSighting {
    /// Makes an item known that a command on this machine names, at this machine's time.
    ///
    /// What GitHub says of it later is newer, and fills in the rest.
    #[must_use]
    pub fn introduced(item: &WorkItemRef, now: DateTime<Utc>) -> Self {
        let repo = item.repo();
        Self {
            item: item.clone(),
            repo_id: None,
            kind: ItemKind::Issue,
            title: String::new(),
            url: format!(
                "https://{}/{}/{}/issues/{}",
                repo.host(),
                repo.owner(),
                repo.name(),
                item.number()
            ),
            author: None,
            open: true,
            closed_at: None,
            merged: false,
            updated_at: DateTime::UNIX_EPOCH,
            arming: Arming::Disarmed,
            pull: None,
            seen_at: now,
            baseline_at: now,
            source: Source::Cli,
            track: Track::Always,
        }
    }
}
