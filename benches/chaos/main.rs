//! Chaos: the real program, real tmux and real processes, while everything that may fail does.
//!
//! People write many texts for many items while daemons are killed, tmux is stopped, agents die and
//! the API fails. In the end every text that was accepted must have been read once, by the agent of
//! its item, in order. `make chaos ARGS="--events 1000 --items 20 --seed 7"`, and with `--python` the
//! Python program goes through the same storm.
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

mod dice;
mod gh;
mod people;
mod program;
mod python;
mod storm;
mod tally;
mod text;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use the_loop::demo::github::LocalGitHub;

use people::{Habit, People};
use program::Program;
use storm::Storm;
use tally::Tally;

pub(crate) const REPO: &str = "demo/app";

/// How long nothing new may be read before what is missing counts as lost.
const CALM: Duration = Duration::from_secs(60);

/// How long it is watched, once nothing is missing, that nothing comes again.
const QUIET: Duration = Duration::from_secs(5);

#[derive(Debug, Parser)]
struct Options {
    /// How many texts are written; 1000, or what the items can take
    #[arg(long)]
    events: Option<u64>,
    /// For how many items
    #[arg(long, default_value_t = 20)]
    items: u64,
    /// What the random choices begin with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare with the Python program, which reads comments only
    #[arg(long)]
    python: bool,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if Path::new(&args[0]).file_name() == Some(OsStr::new("gh")) {
        return gh::main(&args[1..]);
    }
    let options = Options::parse();
    let habit = if options.python {
        Habit::Comments
    } else {
        Habit::Reviews
    };
    let most = options.items * habit.texts();
    let events = options.events.unwrap_or(most.min(1000));
    if events > most {
        eprintln!(
            "{} items take {most} texts: the rate breaker would hold more",
            options.items
        );
        return ExitCode::from(2);
    }
    let mut verdicts = vec![weather(Program::ours, habit, events, &options)];
    if options.python {
        let python = match python::install() {
            Ok(python) => python,
            Err(problem) => {
                eprintln!("the Python program cannot be installed: {problem}");
                return ExitCode::from(2);
            }
        };
        let make = |github: &LocalGitHub| Program::python(&python, github);
        verdicts.push(weather(make, habit, events, &options));
    }
    print_table(&verdicts);
    let (_, ours) = &verdicts[0];
    for line in ours.details().iter().take(20) {
        eprintln!("{line}");
    }
    ExitCode::from(u8::from(!ours.holds()))
}

/// Sends a program through the storm.
fn weather(
    make: impl Fn(&LocalGitHub) -> Program,
    habit: Habit,
    events: u64,
    options: &Options,
) -> (&'static str, Tally) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let github = runtime.block_on(LocalGitHub::start()).unwrap();
    github.repo(REPO);
    let program = make(&github);
    let mut people = People::begin(&github, habit, options.items);
    let mut storm = Storm::new(options.seed, &program, &github);
    storm.gather(&people);
    let began = Instant::now();
    storm.rage(&mut people, events);
    let raged = began.elapsed().as_secs();
    storm.calm();
    let tally = wait_for_calm(&program, &people, &storm);
    println!(
        "{}: {events} events for {} items in {raged} s, seed {}: {}",
        program.name,
        options.items,
        options.seed,
        storm.deeds()
    );
    if !tally.holds() {
        let logs = program.keep_logs(options.seed);
        eprintln!("its logs are {}.*", logs.display());
    }
    (program.name, tally)
}

/// Waits until every text was read and nothing comes again, or nothing new is read any more.
fn wait_for_calm(program: &Program, people: &People<'_>, storm: &Storm<'_>) -> Tally {
    let mut last = Instant::now();
    let mut delivered = 0;
    loop {
        let tally = Tally::of(&program.records(), people.written(), storm.killed());
        if tally.delivered() > delivered {
            delivered = tally.delivered();
            last = Instant::now();
        }
        let calm = if tally.is_complete() { QUIET } else { CALM };
        if last.elapsed() > calm {
            return tally;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn print_table(verdicts: &[(&'static str, Tally)]) {
    let columns: Vec<_> = verdicts.iter().map(|(_, tally)| tally.rows()).collect();
    print!("{:24}", "");
    for (name, _) in verdicts {
        print!(" {name:>14}");
    }
    println!();
    for (at, (what, _)) in columns[0].iter().enumerate() {
        print!("{what:24}");
        for column in &columns {
            print!(" {:>14}", column[at].1);
        }
        println!();
    }
}
