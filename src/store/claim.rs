//! One claim: what its holder works on, and with which right.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::enqueue;
use super::error::Fault;
use super::rows::{self, ItemRow, Reader, item_columns};
use crate::model::{BootId, ClaimToken, Class, DeliveryId, Event, HoldReason, OwnerId, ProcessId};

/// The process that claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOwner {
    /// The process itself.
    pub process: ProcessId,
    /// The boot that it runs in.
    pub boot: BootId,
}

/// A paste that may be under way: until it expires it can still take effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The spawn of the session that it goes into.
    pub owner: OwnerId,
    /// When it can no longer take effect.
    pub expires_at: DateTime<Utc>,
}

/// One delivery of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// Its number, which also names its token in the tmux session.
    pub id: DeliveryId,
    /// Its place in the order of its work item.
    pub number: u64,
    /// What it delivers.
    pub event: Event,
    /// How many attempts had begun when it was claimed.
    pub attempts: u32,
    /// The paste that an earlier attempt has begun.
    pub intent: Option<Intent>,
    /// Whether it may have been read in a session before that of the intent.
    pub maybe_read: bool,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
}

/// The right to work on a delivery, alone.
#[derive(Debug)]
pub struct Claim {
    /// The proof; every write names it.
    pub token: ClaimToken,
    /// The work item as it was when the claim was made.
    pub item: ItemRow,
    /// What is claimed, in order; several rows only for one review. Never empty.
    pub rows: Vec<ClaimedDelivery>,
    /// Which queue it stood in.
    pub class: Class,
    /// When the newest of its events was received.
    pub received_at: DateTime<Utc>,
    /// What it waited for before, if it did.
    pub held_before: Option<HoldReason>,
    /// Why its last attempt failed, if one did.
    pub last_error: Option<String>,
    message: DeliveryId,
    attempts: AtomicU32,
    goes_on: bool,
    typed: AtomicBool,
}

/// The proof of a claim without its content, for the task that renews it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRef {
    /// The proof.
    pub token: ClaimToken,
    /// The first delivery, by which the claim is known.
    pub delivery: DeliveryId,
}

impl Claim {
    /// Returns the first delivery, by which the whole claim is known.
    #[must_use]
    pub fn first(&self) -> &ClaimedDelivery {
        #[expect(
            clippy::expect_used,
            reason = "`read` makes no claim without the row that carries its mark"
        )]
        self.rows.first().expect("a claim has a row")
    }

    /// Returns the number that names the message in the tmux session.
    ///
    /// It is that of the first delivery, and stays what it was at the first attempt when that one has
    /// left its review since.
    #[must_use]
    pub fn message(&self) -> DeliveryId {
        self.message
    }

    /// Returns what is to be told beside the first, in order.
    #[must_use]
    pub fn others(&self) -> Vec<Event> {
        self.rows
            .iter()
            .skip(1)
            .map(|row| row.event.clone())
            .collect()
    }

    /// Returns the paste that an earlier attempt has begun.
    #[must_use]
    pub fn intent(&self) -> Option<&Intent> {
        self.first().intent.as_ref()
    }

    /// Returns how many attempts have begun, with the one of this claim.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Tells whether so many attempts were made before this claim. One that a killed process has begun
    /// was not: this claim goes on with it.
    #[must_use]
    pub fn is_spent(&self, most: u32) -> bool {
        self.attempts() >= most && !self.goes_on
    }

    /// Tells whether its text was found typed into a session, and not yet sent to an agent that lives:
    /// until then it counts as told, and waits for no budget.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        self.typed.load(Ordering::Relaxed)
    }

    /// Says what [`is_typed`](Self::is_typed) tells; remembered when the claim is given back.
    pub fn set_typed(&self, typed: bool) {
        self.typed.store(typed, Ordering::Relaxed);
    }

    pub(super) fn set_attempts(&self, attempts: u32) {
        self.attempts.store(attempts, Ordering::Relaxed);
    }

    /// Returns the proof alone.
    #[must_use]
    pub fn reference(&self) -> ClaimRef {
        ClaimRef {
            token: self.token.clone(),
            delivery: self.first().id,
        }
    }
}

