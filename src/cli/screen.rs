//! The terminal of a running daemon: lines that stay, and a last line that is drawn over.
//!
//! Decisions go to stdout and log lines to stderr, and on a terminal both land on one screen. So both
//! go through here: the last line is erased before either, and drawn again below it.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::layout::{clip, width};
use super::output::{Paint, colours, paint};
use crate::model::text::count;
use crate::process::detach::terminal_width;

/// How many pieces wait for a terminal that takes none; what comes after them is counted, not kept.
const WAITING: usize = 1024;

/// How long a daemon's end waits for a terminal to take what is left.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// One per process, as there is one terminal.
static WAY: Mutex<Way> = Mutex::new(Way::Direct(Screen { last: None }));

/// How a piece comes to the terminal.
enum Way {
    /// It is written by who has it.
    Direct(Screen),
    /// A thread writes it: a terminal that was stopped with Ctrl-S, or a pipe that nobody reads, holds
    /// up what is shown and never the daemon.
    Thread {
        pieces: SyncSender<Piece>,
        ended: Receiver<()>,
        patience: Option<Duration>,
        missed: u64,
    },
    /// The terminal did not take the last words either: nothing is written any more.
    Gone,
}

/// Something to be shown.
enum Piece {
    /// A line that stays.
    Line(String),
    /// The line at the bottom, drawn over by the next one.
    LastLine(String),
    /// A line of the log, for stderr.
    Log(Vec<u8>),
}

/// Lets a thread write from here to [`end`], which waits so long for the last words, or for ever.
///
/// # Errors
/// The system has no thread to give; pieces are then written directly.
pub(super) fn write_from_thread(patience: Option<Duration>) -> io::Result<()> {
    let (pieces, waiting) = sync_channel(WAITING);
    let (end, ended) = sync_channel(1);
    thread::Builder::new()
        .name("screen".to_owned())
        .spawn(move || {
            let mut screen = Screen { last: None };
            for piece in waiting {
                screen.draw(&piece);
            }
            screen.end();
            // Nobody waits any more where the end came too late.
            let _late = end.try_send(());
        })?;
    *way() = Way::Thread {
        pieces,
        ended,
        patience,
        missed: 0,
    };
    Ok(())
}

/// Prints a line above the last one.
pub(super) fn line(text: &str) {
    put(Piece::Line(text.to_owned()));
}

/// Draws the last line.
pub(super) fn last_line(text: &str) {
    put(Piece::LastLine(text.to_owned()));
}

/// Takes the last line away for good, once all that waits is written.
pub(super) fn end() {
    let mut way = way();
    match std::mem::replace(&mut *way, Way::Gone) {
        Way::Direct(mut screen) => {
            screen.end();
            *way = Way::Direct(screen);
        }
        Way::Thread {
            pieces,
            ended,
            patience,
            ..
        } => {
            drop(pieces);
            let all_written = match patience {
                Some(patience) => ended.recv_timeout(patience).is_ok(),
                None => ended.recv().is_ok(),
            };
            if all_written {
                *way = Way::Direct(Screen { last: None });
            }
        }
        Way::Gone => {}
    }
}

fn way() -> MutexGuard<'static, Way> {
    WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put(piece: Piece) {
    match &mut *way() {
        Way::Direct(screen) => screen.draw(&piece),
        Way::Thread { pieces, missed, .. } => offer(pieces, missed, piece),
        Way::Gone => {}
    }
}

/// Hands a piece to the thread; where it has too many already, the next that fits says how many
/// lines are missing.
fn offer(pieces: &SyncSender<Piece>, missed: &mut u64, piece: Piece) {
    if *missed > 0 {
        let lines = count(*missed, "line");
        let note = format!("({lines} not shown: the terminal took none; see `the-loop events`)");
        if pieces.try_send(Piece::Line(note)).is_ok() {
            *missed = 0;
        }
    }
    match pieces.try_send(piece) {
        Err(TrySendError::Full(Piece::Line(_) | Piece::Log(_))) => *missed += 1,
        // The next last line comes within a second.
        Err(TrySendError::Full(Piece::LastLine(_))) => {}
        Ok(()) | Err(TrySendError::Disconnected(_)) => {}
    }
}

/// The screen, with the last line as it was drawn.
struct Screen {
    last: Option<String>,
}

impl Screen {
    fn draw(&mut self, piece: &Piece) {
        match piece {
            Piece::Line(text) => {
                let (erase, again) = self.around();
                write(&format!("{erase}{text}\n{again}"));
            }
            Piece::LastLine(text) => {
                let room = terminal_width().unwrap_or(80);
                // The last cell stays free: a terminal may break the line behind it.
                let text = clip(text, room.saturating_sub(1));
                let (erase, _) = self.around();
                write(&format!("{erase}{}", dim(&text)));
                self.last = Some(text);
            }
            Piece::Log(bytes) => self.log(bytes),
        }
    }

    /// Writes to stderr, above the last line where both share a terminal.
    fn log(&self, bytes: &[u8]) {
        let mut err = io::stderr().lock();
        let is_shared = self.last.is_some() && err.is_terminal();
        let (erase, again) = self.around();
        if is_shared {
            write(&erase);
        }
        // As below: whoever read the log may be gone.
        let _gone = err.write_all(bytes).and_then(|()| err.flush());
        if is_shared {
            write(&again);
        }
    }

    fn end(&mut self) {
        let (erase, _) = self.around();
        self.last = None;
        write(&erase);
    }

    /// What has to be written before and after something that goes above the last line.
    fn around(&self) -> (String, String) {
        let Some(last) = &self.last else {
            return (String::new(), String::new());
        };
        let room = terminal_width().unwrap_or(80);
        let again = clip(last, room.saturating_sub(1));
        (erase(width(last), room), dim(&again))
    }
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

/// Where log lines are written.
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
        put(Piece::Log(bytes.to_vec()));
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
    fn what_a_stopped_terminal_does_not_take_is_counted() {
        let (pieces, waiting) = sync_channel(2);
        let mut missed = 0;
        for text in ["one", "two", "three", "four"] {
            offer(&pieces, &mut missed, Piece::Line(text.to_owned()));
        }
        offer(
            &pieces,
            &mut missed,
            Piece::LastLine("how it stands".to_owned()),
        );
        assert_eq!(missed, 2);

        let shown = || match waiting.recv() {
            Ok(Piece::Line(text)) => text,
            _ => "no line".to_owned(),
        };
        assert_eq!([shown(), shown()], ["one", "two"]);
        offer(&pieces, &mut missed, Piece::Line("five".to_owned()));
        assert!(shown().starts_with("(2 lines not shown"));
        assert_eq!((shown(), missed), ("five".to_owned(), 0));
    }

    #[test]
    fn a_terminal_that_was_made_narrower_is_left_without_remains() {
        assert_eq!(erase(79, 80), "\r\u{1b}[J");
        assert_eq!(erase(79, 40), "\r\u{1b}[1A\u{1b}[J");
        assert_eq!(erase(79, 20), "\r\u{1b}[3A\u{1b}[J");
        assert_eq!(erase(0, 0), "\r\u{1b}[J");
    }
}
