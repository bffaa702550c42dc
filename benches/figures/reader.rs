//! The agent of the latency figures: it reads its terminal and notes when what came.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};

use super::Result;

pub(crate) const VERB: &str = "--read-terminal";

/// Bytes that came with one read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Read {
    /// Microseconds since the epoch.
    pub(crate) at: u64,
    pub(crate) text: String,
}

/// Returns the microseconds since the epoch.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}

/// Returns when a text was complete on the terminal.
pub(crate) fn read_at(log: &Path, text: &str) -> Option<u64> {
    let lines = std::fs::read_to_string(log).ok()?;
    let mut all = String::new();
    for line in lines
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        let read: Read = serde_json::from_str(line).ok()?;
        all.push_str(&read.text);
        if all.contains(text) {
            return Some(read.at);
        }
    }
    None
}

/// Reads until the terminal is gone.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let log = args.first().ok_or("expected a file")?;
    let mut log = OpenOptions::new().append(true).create(true).open(log)?;
    let terminal = std::io::stdin();
    let mut raw = tcgetattr(&terminal)?;
    raw.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &raw)?;
    let mut screen = std::io::stdout();
    screen.write_all(b"\x1b[?2004h")?;
    screen.flush()?;
    let mut buffer = [0; 65536];
    loop {
        let count = match rustix::io::read(&terminal, &mut buffer) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        let read = Read {
            at: now(),
            text: String::from_utf8_lossy(&buffer[..count]).into_owned(),
        };
        let mut line = serde_json::to_vec(&read)?;
        line.push(b'\n');
        log.write_all(&line)?;
    }
}
