//! Rows that a hostile hand wrote: each column in turn holds what this program never writes.
//!
//! One item, its session, deliveries, events and a cursor are spoilt; the others must not notice.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::*;
use crate::process::panic::caught;

const SPOILT: &str = "o/r#1";
const SOUND: &str = "o/r#2";
const WAITING: &str = "o/r#3";
const LIST: &str = "list";

/// What is written into a column: of the wrong type, out of range, unknown, not UTF-8, or nothing.
const VALUES: [&str; 7] = [
    "NULL",
    "'never heard of it'",
    "x'00ff'",
    "CAST(x'6cff' AS TEXT)",
    LAST_NUMBER,
    "-9223372036854775808",
    "8210266876799999",
];

const LAST_NUMBER: &str = "9223372036854775807";

/// Which rows of each table are spoilt.
const TABLES: [(&str, &str); 7] = [
    ("work_items", "id = 1"),
    (
        "events",
        "id IN (SELECT event_id FROM deliveries WHERE item_id = 1)",
    ),
    ("deliveries", "item_id = 1"),
    (
        "give_ups",
        "delivery_id IN (SELECT id FROM deliveries WHERE item_id = 1)",
    ),
    ("sessions", "item_id = 1"),
    ("cursors", "name = 'list'"),
    ("hosts", "1 = 1"),
];

/// A database in which every table has rows, in several states, closed and ready to be copied.
async fn template(claim: ClaimState) -> (TempDir, PathBuf) {
    let world = World::new().await;
    for text in [SPOILT, SOUND, WAITING] {
        world.know(text).await;
    }
    for text in [SPOILT, SOUND] {
        world.session(text).await;
        world.comment(text).await;
        let given_up = world.claimed().await;
        world
            .abandon(&given_up, "0.0.1", Rearm::ByAnotherVersion)
            .await;
    }
    world.comment(SPOILT).await;
    if claim == ClaimState::Lapsed {
        world.claimed().await;
    }
    world.command(SPOILT).await;
    for text in [SOUND, WAITING] {
        world.comment(text).await;
    }
    world.store.record_host("here", "0.0.1").await.unwrap();
    let acceptance = Acceptance {
        cursors: vec![CursorUpdate {
            name: LIST.to_owned(),
            etag: Some("tag".to_owned()),
            since: Some(at(0)),
            last_success: at(0),
        }],
        ..Acceptance::default()
    };
    world.store.inbox().accept(&acceptance).await.unwrap();
    world.store.close().await;
    let path = world.store.path().to_owned();
    (world.folder, path)
}

/// Whether the spoilt item has a claim whose holder is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimState {
    None,
    Lapsed,
}

/// The database as the `sqlite3` shell opens it: the schema's checks hold, references need not.
async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false);
    options.connect().await.unwrap()
}

async fn columns(path: &Path, table: &str) -> Vec<String> {
    let mut conn = raw(path).await;
    let names = sqlx::query_scalar("SELECT name FROM pragma_table_info($1)")
        .bind(table)
        .fetch_all(&mut conn)
        .await
        .unwrap();
    conn.close().await.unwrap();
    names
}

/// Writes as the hostile hand does; tells whether the schema let it.
async fn spoil(path: &Path, statement: String) -> bool {
    let mut conn = raw(path).await;
    let done = sqlx::query(sqlx::AssertSqlSafe(statement))
        .execute(&mut conn)
        .await;
    conn.close().await.unwrap();
    done.is_ok_and(|done| done.rows_affected() > 0)
}

/// Does what daemons and commands do, and returns what went wrong for anybody but the spoilt item.
async fn works(path: PathBuf) -> Result<(), String> {
    let clock = ManualClock::starting_at(at(1000));
    let store = Store::open(&path, "host-a", Arc::new(clock))
        .await
        .map_err(|error| format!("opening: {error}"))?;
    let done = others_work(&store).await;
    let named = match done {
        Ok(()) => own_errors_are_named(&store).await,
        failed => failed,
    };
    store.close().await;
    named
}

