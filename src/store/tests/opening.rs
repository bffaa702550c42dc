use std::os::unix::fs::PermissionsExt;

use sqlx::ConnectOptions;

use super::*;
use crate::store::migrations::Migration;

async fn open(path: &Path) -> Result<Store, StoreError> {
    open_knowing(path, migrations::ALL).await
}

async fn open_knowing(path: &Path, known: &[Migration]) -> Result<Store, StoreError> {
    let clock = Arc::new(ManualClock::starting_at(at(0)));
    Store::open_migrating(path, "host-a", clock, Tuning::default(), known).await
}

const NEXT: &[Migration] = &[
    migrations::ALL[0],
    Migration {
        version: 2,
        sql: "ALTER TABLE hosts ADD COLUMN colour TEXT; UPDATE hosts SET colour = 'blue';",
    },
];

const BROKEN: &[Migration] = &[
    migrations::ALL[0],
    Migration {
        version: 2,
        sql: "ALTER TABLE hosts ADD COLUMN colour TEXT; UPDATE nowhere SET colour = 'blue';",
    },
];

#[tokio::test]
async fn files_and_folder_are_for_their_owner_only() {
    let world = World::new().await;
    world.know("o/r#1").await;

    let state = world.folder.path().join("state");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&state).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["loop.db", "loop.db-shm", "loop.db-wal"]);
}

#[tokio::test]
async fn a_database_that_others_could_read_is_made_private() {
    let world = World::new().await;
    let path = world.store.path().to_owned();
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    open(&path).await.unwrap();
    assert_eq!(mode(), 0o600);

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    open(&path).await.ok();
    assert_eq!(
        mode(),
        0o400,
        "what is private already is left as its owner made it"
    );
}

#[tokio::test]
async fn an_emptied_database_is_called_empty() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loop.db");
    std::fs::write(&path, "").unwrap();

    let error = open(&path).await.unwrap_err();

    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("the file is empty"), "{error}");
}

#[tokio::test]
async fn a_closed_store_leaves_one_file_and_answers_nobody() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let path = world.store.path().to_owned();
    world.store.close().await;
    assert!(world.store.ledger().item(&item("o/r#1")).await.is_err());
    let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "its log is part of it");
}

#[tokio::test]
async fn a_store_is_at_rest_while_nobody_reads_or_writes() {
    let world = World::new().await;
    let rests = async || {
        while !world.store.is_at_rest() {
            tokio::task::yield_now().await;
        }
    };
    rests().await;
    let reading = world.store.reading().await.unwrap();
    assert!(!world.store.is_at_rest());
    drop(reading);
    rests().await;
    let writing = world.store.writing().await.unwrap();
    assert!(!world.store.is_at_rest());
    drop(writing);
    rests().await;
}

#[tokio::test]
async fn a_store_with_one_reader_reads_one_thing_at_a_time() {
    let world = World::new().await;
    let clock = Arc::new(world.clock.clone());
    let opened = Store::open_with(world.store.path(), "host-a", clock, Tuning::one_reader());
    let store = opened.await.unwrap();
    let _first = store.reading().await.unwrap();
    let second = tokio::time::timeout(Duration::from_millis(100), store.reading());
    assert!(second.await.is_err(), "it waits");
}

/// Refuses every use of the database.
#[derive(Debug)]
struct NobodysTurn;

impl Turns for NobodysTurn {
    fn wait(
        &self,
        _: Use,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send + '_>> {
        Box::pin(async { Err(sqlx::Error::PoolTimedOut) })
    }
}

#[tokio::test]
async fn a_store_that_is_used_in_turn_is_used_in_no_other_way() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let refused = world.store.in_turn(Arc::new(NobodysTurn));
    let read = refused.ledger().item(&item("o/r#1")).await;
    assert!(read.unwrap_err().is_transient());
    let written = refused.record_host("box", "1.0").await;
    assert!(written.unwrap_err().is_transient());
    let accepted = refused.inbox().accept(&Acceptance::default()).await;
    assert!(accepted.unwrap_err().is_transient());
    assert!(world.store.ledger().item(&item("o/r#1")).await.is_ok());
}

