//! Processes, seen and signalled from outside.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use the_loop::process::identity::{Life, identify, life};

use crate::support::{Scratch, wait_until};

/// Signals a process; one that is gone already is fine.
pub(crate) fn signal(pid: i32, signal: Signal) {
    assert!(pid > 1);
    kill_process(Pid::from_raw(pid).unwrap(), signal).ok();
}

/// Waits until a process is gone, reaped or not.
pub(crate) fn wait_gone(pid: i32) {
    wait_until("the process ends", Duration::from_secs(10), || is_gone(pid));
}

/// Tells whether a process is gone, reaped or not.
pub(crate) fn is_gone(pid: i32) -> bool {
    identify(pid).is_none_or(|process| life(&process) == Life::Gone)
}

/// How many agents run.
pub(crate) fn agents_alive(scratch: &Scratch) -> usize {
    let found = scratch.processes("demo-agent");
    found
        .iter()
        .filter(|process| !process.command.contains(" host "))
        .count()
}
