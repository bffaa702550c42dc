//! The dispatcher, the runner and the store on a machine of values: simulated time, tmux, processes
//! and agents, all from one seed, and every promise checked at the end of each story.
//!
//! `SEEDS=n` plays more stories, `SEED=n` one of them, and shows all that happened in it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and shows its story"
)]

#[path = "../support/fake_tmux/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "the contract suite uses more of it"
)]
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
mod said;
mod story;
mod table;
mod tmux;
mod world;

use numbers::Numbers;
use the_loop::planted::{Planted, plant};
use world::World;

/// How many stories a run of the tests plays.
const STORIES: u64 = 60;

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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
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

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_story_keeps_the_promises() {
    if let Some(seed) = number("SEED") {
        let outcome = tell(seed);
        println!("{}", outcome.trace.join("\n"));
        assert!(outcome.broken.is_empty(), "{:#?}", outcome.broken);
        return;
    }
    let first = number("FROM").unwrap_or(0);
    let seeds = first..first + number("SEEDS").unwrap_or(STORIES);
    let (mut texts, mut failed) = (0, Vec::new());
    for seed in seeds.clone() {
        let outcome = tell(seed);
        texts += outcome.texts;
        if !outcome.broken.is_empty() {
            println!("SEED={seed}: {}", outcome.broken.join("; "));
            failed.push(seed);
        }
    }
    println!("{} stories, {texts} texts", seeds.count());
    assert!(failed.is_empty(), "these seeds broke a promise: {failed:?}");
}

/// 7 and 179: the agent ended between a paste and its Enter, and the text counted as delivered. 27: a
/// daemon was killed under a paste, and nobody asked tmux for its lost socket any more.
#[test]
fn the_seeds_that_found_a_fault_keep_the_promises() {
    for seed in [7, 27, 179] {
        let outcome = tell(seed);
        assert!(
            outcome.broken.is_empty(),
            "SEED={seed}: {:#?}",
            outcome.broken
        );
    }
}

#[test]
fn a_seed_is_the_same_story_each_time() {
    let (first, second) = (tell(7), tell(7));
    assert_eq!(first.trace, second.trace);
}

/// Each fault that can be planted, and how the promise that it breaks is told.
const PLANTED: [(Planted, &str); 9] = [
    (Planted::NoTokens, "twice"),
    (Planted::NoEnter, "lost"),
    (Planted::AnySession, "wrong session"),
    (Planted::LastFirst, "out of order"),
    (Planted::Silence, "silent"),
    (Planted::Anybody, "the words of a stranger"),
    (Planted::Endless, "over budget"),
    (Planted::Forgotten, "no rest"),
    (Planted::UnknownIsDead, "beside"),
];

#[test]
fn each_planted_fault_is_found() {
    let mut unfound = Vec::new();
    for (fault, promise) in PLANTED {
        plant(Some(fault));
        let found = (0..MOST).find(|seed| {
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
