//! The command line program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(verb) if verb == "demo-agent" => the_loop::demo::agent::main(args),
        _ => ExitCode::from(2),
    }
}
