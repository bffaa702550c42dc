//! The daemon is killed between any two steps of an event's way, and a successor goes on.
//!
//! What tmux was being asked for at that moment may never reach it, reach it in between, or reach it
//! when all is over; and tmux may stand still meanwhile.

use std::fmt;

use rustix::process::Signal;

use crate::checks::signal;
use crate::gate::{Call, Held, Side};
use crate::journey::{Journey, Stage};
use crate::many::play_all;
use crate::support::Scratch;

/// Where the daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    /// In the transaction with this write, which is rolled back.
    Writing(&'static str),
    /// Beside this call of tmux.
    Asking(Call, Side),
}

/// What becomes of tmux, and of what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tmux {
    /// It runs; a call that is held never reaches it, or is never answered.
    Runs,
    /// It runs, and does what it was asked for before the successor starts.
    RunsAndServes,
    /// It runs, and is asked only when the successor has done its work.
    RunsAndServesLate,
    /// It stands still until the successor asks it for something.
    StandsStill,
}

struct Row {
    journey: Journey,
    /// The step that is not made any more.
    step: &'static str,
    point: Point,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, killed {}", self.journey, self.step)
    }
}

/// The writes, as triggers name them.
const ACCEPT: &str = "INSERT ON deliveries";
const CLAIM: &str = "UPDATE OF claim_token ON deliveries WHEN OLD.claim_token IS NULL";
const ATTEMPT: &str = "UPDATE OF attempt_begun ON deliveries \
    WHEN OLD.attempt_begun = 0 AND NEW.attempt_begun = 1";
const FIRST_TICKET: &str = "INSERT ON sessions";
const NEXT_TICKET: &str = "UPDATE OF attempt_owner ON sessions WHEN NEW.attempt_owner IS NOT NULL";
const REGISTER: &str = "UPDATE OF registered_at ON sessions";
const SETTLE: &str = "UPDATE OF settled_at ON deliveries WHEN NEW.state = 'delivered'";

const fn row(journey: Journey, step: &'static str, point: Point) -> Row {
    Row {
        journey,
        step,
        point,
    }
}

const WRITES: &[Row] = {
    use Journey::{Message, Respawn, Start};
    use Point::Writing;
    &[
        row(Start, "in the acceptance", Writing(ACCEPT)),
        row(Start, "between acceptance and claim", Writing(CLAIM)),
        row(Start, "between claim and attempt", Writing(ATTEMPT)),
        row(Start, "between attempt and ticket", Writing(FIRST_TICKET)),
        row(
            Start,
            "between new-session and registration",
            Writing(REGISTER),
        ),
        row(Start, "between new-session and settlement", Writing(SETTLE)),
        row(Message, "in the acceptance", Writing(ACCEPT)),
        row(Message, "between acceptance and claim", Writing(CLAIM)),
        row(Message, "between claim and attempt", Writing(ATTEMPT)),
        row(Message, "between paste and settlement", Writing(SETTLE)),
        row(Respawn, "between claim and attempt", Writing(ATTEMPT)),
        row(Respawn, "between attempt and ticket", Writing(NEXT_TICKET)),
        row(
            Respawn,
            "between new-session and registration",
            Writing(REGISTER),
        ),
        row(
            Respawn,
            "between new-session and settlement",
            Writing(SETTLE),
        ),
    ]
};

const CALLS: &[Row] = {
    use Call::{Clear, Look, Paste, Spawn};
    use Journey::{Message, Respawn, Start};
    use Point::Asking;
    use Side::{After, Before};
    &[
        row(Start, "before its look", Asking(Look, Before)),
        row(
            Start,
            "between ticket and new-session",
            Asking(Spawn, Before),
        ),
        row(Start, "at the answer of new-session", Asking(Spawn, After)),
        row(Message, "between attempt and paste", Asking(Paste, Before)),
        row(Message, "at the answer of the paste", Asking(Paste, After)),
        row(Respawn, "before its look", Asking(Look, Before)),
        row(Respawn, "before kill-session", Asking(Clear, Before)),
        row(
            Respawn,
            "at the answer of kill-session",
            Asking(Clear, After),
        ),
        row(
            Respawn,
            "between ticket and new-session",
            Asking(Spawn, Before),
        ),
        row(
            Respawn,
            "at the answer of new-session",
            Asking(Spawn, After),
        ),
    ]
};

