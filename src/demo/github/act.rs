//! What people do: open, label, comment, review, push, close.

use super::LocalGitHub;
use super::edit::NoSuchThing;
use super::world::{Comment, Fate, Item, ItemEvent, PullPart, Review, ReviewComment, Text, World};

/// How a pull request is opened.
#[derive(Debug, Clone, Default)]
pub struct PullOptions<'a> {
    /// Who opens it.
    pub author: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its text.
    pub body: &'a str,
    /// The branch with the work.
    pub head_branch: &'a str,
    /// The commit on it.
    pub head_sha: &'a str,
    /// The fork that the branch is in, as `owner/name`; None: the same repository.
    pub fork: Option<&'a str>,
    /// Whether it is a draft.
    pub draft: bool,
}

impl World {
    fn open(&mut self, repo: &str, text: Text, title: &str, pull: Option<PullPart>) -> u64 {
        self.account(&text.author);
        let id = self.next_id();
        let repo = self.repo_or_new(repo);
        repo.last_number += 1;
        let number = repo.last_number;
        repo.items.insert(
            number,
            Item {
                id,
                number,
                title: title.to_owned(),
                text,
                labels: Vec::new(),
                closed: None,
                pull,
                events: Vec::new(),
                fate: Fate::Here,
            },
        );
        self.happens();
        number
    }

    /// Records an act on an item: its event, its time.
    fn act(
        &mut self,
        repo: &str,
        number: u64,
        actor: &str,
        what: &'static str,
        label: Option<&str>,
    ) -> Result<(), NoSuchThing> {
        self.account(actor);
        self.touch(repo, number)?;
        let event = ItemEvent {
            id: self.next_id(),
            what,
            actor: actor.to_owned(),
            label: label.map(str::to_owned),
            at: self.now(),
        };
        self.repo_mut(repo)?.item_mut(number)?.events.push(event);
        Ok(())
    }

    pub(super) fn add_comment(
        &mut self,
        repo: &str,
        number: u64,
        login: &str,
        body: &str,
    ) -> Result<u64, NoSuchThing> {
        self.account(login);
        self.touch(repo, number)?;
        let (id, now) = (self.next_id(), self.now());
        let text = Text::new(login, Some(body), now);
        self.repo_mut(repo)?
            .comments
            .insert(id, Comment { number, text });
        self.happens();
        Ok(id)
    }

    pub(super) fn add_label(
        &mut self,
        repo: &str,
        number: u64,
        login: &str,
        label: &str,
    ) -> Result<(), NoSuchThing> {
        let item = self.repo_mut(repo)?.item_mut(number)?;
        if item
            .labels
            .iter()
            .any(|has| has.eq_ignore_ascii_case(label))
        {
            return Ok(());
        }
        item.labels.push(label.to_owned());
        self.act(repo, number, login, "labeled", Some(label))?;
        self.happens();
        Ok(())
    }

    pub(super) fn remove_label(
        &mut self,
        repo: &str,
        number: u64,
        login: &str,
        label: &str,
    ) -> Result<(), NoSuchThing> {
        let item = self.repo_mut(repo)?.item_mut(number)?;
        let before = item.labels.len();
        item.labels.retain(|has| !has.eq_ignore_ascii_case(label));
        if item.labels.len() < before {
            self.act(repo, number, login, "unlabeled", Some(label))?;
            self.happens();
        }
        Ok(())
    }

    /// Moves the time of a pull request, but not that of its issue.
    fn touch_pull(&mut self, repo: &str, number: u64) -> Result<&mut PullPart, NoSuchThing> {
        let now = self.now();
        let missing = NoSuchThing(format!("pull request {repo}#{number}"));
        let pull = self.repo_mut(repo)?.item_mut(number)?.pull.as_mut();
        let pull = pull.ok_or(missing)?;
        pull.updated = now;
        Ok(pull)
    }
}

impl LocalGitHub {
    /// Makes a repository, `owner/name`; every other act makes it too where it is missing.
    pub fn repo(&self, full_name: &str) -> u64 {
        self.world().repo_or_new(full_name).id
    }

    /// Opens an issue and returns its number.
    pub fn open_issue(&self, repo: &str, login: &str, title: &str, body: &str) -> u64 {
        let world = &mut *self.world();
        let text = Text::new(login, (!body.is_empty()).then_some(body), world.now());
        world.open(repo, text, title, None)
    }

    /// Opens a pull request and returns its number.
    pub fn open_pull(&self, repo: &str, options: &PullOptions<'_>) -> u64 {
        let world = &mut *self.world();
        let now = world.now();
        let body = (!options.body.is_empty()).then_some(options.body);
        let text = Text::new(options.author, body, now);
        let pull = PullPart {
            id: world.next_id(),
            head_branch: options.head_branch.to_owned(),
            head_sha: options.head_sha.to_owned(),
            fork: options.fork.map(str::to_owned),
            base_branch: "main".to_owned(),
            draft: options.draft,
            merged: None,
            updated: now,
        };
        world.open(repo, text, options.title, Some(pull))
    }

