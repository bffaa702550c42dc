//! The connections to the database, and what comes before each use of one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqlitePool;
use sqlx::{Sqlite, Transaction};

/// What a use of the database is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To look.
    Reading,
    /// To change something.
    Writing,
}

/// Whose turn it is to use the database: a simulation decides here what comes after what, and fails.
pub trait Turns: fmt::Debug + Send + Sync {
    /// Returns when the use may begin.
    ///
    /// # Errors
    /// Any that the database may give.
    fn wait(&self, what: Use)
    -> Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + '_>>;
}

/// One connection that writes, so that the writers of this process queue here instead of polling
/// `SQLite`'s lock, and some that read.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    writer: SqlitePool,
    readers: SqlitePool,
    turns: Option<Arc<dyn Turns>>,
}

impl Connections {
    pub(super) fn new(writer: SqlitePool, readers: SqlitePool) -> Self {
        Self {
            writer,
            readers,
            turns: None,
        }
    }

    pub(super) fn in_turn(&self, turns: Arc<dyn Turns>) -> Self {
        Self {
            turns: Some(turns),
            ..self.clone()
        }
    }

    /// Takes a connection to read with.
    pub(super) async fn reading(&self) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        self.turn(Use::Reading).await?;
        self.readers.acquire().await
    }

    /// Takes the connection that writes.
    pub(super) async fn writing(&self) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        self.turn(Use::Writing).await?;
        self.writer.acquire().await
    }

    /// Starts a write transaction: it holds the database's write lock from its first statement on,
    /// so nothing that it reads can change before it commits.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.turn(Use::Writing).await?;
        self.writer.begin_with("BEGIN IMMEDIATE").await
    }

    async fn turn(&self, what: Use) -> Result<(), sqlx::Error> {
        match &self.turns {
            Some(turns) => turns.wait(what).await,
            None => Ok(()),
        }
    }

    pub(super) async fn close(&self) {
        self.writer.close().await;
        self.readers.close().await;
    }

    pub(super) fn are_at_rest(&self) -> bool {
        let rests = |pool: &SqlitePool| pool.size() as usize == pool.num_idle();
        rests(&self.writer) && rests(&self.readers)
    }
}
