//! The terminal of a running daemon: lines that stay, and a last line that is drawn over.
//!
//! Decisions go to stdout and log lines to stderr, and on a terminal both land on one screen. So both
//! go through here: the last line is erased before either, and drawn again below it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use super::layout::{clip, width};
use super::output::{Paint, colours, paint};
use crate::process::detach::terminal_width;

/// The last line as it was drawn; one per process, as there is one terminal.
static LAST_LINE: Mutex<Option<String>> = Mutex::new(None);

/// Prints a line above the last one.
pub(super) fn line(text: &str) {
    let last = LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (erase, again) = around(last.as_deref());
    write(&format!("{erase}{text}\n{again}"));
}

/// Draws the last line.
pub(super) fn last_line(text: &str) {
    let mut last = LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
    let room = terminal_width().unwrap_or(80);
    // The last cell stays free: a terminal may break the line behind it.
    let text = clip(text, room.saturating_sub(1));
    let (erase, _) = around(last.as_deref());
    write(&format!("{erase}{}", dim(&text)));
    *last = Some(text);
}

/// Takes the last line away for good.
pub(super) fn end() {
    let mut last = LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (erase, _) = around(last.take().as_deref());
    write(&erase);
}

/// What has to be written before and after something that goes above the last line.
fn around(last: Option<&str>) -> (String, String) {
    let Some(last) = last else {
        return (String::new(), String::new());
    };
    let room = terminal_width().unwrap_or(80);
    let again = clip(last, room.saturating_sub(1));
    (erase(width(last), room), dim(&again))
}

/// Erases a line that took `drawn` cells, on a terminal that is `room` cells wide by now: one that
/// was made narrower has broken the line into several rows.
fn erase(drawn: usize, room: usize) -> String {
    match drawn.div_ceil(room.max(1)) {
        0 | 1 => "\r\u{1b}[J".to_owned(),
        rows => format!("\r\u{1b}[{}A\u{1b}[J", rows - 1),
    }
}

fn dim(text: &str) -> String {
    paint(text, if colours() { Paint::Dim } else { Paint::Plain })
}

fn write(text: &str) {
    let mut out = io::stdout().lock();
    // A terminal that was closed must not end the daemon.
    let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Where log lines are written: stderr, above the last line where both share a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLines;

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let last = LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut err = io::stderr().lock();
        let on_screen = last.as_deref().filter(|_| err.is_terminal());
        let (erase, again) = around(on_screen);
        if on_screen.is_some() {
            write(&erase);
        }
        // As above: whoever read the log may be gone.
        let _gone = err.write_all(bytes).and_then(|()| err.flush());
        if on_screen.is_some() {
            write(&again);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_was_made_narrower_is_left_without_remains() {
        assert_eq!(erase(79, 80), "\r\u{1b}[J");
        assert_eq!(erase(79, 40), "\r\u{1b}[1A\u{1b}[J");
        assert_eq!(erase(79, 20), "\r\u{1b}[3A\u{1b}[J");
        assert_eq!(erase(0, 0), "\r\u{1b}[J");
    }
}