fn ok<T>(result: Result<T, StoreError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

fn holds(condition: bool, what: &str) -> Result<(), String> {
    condition.then_some(()).ok_or_else(|| what.to_owned())
}

async fn others_work(store: &Store) -> Result<(), String> {
    let (sound, waiting) = (item(SOUND), item(WAITING));
    ok(store.queue().counts().await)?;
    let listed = ok(store.queue().list(QueueFilter::Open, 100).await)?;
    for other in [&sound, &waiting] {
        holds(
            listed.iter().any(|row| row.item == *other),
            "a delivery is not listed",
        )?;
    }
    let given_up = ok(store.queue().list(QueueFilter::Abandoned, 100).await)?;
    holds(
        given_up.iter().any(|row| row.item == sound),
        "a given-up one is not listed",
    )?;
    let items = ok(store.ledger().items(ItemFilter::All).await)?;
    holds(
        items.iter().any(|row| row.item == sound),
        "an item is not listed",
    )?;
    let faces = ok(store.registry().faces(SessionFilter::All).await)?;
    let shown = |face: &SessionFace| face.session.work_item == sound;
    holds(faces.readable.iter().any(shown), "a session is not listed")?;
    ok(store.registry().count_open().await)?;
    ok(store.registry().servers_on(&target("%5").socket).await)?;
    ok(store.ledger().cursor("other").await)?;
    ok(store.record_host("here", "0.0.2").await)?;
    let acceptance = Acceptance {
        items: vec![sighting(SOUND)],
        arrivals: vec![arrival(comment(SOUND, 900, "v1"), EVENT)],
        ..Acceptance::default()
    };
    ok(store.inbox().accept(&acceptance).await)?;
    let rearmed = ok(store.queue().rearm_given_up("0.0.2", |_| {}).await)?;
    holds(
        rearmed.iter().any(|it| it.item == sound),
        "a given-up one is not tried again",
    )?;
    let mut told = Vec::new();
    while let Some(claim) = ok(store
        .deduper()
        .claim_next(&owner(10), &nobody_is_dead)
        .await)?
    {
        holds(told.len() < 20, "there is no end of claims")?;
        told.push(claim.item.item.clone());
        let worked = work(store, &claim).await;
        if claim.item.item == item(SPOILT) {
            named(worked)?;
        } else {
            ok(worked)?;
        }
    }
    let count = |it: &WorkItemRef| told.iter().filter(|told| *told == it).count();
    holds(count(&sound) == 3, "not all of an item is told")?;
    holds(count(&waiting) == 1, "an item is not told")?;
    ok(store.deduper().next_due().await)?;
    ok(store.ledger().prune(TimeDelta::zero()).await)?;
    Ok(())
}

/// What concerns the spoilt item alone may fail, and then says which row of which table it is.
async fn own_errors_are_named(store: &Store) -> Result<(), String> {
    let spoilt = item(SPOILT);
    let registry = store.registry();
    let acceptance = Acceptance {
        items: vec![sighting(SPOILT)],
        arrivals: vec![arrival(comment(SPOILT, 901, "v1"), EVENT)],
        ..Acceptance::default()
    };
    let known = Acceptance {
        arrivals: vec![arrival(comment(SPOILT, 1, "v1"), EVENT)],
        ..Acceptance::default()
    };
    let outcomes = [
        store.ledger().item(&spoilt).await.err(),
        store.ledger().cursor(LIST).await.err(),
        store.queue().get(DeliveryId(1)).await.err(),
        store.queue().list(QueueFilter::Of(&spoilt), 10).await.err(),
        store.queue().retry(DeliveryId(2)).await.err(),
        registry.open_session(1).await.err(),
        registry.closed_sessions(1).await.err(),
        registry.latest_face(&spoilt).await.err(),
        registry.list(SessionFilter::All).await.err(),
        registry
            .reset(std::slice::from_ref(&spoilt), ResetMode::DryRun)
            .await
            .err(),
        store.inbox().accept(&acceptance).await.err(),
        store.inbox().accept(&known).await.err(),
    ];
    outcomes
        .into_iter()
        .flatten()
        .try_for_each(|error| named(Err(error)))
}

async fn work(store: &Store, claim: &Claim) -> Result<(), StoreError> {
    store.deduper().hold_fence(claim).await?;
    store.deduper().begin_attempt(claim).await?;
    let end = Settlement::Delivered {
        possible_repeat: false,
    };
    store.deduper().settle(claim, end, None).await
}

/// An error about the spoilt item says which row of which table it is.
fn named(result: Result<(), StoreError>) -> Result<(), String> {
    match result {
        Ok(()) | Err(StoreError::BadRow { .. } | StoreError::UnknownItems { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// A folder for one case, in memory where there is one: nobody waits for the disk.
fn scratch() -> TempDir {
    TempDir::new_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .unwrap()
}

/// Spoils a copy of the database and returns what went wrong; nothing where the schema forbids it.
async fn after(template: &Path, statement: &str) -> Option<String> {
    let folder = scratch();
    let path = folder.path().join("loop.db");
    std::fs::copy(template, &path).unwrap();
    if !spoil(&path, statement.to_owned()).await {
        return None;
    }
    match caught(works(path)).await {
        Ok(Ok(())) => None,
        Ok(Err(wrong)) => Some(wrong),
        Err(panicked) => Some(format!("panicked: {panicked}")),
    }
}

/// All that the hostile hand may write.
async fn statements(path: &Path) -> Vec<String> {
    let mut statements = Vec::new();
    for (table, rows) in TABLES {
        for column in columns(path, table).await {
            for value in VALUES {
                // After the last number there is none for the next delivery, whoever it is for.
                let uses_up = column == "id" && value == LAST_NUMBER;
                if !uses_up {
                    statements.push(format!(
                        "UPDATE OR IGNORE {table} SET {column} = {value} WHERE {rows}"
                    ));
                }
            }
        }
    }
    statements
}

#[test]
fn a_row_that_a_hostile_hand_wrote_stops_no_other_item_and_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let templates =
        [ClaimState::None, ClaimState::Lapsed].map(|claim| runtime.block_on(template(claim)));
    let statements = runtime.block_on(statements(&templates[0].1));
    for (_, path) in &templates {
        // The same checks on a sound database: they can pass.
        let untouched = runtime.block_on(after(path, "UPDATE hosts SET name = name"));
        assert_eq!(untouched, None);
    }
    let any_case = (0..templates.len(), prop::sample::select(statements));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    let held = runner.run(&any_case, |(template, statement)| {
        let wrong = runtime.block_on(after(&templates[template].1, &statement));
        prop_assert_eq!(wrong, None);
        Ok(())
    });
    assert!(held.is_ok(), "{held:?}");
}

/// Written by hand, these once ended the dispatcher, hid what concerned others, or overflowed.
const FOUND: [&str; 9] = [
    // A delivery that leads nowhere was claimed for ever, and no other ever.
    "UPDATE deliveries SET event_id = 77 WHERE item_id = 1",
    "UPDATE deliveries SET item_id = 77 WHERE item_id = 1",
    // A claim under such a token was nobody's, and no other was ever made.
    "UPDATE deliveries SET claim_token = x'00ff' WHERE claim_lead = 1",
    // No delivery was listed, counted or tried again.
    "UPDATE events SET actor = x'00ff' WHERE id = 1",
    "UPDATE deliveries SET accepted_at = -9223372036854775808 WHERE item_id = 1",
    "UPDATE work_items SET ref = 'never heard of it' WHERE id = 1",
    // An event without its delivery held up whatever was accepted with it.
    "UPDATE events SET id = 77 WHERE id = 1",
    // A time to which nothing can be added.
    "UPDATE deliveries SET intent_expires_at = 8210266876799999, intent_owner = claim_token WHERE item_id = 1",
    "UPDATE sessions SET registered_at = 8210266876799999 WHERE item_id = 1",
];

#[tokio::test]
async fn what_once_stopped_other_items_stops_them_no_more() {
    for claim in [ClaimState::None, ClaimState::Lapsed] {
        let (_folder, path) = template(claim).await;
        for statement in FOUND {
            assert_eq!(after(&path, statement).await, None, "{statement}");
        }
    }
}

#[tokio::test]
async fn a_time_to_which_nothing_can_be_added_is_no_time() {
    let world = World::new().await;
    world.know(SPOILT).await;
    let session = world.session(SPOILT).await;
    sqlx::query("UPDATE sessions SET registered_at = $1")
        .bind(DateTime::<Utc>::MAX_UTC.timestamp_millis())
        .execute(&mut *world.store.writing().await.unwrap())
        .await
        .unwrap();

    let error = world.store.registry().open_session(1).await.unwrap_err();

    let named = format!("row {} of table sessions", session.id);
    assert!(error.to_string().contains(&named), "{error}");
    assert!(error.to_string().contains("is not a time"), "{error}");
}
