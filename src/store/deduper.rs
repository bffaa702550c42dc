//! The dispatcher's side of the store: claims, their attempts and their ends.
//!
//! Every write of a holder names its token; when no row changes, the claim is lost and the work
//! stops.

use chrono::{DateTime, Utc};
use sqlx::Row;

use super::claim::{Claim, ClaimOwner, ClaimRef, Intent};
use super::claims::{self, IsDead, free};
use super::effects::{self, SessionChange, not_being_spawned};
use super::enqueue::{closed_group, delivery_ids, group_key};
use super::error::Fault;
use super::rows::{Reader, big, ms};
use super::settle::{self, Release, Settlement};
use super::waiting::{self, Waiting};
use super::{Store, StoreError};
use crate::model::{Class, DeliveryId, DropReason, HoldReason};

/// In the order of time, so that the first free row ends the search.
pub(super) const NEXT_DUE: &str = concat!(
    "SELECT MIN(next_at) FROM (SELECT next_at FROM (SELECT d.next_at FROM deliveries d WHERE ",
    free!(),
    " ORDER BY d.next_at LIMIT 1) AS waiting UNION ALL SELECT c.lease_until AS next_at FROM deliveries c WHERE c.claim_lead = 1 \
     AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = c.item_id \
     AND s.status <> 'closed' AND s.host <> $1)) AS due"
);

/// What a fenced write says about going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The claim holds; the next mutation may follow.
    Go,
    /// The claim holds, but a command for the item waits: an event's work stops here and makes way.
    /// Not said during a first spawn, which the command waits for.
    ControlWaits,
}

/// The claims on deliveries.
#[derive(Debug, Clone)]
pub struct Deduper {
    pub(super) store: Store,
}

impl Deduper {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Claims what is to be done next: a claim whose holder is gone, else the oldest due delivery of
    /// an idle work item, commands before events.
    ///
    /// # Errors
    /// When the database cannot be read or written; no work may begin then.
    pub async fn claim_next(
        &self,
        owner: &ClaimOwner,
        is_dead: &IsDead<'_>,
    ) -> Result<Option<Claim>, StoreError> {
        claims::next(&self.store, owner, is_dead)
            .await
            .map_err(self.store.explain("claiming a delivery"))
    }

    /// Claims the oldest due delivery at once, for one who has just heard of it: a look less stands
    /// between a comment and its agent.
    ///
    /// # Errors
    /// As [`claim_next`](Self::claim_next).
    pub async fn claim_due(&self, owner: &ClaimOwner) -> Result<Option<Claim>, StoreError> {
        claims::at_once(&self.store, owner)
            .await
            .map_err(self.store.explain("claiming a delivery"))
    }

