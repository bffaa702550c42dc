//! The terminal of a running daemon: lines that stay, and a last line that is drawn over.
//!
//! Decisions go to stdout and log lines to stderr, and on a terminal both land on one screen. So both
//! go through here: the last line is erased before either, and drawn again below it.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::layout::{clip, width};
use super::output::{Paint, colours, paint};
use crate::model::text::count;
use crate::process::detach::terminal_width;
use crate::telemetry::LogFormat;

/// How many lines wait for a terminal that takes none; what comes after them is counted, not kept.
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
        waiting: Arc<Waiting>,
        patience: Duration,
    },
    /// The terminal did not take the last words either: nothing is written any more.
    Gone,
}

/// Whether the terminal took what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// All of it.
    All,
    /// It takes nothing: who writes to it may wait for ever.
    Stuck,
}

/// Something to be shown.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// A line that stays.
    Line(String),
    /// The line at the bottom, drawn over by the next one.
    LastLine(String),
    /// A line of the log, for stderr.
    Log(Vec<u8>),
    /// So many lines were not kept.
    Missed(u64),
}

/// Lets a thread write from here to [`end`], which waits so long for the last words.
///
/// # Errors
/// The system has no thread to give; pieces are then written directly.
pub(super) fn write_from_thread(format: LogFormat, patience: Duration) -> io::Result<()> {
    let waiting = Arc::new(Waiting::default());
    let written = Arc::clone(&waiting);
    thread::Builder::new()
        .name("screen".to_owned())
        .spawn(move || {
            let mut screen = Screen { last: None };
            while let Some(piece) = written.next() {
                match piece {
                    // A program that reads JSON would stumble over it.
                    Piece::Missed(_) if format == LogFormat::Json => {}
                    piece => screen.draw(&piece),
                }
            }
            screen.end();
            written.change(|queue| queue.state = State::Written);
        })?;
    *way() = Way::Thread { waiting, patience };
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
pub(super) fn end() -> Taken {
    end_within(Duration::MAX)
}

/// The same, and waits no longer than so long.
pub(super) fn end_within(longest: Duration) -> Taken {
    let mut way = way();
    let ended = match &mut *way {
        Way::Direct(screen) => {
            screen.end();
            return Taken::All;
        }
        Way::Thread { waiting, patience } => waiting.end((*patience).min(longest)),
        Way::Gone => Taken::Stuck,
    };
    *way = match ended {
        Taken::All => Way::Direct(Screen { last: None }),
        Taken::Stuck => Way::Gone,
    };
    ended
}

fn way() -> MutexGuard<'static, Way> {
    WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put(piece: Piece) {
    match &mut *way() {
        Way::Direct(screen) => screen.draw(&piece),
        Way::Thread { waiting, .. } => waiting.change(|queue| queue.add(piece)),
        Way::Gone => {}
    }
}

/// What waits for the thread.
#[derive(Default)]
struct Waiting {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Piece>,
    /// The newest one only: what it says is old within a second.
    last_line: Option<String>,
    missed: u64,
    state: State,
}

/// How far the thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Open,
    /// Nothing more comes.
    Closed,
    /// All is written.
    Written,
}

impl Queue {
    /// Keeps a piece; lines beyond the bound are counted, and the next that fits says how many.
    fn add(&mut self, piece: Piece) {
        match piece {
            Piece::LastLine(text) => self.last_line = Some(text),
            _ if self.lines.len() >= WAITING => self.missed += 1,
            piece => {
                let gap = self.gap();
                self.lines.extend(gap);
                self.lines.push_back(piece);
            }
        }
    }

    fn gap(&mut self) -> Option<Piece> {
        let missed = std::mem::take(&mut self.missed);
        (missed > 0).then_some(Piece::Missed(missed))
    }

    fn next(&mut self) -> Option<Piece> {
        let line = self.lines.pop_front().or_else(|| self.gap());
        line.or_else(|| self.last_line.take().map(Piece::LastLine))
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for the next piece; none once all is written after the end.
    fn next(&self) -> Option<Piece> {
        let mut queue = self.lock();
        loop {
            match queue.next() {
                None if queue.state == State::Open => {
                    queue = self
                        .changed
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                piece => return piece,
            }
        }
    }

    /// Closes the queue and waits so long until all of it is written.
    fn end(&self, patience: Duration) -> Taken {
        self.change(|queue| {
            queue.last_line = None;
            queue.state = State::Closed;
        });
        let writes = |queue: &mut Queue| queue.state != State::Written;
        let (queue, _) = self
            .changed
            .wait_timeout_while(self.lock(), patience, writes)
            .unwrap_or_else(PoisonError::into_inner);
        match queue.state {
            State::Written => Taken::All,
            State::Open | State::Closed => Taken::Stuck,
        }
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
            Piece::Missed(lines) => {
                let lines = count(*lines, "line");
                let note =
                    format!("({lines} not shown: the terminal took none; see `the-loop events`)\n");
                self.log(note.as_bytes());
            }
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
    if text.is_empty() {
        return;
    }
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

    fn text(text: &str) -> Piece {
        Piece::Line(text.to_owned())
    }

    #[test]
    fn what_a_stopped_terminal_does_not_take_is_counted_in_its_place() {
        let mut queue = Queue::default();
        for _ in 0..WAITING + 3 {
            queue.add(text("old"));
        }
        assert_eq!(queue.next(), Some(text("old")));
        queue.add(text("new"));

        let rest: Vec<Piece> = std::iter::from_fn(|| queue.next()).collect();

        assert_eq!(rest.len(), WAITING + 1);
        assert_eq!(rest[WAITING - 1..], [Piece::Missed(3), text("new")]);
    }

    #[test]
    fn what_was_missed_is_said_also_when_nothing_follows() {
        let mut queue = Queue::default();
        for _ in 0..WAITING + 1 {
            queue.add(text("old"));
        }

        let last = std::iter::from_fn(|| queue.next()).last();

        assert_eq!(last, Some(Piece::Missed(1)));
    }

    #[test]
    fn the_newest_last_line_waits_and_no_older_one_takes_a_place() {
        let mut queue = Queue::default();
        for second in 0..2 * WAITING {
            queue.add(Piece::LastLine(second.to_string()));
        }
        queue.add(text("a decision"));

        assert_eq!(queue.next(), Some(text("a decision")));
        let newest = (2 * WAITING - 1).to_string();
        assert_eq!(queue.next(), Some(Piece::LastLine(newest)));
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn the_end_waits_for_a_thread_that_writes_and_for_no_other() {
        let waiting = Arc::new(Waiting::default());
        assert_eq!(waiting.end(Duration::from_millis(1)), Taken::Stuck);

        let written = Arc::clone(&waiting);
        let thread = thread::spawn(move || {
            while written.next().is_some() {}
            written.change(|queue| queue.state = State::Written);
        });
        assert_eq!(waiting.end(Duration::MAX), Taken::All);
        thread.join().unwrap();
    }

    #[test]
    fn a_terminal_that_was_made_narrower_is_left_without_remains() {
        assert_eq!(erase(79, 80), "\r\u{1b}[J");
        assert_eq!(erase(79, 40), "\r\u{1b}[1A\u{1b}[J");
        assert_eq!(erase(79, 20), "\r\u{1b}[3A\u{1b}[J");
        assert_eq!(erase(0, 0), "\r\u{1b}[J");
    }
}
