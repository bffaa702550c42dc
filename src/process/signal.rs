//! Signals, sent only to processes that are proved to be the recorded ones.

use rustix::io::Errno;
use rustix::process::Pid;

use crate::model::ProcessId;

/// The signals that this program sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The terminal is gone (SIGHUP).
    Hangup,
    /// Please end (SIGTERM).
    Terminate,
    /// End now (SIGKILL).
    Kill,
    /// Freeze (SIGSTOP).
    Stop,
    /// Go on (SIGCONT).
    Continue,
    /// Whatever the receiver agreed to (SIGUSR1); tmux makes its socket again.
    User1,
}

impl Signal {
    fn native(self) -> rustix::process::Signal {
        match self {
            Self::Hangup => rustix::process::Signal::HUP,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Continue => rustix::process::Signal::CONT,
            Self::User1 => rustix::process::Signal::USR1,
        }
    }
}

/// Why a signal was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// The number names everybody, the system's first process, or nobody.
    #[error("refused to signal process {pid}: it is never one of ours")]
    Refused {
        /// The number.
        pid: i32,
    },
    /// The process, or every process of the group, has ended.
    #[error("process {pid} has ended already")]
    Gone {
        /// Its number.
        pid: i32,
    },
    /// The system did not tell whether the pid still belongs to that process.
    #[error(
        "process {pid} was not signalled: the system does not tell whether it is still the same one"
    )]
    Unverified {
        /// Its number.
        pid: i32,
    },
    /// The system refused.
    #[error("process {pid} could not be signalled: {why}")]
    Denied {
        /// Its number.
        pid: i32,
        /// The system's answer.
        why: Errno,
    },
}

/// Sends a signal to exactly this process; a later one with the same pid is never hit.
///
/// # Errors
///
/// [`SignalError::Gone`] when it has ended; the other variants mean that it may still run.
pub fn signal(process: &ProcessId, signal: Signal) -> Result<(), SignalError> {
    let target = checked(process.pid)?;
    #[cfg(target_os = "linux")]
    if let Some(sent) = by_descriptor(process, target, signal) {
        return sent;
    }
    // The check and the signal are two steps here.
    verified(process)?;
    rustix::process::kill_process(target, signal.native())
        .map_err(|errno| refusal(process.pid, errno))
}

/// Sends a signal to every process of a group that this program made.
///
/// A group id has no start time: use it only while its leader is an unreaped child, or while a
/// member is known to run.
///
/// # Errors
///
/// [`SignalError::Gone`] when the group has no member.
pub fn signal_group(group: i32, signal: Signal) -> Result<(), SignalError> {
    let target = checked(group)?;
    rustix::process::kill_process_group(target, signal.native())
        .map_err(|errno| refusal(group, errno))
}

/// Signals the process by a descriptor of it; none in a sandbox or under a kernel that gives none.
#[cfg(target_os = "linux")]
fn by_descriptor(
    process: &ProcessId,
    target: Pid,
    signal: Signal,
) -> Option<Result<(), SignalError>> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    let pidfd = match pidfd_open(target, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(Errno::NOSYS | Errno::PERM) => return None,
        Err(errno) => return Some(Err(refusal(process.pid, errno))),
    };
    // Opened first, compared second: what is open cannot be replaced.
    Some(verified(process).and_then(|()| {
        pidfd_send_signal(pidfd, signal.native()).map_err(|errno| refusal(process.pid, errno))
    }))
}

fn verified(process: &ProcessId) -> Result<(), SignalError> {
    use super::identity::{Life, life};

    let pid = process.pid;
    match life(process) {
        Life::Running => Ok(()),
        Life::Gone => Err(SignalError::Gone { pid }),
        Life::Unknown => Err(SignalError::Unverified { pid }),
    }
}

/// Returns the number of one process; none of everybody's, nobody's or the system's first.
pub(super) fn checked(pid: i32) -> Result<Pid, SignalError> {
    // In this order: a negative number is a programming error to `from_raw`.
    Some(pid)
        .filter(|pid| *pid > 1)
        .and_then(Pid::from_raw)
        .ok_or(SignalError::Refused { pid })
}

fn refusal(pid: i32, errno: Errno) -> SignalError {
    if errno == Errno::SRCH {
        SignalError::Gone { pid }
    } else {
        SignalError::Denied { pid, why: errno }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::child::testing::Sleeper;
    use crate::process::identity::{Life, identify, life};

    #[test]
    fn numbers_that_mean_everybody_are_refused() {
        for pid in [1, 0, -1, -7, i32::MIN] {
            let refused = SignalError::Refused { pid };
            assert_eq!(
                signal(&ProcessId { pid, start: 0 }, Signal::Kill),
                Err(refused.clone())
            );
            assert_eq!(signal_group(pid, Signal::Kill), Err(refused));
        }
    }

    #[test]
    fn a_process_that_took_over_the_pid_is_not_hit() {
        let sleeper = Sleeper::start();
        let id = identify(sleeper.pid()).unwrap();
        let earlier = ProcessId {
            start: id.start.saturating_sub(1),
            ..id
        };
        assert_eq!(
            signal(&earlier, Signal::Kill),
            Err(SignalError::Gone { pid: id.pid })
        );
        assert_eq!(life(&id), Life::Running);
    }

    #[test]
    fn a_group_without_members_is_gone() {
        let sleeper = Sleeper::start();
        let pid = sleeper.pid();
        signal_group(pid, Signal::Kill).unwrap();
        sleeper.reap();
        assert_eq!(
            signal_group(pid, Signal::Terminate),
            Err(SignalError::Gone { pid })
        );
    }
}
