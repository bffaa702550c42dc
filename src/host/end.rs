//! What is done when the harness has ended, in this order: record, terminal, leftovers, screen.

use chrono::Local;

use super::journal::Journal;
use super::sweep::{self, Scope};
use super::terminal::Terminal;
use crate::clock::{Clock, SystemClock};
use crate::model::{Ending, Phase, ProcessId, text};
use crate::process::signal::{Signal, signal_group};

/// Why a harness ended; a later one overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// Nobody asked it to.
    ItsOwn,
    /// The host was asked to stop it.
    Stopped,
    /// Its terminal went away.
    HungUp,
}

/// The end of a harness.
pub(super) struct End {
    pub(super) harness: Option<ProcessId>,
    pub(super) ending: Ending,
    pub(super) cause: Cause,
}

impl End {
    /// The end of one that never ran.
    pub(super) fn failed(why: String) -> Self {
        Self {
            harness: None,
            ending: Ending::Failed(why),
            cause: Cause::ItsOwn,
        }
    }

    pub(super) fn terminal_is_gone(&self) -> bool {
        self.cause == Cause::HungUp
    }

    /// The line below the last screen.
    fn message(&self, name: &str) -> String {
        let how = match &self.ending {
            Ending::Code(code) => format!("exit {code}"),
            Ending::Signal(signal) => format!("signal {signal}"),
            Ending::Failed(why) => {
                return format!(
                    "[the-loop] {name} could not be started: {}",
                    text::clean(why)
                );
            }
        };
        let at = Local::now().format("%Y-%m-%d %H:%M:%S");
        match self.cause {
            Cause::ItsOwn => {
                format!("[the-loop] {name} ended ({how}) at {at}; the next event starts it again")
            }
            Cause::Stopped | Cause::HungUp => {
                format!("[the-loop] {name} was stopped ({how}) at {at}")
            }
        }
    }
}

/// Records the end, ends what the harness left behind, and leaves a quiet, readable screen.
pub(super) fn finish(end: &End, name: &str, journal: &mut Journal, terminal: &Terminal) {
    let harness = end.harness.or_else(|| journal.phase().harness());
    journal.advance(Phase::Ended {
        harness,
        ending: end.ending.clone(),
        at_ms: SystemClock.now().timestamp_millis(),
    });
    terminal.take_back();
    if let Some(harness) = harness {
        // Where processes are not listed, the group is all that is known of what is left. It is not
        // signalled elsewhere: its leader is reaped, and a number without a member can be another's.
        if cfg!(not(target_os = "linux")) {
            signal_group(harness.pid, Signal::Hangup).ok();
            signal_group(harness.pid, Signal::Continue).ok();
        }
        let scope = match end.cause {
            // A server that the agent left running for people outlives an end of its own.
            Cause::ItsOwn => Scope::Terminal,
            Cause::Stopped | Cause::HungUp => Scope::Everything,
        };
        sweep::sweep(scope, journal.owner());
    }
    if !end.terminal_is_gone() {
        terminal.settle();
        terminal.say_below(&end.message(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_below_the_screen_says_how_it_ended_and_what_happens_next() {
        let mut end = End::failed("no\x1b[31m such file".to_owned());
        assert_eq!(
            end.message("claude"),
            "[the-loop] claude could not be started: no[31m such file"
        );
        end.ending = Ending::Code(1);
        let line = end.message("claude");
        assert!(
            line.starts_with("[the-loop] claude ended (exit 1) at 2"),
            "{line}"
        );
        assert!(line.ends_with("; the next event starts it again"), "{line}");
        end.ending = Ending::Signal(15);
        end.cause = Cause::Stopped;
        let line = end.message("claude");
        assert!(
            line.starts_with("[the-loop] claude was stopped (signal 15)"),
            "{line}"
        );
    }
}
