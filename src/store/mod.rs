//! What must survive: work items, events, their deliveries, and sessions, in one database.
//!
//! Ingress writes through the [`Inbox`], the dispatcher works through the [`Deduper`] and the
//! [`SessionRegistry`], everybody reads through the [`Ledger`]. Several processes do so at once:
//! every call is one statement or one short transaction, nothing in memory is the truth, and a
//! process may be killed at any instruction. Statements stay in the SQL that `SQLite` and
//! `PostgreSQL` share; only the schema and the opening of the file are `SQLite`'s own. Knows neither
//! tmux nor GitHub. Read `inbox.rs` and `claims.rs` next.

mod claim;
mod claims;
mod connections;
mod deduper;
mod effects;
mod enqueue;
mod error;
mod file;
mod inbox;
mod items;
mod ledger;
mod migrations;
mod pace;
mod queue;
mod registry;
mod rows;
mod seen;
mod sessions;
mod settle;
mod sightings;
#[cfg(test)]
mod tests;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteRow};
use sqlx::{Row, Transaction};

pub use claim::{Claim, ClaimOwner, ClaimRef, ClaimedDelivery, Intent};
pub use claims::{IsDead, LONGEST_WAIT};
pub use connections::{Turns, Use};
pub use deduper::{Deduper, Fence};
pub use effects::{NewAttempt, NewSession, Registered, SessionChange};
pub use error::StoreError;
pub use inbox::{Acceptance, Accepted, Arrival, ArrivalOutcome, CursorUpdate, Disposition, Inbox};
pub use ledger::{Cursor, ItemFilter, Ledger};
pub use queue::{Counts, Queue, QueueFilter, QueueRow, Rearmed};
pub use registry::{ResetMode, ResetReport, SessionFilter, SessionRegistry};
pub use rows::{ControlRecord, DirtyMark, ItemRow, PullHead};
pub use seen::{Arming, ItemSighting, Pull, Track};
pub use sessions::{SessionFace, SessionFaces, UnreadableSession};
pub use settle::{Rearm, Release, Settlement};
pub use sightings::{Change, Freshness, Sighted};
pub use waiting::Waiting;

use crate::clock::Clock;
use connections::Connections;
use error::Fault;

/// How long a host counts as seen without being recorded again.
const HOST_SEEN_FOR: TimeDelta = TimeDelta::hours(1);

/// How the database is opened; the default is right for daemons.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// How long a write waits for another process's lock.
    pub busy_timeout: Duration,
    /// How long a claim holds without being renewed.
    pub lease: Duration,
    /// How many connections read at once; each is a thread, and is opened when it is first needed.
    /// With none, the one that writes reads too, and everything is done one by one.
    pub readers: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(10),
            lease: Duration::from_secs(60),
            readers: 3,
        }
    }
}

impl Tuning {
    /// For a process that asks one question after the other and ends: a second connection would take
    /// longer to open than to wait for.
    #[must_use]
    pub fn one_reader() -> Self {
        Self {
            readers: 1,
            ..Self::default()
        }
    }
}

type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// One open database; clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    path: Arc<Path>,
    machine: Arc<str>,
    clock: Arc<dyn Clock>,
    lease: Duration,
    connections: Connections,
}

impl Store {
    /// Opens the database, creating or migrating it first where needed.
    ///
    /// `machine` is the id of this host: sessions and claims carry it.
    ///
    /// # Errors
    /// Names the file and what to do when it is damaged, locked, unwritable or too new; an existing
    /// file is never replaced.
    pub async fn open(
        path: &Path,
        machine: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::open_with(path, machine, clock, Tuning::default()).await
    }