/// Reads what was claimed under this token; nothing where no row of it carries the mark.
pub(super) async fn read(
    conn: &mut SqliteConnection,
    token: &ClaimToken,
) -> Result<Option<Claim>, Fault> {
    // The rows of a review are of one item, so each of them carries it.
    let rows = sqlx::query(concat!(
        "SELECT d.id AS delivery, d.number, d.class, d.batch, d.attempts, d.attempt_begun, d.reason, d.error, \
         d.intent_owner, d.intent_expires_at, d.possible_repeat, d.typed, d.accepted_at, d.claim_lead, e.payload, ",
        item_columns!(),
        " FROM deliveries d LEFT JOIN events e ON e.id = d.event_id \
         LEFT JOIN work_items w ON w.id = d.item_id WHERE d.claim_token = $1 ORDER BY d.number"
    ))
    .bind(token.as_str())
    .fetch_all(conn)
    .await?;
    let deliveries = rows.iter().map(delivery).collect::<Result<Vec<_>, _>>()?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (mut leads, mut goes_on, mut typed) = (false, false, false);
    for row in &rows {
        leads |= part(row)?.flag("claim_lead")?;
        goes_on |= part(row)?.flag("attempt_begun")?;
        typed |= part(row)?.flag("typed")?;
    }
    if !leads {
        return Ok(None);
    }
    let lead = part(row)?;
    let reason: Option<String> = lead.get("reason")?;
    let batch: Option<String> = lead.get("batch")?;
    let attempts = deliveries.iter().map(|row| row.attempts).max();
    Ok(Some(Claim {
        token: token.clone(),
        item: rows::item(row)?,
        class: class(lead)?,
        message: enqueue::message_of(batch.as_deref()).unwrap_or(DeliveryId(lead.id())),
        received_at: newest(&deliveries),
        // A reason that this version does not know is no reason to leave the delivery lying.
        held_before: reason.and_then(|word| word.parse().ok()),
        attempts: AtomicU32::new(attempts.unwrap_or(0)),
        goes_on,
        typed: AtomicBool::new(typed),
        rows: deliveries,
        last_error: lead.get("error")?,
    }))
}

fn newest(deliveries: &[ClaimedDelivery]) -> DateTime<Utc> {
    let newest = deliveries.iter().map(|row| row.accepted_at).max();
    newest.unwrap_or_default()
}

/// The delivery's part of a row that [`read`] has joined.
fn part(row: &SqliteRow) -> Result<Reader<'_>, Fault> {
    Reader::numbered(row, "deliveries", "delivery")
}

fn delivery(row: &SqliteRow) -> Result<ClaimedDelivery, Fault> {
    let row = part(row)?;
    row.present::<i64>("id")
        .map_err(|_| row.bad("item_id: there is no such work item"))?;
    let payload: String = row.present("payload")?;
    let event =
        serde_json::from_str(&payload).map_err(|error| row.bad(format!("payload: {error}")))?;
    let attempts = row.number("attempts")?;
    let intent = match row.opt_time("intent_expires_at")? {
        Some(expires_at) => Some(Intent {
            owner: row.parse("intent_owner")?,
            expires_at,
        }),
        None => None,
    };
    Ok(ClaimedDelivery {
        id: DeliveryId(row.id()),
        number: row.number("number")?,
        event,
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        intent,
        maybe_read: row.number("possible_repeat")? > 0,
        accepted_at: row.time("accepted_at")?,
    })
}

pub(super) fn class(row: Reader<'_>) -> Result<Class, Fault> {
    let word: String = row.get("class")?;
    [Class::Control, Class::Event]
        .into_iter()
        .find(|class| class.as_str() == word)
        .ok_or_else(|| row.bad(format!("class: {word:?} is neither control nor event")))
}
