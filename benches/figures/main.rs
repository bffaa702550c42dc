//! Measures what the product promises about time and memory, and prints it beside the targets.
//!
//! `make bench` prints the table of `docs/performance.md`. Arguments: `--json`, and words that choose
//! groups (`cargo bench -- store idle`). Measures the release build of the real program.

mod cycle;
mod figure;
mod idle;
mod latency;
mod million;
mod reader;
mod start;
mod usage;
mod world;

use std::error::Error;
use std::process::ExitCode;

use figure::Figure;

/// What goes wrong in a measurement is told and ends it.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The program that is measured.
const PROGRAM: &str = env!("CARGO_BIN_EXE_the-loop");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ended = match args.split_first() {
        Some((verb, rest)) if verb == usage::VERB => usage::main(rest),
        Some((verb, rest)) if verb == reader::VERB => reader::main(rest),
        _ => measure(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            figure::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &[String]) -> Result<()> {
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let wants = |group: &str| wanted.is_empty() || wanted.iter().any(|word| *word == group);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut figures: Vec<Figure> = Vec::new();
    runtime.block_on(async {
        if wants("start") {
            figures.extend(start::measure().await?);
        }
        if wants("cycle") {
            figures.extend(cycle::measure().await?);
        }
        if wants("latency") {
            figures.extend(latency::measure().await?);
        }
        if wants("idle") {
            figures.extend(idle::measure().await?);
        }
        if wants("store") {
            figures.extend(million::measure().await?);
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    if args.iter().any(|arg| arg == "--json") {
        figure::print_json(&figures)
    } else {
        figure::print_table(&figures);
        Ok(())
    }
}