    /// Opens the database with other waiting times.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with(
        path: &Path,
        machine: &str,
        clock: Arc<dyn Clock>,
        tuning: Tuning,
    ) -> Result<Self, StoreError> {
        Self::open_migrating(path, machine, clock, tuning, migrations::ALL).await
    }

    async fn open_migrating(
        path: &Path,
        machine: &str,
        clock: Arc<dyn Clock>,
        tuning: Tuning,
        migrations: &[migrations::Migration],
    ) -> Result<Self, StoreError> {
        let connections = file::open(path, &tuning, migrations, clock.now()).await?;
        Ok(Self {
            path: path.into(),
            machine: machine.into(),
            clock,
            lease: tuning.lease,
            connections,
        })
    }

    /// Returns what ingress writes to.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        Inbox::new(self.clone())
    }

    /// Returns the recorded sessions.
    #[must_use]
    pub fn registry(&self) -> SessionRegistry {
        SessionRegistry::new(self.clone())
    }

    /// Returns the claims on deliveries.
    #[must_use]
    pub fn deduper(&self) -> Deduper {
        Deduper::new(self.clone())
    }

    /// Returns the deliveries as people and schedules see them.
    #[must_use]
    pub fn queue(&self) -> Queue {
        Queue::new(self.clone())
    }

    /// Returns what is known of work items and polled lists.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::new(self.clone())
    }

    /// Returns the database's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole database and reports the first damage; takes seconds on a large one, so no
    /// opening does it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with what is wrong.
    pub async fn check(&self) -> Result<(), StoreError> {
        const DOING: &str = "checking the store";
        let checked = async {
            let mut conn = self.reading().await?;
            let verdict = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *conn);
            Ok(verdict.await?)
        };
        let verdict: String = checked.await.map_err(self.explain(DOING))?;
        if verdict == "ok" {
            return Ok(());
        }
        Err(StoreError::Corrupt {
            path: self.path.to_path_buf(),
            doing: DOING,
            detail: verdict,
        })
    }

    /// Records that this machine runs this version now, unless that was done within the hour: a run
    /// in which nothing happens writes nothing.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn record_host(&self, name: &str, version: &str) -> Result<(), StoreError> {
        let now = self.now_ms();
        let recorded = async {
            let is_known = sqlx::query(
                "SELECT 1 FROM hosts WHERE id = $1 AND name = $2 AND version = $3 \
                 AND last_seen BETWEEN $4 - $5 AND $4",
            )
            .bind(&*self.machine)
            .bind(name)
            .bind(version)
            .bind(now)
            .bind(HOST_SEEN_FOR.num_milliseconds())
            .fetch_optional(&mut *self.reading().await?)
            .await?
            .is_some();
            if is_known {
                return Ok(());
            }
            sqlx::query(
                "INSERT INTO hosts (id, name, version, last_seen) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, \
                 last_seen = excluded.last_seen",
            )
            .bind(&*self.machine)
            .bind(name)
            .bind(version)
            .bind(now)
            .execute(&mut *self.writing().await?)
            .await?;
            Ok(())
        };
        recorded.await.map_err(self.explain("recording this host"))
    }

    /// Closes every connection, after the work in progress.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    /// Tells whether nothing is being read or written, by this process.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.connections.are_at_rest()
    }

    /// Returns the same store, each use of which waits for its turn.
    #[must_use]
    pub fn in_turn(&self, turns: Arc<dyn Turns>) -> Self {
        Self {
            connections: self.connections.in_turn(turns),
            ..self.clone()
        }
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    fn now_ms(&self) -> i64 {
        rows::ms(self.now())
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }

    fn lease_end_ms(&self) -> i64 {
        self.now_ms().saturating_add(self.lease_ms())
    }

    fn longest_wait_end_ms(&self) -> i64 {
        let longest = i64::try_from(LONGEST_WAIT.as_millis()).unwrap_or(i64::MAX);
        self.now_ms().saturating_add(longest)
    }

    async fn reading(&self) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        self.connections.reading().await
    }

    async fn writing(&self) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        self.connections.writing().await
    }

    /// Returns the rows that a statement finds.
    async fn all(&self, statement: Statement<'_>) -> Result<Vec<SqliteRow>, Fault> {
        Ok(statement.fetch_all(&mut *self.reading().await?).await?)
    }

    /// Returns the first row that a statement finds.
    async fn first(&self, statement: Statement<'_>) -> Result<Option<SqliteRow>, Fault> {
        Ok(statement
            .fetch_optional(&mut *self.reading().await?)
            .await?)
    }

    /// Returns the count that a statement comes to.
    async fn count(&self, statement: Statement<'_>) -> Result<u64, Fault> {
        let row = statement.fetch_one(&mut *self.reading().await?).await?;
        Ok(u64::try_from(row.try_get::<i64, _>(0)?).unwrap_or_default())
    }

    /// Changes what a statement says, and returns how many rows that were.
    async fn change(&self, statement: Statement<'_>) -> Result<u64, Fault> {
        let done = statement.execute(&mut *self.writing().await?).await?;
        Ok(done.rows_affected())
    }

    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, Fault> {
        Ok(self.connections.begin().await?)
    }

    /// Reads the rows that can be read; each other one is said and left out, so that it hides nobody.
    fn readable<T>(
        &self,
        doing: &'static str,
        rows: &[SqliteRow],
        read: impl Fn(&SqliteRow) -> Result<T, Fault>,
    ) -> Vec<T> {
        let readable = |row| match read(row) {
            Ok(value) => Some(value),
            Err(fault) => {
                tracing::warn!("left out: {}", self.explain(doing)(fault));
                None
            }
        };
        rows.iter().filter_map(readable).collect()
    }

    fn explain(&self, doing: &'static str) -> impl Fn(Fault) -> StoreError {
        let path: PathBuf = self.path.to_path_buf();
        move |fault| fault.explain(&path, doing)
    }
}
