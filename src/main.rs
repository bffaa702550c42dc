//! The command line program.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // First: the process in a pane needs neither the runtime nor the configuration, and one thread.
    if let Some(code) = the_loop::host::dispatch(&arguments) {
        return code;
    }
    ExitCode::SUCCESS
}
