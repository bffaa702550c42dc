//! Issues and pull requests as the lists show them, judged by policy: which concern us, which are
//! armed and by whom, and which work item a pull request serves.

use chrono::{DateTime, Utc};

use super::repo::{RepoCycle, StepError};
use crate::github::GitHubError;
use crate::github::payload::{Issue, IssueEvent, Label, Pull, login};
use crate::model::{ItemKind, Login, Source, WorkItemRef};
use crate::routing::policy::{Concern, is_label};
use crate::routing::resolve::{self, Author, Head, PullRequest};
use crate::store::{Arming, ItemSighting, Pull as PullFacts, Track};

/// Who opened an item, and when.
struct Opening<'a> {
    author: Option<&'a Login>,
    at: Option<DateTime<Utc>>,
}

impl RepoCycle<'_> {
    /// Turns an issue of a list into a sighting; none where GitHub left out when it changed, and none
    /// of an unknown pull request: only the list of pull requests tells which work item it serves, and
    /// one that serves another's must not get an agent of its own before that is known.
    pub(super) async fn issue_sighting(
        &self,
        issue: &Issue,
        seen_at: DateTime<Utc>,
    ) -> Result<Option<ItemSighting>, StepError> {
        let Some(updated_at) = issue.updated_at else {
            return Ok(None);
        };
        let item = self.repo.item(issue.number);
        let kind = if issue.pull_request.is_some() {
            ItemKind::PullRequest
        } else {
            ItemKind::Issue
        };
        if kind == ItemKind::PullRequest && self.poller.store.ledger().item(&item).await?.is_none()
        {
            return Ok(None);
        }
        let author = login(issue.user.as_ref());
        let open = issue.state.as_deref() != Some("closed");
        let concern = self.concern(kind, open, issue.labels.as_deref());
        let opening = Opening {
            author: author.as_ref(),
            at: issue.created_at,
        };
        let arming = self.arming(&item, concern, opening).await?;
        Ok(Some(ItemSighting {
            item,
            repo_id: None,
            kind,
            title: issue.title.clone().unwrap_or_default(),
            url: issue.html_url.clone().unwrap_or_default(),
            author,
            open,
            closed_at: issue.closed_at,
            merged: issue
                .pull_request
                .as_ref()
                .is_some_and(|pull| pull.merged_at.is_some()),
            updated_at,
            arming,
            pull: None,
            seen_at,
            baseline_at: seen_at,
            source: Source::Poll,
            track: match concern {
                Concern::None => Track::OnlyIfKnown,
                Concern::Watched | Concern::Armed => Track::Always,
            },
        }))
    }

    /// Turns an open pull request into a sighting; none where it does not concern us.
    pub(super) async fn pull_sighting(
        &self,
        pull: &Pull,
        seen_at: DateTime<Utc>,
    ) -> Result<Option<ItemSighting>, StepError> {
        let Some(updated_at) = pull.updated_at else {
            return Ok(None);
        };
        let item = self.repo.item(pull.number);
        let author = login(pull.user.as_ref());
        let concern = self.concern(ItemKind::PullRequest, true, pull.labels.as_deref());
        let facts = self.pull_facts(pull, author.as_ref()).await?;
        let serves = facts.as_ref().is_some_and(|facts| facts.binds_to.is_some());
        let known = self.poller.store.ledger().item(&item).await?;
        if concern == Concern::None && !serves && known.is_none() {
            return Ok(None);
        }
        let baseline_at = self.baseline_of(facts.as_ref(), seen_at).await?;
        let opening = Opening {
            author: author.as_ref(),
            at: pull.created_at,
        };
        let arming = self.arming(&item, concern, opening).await?;
        Ok(Some(ItemSighting {
            item,
            repo_id: pull
                .base
                .as_ref()
                .and_then(|base| base.repo.as_ref())
                .map(|repo| repo.id),
            kind: ItemKind::PullRequest,
            title: pull.title.clone().unwrap_or_default(),
            url: pull.html_url.clone().unwrap_or_default(),
            author,
            open: true,
            closed_at: None,
            merged: false,
            updated_at,
            arming,
            pull: facts,
            seen_at,
            baseline_at,
            source: Source::Poll,
            track: Track::Always,
        }))
    }

    /// Returns since when what is said on a pull request is news: where it serves a work item, since
    /// that one's first sight, because its agent is there already.
    async fn baseline_of(
        &self,
        facts: Option<&PullFacts>,
        seen_at: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, StepError> {
        let Some(served) = facts.and_then(|facts| facts.binds_to.as_ref()) else {
            return Ok(seen_at);
        };
        let row = self.poller.store.ledger().item(served).await?;
        Ok(row.map_or(seen_at, |row| seen_at.min(row.baseline_at)))
    }

    /// Returns a pull request's head, and the known work item that it serves.
    ///
    /// A text can name any issue: it counts only where the head is in this repository, or where its
    /// author is listed.
    async fn pull_facts(
        &self,
        pull: &Pull,
        author: Option<&Login>,
    ) -> Result<Option<PullFacts>, StepError> {
        let Some(head) = &pull.head else {
            return Ok(None);
        };
        let branch = head.branch.clone().unwrap_or_default();
        let home = pull
            .base
            .as_ref()
            .and_then(|base| base.repo.as_ref())
            .map(|repo| repo.id);
        let same_repo = home.is_some() && head.repo.as_ref().map(|repo| repo.id) == home;
        let named = resolve::binding(&PullRequest {
            repo: self.repo,
            number: pull.number,
            body: pull.body.as_deref().unwrap_or_default(),
            branch: head.branch.as_deref(),
            head: if same_repo {
                Head::SameRepository
            } else {
                Head::Elsewhere
            },
            author: if self.policy().authorizes(author) {
                Author::Listed
            } else {
                Author::Stranger
            },
        });
        // A number in a text may mean anything: only an item that is known is served.
        let mut binds_to = None;
        for candidate in named {
            if self.poller.store.ledger().item(&candidate).await?.is_some() {
                binds_to = Some(candidate);
                break;
            }
        }
        Ok(Some(PullFacts {
            head_sha: head.sha.clone(),
            head_branch: branch,
            same_repo,
            binds_to,
        }))
    }

    /// Tells what an item with these labels is to its source.
    fn concern(&self, kind: ItemKind, open: bool, labels: Option<&[Label]>) -> Concern {
        if !open || !self.monitors(kind) {
            return Concern::None;
        }
        let labels = labels.unwrap_or_default();
        let names = labels.iter().map(|label| label.name.as_str());
        self.policy().concern(&self.source.label, names)
    }

    /// Learns whether an item is armed, and by whom where that is what lets an agent start.
    async fn arming(
        &self,
        item: &WorkItemRef,
        concern: Concern,
        opening: Opening<'_>,
    ) -> Result<Arming, StepError> {
        let policy = self.policy();
        if concern != Concern::Armed {
            return Ok(Arming::Disarmed);
        }
        // Where a start is asked for, the start is the act that counts.
        if policy.requires_start() {
            return Ok(Arming::ByAct(None));
        }
        let known = self.poller.store.ledger().item(item).await?;
        let Some(label) = policy.required_label(&self.source.label) else {
            // The opening counts once, and only if this list was watched then. A known item was opened
            // before: whatever arms it now, a reopening or another policy, is not its author's act.
            let is_news = known.is_none() && self.watched_at(opening.at).await?;
            return Ok(match opening.author.filter(|_| is_news) {
                Some(author) => Arming::ByAct(Some(author.clone())),
                None => Arming::ByPolicy,
            });
        };
        if let Some(row) = known.filter(|row| row.armed) {
            return Ok(Arming::ByAct(row.armed_by));
        }
        // The list does not say whose the label is.
        match self.ask(self.poller.github.issue_events(item)).await {
            Ok(events) => Ok(Arming::ByAct(
                events
                    .items
                    .iter()
                    .rev()
                    .find(|event| adds_label(event, label))
                    .and_then(|event| login(event.actor.as_ref())),
            )),
            Err(StepError::GitHub(GitHubError::NotFound { .. } | GitHubError::Gone { .. })) => {
                Ok(Arming::ByAct(None))
            }
            Err(error) => Err(error),
        }
    }
}

fn adds_label(event: &IssueEvent, label: &str) -> bool {
    event.event.as_deref() == Some("labeled")
        && event
            .label
            .as_ref()
            .is_some_and(|added| is_label(&added.name, label))
}
