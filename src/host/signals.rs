//! The signals of this process, taken one after another instead of interrupting it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

const BLOCKED: [Signal; 13] = [
    Signal::SIGHUP,
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGCHLD,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGPIPE,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// What a signal asks of the host; all others are taken and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// End the harness, keep the screen (SIGTERM).
    Stop,
    /// The terminal is gone: end everything (SIGHUP).
    HangUp,
}

/// The signals that arrived, as a readable descriptor.
pub(super) struct Signals {
    arrived: UnixStream,
}

impl Signals {
    /// Blocks the signals in this thread, and so in all later ones, and starts to collect them.
    pub(super) fn take_over() -> io::Result<Self> {
        let set: SigSet = BLOCKED.into_iter().collect();
        set.thread_block()?;
        let (arrived, mut collected) = UnixStream::pair()?;
        arrived.set_nonblocking(true)?;
        thread::Builder::new()
            .name("signals".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || {
                loop {
                    let signal = set.wait().map_or(0, |signal| signal as u8);
                    if collected.write_all(&[signal]).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { arrived })
    }

    /// Lets a process that this one starts receive every signal again.
    pub(super) fn unblock() -> io::Result<()> {
        SigSet::empty().thread_set_mask().map_err(io::Error::from)
    }

    /// Becomes readable when a signal arrived, also one that asks nothing.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }

    /// Takes all that arrived; of several requests the strongest counts.
    pub(super) fn take(&mut self) -> Option<Request> {
        let mut request = None;
        let mut numbers = [0_u8; 64];
        while let Ok(count @ 1..) = self.arrived.read(&mut numbers) {
            for number in &numbers[..count] {
                if *number == Signal::SIGHUP as u8 {
                    request = Some(Request::HangUp);
                } else if *number == Signal::SIGTERM as u8 && request.is_none() {
                    request = Some(Request::Stop);
                }
            }
        }
        request
    }
}
