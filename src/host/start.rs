//! The first stage of the harness's own process: waits to be let go, then becomes the harness.
//!
//! Between its start and the word to go the host records the process, so there is never a harness
//! that nobody knows of. Its standard input is the host's end of the barrier; when that closes
//! without a word, nothing runs.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{getpid, getppid};
use rustix::stdio::{dup2_stdin, stdin, stdout};
use rustix::termios::tcsetpgrp;

use super::signals::Signals;
use crate::process::child;

/// The hidden subcommand; its arguments are the host's pid, the program, and the program's own.
pub(super) const SUBCOMMAND: &str = "host-start";

/// The word to go.
pub(super) const GO: u8 = b'g';

/// The exit code of a program that could not be executed, as shells have it.
const NOT_EXECUTED: u8 = 127;

/// Waits at the barrier and becomes the harness; returns when it did not.
pub(super) fn main(arguments: &[OsString]) -> ExitCode {
    let [host, program, arguments @ ..] = arguments else {
        return ExitCode::FAILURE;
    };
    let Ok(mut barrier) = barrier() else {
        return ExitCode::FAILURE;
    };
    let failed = match wait_for_the_word(&mut barrier, host) {
        Ok(Word::Go) => become_harness(program, arguments),
        Ok(Word::Never) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    write!(barrier, "{failed}").ok();
    ExitCode::from(NOT_EXECUTED)
}

enum Word {
    Go,
    Never,
}

/// Moves the barrier away from standard input, which becomes the terminal again.
fn barrier() -> io::Result<UnixStream> {
    // Above the standard streams, and closed by the exec: its end is how the host learns of it.
    let barrier = rustix::io::fcntl_dupfd_cloexec(stdin(), 3)?;
    dup2_stdin(stdout())?;
    Ok(UnixStream::from(barrier))
}

fn wait_for_the_word(barrier: &mut UnixStream, host: &OsStr) -> io::Result<Word> {
    end_with_the_host()?;
    let parent = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref().map(OsStr::new) != Some(host) {
        return Ok(Word::Never);
    }
    // This process's group is in the background until now, with the signal for that blocked. Where
    // it fails the host gives the terminal at the first stop.
    tcsetpgrp(stdout(), getpid()).ok();
    let mut word = [0_u8; 1];
    Ok(match barrier.read(&mut word)? {
        1 if word[0] == GO => Word::Go,
        _ => Word::Never,
    })
}

/// Asks to be killed when the host dies, so that no harness outlives its session unseen.
#[cfg(target_os = "linux")]
fn end_with_the_host() -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};

    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
fn end_with_the_host() -> io::Result<()> {
    Ok(())
}

fn become_harness(program: &OsStr, arguments: &[OsString]) -> io::Error {
    match Signals::unblock() {
        Ok(()) => child::replace(program, arguments),
        Err(error) => error,
    }
}
