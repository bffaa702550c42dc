//! Things that happen to what is already there: edits, deletions, moves, whole accounts.

use axum::http::StatusCode;

use super::LocalGitHub;
use super::world::{Fate, Text, World};

/// An act on something that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the local GitHub has no {0}")]
pub struct NoSuchThing(pub String);

impl World {
    /// Finds a text by id and returns it with the number of its item.
    fn text_mut(&mut self, repo: &str, id: u64) -> Result<(u64, &mut Text), NoSuchThing> {
        let repo = self.repo_mut(repo)?;
        let missing = NoSuchThing(format!("text {id} in {}", repo.full_name()));
        if let Some(comment) = repo.comments.get_mut(&id) {
            return Ok((comment.number, &mut comment.text));
        }
        if let Some(review) = repo.reviews.get_mut(&id) {
            return Ok((review.number, &mut review.text));
        }
        match repo.review_comments.get_mut(&id) {
            Some(comment) => Ok((comment.number, &mut comment.text)),
            None => Err(missing),
        }
    }

    /// Moves an item's time, and with it that of its pull request.
    pub(super) fn touch(&mut self, repo: &str, number: u64) -> Result<(), NoSuchThing> {
        let now = self.now();
        let item = self.repo_mut(repo)?.item_mut(number)?;
        item.text.updated = now;
        if let Some(pull) = &mut item.pull {
            pull.updated = now;
        }
        Ok(())
    }
}

impl LocalGitHub {
    /// Changes a comment, review or review comment, as `editor`.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn edit(&self, repo: &str, id: u64, editor: &str, body: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        world.account(editor);
        let now = world.now();
        let (number, text) = world.text_mut(repo, id)?;
        text.body = Some(body.to_owned());
        text.updated = now;
        text.edited = Some((now, editor.to_owned()));
        world.touch(repo, number)?;
        world.happens();
        Ok(())
    }

    /// Moves a text's `updated_at` without an edit, as GitHub does now and then.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn touch_text(&self, repo: &str, id: u64) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        let now = world.now();
        world.text_mut(repo, id)?.1.updated = now;
        world.happens();
        Ok(())
    }

    /// Changes the verdict of a review, for example to `DISMISSED`.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn set_review_state(&self, repo: &str, id: u64, state: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        let reviews = &mut world.repo_mut(repo)?.reviews;
        let missing = || NoSuchThing(format!("review {id} in {repo}"));
        let review = reviews.get_mut(&id).ok_or_else(missing)?;
        state.clone_into(&mut review.state);
        let number = review.number;
        world.touch(repo, number)?;
        world.happens();
        Ok(())
    }

    /// Deletes a comment, review or review comment.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn delete(&self, repo: &str, id: u64) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        let (number, _) = world.text_mut(repo, id)?;
        let found = world.repo_mut(repo)?;
        found.comments.remove(&id);
        found.reviews.remove(&id);
        found.review_comments.remove(&id);
        world.touch(repo, number)?;
        world.happens();
        Ok(())
    }

    /// Changes title and body of an issue or pull request, as `editor`.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn edit_item(
        &self,
        repo: &str,
        number: u64,
        editor: &str,
        title: &str,
        body: &str,
    ) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        world.account(editor);
        world.touch(repo, number)?;
        let now = world.now();
        let item = world.repo_mut(repo)?.item_mut(number)?;
        title.clone_into(&mut item.title);
        item.text.body = Some(body.to_owned());
        item.text.edited = Some((now, editor.to_owned()));
        world.happens();
        Ok(())
    }

    /// Deletes an account: everything it wrote has `"user": null` from now on.
    pub fn delete_account(&self, login: &str) {
        let world = &mut *self.world();
        world.account(login).deleted = true;
        world.happens();
    }

    /// Deletes an issue: it leaves the lists and answers 410.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn delete_issue(&self, repo: &str, number: u64) -> Result<(), NoSuchThing> {
        self.set_fate(repo, number, Fate::Refused(StatusCode::GONE))
    }

    /// Takes an issue out of sight: it leaves the lists and answers 404.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn hide_issue(&self, repo: &str, number: u64) -> Result<(), NoSuchThing> {
        self.set_fate(repo, number, Fate::Refused(StatusCode::NOT_FOUND))
    }

    /// Transfers an issue to another repository and returns its number there; the old one answers 301.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn transfer_issue(&self, repo: &str, number: u64, to: &str) -> Result<u64, NoSuchThing> {
        let (title, author, body) = {
            let world = &mut *self.world();
            let item = world.repo_mut(repo)?.item_mut(number)?;
            (
                item.title.clone(),
                item.text.author.clone(),
                item.text.body.clone(),
            )
        };
        let arrived = self.open_issue(to, &author, &title, body.as_deref().unwrap_or_default());
        let id = self.world().repo_mut(to)?.id;
        self.set_fate(repo, number, Fate::Moved(id, arrived))?;
        Ok(arrived)
    }

    /// Renames a repository: reads of the old name are redirected, writes to it are not.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn rename_repo(&self, from: &str, to: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        let repo = world.repo_mut(from)?;
        let (owner, name) = to.split_once('/').unwrap_or((to, to));
        owner.clone_into(&mut repo.owner);
        name.clone_into(&mut repo.name);
        let id = repo.id;
        world.names.insert(to.to_ascii_lowercase(), id);
        world.happens();
        Ok(())
    }

    /// Makes a repository read-only: writes answer 403.
    ///
    /// # Errors
    /// [`NoSuchThing`].
    pub fn archive_repo(&self, repo: &str) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        world.repo_mut(repo)?.archived = true;
        world.happens();
        Ok(())
    }

    fn set_fate(&self, repo: &str, number: u64, fate: Fate) -> Result<(), NoSuchThing> {
        let world = &mut *self.world();
        world.repo_mut(repo)?.item_mut(number)?.fate = fate;
        world.happens();
        Ok(())
    }
}
