//! The database file: made whole and private, opened with the settings that durability needs.
//!
//! A database appears under its name only when its schema is complete. So a file that is empty or
//! has no schema was damaged, and is reported instead of being filled.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::Tuning;
use super::connections::Connections;
use super::error::{StoreError, explain_sql};
use super::migrations::{self, Migration};

const OPENING: &str = "opening the store";
const CREATING: &str = "creating the store";
const PRIVATE: u32 = 0o600;

/// Creates an empty file that only its owner can read; it must not exist.
pub(super) async fn create_private(path: &Path) -> io::Result<()> {
    let file = tokio::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)
        .await?;
    file.sync_all().await
}

fn options(path: &Path, tuning: &Tuning) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(tuning.busy_timeout)
        .disable_statement_logging()
}

/// Makes sure that a complete database of the current schema is at `path`, and opens it for writing
/// and for reading.
pub(super) async fn open(
    path: &Path,
    tuning: &Tuning,
    migrations: &[Migration],
    now: DateTime<Utc>,
) -> Result<Connections, StoreError> {
    match tokio::fs::metadata(path).await {
        Ok(found) if found.len() == 0 => return Err(emptied(path)),
        Ok(found) => keep_private(path, &found).await?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path, tuning, migrations, now).await?;
        }
        Err(error) => return Err(unwritable(path, OPENING, &error)),
    }
    let connections = pools(path, tuning);
    // On the connection that stays: the last one to close takes the log's files with it, and the next
    // one to open makes them again.
    let migrated = match connections.reading().await {
        Ok(mut conn) => migrations::migrate(&mut conn, path, migrations, now).await,
        Err(error) => Err(explain_sql(error, path.to_owned(), OPENING)),
    };
    match migrated {
        Ok(()) => Ok(connections),
        Err(error) => {
            connections.close().await;
            Err(error)
        }
    }
}

fn emptied(path: &Path) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        doing: OPENING,
        detail: "the file is empty".to_owned(),
    }
}

fn unwritable(path: &Path, doing: &'static str, error: &io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::StorageFull {
        return StoreError::Full {
            path: path.to_owned(),
            doing,
        };
    }
    StoreError::Unwritable {
        path: path.to_owned(),
        doing,
        detail: error.to_string(),
    }
}

async fn keep_private(path: &Path, found: &std::fs::Metadata) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt;
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    tokio::fs::set_permissions(path, std::fs::Permissions::from_mode(PRIVATE))
        .await
        .map_err(|error| unwritable(path, OPENING, &error))
}

/// Builds the database under another name and then gives it its own, unless somebody was faster.
async fn create(
    path: &Path,
    tuning: &Tuning,
    migrations: &[Migration],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let io_error = |error: io::Error| unwritable(path, CREATING, &error);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    tokio::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .await
        .map_err(io_error)?;
    refuse_orphaned_log(path).await?;
    let draft = beside(path, &format!(".new-{}", uuid::Uuid::new_v4().simple()));
    create_private(&draft).await.map_err(io_error)?;
    let built = build(&draft, tuning, migrations, now)
        .await
        .map_err(|error| explain_sql(error, path.to_owned(), CREATING));
    let placed = match built {
        Ok(()) => match tokio::fs::hard_link(&draft, path).await {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_error(error)),
            _ => Ok(()),
        },
        Err(error) => Err(error),
    };
    tokio::fs::remove_file(&draft).await.map_err(io_error)?;
    placed?;
    let folder = tokio::fs::File::open(folder).await.map_err(io_error)?;
    folder.sync_all().await.map_err(io_error)
}

async fn build(
    draft: &Path,
    tuning: &Tuning,
    migrations: &[Migration],
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let options = options(draft, tuning).journal_mode(SqliteJournalMode::Wal);
    let mut conn = options.connect().await?;
    migrations::create(&mut conn, migrations, now).await?;
    conn.close().await
}

/// A write-ahead log without its database holds writes that a new database would not have.
async fn refuse_orphaned_log(path: &Path) -> Result<(), StoreError> {
    let log = beside(path, "-wal");
    match tokio::fs::metadata(&log).await {
        // SQLite empties the log before it removes it, so only a log with content is a loss. The
        // database may have been created between the two looks; then the log is its own.
        Ok(found) if found.len() > 0 && tokio::fs::metadata(path).await.is_err() => {
            Err(StoreError::Corrupt {
                path: path.to_owned(),
                doing: OPENING,
                detail: format!("the file is gone but {} is still there", log.display()),
            })
        }
        _ => Ok(()),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes the two pools, which connect when they are first used.
fn pools(path: &Path, tuning: &Tuning) -> Connections {
    let pool = |connections| {
        SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(tuning.busy_timeout + Duration::from_secs(20))
            .idle_timeout(Duration::from_secs(60))
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(options(path, tuning))
    };
    let writer = pool(1);
    let readers = match tuning.readers {
        0 => writer.clone(),
        some => pool(some),
    };
    Connections::new(writer, readers)
}
