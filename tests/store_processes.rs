//! Several processes at once on one database, one of them killed at the worst moment.
//!
//! This binary runs itself again: with `STORE_TEST_ROLE` set, the test named `child` plays one of the
//! processes below instead of passing at once.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and a child reports by printing"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal, kill_process};
use the_loop::clock::SystemClock;
use the_loop::model::{
    BootId, Class, Detail, Edit, Event, EventKey, EventKind, ItemKind, Login, ProcessId, Source,
    WorkItemRef,
};
use the_loop::store::{
    Acceptance, Arming, Arrival, ArrivalOutcome, ClaimOwner, Disposition, ItemSighting,
    QueueFilter, Settlement, Store, StoreError, Track, Tuning,
};

const ROLE: &str = "STORE_TEST_ROLE";
const DATABASE: &str = "STORE_TEST_DATABASE";
const DEADLINE: Duration = Duration::from_secs(60);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn item(number: u64) -> WorkItemRef {
    format!("github:o/r#{number}").parse().unwrap()
}

fn sighting(number: u64) -> ItemSighting {
    ItemSighting {
        item: item(number),
        repo_id: Some(7),
        kind: ItemKind::Issue,
        title: String::new(),
        url: String::new(),
        author: None,
        open: true,
        closed_at: None,
        merged: false,
        updated_at: now(),
        arming: Arming::Disarmed,
        pull: None,
        seen_at: now(),
        baseline_at: now(),
        source: Source::Poll,
        track: Track::Always,
    }
}

fn comment(id: u64, number: u64) -> Arrival {
    let item = item(number);
    let event = Event {
        key: EventKey::new("github.com", EventKind::IssueComment, &id.to_string(), "v"),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(7),
        number,
        on: ItemKind::Issue,
        actor: Some(Login::new("alice")),
        edit: Edit::Never,
        title: String::new(),
        body: id.to_string(),
        url: String::new(),
        occurred_at: now(),
        detail: Detail::None,
    };
    Arrival {
        version_at: event.occurred_at,
        event,
        source: Source::Poll,
        guid: None,
        disposition: Disposition::Deliver {
            class: Class::Event,
        },
    }
}

async fn open(path: &Path) -> Store {
    Store::open(path, "host", Arc::new(SystemClock))
        .await
        .unwrap()
}

fn me() -> ClaimOwner {
    ClaimOwner {
        process: ProcessId {
            pid: i32::try_from(std::process::id()).unwrap(),
            start: 1,
        },
        boot: BootId("boot".to_owned()),
    }
}

const DELIVERED: Settlement<'static> = Settlement::Delivered {
    possible_repeat: false,
};

/// A child process; it is killed with the test that started it.
struct Process(Child);

impl Process {
    fn start(role: &str, database: &Path) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays several processes of the program"
        )]
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DATABASE, database)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Waits for the end and returns what the child reported.
    fn finish(mut self) -> Vec<String> {
        let output = self.0.stdout.take().unwrap();
        let lines = reports(BufReader::new(output)).collect();
        assert!(self.0.wait().unwrap().success(), "a child failed");
        lines
    }

    /// Waits for the child's next report.
    fn wait_for(&mut self, report: &str) {
        let output = self.0.stdout.take().unwrap();
        let found = reports(BufReader::new(output)).next();
        assert_eq!(found.as_deref(), Some(report));
    }

    fn kill(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has ended already cannot be killed; that is the usual case.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn reports(output: impl BufRead) -> impl Iterator<Item = String> {
    output.lines().filter_map(|line| {
        // The test harness prints its own words in front of a report on the same line.
        let line = line.unwrap();
        line.split_once("report:")
            .map(|(_, report)| report.trim().to_owned())
    })
}

#[tokio::test]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let database = PathBuf::from(std::env::var(DATABASE).unwrap());
    match role.as_str() {
        "accept" => accept_all(&database).await,
        "deliver" => deliver_all(&database).await,
        "deliver-forever" => deliver_forever(&database).await,
        "hold" => hold_one(&database).await,
        "lock" => lock(&database).await,
        other => panic!("no role {other}"),
    }
}

