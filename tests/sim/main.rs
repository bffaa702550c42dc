//! The poller, the dispatcher, the runner and the store on a machine of values: simulated time, tmux,
//! GitHub, processes and agents, all from one seed, and every promise checked at the end of a story.
//!
//! `SEEDS=n` plays more stories, `FROM=n` begins with another one, `SEED=n` plays that one and shows
//! all that happened in it, and `PLANTED=name` plants a fault.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and shows its story"
)]

#[path = "../support/fake_tmux/mod.rs"]
#[expect(dead_code, reason = "the contract suite uses more of it")]
mod fake_tmux;

mod act;
mod clock;
mod github;
mod line;
mod machine;
mod numbers;
mod promises;
mod pulse;
mod push;
mod rest;
mod said;
mod setting;
mod story;
mod table;
mod tmux;
mod world;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use numbers::Numbers;
use the_loop::planted::{Planted, plant};
use world::World;

/// How many stories a run of the tests plays.
const STORIES: u64 = 60;

/// How long a story may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// In how many stories a planted fault must be found.
const MOST: u64 = 150;

/// What a story came to.
struct Outcome {
    broken: Vec<String>,
    trace: Vec<String>,
    texts: usize,
}

fn tell(seed: u64) -> Outcome {
    the_loop::process::blocking::work_at_once();
    let _watched = watch(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .on_thread_park(rest::nobody_can_go_on)
        .start_paused(true)
        // An answer of the store's thread waits until this one has nothing else to do, however soon
        // it comes.
        .global_queue_interval(u32::MAX)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut numbers = Numbers::of(seed);
        let mut world = World::new(&mut numbers).await;
        let said = story::play(&mut world, &mut numbers).await;
        let broken = promises::broken(&world, &said).await;
        let trace = world.machine.trace();
        world.close().await;
        Outcome {
            broken,
            trace,
            texts: said.len(),
        }
    })
}

/// Ends everything if a story stands still, until what this returns is dropped.
#[expect(
    clippy::print_stderr,
    reason = "the process ends at once, and no test is left to tell it"
)]
fn watch(seed: u64) -> mpsc::Sender<()> {
    let (ended, wait) = mpsc::channel();
    std::thread::spawn(move || {
        if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("SEED={seed}: the story stands still");
            std::process::abort();
        }
    });
    ended
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The fault that is to be planted by hand.
fn planted() -> Option<Planted> {
    let name = std::env::var("PLANTED").ok()?;
    let named = |(fault, ..): &(Planted, &str, u64)| format!("{fault:?}") == name;
    Some(PLANTED.iter().copied().find(named)?.0)
}

#[test]
fn every_story_keeps_the_promises() {
    plant(planted());
    if let Some(seed) = number("SEED") {
        let outcome = tell(seed);
        println!("{}", outcome.trace.join("\n"));
        assert!(outcome.broken.is_empty(), "{:#?}", outcome.broken);
        return;
    }
    let first = number("FROM").unwrap_or(0);
    let seeds = first..first + number("SEEDS").unwrap_or(STORIES);
    let (next, texts) = (AtomicU64::new(first), AtomicUsize::new(0));
    let failed = Mutex::new(Vec::new());
    // A story waits for the thread of its store most of the time.
    let threads = 3 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                plant(planted());
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        break;
                    }
                    let outcome = tell(seed);
                    texts.fetch_add(outcome.texts, Ordering::Relaxed);
                    if !outcome.broken.is_empty() {
                        println!("SEED={seed}: {}", outcome.broken.join("; "));
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let (texts, failed) = (texts.into_inner(), failed.into_inner().unwrap());
    println!("{} stories, {texts} texts", seeds.end - seeds.start);
    assert!(failed.is_empty(), "these seeds broke a promise: {failed:?}");
}

#[test]
fn a_seed_is_the_same_story_each_time() {
    for seed in [1, 7, 9] {
        let (first, second) = (tell(seed), tell(seed));
        assert_eq!(first.trace, second.trace);
    }
}

/// Each fault that can be planted, how the promise that it breaks is told, and where to look first.
const PLANTED: [(Planted, &str, u64); 9] = [
    (Planted::NoTokens, "twice", 11),
    (Planted::NoEnter, "lost", 15),
    (Planted::AnySession, "wrong session", 1),
    (Planted::LastFirst, "out of order", 5),
    (Planted::Silence, "silent", 75),
    (Planted::Anybody, "the words of a stranger", 1),
    (Planted::Endless, "over budget", 75),
    (Planted::Unsettled, "no rest", 0),
    (Planted::UnknownIsDead, "beside", 13),
];

#[test]
fn each_planted_fault_is_found() {
    let mut unfound = Vec::new();
    for (fault, promise, first) in PLANTED {
        plant(Some(fault));
        let found = (first..first + MOST).find(|seed| {
            let broken = tell(*seed).broken;
            broken.iter().any(|what| what.contains(promise))
        });
        plant(None);
        match found {
            Some(seed) => println!("{fault:?}: SEED={seed} tells {promise:?}"),
            None => unfound.push(fault),
        }
    }
    assert!(unfound.is_empty(), "nobody saw {unfound:?}");
}
