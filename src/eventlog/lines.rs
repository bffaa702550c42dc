//! Reads lines of bounded length, and half lines in instalments.

use std::io::{self, BufRead};

/// Longer than any line that is written; what is longer is no record.
pub(super) const MAX_LINE: usize = 1024 * 1024;

/// What a file had next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A whole line, without its end, is in the buffer.
    Line,
    /// A line was too long and was passed over.
    TooLong,
    /// Nothing more for now; a half line may be waiting for its rest.
    End,
}

/// Collects one line at a time; what is there of a half line is kept for the next call.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    too_long: bool,
    complete: bool,
}

impl Lines {
    /// Reads on to the next line's end.
    pub(super) fn read(&mut self, input: &mut impl BufRead) -> io::Result<Next> {
        if self.complete {
            self.start_over();
        }
        loop {
            let available = match input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok(Next::End);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            self.too_long |= self.buffer.len() + part.len() > MAX_LINE;
            if !self.too_long {
                self.buffer.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            input.consume(used);
            if end.is_some() {
                self.complete = true;
                return Ok(if self.too_long {
                    Next::TooLong
                } else {
                    Next::Line
                });
            }
        }
    }

    /// The line that was read last, without its end.
    pub(super) fn line(&self) -> &[u8] {
        &self.buffer
    }

    /// Gives up a half line; tells whether there was one.
    pub(super) fn give_up(&mut self) -> bool {
        let half = !self.complete && (self.too_long || !self.buffer.is_empty());
        self.start_over();
        half
    }

    fn start_over(&mut self) {
        self.buffer.clear();
        self.too_long = false;
        self.complete = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_line_waits_for_its_rest() {
        let mut lines = Lines::default();
        assert_eq!(lines.read(&mut &b"one\ntw"[..]).unwrap(), Next::Line);
        assert_eq!(lines.line(), b"one");
        assert_eq!(lines.read(&mut &b"tw"[..]).unwrap(), Next::End);
        assert_eq!(lines.read(&mut &b"o\n"[..]).unwrap(), Next::Line);
        assert_eq!(lines.line(), b"two");
        assert!(!lines.give_up());
    }

    #[test]
    fn an_endless_line_takes_no_memory_and_hides_nothing_after_it() {
        let mut text = vec![b'x'; 3 * MAX_LINE];
        text.extend_from_slice(b"\nnext\n");
        let mut input = &text[..];
        let mut lines = Lines::default();
        assert_eq!(lines.read(&mut input).unwrap(), Next::TooLong);
        assert!(lines.line().len() <= MAX_LINE);
        assert_eq!(lines.read(&mut input).unwrap(), Next::Line);
        assert_eq!(lines.line(), b"next");
    }
}