/// Kills the daemon at the row's point and sees that its successor brings all to its one end.
fn play(row: &Row, tmux: Tmux) {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, row.journey);
    let server = stage.server();
    match row.point {
        Point::Writing(what) => stage.database.set_trap(what),
        Point::Asking(call, side) => stage.gate.hold(call, side),
    }
    stage.write_event();
    let daemon = stage.daemon();
    let held = match row.point {
        Point::Writing(_) => {
            stage.database.wait_for_prey();
            None
        }
        Point::Asking(..) => Some(stage.gate.wait()),
    };
    if tmux == Tmux::StandsStill {
        signal(server, Signal::STOP);
        // Its client waits for an answer in vain, and goes on waiting when the daemon is dead.
        stage.gate.open();
    }
    daemon.signal(Signal::KILL);
    drop(daemon);
    if held.is_none() {
        stage.database.remove_trap();
    }
    match tmux {
        Tmux::Runs => {
            held.iter().for_each(Held::kill);
        }
        Tmux::RunsAndServes => {
            stage.gate.open();
            held.iter().for_each(Held::wait_gone);
        }
        Tmux::RunsAndServesLate | Tmux::StandsStill => {}
    }
    let calls = stage.gate.calls();
    let _daemon = stage.daemon();
    if tmux == Tmux::StandsStill {
        stage.gate.wait_for_call_after(calls);
        signal(server, Signal::CONT);
    }
    if tmux == Tmux::RunsAndServesLate {
        stage.wait_settled();
        stage.gate.open();
        held.iter().for_each(Held::wait_gone);
    }
    stage.check();
}

fn play_rows(rows: &[Row], tmux: Tmux) {
    play_all(rows, ToString::to_string, |row| play(row, tmux));
}

/// DEL-1, DEL-10, SP-8: killed in the middle of each write.
#[test]
fn a_daemon_killed_in_any_write_leaves_its_successor_to_say_everything_once() {
    play_rows(WRITES, Tmux::Runs);
}

#[test]
fn a_daemon_killed_in_any_write_while_tmux_stands_still_says_everything_once() {
    play_rows(WRITES, Tmux::StandsStill);
}

/// DEL-1, DEL-3, SP-8: killed beside each call of tmux, which takes no effect or none that anybody
/// heard of.
#[test]
fn a_daemon_killed_beside_any_call_of_tmux_leaves_its_successor_to_say_everything_once() {
    play_rows(CALLS, Tmux::Runs);
}

/// DEL-3, SP-9: its last call takes effect when it is dead already.
#[test]
fn what_tmux_does_for_a_daemon_that_is_dead_already_is_done_once() {
    let before: Vec<&Row> = before();
    play_all(&before, ToString::to_string, |row| {
        play(row, Tmux::RunsAndServes);
    });
}

/// DEL-3, SP-9: its last call takes effect when its successor has done the work.
#[test]
fn what_tmux_does_for_a_dead_daemon_after_its_successor_changes_nothing() {
    let before: Vec<&Row> = before();
    play_all(&before, ToString::to_string, |row| {
        play(row, Tmux::RunsAndServesLate);
    });
}

#[test]
fn a_daemon_killed_beside_any_call_of_a_tmux_that_stands_still_says_everything_once() {
    play_rows(CALLS, Tmux::StandsStill);
}

/// The rows whose call has not reached tmux yet.
fn before() -> Vec<&'static Row> {
    let is_before = |row: &&Row| matches!(row.point, Point::Asking(_, Side::Before));
    CALLS.iter().filter(is_before).collect()
}
