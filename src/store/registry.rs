//! The recorded sessions: one open session per work item, whoever asks.

use serde::Serialize;
use sqlx::SqliteConnection;

use super::claim::Claim;
use super::claims;
use super::effects::{self, NewAttempt, NewSession, Registered};
use super::error::Fault;
use super::items;
use super::rows::ControlRecord;
use super::sessions::{self, SessionFace, SessionFaces, session_columns};
use super::waiting::{self, Waiting};
use super::{Store, StoreError};
use crate::model::{BootId, ProcessId, Session, SessionStatus, TmuxSocket, WorkItemRef};
use crate::planted::{Planted, is_planted};

/// Which sessions are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionFilter {
    /// Every recorded one.
    #[default]
    All,
    /// Those that still belong to an agent.
    Open,
    /// Those in this status.
    In(SessionStatus),
}

impl SessionFilter {
    fn status(self) -> Option<&'static str> {
        match self {
            Self::All | Self::Open => None,
            Self::In(status) => Some(status.as_str()),
        }
    }
}

/// The sessions in the status `$1`, if any, and with `$2` the open ones; newest first.
macro_rules! of_status {
    () => {
        " WHERE s.status = COALESCE($1, s.status) AND ($2 = 0 OR s.status <> 'closed') \
         ORDER BY s.id DESC"
    };
}

/// A session, and what reached it last.
macro_rules! face {
    () => {
        concat!(
            "SELECT w.title, l.kind AS last_kind, l.actor AS last_actor, ",
            session_columns!(),
            " LEFT JOIN events l ON l.id = (SELECT d.event_id FROM deliveries d \
             WHERE d.item_id = s.item_id AND d.state = 'delivered' ORDER BY d.number DESC LIMIT 1)"
        )
    };
}

/// Whether a reset changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetMode {
    /// Only report.
    DryRun,
    /// Do it.
    Apply,
}

/// What a reset removes of one work item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResetReport {
    /// The work item.
    pub item: WorkItemRef,
    /// Its sessions, the open one first.
    pub sessions: Vec<Session>,
    /// Its last control command.
    pub control: Option<ControlRecord>,
    /// How many deliveries wait for it, or were given up.
    pub queued: u64,
    /// What is known of those.
    #[serde(skip)]
    pub waiting: Vec<Waiting>,
}

impl ResetReport {
    fn has_open_session(&self) -> bool {
        self.sessions.iter().any(|session| session.status.is_open())
    }
}

/// The recorded sessions.
#[derive(Debug, Clone)]
pub struct SessionRegistry {
    store: Store,
}

impl SessionRegistry {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Returns the open session of the work item with this row.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_session(&self, item: i64) -> Result<Option<Session>, StoreError> {
        if is_planted(Planted::AnySession)
            && let Some(other) = self.list(SessionFilter::Open).await?.into_iter().next()
        {
            return Ok(Some(other));
        }
        let found = async { sessions::open_of(&mut *self.store.reading().await?, item).await };
        found
            .await
            .map_err(self.store.explain("looking for an open session"))
    }

