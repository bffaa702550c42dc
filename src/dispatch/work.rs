//! One claim, from its guards to its conclusion.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::attempt::Ran;
use super::conclude::{Conclusion, Step};
use super::deliver::after;
use super::error::WorkError;
use super::fence::Lease;
use super::records;
use crate::model::{Class, DropReason, EventKind, HoldReason, SessionStatus};
use crate::process::panic::{Panicked, caught};
use crate::routing::guard::{Verdict, judge};
use crate::runner::{Machine, TmuxServer};
use crate::store::{Claim, ItemRow, LONGEST_WAIT, Release, StoreError};

/// How long a delivery that waits for a person waits before it looks again by itself.
pub(super) const LOOK_AGAIN_SOON: Duration = Duration::from_secs(2);

/// How long a claim that makes way leaves the item alone, so that the command is claimed first.
const WAY: Duration = Duration::from_millis(100);

/// What the work on a claim did to its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worked {
    /// Their text is in the session.
    Delivered,
    /// An attempt failed.
    Failed,
    /// They are settled without a word to the agent.
    Settled,
    /// They wait as before.
    Waits,
}

impl Worked {
    fn by(conclusion: &Conclusion) -> Self {
        match conclusion {
            Conclusion::Delivered(_) => Self::Delivered,
            Conclusion::Failed(_) => Self::Failed,
            Conclusion::Executed(_) | Conclusion::Dropped(_) | Conclusion::Skipped { .. } => {
                Self::Settled
            }
            Conclusion::Held { .. } => Self::Waits,
        }
    }
}