#[tokio::test]
async fn an_opened_database_is_durable_and_whole() {
    let world = World::new().await;
    let pragma = async |sql: &'static str| {
        let value: String = sqlx::query_scalar(sql)
            .fetch_one(&mut *world.store.writing().await.unwrap())
            .await
            .unwrap();
        value
    };
    let number = async |sql: &'static str| {
        let value: i64 = sqlx::query_scalar(sql)
            .fetch_one(&mut *world.store.writing().await.unwrap())
            .await
            .unwrap();
        value
    };
    assert_eq!(pragma("PRAGMA journal_mode").await, "wal");
    assert_eq!(number("PRAGMA synchronous").await, 2);
    assert_eq!(number("PRAGMA foreign_keys").await, 1);
    assert_eq!(number("PRAGMA busy_timeout").await, 10_000);
    world.store.check().await.unwrap();
}

#[tokio::test]
async fn a_host_is_recorded_when_it_changes_and_once_an_hour() {
    let world = World::new().await;
    let recorded = async |name, version| {
        world.store.record_host(name, version).await.unwrap();
        sqlx::query_as::<_, (String, String, i64)>("SELECT name, version, last_seen FROM hosts")
            .fetch_all(&mut *world.store.reading().await.unwrap())
            .await
            .unwrap()
    };
    let row = |name: &str, version: &str, seconds| {
        let seen = at(seconds).timestamp_millis();
        vec![(name.to_owned(), version.to_owned(), seen)]
    };
    assert_eq!(recorded("box", "1.0").await, row("box", "1.0", 0));
    world.pass(3600);
    assert_eq!(recorded("box", "1.0").await, row("box", "1.0", 0));
    assert_eq!(recorded("box", "1.1").await, row("box", "1.1", 3600));
    assert_eq!(recorded("case", "1.1").await, row("case", "1.1", 3600));
    world.pass(3601);
    assert_eq!(recorded("case", "1.1").await, row("case", "1.1", 7201));
    // A clock that was put back.
    world.pass(-7200);
    assert_eq!(recorded("case", "1.1").await, row("case", "1.1", 1));
}

#[tokio::test]
async fn a_newer_database_is_refused_by_name() {
    let world = World::new().await;
    let path = world.store.path().to_owned();
    world.store.close().await;
    open_knowing(&path, NEXT).await.unwrap().close().await;

    let error = open(&path).await.unwrap_err();

    assert!(matches!(
        error,
        StoreError::Newer {
            found: 2,
            known: 1,
            ..
        }
    ));
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
}

#[tokio::test]
async fn an_older_database_is_copied_and_then_migrated() {
    let world = World::new().await;
    world.know("o/r#1").await;
    world.store.record_host("box", "1.0").await.unwrap();
    let path = world.store.path().to_owned();

    let migrated = open_knowing(&path, NEXT).await.unwrap();

    let colour: String = sqlx::query_scalar("SELECT colour FROM hosts")
        .fetch_one(&mut *migrated.reading().await.unwrap())
        .await
        .unwrap();
    assert_eq!(colour, "blue");
    let backup = migrations::backup_path(&path, 1);
    let mode = std::fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let copy = open(&backup).await.unwrap();
    assert!(copy.ledger().item(&item("o/r#1")).await.unwrap().is_some());
}

