//! Staying with a running harness: resuming it when it stops, ending it when asked, seeing its end.
//!
//! tmux is never called or waited for here.

use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::WaitStatus;

use super::claim::Taken;
use super::end::{Cause, End};
use super::journal::Journal;
use super::launch::{self, Harness};
use super::signals::{Request, Signals};
use super::terminal::Terminal;
use super::wait;
use crate::model::Ending;
use crate::process::signal::{Signal, signal_group};

/// The shortest time between two resumes, so that a harness that keeps stopping costs nothing.
const RESUME_PAUSE: Duration = Duration::from_millis(50);

/// The longest grace once the terminal is gone.
const HANGUP_GRACE: Duration = Duration::from_secs(2);

/// Watches one harness until it has ended.
pub(super) struct Supervisor<'a> {
    harness: Harness,
    taken: &'a Taken,
    terminal: &'a Terminal,
    signals: &'a mut Signals,
    journal: &'a mut Journal,
    cause: Cause,
    kill_at: Option<Instant>,
    resumed_at: Option<Instant>,
    resume_at: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        harness: Harness,
        taken: &'a Taken,
        terminal: &'a Terminal,
        signals: &'a mut Signals,
        journal: &'a mut Journal,
    ) -> Self {
        Self {
            harness,
            taken,
            terminal,
            signals,
            journal,
            cause: Cause::ItsOwn,
            kill_at: None,
            resumed_at: None,
            resume_at: None,
        }
    }

    pub(super) fn until_ended(mut self) -> End {
        loop {
            if let Some(ending) = self.look_at_children() {
                return End {
                    harness: Some(self.harness.id),
                    ending,
                    cause: self.cause,
                };
            }
            self.act_on_time();
            let due = wait::earlier(self.kill_at, self.resume_at);
            wait::ready(
                [(self.signals.fd(), PollFlags::IN)],
                wait::earlier(due, self.journal.due()),
            );
            match self.signals.take() {
                Some(Request::Stop) => self.end_harness(Cause::Stopped),
                Some(Request::HangUp) => self.end_harness(Cause::HungUp),
                None => {}
            }
        }
    }

    /// Takes the news of all children; those that were adopted are only reaped.
    fn look_at_children(&mut self) -> Option<Ending> {
        while let Some((pid, status)) = wait::news() {
            if pid != self.harness.id.pid {
                continue;
            }
            if status.stopped() {
                self.plan_resume();
            } else if let Some(ending) = self.ending(status) {
                return Some(ending);
            }
        }
        None
    }

    fn ending(&mut self, status: WaitStatus) -> Option<Ending> {
        let ending = ending_of(status)?;
        Some(match self.harness.failure() {
            Some(why) => Ending::Failed(launch::explain(self.taken, &why)),
            None => ending,
        })
    }

    /// A stopped harness is resumed: nobody in the pane could do it.
    fn plan_resume(&mut self) {
        let now = Instant::now();
        let earliest = self.resumed_at.map_or(now, |last| last + RESUME_PAUSE);
        self.resume_at = Some(earliest.max(now));
    }

    fn act_on_time(&mut self) {
        // Until it is written, nobody outside can tell that the harness runs.
        self.journal.try_again();
        let now = Instant::now();
        if self.resume_at.is_some_and(|at| at <= now) {
            self.resume_at = None;
            self.resumed_at = Some(now);
            // It may have stopped because a child of its took the terminal and died.
            self.terminal.lend(self.harness.id.pid);
            self.send(Signal::Continue);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            self.send(Signal::Kill);
        }
    }

    /// Asks the group to end, and sees to it later that it did. A hang-up overtakes a stop.
    fn end_harness(&mut self, cause: Cause) {
        if cause <= self.cause {
            return;
        }
        let grace = Duration::from_millis(self.taken.ticket.grace_ms);
        let (signal, grace) = match cause {
            Cause::HungUp => (Signal::Hangup, grace.min(HANGUP_GRACE)),
            Cause::ItsOwn | Cause::Stopped => (Signal::Terminate, grace),
        };
        self.cause = cause;
        self.send(signal);
        self.send(Signal::Continue);
        self.kill_at = Some(Instant::now() + grace);
    }

    /// The harness is an unreaped child and leads the group, so the number is still its own.
    fn send(&self, signal: Signal) {
        // A group that cannot be signalled is seen by its end, or by not ending.
        signal_group(self.harness.id.pid, signal).ok();
    }
}

fn ending_of(status: WaitStatus) -> Option<Ending> {
    let code = status.exit_status().map(Ending::Code);
    code.or_else(|| status.terminating_signal().map(Ending::Signal))
}
