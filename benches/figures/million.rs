//! Accepting and claiming when the store holds ten thousand sessions and a million deliveries.

use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use the_loop::clock::SystemClock;
use the_loop::model::{
    BootId, Class, Detail, Edit, Event, EventKey, EventKind, HarnessSessionId, ItemKind, Login,
    OwnerId, ProcessId, Source, WorkItemRef,
};
use the_loop::process::identity::{boot_id, own};
use the_loop::store::{
    Acceptance, Arming, Arrival, ClaimOwner, Disposition, ItemSighting, SessionChange, Settlement,
    Store, Track,
};

use super::Result;
use super::figure::{Figure, Other, Samples, progress};

const SAMPLES: u32 = 200;
/// Deliveries that wait for paused sessions, in the second part.
const HELD: u32 = 10_000;

/// How much a store holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Work items, each with an open session.
    pub(crate) sessions: u32,
    /// Deliveries that arrived, spread over the items.
    pub(crate) deliveries: u32,
}

pub(crate) async fn measure() -> Result<Vec<Figure>> {
    let size = Size {
        sessions: 10_000,
        deliveries: 1_000_000,
    };
    progress("a store of a million deliveries (filling it first)");
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("loop.db");
    let store = Store::open(&path, "bench", Arc::new(SystemClock)).await?;
    fill(&store, size).await?;
    let mut figures = Vec::new();
    figures.push(
        Figure::new("accept one event, 1,000,000 deliveries")
            .spread(&accepts(&store, size).await?, Other::Worst),
    );
    let [claimed, settled] = claims(&store).await?;
    figures.push(
        Figure::new("claim the next of 1,000,000")
            .spread(&claimed, Other::Worst)
            .target(1.0),
    );
    figures.push(Figure::new("settle it with its session's change").spread(&settled, Other::Worst));
    let [looked, due] = looks(&store).await?;
    figures.push(Figure::new("look for work, nothing waits").spread(&looked, Other::Worst));
    figures.push(Figure::new("ask what is due next, nothing waits").spread(&due, Other::Worst));
    hold(&store, size).await?;
    let [looked, due] = looks(&store).await?;
    figures.push(Figure::new("look for work, 10,000 are held").spread(&looked, Other::Worst));
    figures.push(Figure::new("ask what is due next, 10,000 are held").spread(&due, Other::Worst));
    store.close().await;
    Ok(figures)
}

/// Fills an empty store.
pub(crate) async fn fill(store: &Store, size: Size) -> Result<()> {
    let numbers: Vec<u32> = (1..=size.sessions).collect();
    for batch in numbers.chunks(500) {
        let items = batch
            .iter()
            .map(|number| sighting(*number))
            .collect::<Result<_>>()?;
        let batch = Acceptance {
            items,
            ..Acceptance::default()
        };
        store.inbox().accept(&batch).await?;
    }
    let mut conn = connect(store).await?;
    let mut tx = conn.begin().await?;
    for number in numbers {
        session(&mut tx, number).await?;
    }
    tx.commit().await?;
    deliveries(&mut conn, size).await?;
    conn.close().await?;
    Ok(())
}

/// Opens the database without the waiting for the disk that the product insists on.
async fn connect(store: &Store) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(store.path())
        .synchronous(SqliteSynchronous::Off)
        .pragma("cache_size", "-200000");
    Ok(options.connect().await?)
}

async fn session(conn: &mut SqliteConnection, number: u32) -> Result<()> {
    sqlx::query(
        "INSERT INTO sessions (item_id, minted_ref, host, owner, harness, harness_session_id, cwd, \
         status, status_since, registered_at, tmux_socket, server_pid, server_start, tmux_session_id, \
         pane, host_pid, host_start, harness_pid, harness_start, boot_id, created_at) \
         SELECT w.id, w.ref, 'bench', $2, 'claude', $3, '/srv/work', 'active', $4, $4, 'name:bench', \
         $5, $6, '$' || w.id, '%' || w.id, $5, $6, $5, $6, $7, $4 FROM work_items w WHERE w.id = $1",
    )
    .bind(i64::from(number))
    .bind(OwnerId::mint().as_str().to_owned())
    .bind(HarnessSessionId::mint().as_str().to_owned())
    .bind(now())
    // A process that runs, so that showing the session asks the process table for it.
    .bind(i64::from(own().pid))
    .bind(i64::try_from(own().start)?)
    .bind(boot_id().0)
    .execute(conn)
    .await?;
    Ok(())
}

