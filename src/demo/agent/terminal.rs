//! The terminal as the agent needs it: raw, bracketing pastes, and given back as it was.

use std::io::{self, Stdin, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use super::screen::Size;

/// Another screen, pastes in brackets, focus reports.
const ENTER: &str = "\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[H\x1b[2J";
/// All of that undone, the cursor shown, on a line of its own.
const LEAVE: &str = "\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?1049l\r\n";

/// A raw terminal; dropping it restores what was.
#[derive(Debug)]
pub(super) struct Terminal {
    input: Stdin,
    before: Termios,
}

impl Terminal {
    /// Tells whether input comes from a terminal at all.
    pub(super) fn present() -> bool {
        isatty(io::stdin())
    }

    /// Makes the terminal raw. What was typed before stays to be read.
    pub(super) fn open() -> io::Result<Self> {
        let input = io::stdin();
        let before = tcgetattr(&input)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&input, OptionalActions::Now, &raw)?;
        let terminal = Self { input, before };
        terminal.write(ENTER)?;
        Ok(terminal)
    }

    /// Writes and flushes.
    #[expect(
        clippy::unused_self,
        reason = "only an open terminal may be written to"
    )]
    pub(super) fn write(&self, bytes: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(bytes.as_bytes())?;
        output.flush()
    }

    /// Reads what is there; 0 bytes mean that the terminal is gone.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // Below the buffer of Stdin: poll must see what is still unread.
        match rustix::io::read(&self.input, buffer) {
            Ok(count) => Ok(count),
            Err(rustix::io::Errno::IO) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the size; a terminal that does not know its own gets the usual one.
    pub(super) fn size(&self) -> Size {
        let known = tcgetwinsize(&self.input)
            .ok()
            .filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or(
            Size {
                columns: 80,
                rows: 24,
            },
            |size| Size {
                columns: size.ws_col.into(),
                rows: size.ws_row.into(),
            },
        )
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        drop(self.write(LEAVE));
        tcsetattr(&self.input, OptionalActions::Now, &self.before).ok();
    }
}