async fn accept_all(database: &Path) {
    let store = open(database).await;
    let mut new = 0;
    for id in 0..200 {
        let acceptance = Acceptance {
            items: vec![sighting(1 + id % 10)],
            arrivals: vec![comment(id, 1 + id % 10)],
            ..Acceptance::default()
        };
        let accepted = store.inbox().accept(&acceptance).await.unwrap();
        match &accepted.arrivals[..] {
            [ArrivalOutcome::New { .. }] => new += 1,
            [ArrivalOutcome::Duplicate { .. }] => {}
            other => panic!("{other:?}"),
        }
    }
    println!("report: {new}");
}

async fn deliver_all(database: &Path) {
    let store = open(database).await;
    let deduper = store.deduper();
    let owner = me();
    let mut said = String::new();
    loop {
        match deduper.claim_next(&owner, &|_, _| false).await.unwrap() {
            Some(claim) => {
                deduper.begin_attempt(&claim).await.unwrap();
                let row = claim.first();
                writeln!(said, "report: {} {} {}", claim.item.id, row.number, row.id).unwrap();
                deduper.settle(&claim, DELIVERED, None).await.unwrap();
            }
            None if store.queue().counts().await.unwrap().pending == 0 => break,
            // Every item with something pending is another process's at this moment.
            None => tokio::task::yield_now().await,
        }
    }
    print!("\n{said}");
}

async fn deliver_forever(database: &Path) {
    let store = open(database).await;
    let deduper = store.deduper();
    let owner = me();
    println!("\nreport: going");
    loop {
        if let Some(claim) = deduper.claim_next(&owner, &|_, _| false).await.unwrap() {
            deduper.begin_attempt(&claim).await.unwrap();
            deduper.settle(&claim, DELIVERED, None).await.unwrap();
        }
    }
}

async fn hold_one(database: &Path) {
    let store = open(database).await;
    let claim = store
        .deduper()
        .claim_next(&me(), &|_, _| false)
        .await
        .unwrap();
    let claim = claim.expect("something is due");
    store.deduper().begin_attempt(&claim).await.unwrap();
    println!("\nreport: holding");
    std::future::pending::<()>().await;
}

async fn lock(database: &Path) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let _lock = pool.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    println!("\nreport: locked");
    std::future::pending::<()>().await;
}

async fn with_queue(path: &Path, items: u64, each: u64) -> Store {
    let store = open(path).await;
    let acceptance = Acceptance {
        items: (1..=items).map(sighting).collect(),
        arrivals: (0..items * each)
            .map(|id| comment(id, 1 + id % items))
            .collect(),
        ..Acceptance::default()
    };
    store.inbox().accept(&acceptance).await.unwrap();
    store
}

#[tokio::test]
async fn two_processes_that_see_the_same_events_accept_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.db");
    let processes: Vec<_> = (0..2).map(|_| Process::start("accept", &path)).collect();

    let mut new = 0;
    for process in processes {
        new += process.finish()[0].parse::<u32>().unwrap();
    }

    assert_eq!(new, 200);
    let store = open(&path).await;
    assert_eq!(store.queue().counts().await.unwrap().pending, 200);
    for number in 1..=10 {
        let whose = item(number);
        let listed = store
            .queue()
            .list(QueueFilter::Of(&whose), 100)
            .await
            .unwrap();
        assert_eq!(listed.len(), 20);
    }
}

