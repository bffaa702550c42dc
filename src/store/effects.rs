//! What the work on a claim changes beside the delivery itself: its session, its item, its queue.

use std::path::PathBuf;

use sqlx::SqliteConnection;

use super::enqueue::delivery_ids;
use super::error::Fault;
use super::rows::big;
use super::sessions::socket_text;
use crate::model::{
    ControlCommand, DeliveryId, DropReason, HarnessName, HarnessSessionId, HoldReason, Login,
    OwnerId, TmuxTarget,
};

/// The session that a first spawn is about to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The work item's row.
    pub item: i64,
    /// The spawn.
    pub owner: OwnerId,
    /// Which harness.
    pub harness: HarnessName,
    /// The conversation.
    pub harness_session_id: HarnessSessionId,
    /// The absolute directory that the harness runs in.
    pub cwd: PathBuf,
    /// The delivery that the spawn's prompt carries.
    pub boot_delivery: DeliveryId,
}

/// A respawn that is about to be made; nothing else of the session changes until it is registered
/// (AC12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttempt {
    /// The spawn.
    pub owner: OwnerId,
    /// The conversation that it resumes, or the fresh one that it starts.
    pub harness_session_id: HarnessSessionId,
    /// The delivery that its prompt carries.
    pub boot_delivery: DeliveryId,
}

/// What is known once an agent is seen to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The session.
    pub session: i64,
    /// The spawn that made the running harness.
    pub owner: OwnerId,
    /// Where it runs; none leaves the recorded place.
    pub target: Option<TmuxTarget>,
    /// The conversation that it runs.
    pub harness_session_id: HarnessSessionId,
}

/// The change of a session that happens together with the end of a claim, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// Something was delivered into it.
    Touch(i64),
    /// Its agent runs: a spawn is over, an attempt succeeded, or the occupant is ours.
    Register(Registered),
    /// It is kept, but nothing is delivered.
    Pause(i64),
    /// Deliveries go in again.
    Resume(i64),
    /// It has ended.
    Close(i64),
}

pub(super) async fn apply(
    conn: &mut SqliteConnection,
    change: &SessionChange,
    now: i64,
) -> Result<(), Fault> {
    match change {
        SessionChange::Touch(session) => touch(conn, *session, now).await,
        SessionChange::Register(registered) => register(conn, registered, now).await,
        SessionChange::Pause(session) => set_status(conn, *session, "paused", now).await,
        SessionChange::Resume(session) => {
            set_status(conn, *session, "active", now).await?;
            wake_paused(conn, *session, now).await
        }
        SessionChange::Close(session) => close(conn, *session, now).await,
    }
}

pub(super) async fn touch(
    conn: &mut SqliteConnection,
    session: i64,
    now: i64,
) -> Result<(), Fault> {
    sqlx::query("UPDATE sessions SET last_event_at = $2 WHERE id = $1")
        .bind(session)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn register(
    conn: &mut SqliteConnection,
    registered: &Registered,
    now: i64,
) -> Result<(), Fault> {
    let session = registered.session;
    let done = sqlx::query(
        "UPDATE sessions SET status = CASE WHEN status = 'spawning' THEN 'active' ELSE status END, \
         status_since = CASE WHEN status = 'spawning' THEN $4 ELSE status_since END, owner = $2, \
         harness_session_id = $3, registered_at = $4, attempt_owner = NULL, \
         attempt_harness_session_id = NULL, attempt_boot_delivery = NULL \
         WHERE id = $1 AND status <> 'closed'",
    )
    .bind(session)
    .bind(registered.owner.as_str())
    .bind(registered.harness_session_id.as_str())
    .bind(now)
    .execute(&mut *conn)
    .await?;
    moved_unless(done.rows_affected(), session)?;
    match &registered.target {
        Some(target) => place(conn, session, target).await,
        None => Ok(()),
    }
}

async fn place(
    conn: &mut SqliteConnection,
    session: i64,
    target: &TmuxTarget,
) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE sessions SET tmux_socket = $2, server_pid = $3, server_start = $4, tmux_session_id = $5, \
         pane = $6, host_pid = $7, host_start = $8, harness_pid = $9, harness_start = $10, boot_id = $11 \
         WHERE id = $1",
    )
    .bind(session)
    .bind(socket_text(&target.socket))
    .bind(i64::from(target.server.pid))
    .bind(big(target.server.start))
    .bind(target.session_id.to_string())
    .bind(target.pane.to_string())
    .bind(i64::from(target.host.pid))
    .bind(big(target.host.start))
    .bind(i64::from(target.harness.pid))
    .bind(big(target.harness.start))
    .bind(&target.boot.0)
    .execute(conn)
    .await?;
    Ok(())
}

fn moved_unless(changed: u64, session: i64) -> Result<(), Fault> {
    if changed == 0 {
        return Err(Fault::SessionMoved(session));
    }
    Ok(())
}

pub(super) async fn begin_attempt(
    conn: &mut SqliteConnection,
    session: i64,
    attempt: &NewAttempt,
) -> Result<(), Fault> {
    let done = sqlx::query(
        "UPDATE sessions SET attempt_owner = $2, attempt_harness_session_id = $3, \
         attempt_boot_delivery = $4 WHERE id = $1 AND status IN ('active', 'paused')",
    )
    .bind(session)
    .bind(attempt.owner.as_str())
    .bind(attempt.harness_session_id.as_str())
    .bind(attempt.boot_delivery.0)
    .execute(conn)
    .await?;
    moved_unless(done.rows_affected(), session)
}

