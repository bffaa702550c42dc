//! Keeping the last screen: what is typed is swallowed, until the pane or the host is ended.

use rustix::event::PollFlags;

use super::journal::Journal;
use super::report::Report;
use super::signals::Signals;
use super::terminal::{Input, Terminal};
use super::wait;

/// Stays until the terminal is gone or somebody asks the host to end. Sleeps without a timer once
/// record and option are there.
pub(super) fn stay(
    terminal: &Terminal,
    signals: &mut Signals,
    journal: &mut Journal,
    mut report: Option<Report>,
) {
    loop {
        while let Some((pid, status)) = wait::news() {
            if let Some(report) = &mut report {
                report.ended(pid, status);
            }
        }
        journal.try_again();
        let mut due = journal.due();
        if let Some(report) = &mut report {
            report.act();
            due = wait::earlier(due, report.due());
        }
        let [typed, _] = wait::ready(
            [
                (terminal.fd(), PollFlags::IN),
                (signals.fd(), PollFlags::IN),
            ],
            due,
        );
        if signals.take().is_some() {
            return;
        }
        if !typed.is_empty() && terminal.discard() == Input::Gone {
            return;
        }
    }
}
