//! The host's own open of the pane's terminal.
//!
//! The descriptors 0 to 2 belong to the harness, which may leave them non-blocking or closed. All
//! input and output of the host goes through an open file of its own, never waits without a limit,
//! and never stops the host.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use rustix::termios::{
    Action, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector, SpecialCodeIndex,
    tcflow, tcflush, tcgetattr, tcsetattr, tcsetpgrp,
};

use super::wait;

/// How long all output of one message may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes back what a terminal program switched on and could not switch off: focus, paste, mouse and
/// key reports, synchronised output, hidden cursor, no wrap, insert and origin mode, colours,
/// character sets, the scroll region. The cursor goes to the last line, because resetting the region
/// puts it on the first, over what is to be read. The alternate screen stays, for the same reason.
const RESET: &str = concat!(
    "\x1b[?1004l\x1b[?2004l",
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l",
    "\x1b[?1l\x1b>\x1b[?2026l\x1b[<u\x1b[>4m",
    "\x1b[?25h\x1b[?7h\x1b[4l\x1b[?6l\x1b[0m\x0f\x1b(B",
    "\x1b[r\x1b[9999;1H\n",
);

/// What reading found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// All of it is thrown away.
    Discarded,
    /// There is no terminal any more.
    Gone,
}

/// The terminal, opened anew.
pub(super) struct Terminal {
    fd: OwnedFd,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        // `/dev/tty` cannot be polled everywhere; the terminal under its own name can.
        #[cfg(target_os = "linux")]
        let fd = rustix::fs::open("/dev/tty", flags, Mode::empty())?;
        #[cfg(not(target_os = "linux"))]
        let fd = {
            let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new())?;
            rustix::fs::open(name, flags, Mode::empty())?
        };
        Ok(Self { fd })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Gives the terminal to a process group; a failure shows as a stop of that group later.
    pub(super) fn lend(&self, group: i32) {
        if let Some(group) = Pid::from_raw(group.max(0)) {
            tcsetpgrp(&self.fd, group).ok();
        }
    }

    /// Takes the terminal back, whoever has it.
    pub(super) fn take_back(&self) {
        tcsetpgrp(&self.fd, getpid()).ok();
    }

    /// Makes the terminal quiet: nothing typed is echoed, becomes a signal, or stops the output.
    pub(super) fn settle(&self) {
        if let Ok(mut modes) = tcgetattr(&self.fd) {
            modes.local_modes -=
                LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
            modes.input_modes -= InputModes::IXON;
            modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            // Not the variants that drain first: they wait for a reader that may have stopped.
            tcsetattr(&self.fd, OptionalActions::Now, &modes).ok();
        }
        tcflush(&self.fd, QueueSelector::IFlush).ok();
        // Somebody may have stopped the output with a key.
        tcflow(&self.fd, Action::OOn).ok();
    }

    /// Writes a message below all that is on the screen, with the terminal reset.
    pub(super) fn say_below(&self, message: &str) {
        let text = format!("{RESET}{message}");
        let until = Instant::now() + PATIENCE;
        let mut rest = text.as_bytes();
        while !rest.is_empty() && Instant::now() < until {
            match rustix::io::write(&self.fd, rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::AGAIN | Errno::INTR) => {
                    wait::ready([(self.fd(), PollFlags::OUT)], Some(until));
                }
                Err(_) => return,
            }
        }
    }

    /// Reads all that was typed or pasted and throws it away.
    pub(super) fn discard(&self) -> Input {
        let mut typed = [0_u8; 4096];
        loop {
            match rustix::io::read(&self.fd, &mut typed) {
                Ok(0) => return Input::Gone,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Input::Discarded,
                Err(_) => return Input::Gone,
            }
        }
    }
}