    /// Puts a label on an issue or pull request.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn label(
        &self,
        repo: &str,
        number: u64,
        login: &str,
        label: &str,
    ) -> Result<(), NoSuchThing> {
        self.world().add_label(repo, number, login, label)
    }

    /// Takes a label off.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn unlabel(
        &self,
        repo: &str,
        number: u64,
        login: &str,
        label: &str,
    ) -> Result<(), NoSuchThing> {
        self.world().remove_label(repo, number, login, label)
    }

    /// Comments on an issue or pull request and returns the comment's id.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn comment(
        &self,
        repo: &str,
        number: u64,
        login: &str,
        body: &str,
    ) -> Result<u64, NoSuchThing> {
        self.world().add_comment(repo, number, login, body)
    }

    /// Reviews a pull request and returns the review's id; `state` as GitHub writes it: `APPROVED`,
    /// `CHANGES_REQUESTED`, `COMMENTED`.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn review(
        &self,
        repo: &str,
        number: u64,
        login: &str,
        state: &str,
        body: &str,
    ) -> Result<u64, NoSuchThing> {
        let world = &mut *self.world();
        world.account(login);
        let commit = world.touch_pull(repo, number)?.head_sha.clone();
        let (id, now) = (world.next_id(), world.now());
        let review = Review {
            number,
            state: state.to_owned(),
            commit,
            text: Text::new(login, Some(body), now),
        };
        world.repo_mut(repo)?.reviews.insert(id, review);
        world.happens();
        Ok(id)
    }

    /// Comments on a line and returns the comment's id. Without a review it makes one of its own, as
    /// GitHub does: `COMMENTED`, without a text.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn review_comment(
        &self,
        repo: &str,
        number: u64,
        login: &str,
        review: Option<u64>,
        (path, line): (&str, u64),
        body: &str,
    ) -> Result<u64, NoSuchThing> {
        let review = match review {
            Some(review) => review,
            None => self.review(repo, number, login, "COMMENTED", "")?,
        };
        let world = &mut *self.world();
        world.account(login);
        world.touch_pull(repo, number)?;
        let (id, now) = (world.next_id(), world.now());
        let comment = ReviewComment {
            number,
            review,
            path: path.to_owned(),
            line: Some(line),
            reply_to: None,
            text: Text::new(login, Some(body), now),
        };
        world.repo_mut(repo)?.review_comments.insert(id, comment);
        world.happens();
        Ok(id)
    }

    /// Answers a comment on a line, in its thread, and returns the answer's id.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn reply(&self, repo: &str, to: u64, login: &str, body: &str) -> Result<u64, NoSuchThing> {
        let missing = || NoSuchThing(format!("review comment {to} in {repo}"));
        let (number, path, line) = {
            let world = &mut *self.world();
            let comments = &world.repo_mut(repo)?.review_comments;
            let root = comments.get(&to).ok_or_else(missing)?;
            (root.number, root.path.clone(), root.line)
        };
        let place = (path.as_str(), line.unwrap_or_default());
        let id = self.review_comment(repo, number, login, None, place, body)?;
        let world = &mut *self.world();
        if let Some(answer) = world.repo_mut(repo)?.review_comments.get_mut(&id) {
            answer.reply_to = Some(to);
        }
        world.happens();
        Ok(id)
    }

    /// Pushes a commit to a pull request's branch.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn push(&self, repo: &str, number: u64, sha: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        sha.clone_into(&mut world.touch_pull(repo, number)?.head_sha);
        world.happens();
        Ok(())
    }

    /// Closes an issue or pull request.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn close(&self, repo: &str, number: u64, login: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        world.act(repo, number, login, "closed", None)?;
        let now = world.now();
        world.repo_mut(repo)?.item_mut(number)?.closed = Some((now, login.to_owned()));
        world.happens();
        Ok(())
    }

    /// Opens an issue or pull request again.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn reopen(&self, repo: &str, number: u64, login: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        world.act(repo, number, login, "reopened", None)?;
        world.repo_mut(repo)?.item_mut(number)?.closed = None;
        world.happens();
        Ok(())
    }

    /// Merges a pull request, which closes it.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn merge(&self, repo: &str, number: u64, login: &str) -> Result<(), NoSuchThing> {
        {
            let world = &mut *self.world();
            let now = world.now();
            world.touch_pull(repo, number)?.merged = Some(now);
        }
        self.close(repo, number, login)
    }
}
