//! The command line: what a person types, and how answers are printed.
//!
//! One file per command. A command parses, asks the modules below, prints, and returns an exit code;
//! it decides nothing itself.

mod args;
mod backstage;
mod config;
mod decisions;
mod demo;
mod events;
mod exit;
mod explain;
mod explain_steps;
mod explain_subject;
mod layout;
mod live;
mod output;
mod poll;
mod reset;
mod screen;
mod session_list;
mod session_show;
mod session_state;
mod sessions;
mod setup;
mod status;
mod steer;

pub use args::Cli;
pub use exit::Exit;

use args::Command;

/// Runs one command to its end.
#[must_use]
pub fn run(cli: Cli) -> Exit {
    let result = match cli.command {
        Command::Poll(args) => poll::run(&cli.global, args),
        Command::Sessions(args) => sessions::run(&cli.global, args),
        Command::Events(args) => events::run(&cli.global, &args),
        Command::Status(args) => status::run(&cli.global, &args),
        Command::Config(args) => config::run(&cli.global, &args),
        Command::Demo(args) => demo::run(&args),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => failure.print(),
    }
}

#[cfg(test)]
mod reference;