#[tokio::test]
async fn the_first_copy_before_a_migration_is_kept() {
    let world = World::new().await;
    let path = world.store.path().to_owned();
    let backup = migrations::backup_path(&path, 1);
    std::fs::write(&backup, "of another process").unwrap();

    open_knowing(&path, NEXT).await.unwrap();

    assert_eq!(std::fs::read(&backup).unwrap(), b"of another process");
    let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let copies = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("backup") || name.to_string_lossy().contains(".v1")
    });
    assert_eq!(copies.count(), 1, "no draft is left");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_database_as_it_was() {
    let world = World::new().await;
    world.know("o/r#1").await;
    let path = world.store.path().to_owned();

    let error = open_knowing(&path, BROKEN).await.unwrap_err();

    let StoreError::Migration {
        version: 2, backup, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert!(backup.exists());
    let again = open(&path).await.unwrap();
    assert!(again.ledger().item(&item("o/r#1")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_damaged_database_is_reported_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    for (name, content) in [
        (
            "text.db",
            "this is not a database, and it is longer than a header ".repeat(40),
        ),
        ("empty.db", String::new()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, &content).unwrap();

        let error = open(&path).await.unwrap_err();

        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[tokio::test]
async fn a_database_that_is_not_ours_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("other.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("CREATE TABLE theirs (x TEXT)")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;

    let error = open(&path).await.unwrap_err();

    assert!(error.to_string().contains("no the-loop schema"), "{error}");
}

#[tokio::test]
async fn a_log_without_its_database_is_no_reason_to_start_afresh() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loop.db");
    std::fs::write(
        folder.path().join("loop.db-wal"),
        "writes of a lost database",
    )
    .unwrap();

    let error = open(&path).await.unwrap_err();

    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(!path.exists());

    std::fs::write(folder.path().join("loop.db-wal"), "").unwrap();
    open(&path).await.expect("an empty log holds nothing");
}

#[tokio::test]
async fn a_database_that_another_program_locks_is_not_called_damaged() {
    let world = World::new().await;
    let path = world.store.path().to_owned();
    world.store.close().await;
    let mut theirs = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .locking_mode(sqlx::sqlite::SqliteLockingMode::Exclusive)
        .connect()
        .await
        .unwrap();
    sqlx::query("UPDATE hosts SET name = 'x'")
        .execute(&mut theirs)
        .await
        .unwrap();
    let tuning = Tuning {
        busy_timeout: Duration::from_millis(1),
        ..Tuning::default()
    };
    let clock = Arc::new(ManualClock::starting_at(at(0)));

    let opened = Store::open_with(&path, "host-a", clock, tuning).await;

    let error = opened.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
}

#[tokio::test]
async fn damage_where_the_version_stands_is_not_taken_for_another_programs_database() {
    let world = World::new().await;
    let path = world.store.path().to_owned();
    let sql = "SELECT (rootpage - 1) * page_size, page_size FROM sqlite_schema, pragma_page_size \
               WHERE tbl_name = 'schema_versions'";
    let pages: Vec<(i64, i64)> = sqlx::query_as(sql)
        .fetch_all(&mut *world.store.reading().await.unwrap())
        .await
        .unwrap();
    world.store.close().await;
    let mut content = std::fs::read(&path).unwrap();
    for (from, size) in pages {
        let page = usize::try_from(from).unwrap()..usize::try_from(from + size).unwrap();
        content[page].fill(0xff);
    }
    std::fs::write(&path, content).unwrap();

    let error = open(&path).await.unwrap_err();

    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("malformed"), "{error}");
}

#[tokio::test]
async fn damage_inside_is_found_by_the_check() {
    let world = World::new().await;
    for number in 1..200 {
        world.know(&format!("o/r#{number}")).await;
    }
    let path = world.store.path().to_owned();
    world.store.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();

    let error = match open(&path).await {
        Ok(store) => store.check().await.unwrap_err(),
        Err(error) => error,
    };

    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn opening_at_once_makes_one_database() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new/loop.db");
    let opening = (0..8).map(|_| {
        let path = path.clone();
        tokio::spawn(async move { open(&path).await.map(|_| ()) })
    });
    for opened in opening.collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains(".new-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let folder = TempDir::new().unwrap();
    // A file where the folder should be stops every user, root as well.
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let path = blocked.join("loop.db");

    let error = open(&path).await.unwrap_err();

    assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    assert!(message.starts_with("opening the store"), "{message}");
}

#[tokio::test]
async fn a_folder_without_write_permission_is_named() {
    if rustix::process::geteuid().is_root() {
        // Nothing is forbidden to root; the test above covers the message.
        return;
    }
    let folder = TempDir::new().unwrap();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    let path = closed.join("loop.db");

    let error = open(&path).await.unwrap_err();

    assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_full_disk_is_said_and_nothing_is_half_accepted() {
    let world = World::new().await;
    world.know("o/r#1").await;
    sqlx::query("PRAGMA max_page_count = 1")
        .execute(&mut *world.store.writing().await.unwrap())
        .await
        .unwrap();
    let mut event = comment("o/r#1", 1, "v1");
    event.body = "x".repeat(100_000);
    let acceptance = Acceptance {
        items: vec![sighting("o/r#2")],
        arrivals: vec![arrival(event, EVENT)],
        ..Acceptance::default()
    };

    let error = world.store.inbox().accept(&acceptance).await.unwrap_err();

    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let half = world.store.ledger().item(&item("o/r#2")).await.unwrap();
    assert_eq!(half, None);
}
