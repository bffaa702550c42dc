//! Signals as bytes on a pipe, so that the agent waits for them as it waits for input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};

/// The signals that the agent waits for.
#[derive(Debug)]
pub(super) struct Signals {
    from: File,
}

impl Signals {
    /// Blocks the signals and lets a thread of its own wait for them.
    ///
    /// Call it before any other thread exists: a thread that does not block them would be ended.
    pub(super) fn listen() -> io::Result<Self> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGWINCH,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGINT,
        ] {
            set.add(signal);
        }
        set.thread_block()?;
        let (from, to) = rustix::pipe::pipe()?;
        let mut to = File::from(to);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                while let Ok(signal) = set.wait() {
                    if to.write_all(&[signal as u8]).is_err() {
                        break;
                    }
                }
            })?;
        Ok(Self {
            from: File::from(from),
        })
    }

    /// Reads the signals that came; call it when the pipe is readable.
    pub(super) fn take(&mut self) -> io::Result<Vec<Signal>> {
        let mut numbers = [0; 64];
        let count = self.from.read(&mut numbers)?;
        Ok(numbers[..count]
            .iter()
            .filter_map(|number| Signal::try_from(i32::from(*number)).ok())
            .collect())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}
