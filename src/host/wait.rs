//! Waiting for descriptors and for children.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, WaitStatus, wait};

/// How long a wait may last where a child's end may come without a signal: systems that drop a
/// blocked signal whose default is to be ignored.
const LONGEST: Option<Duration> = if cfg!(target_os = "linux") {
    None
} else {
    Some(Duration::from_millis(100))
};

/// Waits until one of the descriptors is ready or the time has come, and tells which are ready.
pub(super) fn ready<const N: usize>(
    fds: [(BorrowedFd<'_>, PollFlags); N],
    until: Option<Instant>,
) -> [PollFlags; N] {
    let mut polled = fds.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = match (left, LONGEST) {
        (Some(left), Some(longest)) => Some(left.min(longest)),
        (left, longest) => left.or(longest),
    };
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    // An interrupted or failed wait is one in which nothing was ready: every caller looks again.
    if poll(&mut polled, timeout.as_ref()).is_err() {
        return [PollFlags::empty(); N];
    }
    polled.map(|fd| fd.revents())
}

/// The earlier of two times, where none means never.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Takes the news of one child, own or adopted; none when there is none now.
pub(super) fn news() -> Option<(i32, WaitStatus)> {
    let (pid, status) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED).ok()??;
    Some((pid.as_raw_nonzero().get(), status))
}
