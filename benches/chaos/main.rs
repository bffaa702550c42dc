//! Chaos: the real program, real tmux and real processes, while everything that may fail does.
//!
//! Many comments for many items are written while daemons are killed, tmux is stopped, agents die and
//! the API fails. In the end every text that was accepted must have been read once, by the agent of
//! its item, in order. `make chaos ARGS="--events 1000 --items 50 --seed 7"`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it fails by panicking, and prints its verdict"
)]

#[path = "../../tests/it/support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "the support of the tests does more than this needs"
)]
mod support;

mod storm;
mod tally;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::json;
use the_loop::demo::github::LocalGitHub;

use storm::Storm;
use support::{Scratch, TheLoop};
use tally::Tally;

pub(crate) const REPO: &str = "demo/app";

/// How long nothing new may be read before the calm counts as the end.
const CALM: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Options {
    /// How many comments are written
    #[arg(long, default_value_t = 1000)]
    events: u64,
    /// For how many items: at most 24 comments each, or the rate breaker holds them
    #[arg(long, default_value_t = 50)]
    items: u64,
    /// What the random choices begin with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let github = runtime.block_on(LocalGitHub::start()).unwrap();
    github.repo(REPO);
    let scratch = Scratch::new();
    let the_loop = TheLoop::new(&scratch)
        .github(&github.url())
        .set("harnesses.agent.submitGapMilliseconds", json!(30))
        .set("harnesses.agent.readyDelaySeconds", json!(0.2))
        .set("routing.tmux.resumeProbeSeconds", json!(0.2))
        .set("routing.maxConcurrentDispatches", json!(8))
        // Each kill of an agent may spend an attempt, and a spent budget is an answer of its own.
        .set("polling.maxRetries", json!(20));
    let mut storm = Storm::new(options.seed, &scratch, &the_loop, &github);
    storm.begin(options.items);
    let began = Instant::now();
    storm.rage(options.events);
    let raged = began.elapsed();
    let daemon = storm.calm();
    let tally = wait_for_calm(&the_loop, &storm);
    drop(daemon);
    println!(
        "{} events for {} items in {} s, seed {}: {}",
        options.events,
        options.items,
        raged.as_secs(),
        options.seed,
        storm.deeds()
    );
    println!("{tally}");
    if tally.holds() {
        ExitCode::SUCCESS
    } else {
        for line in tally.details().iter().take(20) {
            eprintln!("{line}");
        }
        let kept = std::env::temp_dir().join(format!("chaos-{}.jsonl", options.seed));
        let log = scratch.state_root().join("logs/events.jsonl");
        if std::fs::copy(log, &kept).is_ok() {
            eprintln!("the event log is {}", kept.display());
        }
        ExitCode::FAILURE
    }
}

/// Waits until every text was read, or nothing new is read any more.
fn wait_for_calm(the_loop: &TheLoop<'_>, storm: &Storm<'_>) -> Tally {
    let mut last = Instant::now();
    let mut read = 0;
    loop {
        let records = the_loop.agents().records();
        let tally = Tally::of(&records, storm.written(), storm.killed());
        if tally.read() > read {
            read = tally.read();
            last = Instant::now();
        }
        if tally.is_complete() || last.elapsed() > CALM {
            return tally;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