pub(super) async fn abandon_attempt(
    conn: &mut SqliteConnection,
    session: i64,
) -> Result<(), Fault> {
    sqlx::query("DELETE FROM sessions WHERE id = $1 AND status = 'spawning'")
        .bind(session)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "UPDATE sessions SET attempt_owner = NULL, attempt_harness_session_id = NULL, \
         attempt_boot_delivery = NULL WHERE id = $1",
    )
    .bind(session)
    .execute(conn)
    .await?;
    Ok(())
}

/// Moves an open session between active and paused; setting what it is changes nothing.
async fn set_status(
    conn: &mut SqliteConnection,
    session: i64,
    status: &'static str,
    now: i64,
) -> Result<(), Fault> {
    let done = sqlx::query(
        "UPDATE sessions SET status_since = CASE WHEN status = $2 THEN status_since ELSE $3 END, \
         status = $2 WHERE id = $1 AND status IN ('active', 'paused')",
    )
    .bind(session)
    .bind(status)
    .bind(now)
    .execute(conn)
    .await?;
    moved_unless(done.rows_affected(), session)
}

/// Lets go on what waited for the session to be resumed.
async fn wake_paused(conn: &mut SqliteConnection, session: i64, now: i64) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE deliveries SET state = 'pending', next_at = $2 WHERE state = 'held' AND reason = $3 \
         AND item_id = (SELECT s.item_id FROM sessions s WHERE s.id = $1)",
    )
    .bind(session)
    .bind(now)
    .bind(HoldReason::SessionPaused.as_str())
    .execute(conn)
    .await?;
    Ok(())
}

/// Closing a closed session changes nothing, so a repeated close is no error.
async fn close(conn: &mut SqliteConnection, session: i64, now: i64) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE sessions SET status = 'closed', status_since = $2, closed_at = $2, attempt_owner = NULL, \
         attempt_harness_session_id = NULL, attempt_boot_delivery = NULL WHERE id = $1 AND status <> 'closed'",
    )
    .bind(session)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn set_control(
    conn: &mut SqliteConnection,
    item: i64,
    command: ControlCommand,
    actor: Option<&Login>,
    at: i64,
) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE work_items SET control = $2, control_actor = $3, control_at = $4 WHERE id = $1",
    )
    .bind(item)
    .bind(command.as_str())
    .bind(actor.map(Login::as_str))
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn clear_control(conn: &mut SqliteConnection, item: i64) -> Result<(), Fault> {
    sqlx::query(
        "UPDATE work_items SET control = NULL, control_actor = NULL, control_at = NULL WHERE id = $1",
    )
    .bind(item)
    .execute(conn)
    .await?;
    Ok(())
}

/// The deliveries that first spawns and respawns under way carry.
macro_rules! carried {
    () => {
        "(SELECT s.boot_delivery FROM sessions s WHERE s.status = 'spawning' \
         AND s.boot_delivery IS NOT NULL UNION ALL SELECT r.attempt_boot_delivery FROM sessions r \
         WHERE r.attempt_boot_delivery IS NOT NULL)"
    };
}
pub(super) use carried;

/// Keeps what a spawn or a respawn carries, the whole review, from being dropped while it waits: its
/// agent may have read it, and only its claim brings the start to an end.
macro_rules! not_being_spawned {
    () => {
        concat!(
            " AND id NOT IN ",
            $crate::store::effects::carried!(),
            " AND COALESCE(batch, '') NOT IN (SELECT b.batch FROM deliveries b \
             WHERE b.batch IS NOT NULL AND b.id IN ",
            $crate::store::effects::carried!(),
            ")"
        )
    };
}
pub(super) use not_being_spawned;

/// Drops all that waits for an item or was given up, which nothing carries any more; returns it.
pub(super) async fn forget_queue(
    conn: &mut SqliteConnection,
    item: i64,
    now: i64,
) -> Result<Vec<DeliveryId>, Fault> {
    let rows = sqlx::query(
        "UPDATE deliveries SET state = 'dropped', reason = $2, settled_at = $3 WHERE item_id = $1 \
         AND state IN ('pending', 'held', 'abandoned') RETURNING id",
    )
    .bind(item)
    .bind(DropReason::Reset.as_str())
    .bind(now)
    .fetch_all(conn)
    .await?;
    delivery_ids(&rows)
}

/// Drops what waits for an item before the place `before` and came in after `since`; returns it.
pub(super) async fn drop_queued(
    conn: &mut SqliteConnection,
    item: i64,
    reason: DropReason,
    (before, since): (i64, i64),
    now: i64,
) -> Result<Vec<DeliveryId>, Fault> {
    let rows = sqlx::query(concat!(
        "UPDATE deliveries SET state = 'dropped', reason = $2, settled_at = $3 WHERE item_id = $1 \
         AND state IN ('pending', 'held') AND number < $4 AND accepted_at > $5",
        not_being_spawned!(),
        " RETURNING id"
    ))
    .bind(item)
    .bind(reason.as_str())
    .bind(now)
    .bind(before)
    .bind(since)
    .fetch_all(conn)
    .await?;
    delivery_ids(&rows)
}
