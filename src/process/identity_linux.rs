//! Looking at processes through `/proc`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::identity::{Found, Life, Look, State, life};
use super::signal::checked;
use crate::model::ProcessId;

/// One line of `/proc/<pid>/stat`, as far as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) look: Look,
    pub(super) parent: i32,
    pub(super) session: i32,
}

pub(super) fn look(pid: i32) -> Found {
    found(fs::read(format!("/proc/{pid}/stat")), || {
        fs::exists("/proc/self/stat").unwrap_or(false)
    })
}

/// Tells what it means that a process's line could be read, or not; a missing process is told from a
/// `/proc` that is not there at all.
fn found(line: io::Result<Vec<u8>>, proc_answers: impl FnOnce() -> bool) -> Found {
    match line {
        Ok(line) => parse_stat(&line).map_or(Found::Silence, |stat| Found::Process(stat.look)),
        Err(error) if says_no_such_process(&error) && proc_answers() => Found::Nothing,
        Err(_) => Found::Silence,
    }
}

pub(super) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Names this process's namespace of pids, as containers have one each.
pub(super) fn pid_namespace() -> Option<String> {
    let name = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// Waits for the kernel's notice that the process ended; returns early where there is none to be had.
pub(super) async fn notified(process: &ProcessId) {
    let Some(pidfd) = open_verified(process) else {
        return;
    };
    #[expect(
        deprecated,
        reason = "its successor is an unsafe function; an owned descriptor is all that it asks for"
    )]
    let pidfd = AsyncFd::try_with_interest(pidfd, Interest::READABLE);
    if let Ok(pidfd) = pidfd
        && let Err(error) = pidfd.readable().await
    {
        tracing::debug!(%error, pid = process.pid, "no notice of a process's end");
    }
}

/// Opens the process itself; none when the pid belongs to no process or to a later one.
fn open_verified(process: &ProcessId) -> Option<OwnedFd> {
    let pid = checked(process.pid).ok()?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // In this order: what was opened cannot be replaced any more, so its name can be compared.
    (life(process) == Life::Running).then_some(pidfd)
}

/// Reads one line of `/proc/<pid>/stat`; the name in it may hold blanks and parentheses.
pub(super) fn parse_stat(line: &[u8]) -> Option<Stat> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The first field here is the third of the line.
    let field = |number: usize| fields.get(number - 3).copied();
    let state = match field(3)? {
        "Z" | "X" | "x" => State::Zombie,
        "T" | "t" => State::Stopped,
        _ => State::Active,
    };
    Some(Stat {
        look: Look {
            start: field(22)?.parse().ok()?,
            state,
        },
        parent: field(4)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
    })
}

fn says_no_such_process(error: &io::Error) -> bool {
    // ESRCH: the process ended between the open and the read.
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::child::testing::Sleeper;
    use crate::process::identity::identify;
    use crate::process::signal::{Signal, signal};

    #[test]
    fn a_program_name_cannot_shift_the_fields() {
        let line =
            b"42 (a) R 1 (b) T 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 99 0 0\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!(stat.look.state, State::Stopped);
        assert_eq!((stat.parent, stat.session), (7, 9));
        assert_eq!(stat.look.start, 25);
    }

    #[test]
    fn only_a_proc_that_answers_can_say_that_a_process_is_missing() {
        let failed = |errno: rustix::io::Errno| Err(io::Error::from(errno));
        let missing = || failed(rustix::io::Errno::NOENT);
        assert_eq!(found(missing(), || true), Found::Nothing);
        assert_eq!(found(missing(), || false), Found::Silence);
        let ended_meanwhile = failed(rustix::io::Errno::SRCH);
        assert_eq!(found(ended_meanwhile, || true), Found::Nothing);
        let too_many_files = failed(rustix::io::Errno::MFILE);
        assert_eq!(found(too_many_files, || true), Found::Silence);
        assert_eq!(found(Ok(b"42 (a".to_vec()), || true), Found::Silence);
    }

    #[test]
    fn the_kernel_names_the_boot_and_the_namespace() {
        use std::os::unix::fs::MetadataExt;

        assert!(uuid::Uuid::parse_str(&boot_id().unwrap()).is_ok());
        let inode = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        assert_eq!(pid_namespace().unwrap(), format!("pid:[{inode}]"));
    }

    #[tokio::test]
    async fn the_kernel_gives_notice_of_an_end_and_not_before() {
        let sleeper = Sleeper::start();
        let id = identify(sleeper.pid()).unwrap();
        let mut notice = std::pin::pin!(notified(&id));
        let is_given = std::future::poll_fn(|context| {
            std::task::Poll::Ready(notice.as_mut().poll(context).is_ready())
        });
        assert!(!is_given.await);
        signal(&id, Signal::Kill).unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(5), notice)
            .await
            .unwrap();
        assert_eq!(life(&id), Life::Gone);
        notified(&id).await;
    }

    #[test]
    fn a_line_cut_short_names_nobody() {
        for line in [&b""[..], b"42 (a", b"42 (a) S 1", b"42 (a) S 1 2 3"] {
            assert_eq!(parse_stat(line), None);
        }
    }
}
