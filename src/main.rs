//! The command line program.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use the_loop::cli::{self, Cli};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // First: the process in a pane needs neither the runtime nor the configuration, and one thread.
    if let Some(code) = the_loop::host::dispatch(&arguments) {
        return code;
    }
    match arguments.split_first() {
        Some((verb, rest)) if verb == "demo-agent" => the_loop::demo::agent::main(rest.to_vec()),
        _ => cli::run(Cli::parse()).into(),
    }
}