async fn deliveries(conn: &mut SqliteConnection, size: Size) -> Result<()> {
    let payload = serde_json::to_string(&comment(1, 0)?)?;
    // A tenth is younger than the retention, and still has its text.
    sqlx::query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
         INSERT INTO events (key, object, kind, source, actor, payload, occurred_at, received_at) \
         SELECT 'github.com:issue_comment:' || i || '@0011223344556677', \
         'github.com:issue_comment:' || i, 'issue_comment', 'poll', 'ada', \
         CASE WHEN i % 10 = 0 THEN $2 END, $3, $3 FROM n",
    )
    .bind(i64::from(size.deliveries))
    .bind(payload)
    .bind(now())
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "INSERT INTO deliveries (event_id, item_id, number, class, state, attempts, next_at, \
         accepted_at, settled_at) SELECT e.id, 1 + (e.id - 1) % $1, 1 + (e.id - 1) / $1, 'event', \
         'delivered', 1, $2, $2, $2 FROM events e ORDER BY e.id",
    )
    .bind(i64::from(size.sessions))
    .bind(now())
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE work_items SET next_number = 1 + (SELECT COALESCE(MAX(d.number), 0) \
         FROM deliveries d WHERE d.item_id = work_items.id)",
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Lets one delivery of each item wait for its paused session.
async fn hold(store: &Store, size: Size) -> Result<()> {
    let mut conn = connect(store).await?;
    sqlx::query(
        "UPDATE deliveries SET state = 'held', reason = 'session-paused', settled_at = NULL, \
         next_at = $1 WHERE id > $2 AND id <= $3",
    )
    .bind((Utc::now() + TimeDelta::minutes(5)).timestamp_millis())
    .bind(i64::from(size.deliveries - HELD))
    .bind(i64::from(size.deliveries))
    .execute(&mut conn)
    .await?;
    conn.close().await?;
    Ok(())
}

async fn accepts(store: &Store, size: Size) -> Result<Samples> {
    let mut samples = Samples::default();
    for sample in 0..SAMPLES {
        // Far apart, as the items of a busy day are.
        let number = 1 + (sample * 7_919) % size.sessions;
        let event = comment(number, 2_000_000 + sample)?;
        let arrival = Arrival {
            version_at: event.occurred_at,
            event,
            source: Source::Poll,
            guid: None,
            disposition: Disposition::Deliver {
                class: Class::Event,
            },
        };
        let batch = Acceptance {
            arrivals: vec![arrival],
            ..Acceptance::default()
        };
        let began = Instant::now();
        store.inbox().accept(&batch).await?;
        samples.add(began.elapsed());
    }
    Ok(samples)
}

/// Claims and settles all that waits.
async fn claims(store: &Store) -> Result<[Samples; 2]> {
    let owner = owner();
    let (mut claims, mut settles) = (Samples::default(), Samples::default());
    loop {
        let began = Instant::now();
        let Some(claim) = store.deduper().claim_next(&owner, &nobody_is_dead).await? else {
            return Ok([claims, settles]);
        };
        claims.add(began.elapsed());
        let session = store.registry().open_session(claim.item.id).await?;
        let change = session.map(|session| SessionChange::Touch(session.id));
        let delivered = Settlement::Delivered {
            possible_repeat: false,
        };
        let began = Instant::now();
        store.deduper().settle(&claim, delivered, change).await?;
        settles.add(began.elapsed());
    }
}

/// Looks for work that is not there.
async fn looks(store: &Store) -> Result<[Samples; 2]> {
    let owner = owner();
    let (mut looks, mut dues) = (Samples::default(), Samples::default());
    for _ in 0..SAMPLES {
        let began = Instant::now();
        store.deduper().claim_next(&owner, &nobody_is_dead).await?;
        looks.add(began.elapsed());
        let began = Instant::now();
        store.deduper().next_due().await?;
        dues.add(began.elapsed());
    }
    Ok([looks, dues])
}

fn owner() -> ClaimOwner {
    ClaimOwner {
        process: own(),
        boot: boot_id(),
    }
}

fn nobody_is_dead(_: &ProcessId, _: &BootId) -> bool {
    false
}

fn now() -> i64 {
    Utc::now().timestamp_millis()
}

fn item(number: u32) -> Result<WorkItemRef> {
    Ok(format!("octo/app#{number}").parse()?)
}

fn sighting(number: u32) -> Result<ItemSighting> {
    let item = item(number)?;
    let at = DateTime::<Utc>::from_timestamp(1_800_000_000, 0).unwrap_or_default();
    Ok(ItemSighting {
        repo_id: Some(77),
        kind: ItemKind::Issue,
        title: format!("Work {number}"),
        url: format!("https://github.com/octo/app/issues/{number}"),
        author: Some(Login::new("ada")),
        open: true,
        closed_at: None,
        merged: false,
        updated_at: at,
        arming: Arming::Disarmed,
        pull: None,
        seen_at: at,
        baseline_at: at,
        source: Source::Poll,
        track: Track::Always,
        item,
    })
}

fn comment(number: u32, id: u32) -> Result<Event> {
    let item = item(number)?;
    Ok(Event {
        key: EventKey::new(
            item.repo().host(),
            EventKind::IssueComment,
            &id.to_string(),
            "0011223344556677",
        ),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(77),
        number: item.number(),
        on: ItemKind::Issue,
        actor: Some(Login::new("ada")),
        edit: Edit::Never,
        title: format!("Work {number}"),
        body: "Please look at the failing test again; it passes on my machine.".to_owned(),
        url: format!("https://github.com/octo/app/issues/{number}#issuecomment-{id}"),
        occurred_at: Utc::now(),
        detail: Detail::None,
    })
}
