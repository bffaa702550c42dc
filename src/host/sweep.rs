//! Ending what a harness left running.

use std::thread;
use std::time::Duration;

use super::marker;
use super::wait;
use crate::model::{OwnerId, ProcessId};
use crate::process::signal::{Signal, signal};
use crate::process::{identity, table};

const ROUND: Duration = Duration::from_millis(50);
/// The round from which on nothing is asked any more: after half a second.
const KILL_FROM: usize = 10;
/// The round after which what cannot be killed is left alone.
const ROUNDS: usize = 30;

/// What counts as left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// What still sits on this terminal.
    Terminal,
    /// Every descendant: on this terminal, adopted, or started with the harness's mark.
    Everything,
}

/// Asks all leftovers to end, and kills those that did not within half a second.
pub(super) fn sweep(scope: Scope, owner: &OwnerId) {
    let mark = marker::entry(owner);
    let mut asked: Vec<ProcessId> = Vec::new();
    for round in 0..ROUNDS {
        // Reaped first: a zombie's pid must not be looked at as a leftover.
        while wait::news().is_some() {}
        let left = leftovers(scope, &mark);
        if left.is_empty() {
            return;
        }
        for process in left {
            // One that ended meanwhile, or may not be signalled, is not there or stays.
            if round >= KILL_FROM {
                signal(&process, Signal::Kill).ok();
            } else if !asked.contains(&process) {
                signal(&process, Signal::Terminate).ok();
                signal(&process, Signal::Continue).ok();
                asked.push(process);
            }
        }
        thread::sleep(ROUND);
    }
}

fn leftovers(scope: Scope, mark: &str) -> Vec<ProcessId> {
    let own = identity::own_pid();
    table::entries()
        .into_iter()
        .filter(|entry| entry.id.pid != own)
        .filter(|entry| match scope {
            Scope::Terminal => entry.session == own,
            Scope::Everything => {
                entry.session == own
                    || entry.parent == own
                    || table::started_with(entry.id.pid, mark)
            }
        })
        .map(|entry| entry.id)
        .collect()
}
