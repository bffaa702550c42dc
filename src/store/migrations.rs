//! Brings a database to the schema of this program, or says why it cannot.
//!
//! Migrations are numbered scripts, each applied once and in order. All that an older database lacks
//! is applied in one transaction, after a copy of it was put beside the file.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sqlx::{Connection, Row, SqliteConnection};

use super::error::{StoreError, explain_sql};

/// One step from a schema version to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    pub(super) version: i64,
    pub(super) sql: &'static str,
}

/// Every migration of this program, in order.
pub(super) const ALL: &[Migration] = &[Migration {
    version: 1,
    sql: include_str!("migrations/0001_initial.sql"),
}];

const READING: &str = "reading the schema version";

fn latest(migrations: &[Migration]) -> i64 {
    migrations.last().map_or(0, |migration| migration.version)
}

/// Reads the version that a database has; a database without one is not ours.
pub(super) async fn version(conn: &mut SqliteConnection, path: &Path) -> Result<i64, StoreError> {
    let asked = sqlx::query("SELECT MAX(version) FROM schema_versions")
        .fetch_one(conn)
        .await;
    match asked.and_then(|row| row.try_get::<Option<i64>, _>(0)) {
        Ok(Some(version)) => Ok(version),
        Ok(None) => Err(not_ours(path, "it has no schema version")),
        Err(sqlx::Error::Database(error)) if error.message().contains("no such table") => {
            Err(not_ours(path, "it holds no the-loop schema"))
        }
        Err(error) => Err(explain_sql(error, path.to_owned(), READING)),
    }
}

fn not_ours(path: &Path, detail: &str) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        doing: READING,
        detail: detail.to_owned(),
    }
}

/// Gives an empty database the whole schema.
pub(super) async fn create(
    conn: &mut SqliteConnection,
    migrations: &[Migration],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::raw_sql(
        "CREATE TABLE schema_versions (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)",
    )
    .execute(&mut *tx)
    .await?;
    apply(&mut tx, migrations, 0, now)
        .await
        .map_err(|(_, error)| error)?;
    tx.commit().await
}

/// Refuses a newer database, migrates an older one.
pub(super) async fn migrate(
    conn: &mut SqliteConnection,
    path: &Path,
    migrations: &[Migration],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let known = latest(migrations);
    let found = version(conn, path).await?;
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    if found == known {
        return Ok(());
    }
    let explain = |error| explain_sql(error, path.to_owned(), "migrating the database");
    let backup = back_up(conn, path, found).await?;
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await.map_err(explain)?;
    // Another process may have migrated while this one made its copy; what it did is not done again.
    let found = version(&mut tx, path).await?;
    apply(&mut tx, migrations, found, now)
        .await
        .map_err(|(version, error)| StoreError::Migration {
            path: path.to_owned(),
            version,
            backup: backup.clone(),
            detail: error.to_string(),
        })?;
    tx.commit().await.map_err(explain)
}

async fn apply(
    conn: &mut SqliteConnection,
    migrations: &[Migration],
    found: i64,
    now: DateTime<Utc>,
) -> Result<(), (i64, sqlx::Error)> {
    for migration in migrations.iter().filter(|m| m.version > found) {
        let version = migration.version;
        let at = |error| (version, error);
        sqlx::raw_sql(migration.sql)
            .execute(&mut *conn)
            .await
            .map_err(at)?;
        sqlx::query("INSERT INTO schema_versions (version, applied_at) VALUES ($1, $2)")
            .bind(version)
            .bind(now.timestamp_millis())
            .execute(&mut *conn)
            .await
            .map_err(at)?;
    }
    Ok(())
}

/// Names the copy that is made before a database leaves `version`.
pub(super) fn backup_path(path: &Path, version: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}-backup"));
    PathBuf::from(name)
}

async fn back_up(
    conn: &mut SqliteConnection,
    path: &Path,
    version: i64,
) -> Result<PathBuf, StoreError> {
    const DOING: &str = "backing up the database before a migration";
    let backup = backup_path(path, version);
    let mut draft = backup.as_os_str().to_owned();
    draft.push(format!("-{}", uuid::Uuid::new_v4().simple()));
    let draft = PathBuf::from(draft);
    let unwritable = |detail: String| StoreError::Unwritable {
        path: backup.clone(),
        doing: DOING,
        detail,
    };
    let target = draft
        .to_str()
        .ok_or_else(|| unwritable("its path is not UTF-8".to_owned()))?;
    super::file::create_private(&draft)
        .await
        .map_err(|error| unwritable(error.to_string()))?;
    sqlx::query("VACUUM INTO $1")
        .bind(target)
        .execute(conn)
        .await
        .map_err(|error| explain_sql(error, backup.clone(), DOING))?;
    // The first copy of a version is kept: a second process copies what the first may have changed.
    let placed = match tokio::fs::hard_link(&draft, &backup).await {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    };
    let removed = tokio::fs::remove_file(&draft).await;
    placed
        .and(removed)
        .map_err(|error| unwritable(error.to_string()))?;
    Ok(backup)
}