#[tokio::test]
async fn four_processes_deliver_everything_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.db");
    let store = with_queue(&path, 40, 10).await;
    let processes: Vec<_> = (0..4).map(|_| Process::start("deliver", &path)).collect();

    let mut said: BTreeMap<String, u32> = BTreeMap::new();
    for process in processes {
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        for report in process.finish() {
            let words: Vec<&str> = report.split(' ').collect();
            let [item, number, delivery] = words[..] else {
                panic!("{report}");
            };
            *said.entry(delivery.to_owned()).or_default() += 1;
            let number: u64 = number.parse().unwrap();
            let before = last.insert(item.to_owned(), number);
            assert!(before.is_none_or(|before| before < number), "out of order");
        }
    }

    assert_eq!(said.len(), 400);
    assert!(said.values().all(|times| *times == 1), "said twice");
    assert_eq!(store.queue().counts().await.unwrap().claimed, 0);
    assert_in_order(&path).await;
}

/// Deliveries of an item were settled in the order of their numbers, whichever process did it.
async fn assert_in_order(path: &Path) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let inversions: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM deliveries a JOIN deliveries b ON b.item_id = a.item_id \
         AND b.number > a.number WHERE b.settled_at < a.settled_at",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(inversions, 0);
}

#[tokio::test]
async fn what_a_killed_process_held_is_taken_over_with_its_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.db");
    let store = with_queue(&path, 1, 2).await;
    let mut holder = Process::start("hold", &path);
    let pid = i32::try_from(holder.0.id()).unwrap();
    holder.wait_for("holding");
    let deduper = store.deduper();
    let early = deduper.claim_next(&me(), &|_, _| false).await.unwrap();
    assert!(early.is_none(), "its holder lives");

    holder.kill();
    let is_dead = |process: &ProcessId, _: &BootId| process.pid == pid;
    let claim = deduper.claim_next(&me(), &is_dead).await.unwrap().unwrap();

    assert_eq!(claim.first().number, 1);
    assert_eq!(deduper.begin_attempt(&claim).await.unwrap(), 1);
}

#[tokio::test]
async fn processes_killed_at_any_moment_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.db");
    let store = with_queue(&path, 20, 20).await;
    let deadline = Instant::now() + DEADLINE;
    let mut dead = Vec::new();
    for round in 0..6 {
        let mut process = Process::start("deliver-forever", &path);
        dead.push(i32::try_from(process.0.id()).unwrap());
        process.wait_for("going");
        let before = store.queue().counts().await.unwrap().pending;
        // Killed after a different amount of work each time.
        while store.queue().counts().await.unwrap().pending + round > before && before > round {
            assert!(Instant::now() < deadline, "the child does not work");
            tokio::task::yield_now().await;
        }
        process.kill();
    }

    store.check().await.unwrap();
    let is_dead = |process: &ProcessId, _: &BootId| dead.contains(&process.pid);
    let deduper = store.deduper();
    while let Some(claim) = deduper.claim_next(&me(), &is_dead).await.unwrap() {
        assert_eq!(deduper.begin_attempt(&claim).await.unwrap(), 1);
        deduper.settle(&claim, DELIVERED, None).await.unwrap();
    }
    let counts = store.queue().counts().await.unwrap();
    assert_eq!(
        (
            counts.pending,
            counts.claimed,
            counts.held,
            counts.abandoned
        ),
        (0, 0, 0, 0)
    );
    assert_in_order(&path).await;
}

#[tokio::test]
async fn a_database_that_stays_locked_is_named_and_works_again_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.db");
    drop(open(&path).await);
    let mut holder = Process::start("lock", &path);
    holder.wait_for("locked");
    let tuning = Tuning {
        busy_timeout: Duration::from_millis(50),
        ..Tuning::default()
    };
    let store = Store::open_with(&path, "host", Arc::new(SystemClock), tuning).await;
    let store = store.expect("a reader needs no lock");
    let acceptance = Acceptance {
        items: vec![sighting(1)],
        ..Acceptance::default()
    };

    let error = store.inbox().accept(&acceptance).await.unwrap_err();

    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    assert!(error.is_transient());
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
    holder.kill();
    store.inbox().accept(&acceptance).await.unwrap();
}
