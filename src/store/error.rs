//! What can go wrong with the store, said so that an operator knows which file and what to do.

use std::path::{Path, PathBuf};

use crate::model::{DeliveryId, WorkItemRef};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process kept the database locked for longer than we wait.
    #[error(
        "{doing}: the database {} is locked by another process; find it with `fuser {}`, then try again", path.display(), path.display()
    )]
    Locked {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
    },
    /// The file is not a healthy database.
    #[error(
        "{doing}: the database {} is damaged ({detail}); stop every the-loop process, keep a copy, then restore a backup or run `sqlite3 {} .recover`; it is never replaced by an empty one", path.display(), path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The file system has no room left.
    #[error(
        "{doing}: no space left for the database {}; free some space on that file system, nothing was lost", path.display()
    )]
    Full {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
    },
    /// The file or its folder cannot be opened or written.
    #[error(
        "{doing}: the database {} cannot be opened for writing ({detail}); check the owner and the mode of the file and its folder", path.display()
    )]
    Unwritable {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        detail: String,
    },
    /// A newer version of the program has migrated the database.
    #[error(
        "the database {} has schema version {found}, this program knows up to {known}; install the newer the-loop, or restore the backup that it made beside the file", path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The version in the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A migration failed; nothing of it was kept.
    #[error(
        "migrating the database {} to schema version {version}: {detail}; the database is unchanged, and {} is a copy of it", path.display(), backup.display()
    )]
    Migration {
        /// The database.
        path: PathBuf,
        /// The version that could not be reached.
        version: i64,
        /// The copy made before.
        backup: PathBuf,
        /// What the database said.
        detail: String,
    },
    /// A row holds something that this version cannot read.
    #[error(
        "{doing}: row {id} of table {table} in {} cannot be read: {detail}; a newer the-loop may have written it", path.display()
    )]
    BadRow {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The table.
        table: &'static str,
        /// The row.
        id: i64,
        /// What is wrong with it.
        detail: String,
    },
    /// The claim is no longer ours: its lease ran out and somebody took it over.
    #[error("{doing}: the claim on delivery {delivery} was lost; its new holder goes on with it")]
    Lost {
        /// What was being done.
        doing: &'static str,
        /// The claim's first delivery.
        delivery: DeliveryId,
    },
    /// The work item has an open session already.
    #[error("{item} has an open session; close it first, then try again")]
    SessionOpen {
        /// The work item.
        item: WorkItemRef,
    },
    /// The session has changed since it was read, and the change no longer applies.
    #[error("{doing}: session {session} is no longer in the state that this needs; read it again")]
    SessionMoved {
        /// What was being done.
        doing: &'static str,
        /// The session.
        session: i64,
    },
    /// A path that cannot be kept as text.
    #[error("{} cannot be recorded: its name is not UTF-8; use a folder with a plain name", folder.display())]
    NotText {
        /// The path.
        folder: PathBuf,
    },
    /// None of these is known; nothing was changed.
    #[error("not known: {}; nothing was changed", list(items))]
    UnknownItems {
        /// The work items without a row.
        items: Vec<WorkItemRef>,
    },
    /// Anything else that the database refused.
    #[error("{doing}: the database {} refused: {source}", path.display())]
    Sql {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What it said.
        #[source]
        source: sqlx::Error,
    },
}

impl StoreError {
    /// Tells whether the same call may succeed later without anybody's help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Full { .. })
    }
}

fn list(items: &[WorkItemRef]) -> String {
    let names: Vec<String> = items.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// A failure inside the store, before it is told which file and which call it belongs to.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(sqlx::Error),
    Row {
        table: &'static str,
        id: i64,
        detail: String,
    },
    Lost(DeliveryId),
    SessionOpen(WorkItemRef),
    SessionMoved(i64),
    UnknownItems(Vec<WorkItemRef>),
    NotText(PathBuf),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl Fault {
    pub(super) fn explain(self, path: &Path, doing: &'static str) -> StoreError {
        let path = path.to_owned();
        match self {
            Self::Sql(error) => explain_sql(error, path, doing),
            Self::Row { table, id, detail } => StoreError::BadRow {
                path,
                doing,
                table,
                id,
                detail,
            },
            Self::Lost(delivery) => StoreError::Lost { doing, delivery },
            Self::SessionOpen(item) => StoreError::SessionOpen { item },
            Self::SessionMoved(session) => StoreError::SessionMoved { doing, session },
            Self::NotText(folder) => StoreError::NotText { folder },
            Self::UnknownItems(items) => StoreError::UnknownItems { items },
        }
    }

    /// Names what the row is about, for a table whose rows have no numbers.
    pub(super) fn about(self, name: &str) -> Self {
        match self {
            Self::Row { table, id, detail } => Self::Row {
                table,
                id,
                detail: format!("{name}: {detail}"),
            },
            other => other,
        }
    }

    pub(super) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Sql(sqlx::Error::Database(error)) if error.is_unique_violation())
    }
}

/// `SQLite`'s primary result codes; `sqlx` hands out the extended ones, whose low byte they are.
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const NOTADB: i32 = 26;
}

pub(super) fn explain_sql(error: sqlx::Error, path: PathBuf, doing: &'static str) -> StoreError {
    let (primary, detail) = match &error {
        sqlx::Error::PoolTimedOut => return StoreError::Locked { path, doing },
        sqlx::Error::Database(database) => (
            database
                .code()
                .and_then(|code| code.parse::<i32>().ok())
                .map(|extended| extended & 0xff),
            database.message().to_owned(),
        ),
        _ => (None, String::new()),
    };
    match primary {
        Some(code::BUSY | code::LOCKED) => StoreError::Locked { path, doing },
        Some(code::CORRUPT | code::NOTADB) => StoreError::Corrupt {
            path,
            doing,
            detail,
        },
        Some(code::FULL) => StoreError::Full { path, doing },
        Some(code::PERM | code::READONLY | code::CANTOPEN) => StoreError::Unwritable {
            path,
            doing,
            detail,
        },
        _ => StoreError::Sql {
            path,
            doing,
            source: error,
        },
    }
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions;
    use sqlx::sqlite::SqliteConnectOptions;

    use super::*;

    #[test]
    fn a_connection_that_does_not_come_free_is_a_lock() {
        let error = explain_sql(sqlx::Error::PoolTimedOut, "loop.db".into(), "reading");
        assert!(error.is_transient(), "{error:?}");
    }

    #[tokio::test]
    async fn a_database_that_may_not_be_written_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop.db");
        std::fs::write(&path, "").unwrap();
        let options = SqliteConnectOptions::new().filename(&path).read_only(true);
        let mut conn = options.connect().await.unwrap();
        let refused = sqlx::query("CREATE TABLE t (x)").execute(&mut conn).await;
        let error = explain_sql(refused.unwrap_err(), path, "writing");
        assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
    }
}