    /// Returns the closed sessions of this machine that the work item with this row has had, newest
    /// first: an agent may have outlived its session's end.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn closed_sessions(&self, item: i64) -> Result<Vec<Session>, StoreError> {
        let found = async {
            sessions::closed_of(&mut *self.store.reading().await?, item, &self.store.machine).await
        };
        found
            .await
            .map_err(self.store.explain("looking for closed sessions"))
    }

    /// Returns the newest session of a work item, open or closed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn latest(&self, item: &WorkItemRef) -> Result<Option<Session>, StoreError> {
        Ok(self.latest_face(item).await?.map(|face| face.session))
    }

    /// Returns the sessions as lists show them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn faces(&self, filter: SessionFilter) -> Result<SessionFaces, StoreError> {
        let listed = async {
            let rows = sqlx::query(concat!(face!(), of_status!()))
                .bind(filter.status())
                .bind(i64::from(filter == SessionFilter::Open))
                .fetch_all(&mut *self.store.reading().await?)
                .await?;
            sessions::faces(&rows)
        };
        listed.await.map_err(self.store.explain("listing sessions"))
    }

    /// Returns the newest session of a work item as lists show it.
    ///
    /// # Errors
    /// When the database or the row cannot be read.
    pub async fn latest_face(&self, item: &WorkItemRef) -> Result<Option<SessionFace>, StoreError> {
        let found = async {
            let row = sqlx::query(concat!(
                face!(),
                " WHERE w.ref_key = $1 ORDER BY s.id DESC LIMIT 1"
            ))
            .bind(item.key())
            .fetch_optional(&mut *self.store.reading().await?)
            .await?;
            row.as_ref().map(sessions::face).transpose()
        };
        found.await.map_err(self.store.explain("reading a session"))
    }

    /// Counts the open sessions, whether or not their rows can be read.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn count_open(&self) -> Result<u64, StoreError> {
        let query = sqlx::query("SELECT COUNT(*) FROM sessions WHERE status <> 'closed'");
        let counted = self.store.count(query).await;
        counted.map_err(self.store.explain("counting sessions"))
    }

    /// Returns the sessions, newest first, for what must know all of them.
    ///
    /// # Errors
    /// When the database or one of the rows cannot be read.
    pub async fn list(&self, filter: SessionFilter) -> Result<Vec<Session>, StoreError> {
        let listed = async {
            let rows = sqlx::query(concat!("SELECT ", session_columns!(), of_status!()))
                .bind(filter.status())
                .bind(i64::from(filter == SessionFilter::Open))
                .fetch_all(&mut *self.store.reading().await?)
                .await?;
            rows.iter()
                .map(sessions::session)
                .collect::<Result<Vec<_>, _>>()
        };
        listed.await.map_err(self.store.explain("listing sessions"))
    }

    /// Returns the servers of this machine that open sessions are recorded on at this socket.
    ///
    /// A row that cannot be read is another session's trouble, and names no server.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn servers_on(
        &self,
        socket: &TmuxSocket,
    ) -> Result<Vec<(BootId, ProcessId)>, StoreError> {
        let found = async {
            let rows = sqlx::query(
                "SELECT MIN(s.id) AS id, s.boot_id, s.server_pid, s.server_start FROM sessions s \
                 WHERE s.status <> 'closed' AND s.host = $1 AND s.tmux_socket = $2 \
                 GROUP BY s.boot_id, s.server_pid, s.server_start",
            )
            .bind(&*self.store.machine)
            .bind(sessions::socket_text(socket))
            .fetch_all(&mut *self.store.reading().await?)
            .await?;
            Ok(rows
                .iter()
                .filter_map(|row| sessions::server(row).ok())
                .collect())
        };
        found
            .await
            .map_err(self.store.explain("listing tmux servers"))
    }

    /// Records a first spawn before it is made: the session is `spawning`, and only this claim's
    /// delivery is worked on until it is registered or abandoned.
    ///
    /// # Errors
    /// [`StoreError::Lost`], or [`StoreError::SessionOpen`] when the item has an open session.
    pub async fn begin_spawn(
        &self,
        claim: &Claim,
        new: &NewSession,
    ) -> Result<Session, StoreError> {
        let begun = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            let id = self.insert(&mut tx, claim, new).await?;
            let session = sessions::by_id(&mut tx, id).await?;
            tx.commit().await?;
            session.ok_or(Fault::SessionMoved(id))
        };
        begun.await.map_err(self.store.explain("recording a spawn"))
    }

    async fn insert(
        &self,
        conn: &mut SqliteConnection,
        claim: &Claim,
        new: &NewSession,
    ) -> Result<i64, Fault> {
        let item = claim.item.item.to_string();
        let cwd = new.cwd.to_str();
        let cwd = cwd.ok_or_else(|| Fault::NotText(new.cwd.clone()))?;
        let inserted: Result<i64, Fault> = sqlx::query_scalar(
            "INSERT INTO sessions (item_id, minted_ref, host, owner, harness, harness_session_id, cwd, \
             status, status_since, boot_delivery, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'spawning', $9, $8, $9) RETURNING id",
        )
        .bind(new.item)
        .bind(item)
        .bind(&*self.store.machine)
        .bind(new.owner.as_str())
        .bind(&new.harness.0)
        .bind(new.harness_session_id.as_str())
        .bind(cwd)
        .bind(new.boot_delivery.0)
        .bind(self.store.now_ms())
        .fetch_one(conn)
        .await
        .map_err(Fault::from);
        inserted.map_err(|fault| {
            if fault.is_unique_violation() {
                Fault::SessionOpen(claim.item.item.clone())
            } else {
                fault
            }
        })
    }

    /// Records a respawn before it is made, in columns of its own.
    ///
    /// # Errors
    /// [`StoreError::Lost`], or [`StoreError::SessionMoved`] when the session is not open any more.
    pub async fn begin_respawn(
        &self,
        claim: &Claim,
        session: i64,
        attempt: &NewAttempt,
    ) -> Result<(), StoreError> {
        let begun = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            effects::begin_attempt(&mut tx, session, attempt).await?;
            tx.commit().await.map_err(Fault::from)
        };
        begun
            .await
            .map_err(self.store.explain("recording a respawn"))
    }

    /// Records that the session's agent runs, while the claim goes on, and says so just before the
    /// commit.
    ///
    /// # Errors
    /// [`StoreError::Lost`], or [`StoreError::SessionMoved`] when the session was closed.
    pub async fn register_saying(
        &self,
        claim: &Claim,
        registered: &Registered,
        say: impl FnOnce() + Send,
    ) -> Result<(), StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            effects::register(&mut tx, registered, self.store.now_ms()).await?;
            say();
            tx.commit().await.map_err(Fault::from)
        };
        done.await
            .map_err(self.store.explain("registering a session"))
    }

    /// Forgets a spawn that failed: a first spawn leaves no session, a respawn leaves it as it was.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when the claim is no longer ours.
    pub async fn abandon_attempt(&self, claim: &Claim, session: i64) -> Result<(), StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            claims::fence(&self.store, &mut tx, &claim.reference()).await?;
            effects::abandon_attempt(&mut tx, session).await?;
            tx.commit().await.map_err(Fault::from)
        };
        done.await.map_err(self.store.explain("giving a spawn up"))
    }

    /// Forgets sessions, command and queue of these work items: of all, or of none.
    ///
    /// Keys and baselines stay, so nothing is said twice; a delivery that is being worked on stays
    /// with its holder.
    ///
    /// # Errors
    /// [`StoreError::UnknownItems`] when one of them has no row, [`StoreError::SessionOpen`] when one
    /// has an open session, whose agent nobody would know any more; then nothing was changed.
    pub async fn reset(
        &self,
        items: &[WorkItemRef],
        mode: ResetMode,
    ) -> Result<Vec<ResetReport>, StoreError> {
        self.reset_saying(items, mode, |_| {}).await
    }

    /// Forgets them, and where that is done says so just before the commit.
    ///
    /// # Errors
    /// As [`reset`](Self::reset).
    pub async fn reset_saying(
        &self,
        items: &[WorkItemRef],
        mode: ResetMode,
        say: impl FnOnce(&[ResetReport]) + Send,
    ) -> Result<Vec<ResetReport>, StoreError> {
        let done = async {
            let mut tx = self.store.begin().await?;
            let mut reports = Vec::new();
            let mut unknown = Vec::new();
            for item in items {
                match self.reset_one(&mut tx, item).await? {
                    Some(report) => reports.push(report),
                    None => unknown.push(item.clone()),
                }
            }
            if !unknown.is_empty() {
                return Err(Fault::UnknownItems(unknown));
            }
            let open = reports.iter().find(|report| report.has_open_session());
            if let Some(report) = open.filter(|_| mode == ResetMode::Apply) {
                return Err(Fault::SessionOpen(report.item.clone()));
            }
            match mode {
                ResetMode::Apply => {
                    say(&reports);
                    tx.commit().await?;
                }
                ResetMode::DryRun => tx.rollback().await?,
            }
            Ok(reports)
        };
        done.await
            .map_err(self.store.explain("resetting work items"))
    }

    async fn reset_one(
        &self,
        conn: &mut SqliteConnection,
        item: &WorkItemRef,
    ) -> Result<Option<ResetReport>, Fault> {
        let Some(row) = items::by_key(conn, item).await? else {
            return Ok(None);
        };
        let sessions = sessions::all_of(conn, item).await?;
        sqlx::query("DELETE FROM sessions WHERE item_id = $1")
            .bind(row.id)
            .execute(&mut *conn)
            .await?;
        effects::clear_control(conn, row.id).await?;
        let dropped = effects::forget_queue(conn, row.id, self.store.now_ms()).await?;
        sqlx::query("UPDATE work_items SET dirty_mark = dirty_mark + 1 WHERE id = $1")
            .bind(row.id)
            .execute(&mut *conn)
            .await?;
        Ok(Some(ResetReport {
            item: row.item,
            sessions,
            control: row.control,
            queued: dropped.len() as u64,
            waiting: waiting::read(conn, &dropped).await?,
        }))
    }
}
