//! Which process is which, and whether it still runs.
//!
//! A pid alone is reused by the system, so a process is named by its pid and its start time. What
//! cannot be learned is [`Life::Unknown`], which is never taken for an end.

use std::time::Duration;

use crate::model::{BootId, ProcessId};

#[cfg(target_os = "linux")]
use super::identity_linux as system;
#[cfg(not(target_os = "linux"))]
use super::identity_ps as system;

/// How often a process is looked at where the kernel does not tell its end.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What is written for a boot that the system does not name.
const UNNAMED_BOOT: &str = "unknown";

/// Whether a recorded process still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs, or is stopped.
    Running,
    /// It ended: no such pid, a zombie, or the pid belongs to a later process.
    Gone,
    /// The system did not tell.
    Unknown,
}

/// One look at a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) start: u64,
    pub(super) state: State,
}

/// What a process is doing, as far as anybody here asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Active,
    Stopped,
    Zombie,
}

/// What a look at a pid found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Process(Look),
    Nothing,
    /// The system did not answer.
    Silence,
}

/// Names the process that has this pid now.
///
/// Returns none when there is no such process, when the system did not tell, and for pids that
/// never belong to a process of ours (1 and below).
#[must_use]
pub fn identify(pid: i32) -> Option<ProcessId> {
    match look(pid) {
        Found::Process(seen) => Some(ProcessId {
            pid,
            start: seen.start,
        }),
        Found::Nothing | Found::Silence => None,
    }
}

/// Names this process.
///
/// The start time is 0 where the system does not tell it; such a name matches no process.
#[must_use]
pub fn own() -> ProcessId {
    let pid = own_pid();
    identify(pid).unwrap_or(ProcessId { pid, start: 0 })
}

/// Returns this process's pid.
#[must_use]
pub fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Tells whether a process of this boot still runs.
///
/// For a recorded process, use [`life_in`]: pids and start times repeat from boot to boot.
#[must_use]
pub fn life(process: &ProcessId) -> Life {
    match look(process.pid) {
        Found::Process(seen) if seen.start == process.start && seen.state != State::Zombie => {
            Life::Running
        }
        Found::Process(_) | Found::Nothing => Life::Gone,
        Found::Silence => Life::Unknown,
    }
}

/// Tells whether a process that was recorded during `boot` still runs.
#[must_use]
pub fn life_in(boot: &BootId, process: &ProcessId) -> Life {
    let now = boot_id();
    if *boot != now && boot.0 != UNNAMED_BOOT && now.0 != UNNAMED_BOOT {
        return Life::Gone;
    }
    life(process)
}

/// Tells whether the process is stopped by a signal (SIGSTOP, a terminal stop, a debugger).
#[must_use]
pub fn is_stopped(process: &ProcessId) -> bool {
    matches!(look(process.pid), Found::Process(seen)
        if seen.start == process.start && seen.state == State::Stopped)
}

/// Names the running boot of this machine.
///
/// Where the system has no name for it the result is a fixed word, which [`life_in`] never takes
/// for another boot.
#[must_use]
pub fn boot_id() -> BootId {
    BootId(system::boot_id().unwrap_or_else(|| UNNAMED_BOOT.to_owned()))
}

/// Names the process table that this process sees: one boot of one machine and, where there are any,
/// one namespace of pids. Only within one does a pid prove anything.
#[must_use]
pub fn process_table() -> String {
    let BootId(boot) = boot_id();
    match system::pid_namespace() {
        Some(namespace) => format!("{boot} {namespace}"),
        None => boot,
    }
}

/// Waits until the process has ended.
///
/// Holds one descriptor while it waits, and learns the end at once where the kernel has pidfds;
/// elsewhere it looks twice a second. Returns at once when the process is gone already.
pub async fn exited(process: &ProcessId) {
    #[cfg(target_os = "linux")]
    system::notified(process).await;
    // Also the fallback where no descriptor was to be had, and the proof after a notice.
    while life(process) != Life::Gone {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

pub(super) fn look(pid: i32) -> Found {
    if pid <= 1 {
        return Found::Nothing;
    }
    system::look(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::child::testing::Sleeper;
    use crate::process::signal::{Signal, signal};

    fn soon(condition: impl Fn() -> bool) -> bool {
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while !condition() {
            if std::time::Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    #[test]
    fn this_process_runs_and_is_named_the_same_twice() {
        let me = own();
        assert_eq!(own(), me);
        assert_ne!(me.start, 0);
        assert_eq!(life(&me), Life::Running);
        assert_eq!(life_in(&boot_id(), &me), Life::Running);
        assert!(!is_stopped(&me));
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let me = own();
        let earlier = ProcessId {
            start: me.start.saturating_sub(1),
            ..me
        };
        assert_eq!(life(&earlier), Life::Gone);
    }

    #[test]
    fn a_process_of_another_boot_is_gone_but_an_unnamed_boot_proves_nothing() {
        let me = own();
        assert_eq!(life_in(&BootId("earlier".to_owned()), &me), Life::Gone);
        assert_eq!(
            life_in(&BootId(UNNAMED_BOOT.to_owned()), &me),
            Life::Running
        );
    }

    #[test]
    fn a_process_table_is_that_of_a_boot() {
        let BootId(boot) = boot_id();
        let expected = match system::pid_namespace() {
            Some(namespace) => format!("{boot} {namespace}"),
            None => boot,
        };
        assert_eq!(process_table(), expected);
    }

    #[test]
    fn pids_that_are_never_ours_are_nobody() {
        for pid in [1, 0, -1, i32::MIN] {
            assert_eq!(identify(pid), None);
        }
    }

    #[test]
    fn a_zombie_is_gone_before_anyone_reaped_it() {
        let sleeper = Sleeper::start();
        let id = identify(sleeper.pid()).unwrap();
        signal(&id, Signal::Kill).unwrap();
        assert!(soon(|| life(&id) == Life::Gone));
        assert!(
            identify(id.pid).is_some(),
            "still in the table, as a zombie"
        );
    }

    #[test]
    fn a_stopped_process_is_seen_as_stopped_and_as_running() {
        let sleeper = Sleeper::start();
        let id = identify(sleeper.pid()).unwrap();
        signal(&id, Signal::Stop).unwrap();
        assert!(soon(|| is_stopped(&id)));
        assert_eq!(life(&id), Life::Running);
        signal(&id, Signal::Continue).unwrap();
        assert!(soon(|| !is_stopped(&id)));
    }

    #[tokio::test]
    async fn an_end_is_noticed() {
        let sleeper = Sleeper::start();
        let id = identify(sleeper.pid()).unwrap();
        let waiting = tokio::spawn(async move { exited(&id).await });
        signal(&id, Signal::Terminate).unwrap();
        tokio::time::timeout(Duration::from_secs(5), waiting)
            .await
            .unwrap()
            .unwrap();
        exited(&id).await;
    }
}
