//! Reading the rows of sessions.

use std::path::PathBuf;

use serde::Serialize;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::error::Fault;
use super::rows::Reader;
use crate::model::{
    BootId, DeliveryId, HarnessName, ProcessId, RespawnAttempt, Session, TmuxSocket, TmuxTarget,
    WorkItemRef,
};

/// A socket as its column holds it: the same text for the same socket, so that it can be compared.
pub(super) fn socket_text(socket: &TmuxSocket) -> String {
    match socket {
        TmuxSocket::Default => "default".to_owned(),
        TmuxSocket::Name(name) => format!("name:{name}"),
        TmuxSocket::Path(path) => format!("path:{}", path.display()),
    }
}

fn socket(text: &str) -> Option<TmuxSocket> {
    match text.split_once(':') {
        None if text == "default" => Some(TmuxSocket::Default),
        Some(("name", name)) => Some(TmuxSocket::Name(name.to_owned())),
        Some(("path", path)) => Some(TmuxSocket::Path(PathBuf::from(path))),
        _ => None,
    }
}

/// The columns of [`Session`], for tables aliased `s` and `w`.
macro_rules! session_columns {
    () => {
        "s.id, w.ref, s.minted_ref, s.host, s.owner, s.harness, s.harness_session_id, s.cwd, s.status, \
         s.status_since, s.registered_at, s.attempt_owner, s.attempt_harness_session_id, \
         s.attempt_boot_delivery, s.boot_delivery, s.tmux_socket, s.server_pid, s.server_start, s.tmux_session_id, s.pane, \
         s.host_pid, s.host_start, s.harness_pid, s.harness_start, s.boot_id, s.created_at, \
         s.last_event_at, s.closed_at FROM sessions s JOIN work_items w ON w.id = s.item_id"
    };
}
pub(super) use session_columns;

pub(super) fn session(row: &SqliteRow) -> Result<Session, Fault> {
    let row = Reader::new(row, "sessions")?;
    let cwd: String = row.get("cwd")?;
    Ok(Session {
        id: row.id(),
        work_item: row.parse("ref")?,
        minted_ref: row.parse("minted_ref")?,
        host: row.get("host")?,
        owner: row.parse("owner")?,
        harness: HarnessName(row.get("harness")?),
        harness_session_id: row.parse("harness_session_id")?,
        cwd: PathBuf::from(cwd),
        status: row.parse("status")?,
        status_since: row.time("status_since")?,
        attempt: attempt(row)?,
        registered_at: row.opt_time("registered_at")?,
        target: target(row)?,
        boot_delivery: row.get::<Option<i64>>("boot_delivery")?.map(DeliveryId),
        created_at: row.time("created_at")?,
        last_event_at: row.opt_time("last_event_at")?,
        closed_at: row.opt_time("closed_at")?,
    })
}

/// A session as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFace {
    /// The session.
    pub session: Session,
    /// The title of its work item.
    pub title: String,
    /// The kind of the last event that reached it, as log and store write it.
    pub last_kind: Option<String>,
    /// Who did that.
    pub last_actor: Option<String>,
}

/// A session whose row this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreadableSession {
    /// The row's number.
    pub session: i64,
    /// Its work item, where at least that can be read.
    pub work_item: Option<WorkItemRef>,
    /// What is wrong with the row.
    pub detail: String,
}

/// The sessions that can be read, and those that cannot: one bad row hides no other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFaces {
    /// Those that can be read, newest first.
    pub readable: Vec<SessionFace>,
    /// The others.
    pub unreadable: Vec<UnreadableSession>,
}

pub(super) fn faces(rows: &[SqliteRow]) -> Result<SessionFaces, Fault> {
    let mut faces = SessionFaces {
        readable: Vec::new(),
        unreadable: Vec::new(),
    };
    for row in rows {
        match face(row) {
            Ok(face) => faces.readable.push(face),
            Err(Fault::Row { id, detail, .. }) => faces.unreadable.push(UnreadableSession {
                session: id,
                work_item: Reader::new(row, "sessions")?.parse("ref").ok(),
                detail,
            }),
            Err(fault) => return Err(fault),
        }
    }
    Ok(faces)
}

pub(super) fn face(row: &SqliteRow) -> Result<SessionFace, Fault> {
    let reader = Reader::new(row, "sessions")?;
    Ok(SessionFace {
        title: reader.get("title")?,
        last_kind: reader.get("last_kind")?,
        last_actor: reader.get("last_actor")?,
        session: session(row)?,
    })
}

fn target(row: Reader<'_>) -> Result<Option<TmuxTarget>, Fault> {
    let Some(text) = row.get::<Option<String>>("tmux_socket")? else {
        return Ok(None);
    };
    Ok(Some(TmuxTarget {
        socket: socket(&text).ok_or_else(|| row.bad(format!("tmux_socket: {text:?}")))?,
        server: row.process("server_pid", "server_start")?,
        session_id: row.parse("tmux_session_id")?,
        pane: row.parse("pane")?,
        host: row.process("host_pid", "host_start")?,
        harness: row.process("harness_pid", "harness_start")?,
        boot: BootId(row.get("boot_id")?),
    }))
}

/// Reads the server that a row names.
pub(super) fn server(row: &SqliteRow) -> Result<(BootId, ProcessId), Fault> {
    let row = Reader::new(row, "sessions")?;
    Ok((
        BootId(row.get("boot_id")?),
        row.process("server_pid", "server_start")?,
    ))
}

fn attempt(row: Reader<'_>) -> Result<Option<RespawnAttempt>, Fault> {
    let Some(owner) = row.opt_parse("attempt_owner")? else {
        return Ok(None);
    };
    Ok(Some(RespawnAttempt {
        owner,
        harness_session_id: row.parse("attempt_harness_session_id")?,
        boot_delivery: DeliveryId(row.get("attempt_boot_delivery")?),
    }))
}

pub(super) async fn by_id(conn: &mut SqliteConnection, id: i64) -> Result<Option<Session>, Fault> {
    let row = sqlx::query(concat!("SELECT ", session_columns!(), " WHERE s.id = $1"))
        .bind(id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(session).transpose()
}

pub(super) async fn open_of(
    conn: &mut SqliteConnection,
    item: i64,
) -> Result<Option<Session>, Fault> {
    let row = sqlx::query(concat!(
        "SELECT ",
        session_columns!(),
        " WHERE s.item_id = $1 AND s.status <> 'closed'"
    ))
    .bind(item)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(session).transpose()
}

/// Returns the closed sessions of a work item on this machine, newest first.
pub(super) async fn closed_of(
    conn: &mut SqliteConnection,
    item: i64,
    machine: &str,
) -> Result<Vec<Session>, Fault> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        session_columns!(),
        " WHERE s.item_id = $1 AND s.status = 'closed' AND s.host = $2 ORDER BY s.id DESC"
    ))
    .bind(item)
    .bind(machine)
    .fetch_all(conn)
    .await?;
    rows.iter().map(session).collect()
}

/// Returns every session of a work item, newest first.
pub(super) async fn all_of(
    conn: &mut SqliteConnection,
    item: &WorkItemRef,
) -> Result<Vec<Session>, Fault> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        session_columns!(),
        " WHERE w.ref_key = $1 ORDER BY s.id DESC"
    ))
    .bind(item.key())
    .fetch_all(conn)
    .await?;
    rows.iter().map(session).collect()
}