    /// Claims this delivery, due or not, for a command that runs its own row; none while its item is
    /// being worked on, or something is ahead of it.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn claim(
        &self,
        delivery: DeliveryId,
        owner: &ClaimOwner,
    ) -> Result<Option<Claim>, StoreError> {
        claims::this_one(&self.store, owner, delivery)
            .await
            .map_err(self.store.explain("claiming a command"))
    }

    /// Extends the claim's lease.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn renew(&self, claim: &ClaimRef) -> Result<(), StoreError> {
        let renewed = async {
            let mut conn = self.store.writing().await?;
            claims::fence(&self.store, &mut conn, claim).await
        };
        renewed
            .await
            .map_err(self.store.explain("renewing a claim"))
    }

    /// The fence before each mutation of tmux: sees that the claim holds long enough for it, extends
    /// the lease where it would not, and tells whether to go on.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours; then nothing may be mutated.
    pub async fn hold_fence(&self, claim: &Claim) -> Result<Fence, StoreError> {
        self.fence(claim)
            .await
            .map_err(self.store.explain("holding a claim"))
    }

    async fn fence(&self, claim: &Claim) -> Result<Fence, Fault> {
        let row = sqlx::query(
            "SELECT d.id, d.lease_until, (SELECT COUNT(*) FROM deliveries c \
             WHERE c.item_id = d.item_id AND c.class = 'control' AND c.state = 'pending' \
             AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.item_id = c.item_id \
             AND s.status = 'spawning')) AS waiting \
             FROM deliveries d WHERE d.claim_token = $1 AND d.claim_lead = 1",
        )
        .bind(claim.token.as_str())
        .fetch_optional(&mut *self.store.reading().await?)
        .await?;
        let row = row.ok_or(Fault::Lost(claim.first().id))?;
        let row = Reader::new(&row, "deliveries")?;
        // While most of the lease is left nobody can have the claim, and one write to the disk less
        // stands between a comment and its agent.
        let enough = self.store.lease_end_ms() - self.store.lease_ms() / 4;
        if row.get::<i64>("lease_until")? < enough {
            let mut conn = self.store.writing().await?;
            claims::fence(&self.store, &mut conn, &claim.reference()).await?;
        }
        let makes_way = claim.class == Class::Event && row.number("waiting")? > 0;
        Ok(if makes_way {
            Fence::ControlWaits
        } else {
            Fence::Go
        })
    }

    /// Counts an attempt that begins now, and returns which one it is.
    ///
    /// Counted once, also when a killed process's attempt is taken up again: restarts spend no
    /// budget. From here on rows of the same review that arrive late are a delivery of their own.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn begin_attempt(&self, claim: &Claim) -> Result<u32, StoreError> {
        let attempts = self
            .write_begun(claim, None)
            .await
            .map_err(self.store.explain("beginning an attempt"))?;
        Ok(attempts)
    }

    /// Stores what is about to be pasted where, before the first paste.
    ///
    /// One that is replaced by that of another session leaves behind that the message may have been
    /// read: nobody can ask that session's tokens any more.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours; then nothing may be pasted.
    pub async fn store_intent(&self, claim: &Claim, intent: &Intent) -> Result<(), StoreError> {
        self.write_begun(claim, Some(intent))
            .await
            .map(|_| ())
            .map_err(self.store.explain("storing the intent of a delivery"))
    }

    async fn write_begun(&self, claim: &Claim, intent: Option<&Intent>) -> Result<u32, Fault> {
        let group = group_key(&claim.first().event);
        let closed = group
            .as_ref()
            .map(|group| closed_group(group, claim.first().id));
        let rows = sqlx::query(
            "UPDATE deliveries SET attempts = attempts + 1 - attempt_begun, attempt_begun = 1, \
             batch = CASE WHEN batch = $2 THEN $3 ELSE batch END, possible_repeat = CASE WHEN intent_owner <> $4 THEN 1 \
             ELSE possible_repeat END, intent_owner = COALESCE($4, intent_owner), \
             intent_expires_at = COALESCE($5, intent_expires_at), lease_until = $6 \
             WHERE claim_token = $1 RETURNING id, attempts",
        )
        .bind(claim.token.as_str())
        .bind(group)
        .bind(closed)
        .bind(intent.map(|intent| intent.owner.as_str()))
        .bind(intent.map(|intent| ms(intent.expires_at)))
        .bind(self.store.lease_end_ms())
        .fetch_all(&mut *self.store.writing().await?)
        .await?;
        let mut most = None;
        for row in &rows {
            let attempts = Reader::new(row, "deliveries")?.number("attempts")?;
            most = most.max(Some(u32::try_from(attempts).unwrap_or(u32::MAX)));
        }
        let attempts = most.ok_or(Fault::Lost(claim.first().id))?;
        claim.set_attempts(attempts);
        Ok(attempts)
    }

    /// Ends the claim for good, with all that its end changes, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours; then nothing was changed.
    pub async fn settle(
        &self,
        claim: &Claim,
        settlement: Settlement<'_>,
        change: Option<SessionChange>,
    ) -> Result<(), StoreError> {
        self.settle_saying(claim, settlement, change, || {}).await
    }

    /// Settles a claim, and says so when nothing but the commit is left to do: whoever is killed
    /// there says it twice, and never not at all.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub async fn settle_saying(
        &self,
        claim: &Claim,
        settlement: Settlement<'_>,
        change: Option<SessionChange>,
        say: impl FnOnce() + Send,
    ) -> Result<(), StoreError> {
        let settled = async {
            let mut tx = self.store.begin().await?;
            settle::settle(&mut tx, claim, settlement, self.store.now_ms()).await?;
            let now = self.store.now_ms();
            if let Some(change) = &change {
                effects::apply(&mut tx, change, now).await?;
            }
            // A spawn's prompt is its boot delivery: registering it is the first thing it was told.
            if let Some(SessionChange::Register(registered)) = &change
                && matches!(settlement, Settlement::Delivered { .. })
            {
                effects::touch(&mut tx, registered.session, now).await?;
            }
            say();
            tx.commit().await.map_err(Fault::from)
        };
        settled
            .await
            .map_err(self.store.explain("settling a delivery"))
    }

    /// Gives the claim back: the delivery is tried again later, or waits for a condition.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn release(&self, claim: &Claim, release: Release) -> Result<(), StoreError> {
        self.release_saying(claim, release, || {}).await
    }

    /// Gives the claim back, and says so just before the commit.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub async fn release_saying(
        &self,
        claim: &Claim,
        release: Release,
        say: impl FnOnce() + Send,
    ) -> Result<(), StoreError> {
        let released = async {
            let mut tx = self.store.begin().await?;
            let longest = self.store.longest_wait_end_ms();
            settle::release(&mut tx, claim, release, longest).await?;
            say();
            tx.commit().await.map_err(Fault::from)
        };
        released
            .await
            .map_err(self.store.explain("releasing a delivery"))
    }

    /// Notes what went wrong with the claim's delivery, for status and ticket.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn note_error(&self, claim: &Claim, error: &str) -> Result<(), StoreError> {
        let explain = self.store.explain("noting an error");
        let note = sqlx::query("UPDATE deliveries SET error = $2 WHERE claim_token = $1")
            .bind(claim.token.as_str())
            .bind(error);
        if self.store.change(note).await.map_err(&explain)? == 0 {
            return Err(explain(Fault::Lost(claim.first().id)));
        }
        Ok(())
    }

    /// Notes that an agent may have read the claim's text, though it is told again.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn note_maybe_read(&self, claim: &Claim) -> Result<(), StoreError> {
        let explain = self.store.explain("noting a possible repeat");
        let note = sqlx::query("UPDATE deliveries SET possible_repeat = 1 WHERE claim_token = $1")
            .bind(claim.token.as_str());
        if self.store.change(note).await.map_err(&explain)? == 0 {
            return Err(explain(Fault::Lost(claim.first().id)));
        }
        Ok(())
    }

    /// Drops what came in for the claim's item before the claimed delivery, and after `since` where
    /// that is given, and still waits; says so just before the commit.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn drop_queued(
        &self,
        claim: &Claim,
        reason: DropReason,
        since: Option<DateTime<Utc>>,
        say: impl FnOnce(Vec<Waiting>) + Send,
    ) -> Result<(), StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            let place = (big(claim.first().number), since.map_or(i64::MIN, ms));
            let now = self.store.now_ms();
            let dropped = effects::drop_queued(&mut tx, claim.item.id, reason, place, now).await?;
            say(waiting::read(&mut tx, &dropped).await?);
            tx.commit().await.map_err(Fault::from)
        };
        done.await
            .map_err(self.store.explain("dropping queued deliveries"))
    }

    /// Returns the item's commands that came in before the claimed one and still wait.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn earlier_commands(&self, claim: &Claim) -> Result<Vec<Waiting>, StoreError> {
        let found = async {
            let mut conn = self.store.reading().await?;
            let rows = sqlx::query(
                "SELECT id FROM deliveries WHERE item_id = $1 AND class = 'control' \
                 AND state IN ('pending', 'held') AND number < $2 ORDER BY number",
            )
            .bind(claim.item.id)
            .bind(big(claim.first().number))
            .fetch_all(&mut *conn)
            .await?;
            waiting::read(&mut conn, &delivery_ids(&rows)?).await
        };
        found
            .await
            .map_err(self.store.explain("looking for earlier commands"))
    }

    /// Drops a delivery of the claim's item if it still waits, and says so just before the commit.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn drop_waiting(
        &self,
        claim: &Claim,
        delivery: DeliveryId,
        reason: DropReason,
        say: impl FnOnce() + Send,
    ) -> Result<(), StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            let done = sqlx::query(concat!(
                "UPDATE deliveries SET state = 'dropped', reason = $3, settled_at = $4 WHERE id = $1 \
                 AND item_id = $2 AND state IN ('pending', 'held')",
                not_being_spawned!()
            ))
            .bind(delivery.0)
            .bind(claim.item.id)
            .bind(reason.as_str())
            .bind(self.store.now_ms())
            .execute(&mut *tx)
            .await?;
            if done.rows_affected() > 0 {
                say();
            }
            tx.commit().await.map_err(Fault::from)
        };
        done.await
            .map_err(self.store.explain("dropping a waiting delivery"))
    }

    /// Lets all deliveries that are held for this reason go on now, and returns how many.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn wake(&self, reason: HoldReason) -> Result<u64, StoreError> {
        let wake = sqlx::query(
            "UPDATE deliveries SET state = 'pending', next_at = $2 WHERE state = 'held' AND reason = $1",
        )
        .bind(reason.as_str())
        .bind(self.store.now_ms());
        let woken = self.store.change(wake).await;
        woken.map_err(self.store.explain("waking held deliveries"))
    }

    /// Returns when the next claim can be made, as far as the clock decides it: a delivery becomes
    /// due or a lease runs out. A time that has passed means now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn next_due(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        let query = sqlx::query(NEXT_DUE).bind(&*self.store.machine);
        let found = self.store.first(query).await;
        let row = found.map_err(self.store.explain("asking what is due next"))?;
        // What is no time is nothing to wait for.
        let at = row.and_then(|row| row.try_get::<Option<i64>, _>(0).unwrap_or_default());
        Ok(at.and_then(DateTime::from_timestamp_millis))
    }
}