/// Whether a claim began with attempts left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budget {
    Left,
    Spent,
}

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Works a claim to its end, whatever that is.
    pub(super) async fn work(&self, claim: Arc<Claim>) -> Worked {
        let _lease = Lease::keep(self.deduper.clone(), &claim);
        let budget = self.budget(&claim);
        let ended = match caught(self.decide_and_conclude(&claim)).await {
            Ok(ended) => ended,
            Err(panicked) => self.broke_down(&claim, budget, &panicked).await,
        };
        match ended {
            Ok(worked) => return worked,
            Err(WorkError::Lost) => self.make_way(&claim).await,
            Err(error @ WorkError::Unchecked(_)) => {
                return self.spend_attempt(&claim, budget, &error.to_string()).await;
            }
            Err(WorkError::Store(error)) => return self.store_failed(&claim, budget, error).await,
        }
        Worked::Waits
    }

    async fn decide_and_conclude(&self, claim: &Arc<Claim>) -> Result<Worked, WorkError> {
        let conclusion = self.decide(claim).await?;
        let worked = self.end_with(claim, conclusion).await?;
        if worked == Worked::Delivered && claim.held_before == Some(HoldReason::TmuxSilent) {
            self.go_on_after_silence().await;
        }
        Ok(worked)
    }

    async fn end_with(
        &self,
        claim: &Arc<Claim>,
        conclusion: Conclusion,
    ) -> Result<Worked, WorkError> {
        let worked = Worked::by(&conclusion);
        self.conclude(claim, conclusion).await?;
        Ok(worked)
    }

    /// Lets go on what waits for a tmux that has just answered. What waits for another server looks
    /// once in vain.
    async fn go_on_after_silence(&self) {
        if let Err(error) = self.deduper.wake(HoldReason::TmuxSilent).await {
            tracing::debug!("what waits for tmux looks again by itself: {error}");
        }
    }

    /// Says that the work panicked, and goes on as after a crash there.
    async fn broke_down(
        &self,
        claim: &Arc<Claim>,
        budget: Budget,
        panicked: &Panicked,
    ) -> Result<Worked, WorkError> {
        let error = panicked.to_string();
        for row in &claim.rows {
            let will_retry = budget == Budget::Left;
            let record = records::broke_down(claim, row, &error, will_retry);
            self.log.emit(&record);
        }
        self.cut_short(claim, budget, Step::BrokenDown, &error)
            .await
    }

    /// Ends work of which nobody knows how far it came: a paste or a spawn may have been under way.
    ///
    /// It is tried again on its budget, and given up when a last look, for which there is none, is cut
    /// short as well.
    async fn cut_short(
        &self,
        claim: &Arc<Claim>,
        budget: Budget,
        step: Step,
        error: &str,
    ) -> Result<Worked, WorkError> {
        let failed = || Conclusion::failed(step, error);
        if budget == Budget::Left {
            let decided = after(self.clock.now() + self.paste_life());
            return self
                .end_with(claim, failed().undecided_until(decided))
                .await;
        }
        // What was cut short has asked for its paste already.
        let ended = match self.own_spawn(claim).await {
            Ok(spawned) => {
                let conclusion = spawned.unwrap_or_else(failed);
                self.end_with(claim, conclusion).await
            }
            Err(error) => Err(error),
        };
        match ended {
            // No further look would tell: what is left of a spawn is seen to by the item's next message.
            Err(WorkError::Store(again)) if !again.is_transient() => {
                tracing::error!(item = %claim.item.item, "{again}");
                self.end_with(claim, failed()).await
            }
            ended => ended,
        }
    }

    fn budget(&self, claim: &Claim) -> Budget {
        if claim.is_spent(self.config().polling.max_retries) {
            Budget::Spent
        } else {
            Budget::Left
        }
    }

    /// Counts a failure that will not heal by itself as one of the delivery, so that it is seen and
    /// ends; after any other the claim runs out and is taken up again.
    async fn store_failed(&self, claim: &Arc<Claim>, budget: Budget, error: StoreError) -> Worked {
        tracing::error!(item = %claim.item.item, "{error}");
        if error.is_transient() {
            return Worked::Waits;
        }
        self.spend_attempt(claim, budget, &error.to_string()).await
    }

    async fn spend_attempt(&self, claim: &Arc<Claim>, budget: Budget, error: &str) -> Worked {
        self.cut_short(claim, budget, Step::Delivery, error)
            .await
            .unwrap_or_else(|error| {
                tracing::error!(item = %claim.item.item, "{error}");
                Worked::Waits
            })
    }

    /// Gives the claim back where it is still ours: a command for the item goes first.
    async fn make_way(&self, claim: &Claim) {
        let release = Release::Held {
            reason: HoldReason::MakingWay,
            look_again_at: self.clock.now() + WAY,
        };
        let place = self.place(claim).await;
        let say = || {
            for row in &claim.rows {
                let held = records::held(claim, row, &place, HoldReason::MakingWay, None);
                self.log.emit(&held);
            }
        };
        // Refused where somebody else has taken the claim over, and then it is theirs to conclude.
        if let Err(error) = self.deduper.release_saying(claim, release, say).await {
            tracing::debug!(item = %claim.item.item, "the claim was taken over: {error}");
        }
    }

    async fn decide(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        // The policy may have changed since the event was accepted: a login that was removed meanwhile
        // must not be heard.
        if let Some(reason) = self.refused(claim) {
            return self.unless_heard(claim, Conclusion::Dropped(reason)).await;
        }
        match claim.class {
            Class::Control => self.control(claim).await,
            Class::Event => self.event(claim).await,
        }
    }

    /// Ends a delivery that goes no further, unless an agent has heard it already, or has it typed: a
    /// spawn that it began is brought to its end first, or nobody ever would.
    async fn unless_heard(
        &self,
        claim: &Arc<Claim>,
        end: Conclusion,
    ) -> Result<Conclusion, WorkError> {
        let heard = match self.own_spawn(claim).await? {
            None => self.own_paste(claim).await?,
            spawned => spawned,
        };
        Ok(heard.unwrap_or(end))
    }

    /// Brings the spawn or respawn that the claim's delivery has begun to its end and returns what it
    /// came to; nothing where there is none, or it never ran.
    pub(super) async fn own_spawn(
        &self,
        claim: &Arc<Claim>,
    ) -> Result<Option<Conclusion>, WorkError> {
        let Some(session) = self.registry.open_session(claim.item.id).await? else {
            return Ok(None);
        };
        let attempt = session.attempt.as_ref();
        if attempt.is_some_and(|attempt| attempt.boot_delivery == claim.message()) {
            return Ok(self.settle_attempt(claim, session).await?.err());
        }
        let is_own = session.boot_delivery == Some(claim.first().id);
        if session.status != SessionStatus::Spawning || !is_own {
            return Ok(None);
        }
        let Ok(name) = session.minted_ref.session_name() else {
            return Ok(None);
        };
        match self.resolve_attempt(&name, &session.owner).await {
            Ran::NotRun(_) => {
                self.registry.abandon_attempt(claim, session.id).await?;
                Ok(None)
            }
            ran => Ok(Some(self.after_spawn(claim, &session, &name, ran).await?)),
        }
    }

    fn refused(&self, claim: &Arc<Claim>) -> Option<DropReason> {
        let policy = self.policy();
        // Where a start is asked for, the start is the act that must be somebody's; an armed item
        // only waits for it.
        if claim.first().event.kind == EventKind::Armed && policy.requires_start() {
            return None;
        }
        claim
            .rows
            .iter()
            .find_map(|row| match judge(&row.event, &policy) {
                Verdict::Drop(reason) => Some(reason),
                Verdict::Deliver | Verdict::Control(_) => None,
            })
    }

    pub(super) async fn event(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        // Both are asked at once: an agent waits for the answers.
        let (open, rate) = tokio::join!(
            self.registry.open_session(claim.item.id),
            self.held_for_rate(claim)
        );
        let Some(session) = open? else {
            return self.first_event(claim).await;
        };
        match session.status {
            SessionStatus::Paused if claim.received_at > session.status_since => {
                Ok(Conclusion::Dropped(DropReason::SessionPaused))
            }
            SessionStatus::Paused => {
                // A resume wakes it.
                Ok(Conclusion::held(HoldReason::SessionPaused, LONGEST_WAIT))
            }
            SessionStatus::Spawning if session.boot_delivery != Some(claim.first().id) => {
                match self.settle_orphan(claim, &session).await? {
                    Some(conclusion) => Ok(conclusion),
                    None => Box::pin(self.event(claim)).await,
                }
            }
            SessionStatus::Spawning => self.continue_spawn(claim, session).await,
            SessionStatus::Active if claim.first().event.kind == EventKind::Armed => {
                Ok(Conclusion::Dropped(DropReason::AlreadyRunning))
            }
            SessionStatus::Active => match rate? {
                Some(held) => Ok(held),
                None => self.deliver(claim, session).await,
            },
            SessionStatus::Closed => self.first_event(claim).await,
        }
    }

    /// An event of an item without a session: a spawn, if the item is armed and started.
    pub(super) async fn first_event(&self, claim: &Arc<Claim>) -> Result<Conclusion, WorkError> {
        match self.may_spawn(&claim.item) {
            // The start that came after it spawns, on one budget; a label put on anew spawns itself.
            Ok(()) if self.is_overtaken_by_its_start(claim) => {
                Ok(Conclusion::Dropped(DropReason::AwaitingStart))
            }
            Ok(()) => self.first_spawn(claim).await,
            Err(reason) => Ok(Conclusion::Dropped(reason)),
        }
    }

    /// Tells whether the claim is an arming that waited for a start, which has come since.
    fn is_overtaken_by_its_start(&self, claim: &Claim) -> bool {
        claim.first().event.kind == EventKind::Armed
            && self.policy().requires_start()
            && claim
                .item
                .control
                .as_ref()
                .is_some_and(|last| last.at >= claim.received_at)
    }

    /// Tells whether the item may get a session now, or why not.
    pub(super) fn may_spawn(&self, item: &ItemRow) -> Result<(), DropReason> {
        let config = self.config();
        if !item.open {
            return Err(DropReason::ItemClosed);
        }
        if !item.armed || !self.policy().spawns() {
            return Err(DropReason::SpawnPolicy);
        }
        let control = &config.routing.control;
        let started = match item.control.as_ref() {
            // Stop and pause are remembered, even where no start is asked for.
            Some(last) => last.command.means_started(),
            None => !(control.enabled && control.require_start_command),
        };
        if started {
            Ok(())
        } else {
            Err(DropReason::AwaitingStart)
        }
    }
}
