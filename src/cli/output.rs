//! Printing: the one place that writes to stdout and stderr.

use std::io::{ErrorKind, IsTerminal, Write};

use anstream::ColorChoice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::layout::{self, Column};
use crate::process::detach::terminal_width;

/// Writes text and a newline to stdout. A reader that has gone away (`| head`) is no error.
pub(crate) fn line(text: impl AsRef<str>) {
    print(&format!("{}\n", text.as_ref()));
}

/// Writes text to stdout as it is.
pub(crate) fn print(text: &str) {
    write_to(anstream::stdout().lock(), text);
}

/// Writes a line for the person at the terminal to stderr, beside the command's real output.
pub(crate) fn note(text: impl AsRef<str>) {
    write_to(anstream::stderr().lock(), &format!("{}\n", text.as_ref()));
}

/// Writes an error to stderr.
pub(crate) fn error(message: &str) {
    note(format!("\u{1b}[31merror:\u{1b}[0m {message}"));
}

/// Writes a warning to stderr.
pub(crate) fn warning(message: &str) {
    note(format!("\u{1b}[33mwarning:\u{1b}[0m {message}"));
}

fn write_to(mut to: impl Write, text: &str) {
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        tracing::warn!("cannot write the output: {error}");
    }
}

/// Tells whether whoever read stdout has gone, also while there is nothing to write.
pub(crate) fn reader_is_gone() -> bool {
    let stdout = std::io::stdout();
    let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut ends, Some(&Timespec::default())).is_ok() && ends[0].revents().intersects(gone)
}

/// Writes a value as pretty JSON to stdout.
pub(crate) fn json(value: &impl Serialize) -> Result<(), serde_json::Error> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Writes a table that fits the terminal; a pipe gets every cell whole.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>]) {
    for row in layout::table(columns, rows, room()) {
        line(row);
    }
}

/// Returns how many cells a line may take; nothing where no terminal limits it.
pub(crate) fn room() -> Option<usize> {
    std::io::stdout()
        .is_terminal()
        .then(|| terminal_width().unwrap_or(80))
}

/// Tells whether stdout takes colours: a terminal without `NO_COLOR`, or `CLICOLOR_FORCE`.
pub(crate) fn colours() -> bool {
    anstream::stdout().current_choice() != ColorChoice::Never
}

/// The colours in use; each adds to what the words say already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// As it is.
    Plain,
    /// For what stands beside the matter: times, hints.
    Dim,
    /// It went well.
    Good,
    /// Somebody may want to look.
    Warn,
    /// It failed.
    Bad,
}

/// Wraps a text in a colour, and ends the colour with it.
pub(crate) fn paint(text: &str, paint: Paint) -> String {
    let code = match paint {
        Paint::Plain => return text.to_owned(),
        Paint::Dim => "2",
        Paint::Good => "32",
        Paint::Warn => "33",
        Paint::Bad => "31",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Writes a number with its thousands set apart: `4,988`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Says how long ago something was, in one unit: `12 s`, `3 m`, `2 h`, `5 d`.
pub(crate) fn age(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..=59 => format!("{s} s"),
        s @ 60..=3_599 => format!("{} m", s / 60),
        s @ 3_600..=172_799 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let numbers = [0, 999, 5_000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "5,000", "1,234,567"]);
    }

    #[test]
    fn ages_use_one_unit() {
        let ages = [-3, 59, 60, 3_600, 90_000, 172_800].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 m", "1 h", "25 h", "2 d"]);
    }
}
