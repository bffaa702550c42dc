//! The process in the pane: starts one harness from a ticket, records how it ended, and keeps its
//! screen readable.
//!
//! It is the pane's own process, so it outlives the harness and nothing pasted into an ended session
//! reaches a shell. It runs before any runtime, configuration or logging, and knows neither the store
//! nor GitHub: the run folder ([`crate::model::HostPaths`]) and one pane option are all that it
//! tells. The order of events at an end is fixed: record, terminal back, leftovers, screen, option.

mod claim;
mod end;
mod idle;
mod journal;
mod launch;
mod marker;
mod report;
mod retry;
mod signals;
mod start;
mod supervise;
mod sweep;
mod terminal;
mod wait;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use claim::{Claimed, Taken};
use journal::Journal;
use signals::Signals;
use terminal::Terminal;

use crate::clock::{Clock, SystemClock};
use crate::model::{AfterEnd, HostPaths, PaneId};
use crate::process::table_lock::{TableLock, TableLockError};

/// The hidden subcommand that a pane is created with; its one argument is the ticket's path.
pub const SUBCOMMAND: &str = "host";

/// Runs the stage that these arguments (without the program's name) ask for; none when they are
/// meant for the command line.
///
/// Must be called first in `main`, while the process has one thread.
#[must_use]
pub fn dispatch(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        [stage, ticket] if stage == SUBCOMMAND => Some(main(Path::new(ticket))),
        [stage, rest @ ..] if stage == start::SUBCOMMAND => Some(start::main(rest)),
        _ => None,
    }
}

/// Hosts one harness in this pane, from its ticket to the end of the session.
fn main(ticket: &Path) -> ExitCode {
    match host(ticket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            // Nobody may be there to read it; the session ends with this process either way.
            writeln!(std::io::stderr(), "[the-loop] {refusal}").ok();
            ExitCode::FAILURE
        }
    }
}

/// Why nothing was started; the ticket is untouched.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("host is not a pane's own process; it is started by the-loop inside tmux only")]
    NotAPane,
    #[error("preparing the signals: {0}")]
    Signals(std::io::Error),
    #[error("opening the terminal: {0}")]
    Terminal(std::io::Error),
    #[error(transparent)]
    Elsewhere(TableLockError),
    #[error(transparent)]
    Ticket(#[from] crate::process::ticket::TicketError),
    #[error("{0} is not inside a run folder")]
    Misplaced(std::path::PathBuf),
}

fn host(ticket: &Path) -> Result<(), Refusal> {
    let pane = own_pane().ok_or(Refusal::NotAPane)?;
    let mut signals = Signals::take_over().map_err(Refusal::Signals)?;
    let terminal = Terminal::open().map_err(Refusal::Terminal)?;
    let _table = join(ticket)?;
    let now = SystemClock.now().timestamp_millis();
    let claimed = match claim::claim(ticket, now)? {
        Claimed::Ours(claimed) => claimed,
        Claimed::Nothing(why) => {
            writeln!(std::io::stderr(), "[the-loop] nothing started: {why}").ok();
            return Ok(());
        }
    };
    // In this order: whoever finds the ticket taken shall find the host named as soon as possible.
    let mut journal = Journal::begin(&claimed.paths, claimed.owner.clone(), pane.clone());
    claimed.forget_secrets();
    let taken = match claimed.content {
        Ok(taken) => taken,
        // Without a ticket nobody is known to report to; the record and the screen tell.
        Err(why) => {
            let end = end::End::failed(why);
            end::finish(&end, "the harness", &mut journal, &terminal);
            idle::stay(&terminal, &mut signals, &mut journal, None);
            return Ok(());
        }
    };
    let end = run(&taken, &mut signals, &terminal, &mut journal);
    end::finish(&end, &taken.name(), &mut journal, &terminal);
    if !end.terminal_is_gone() && taken.ticket.after_end == AfterEnd::KeepScreen {
        let report = report::Report::new(&taken.ticket, &pane, &end.ending);
        idle::stay(&terminal, &mut signals, &mut journal, Some(report));
    }
    Ok(())
}

/// Shows those who cannot see this process that an agent may run here, before there is one.
///
/// A file that cannot be used stops nothing: whoever issued the ticket could use it.
fn join(ticket: &Path) -> Result<Option<TableLock>, Refusal> {
    let Some(state_root) = ticket.ancestors().nth(3) else {
        return Ok(None);
    };
    if ticket.ancestors().nth(2) != Some(&HostPaths::all(state_root)) {
        return Ok(None);
    }
    match TableLock::join(state_root) {
        Ok(lock) => Ok(Some(lock)),
        Err(TableLockError::Io { .. }) => Ok(None),
        Err(elsewhere) => Err(Refusal::Elsewhere(elsewhere)),
    }
}

/// Starts the harness and stays with it until it has ended.
fn run(
    taken: &Taken,
    signals: &mut Signals,
    terminal: &Terminal,
    journal: &mut Journal,
) -> end::End {
    match launch::launch(taken, terminal, journal) {
        Ok(harness) => {
            supervise::Supervisor::new(harness, taken, terminal, signals, journal).until_ended()
        }
        Err(why) => end::End::failed(why),
    }
}

/// The pane's id, when tmux started this very process in it.
fn own_pane() -> Option<PaneId> {
    let leads_session = rustix::process::getsid(None).ok()? == rustix::process::getpid();
    let pane = std::env::var("TMUX_PANE").ok()?;
    pane.parse().ok().filter(|_| leads_session)
}
