//! tmux is stopped at a step of a daemon that goes on, for longer than anybody waits for an answer.

use std::time::Duration;

use rustix::process::Signal;

use crate::checks::signal;
use crate::gate::{Call, Side};
use crate::journey::{Journey, Stage};
use crate::many::play_at_once;
use crate::support::{Scratch, wait_until};

/// An answer is waited for 10 seconds; then the attempt has failed.
const GIVEN_UP: Duration = Duration::from_secs(20);

struct Row {
    journey: Journey,
    when: &'static str,
    /// Before which call tmux is stopped; none where it is stopped before the event.
    before: Option<Call>,
}

const ROWS: &[Row] = {
    use Call::{Clear, Look, Paste, Spawn};
    use Journey::{Adopted, Message, Respawn, Start};
    &[
        // The scenario of whoever reported the collision.
        row(Message, "before the event", None),
        row(Message, "in the paste", Some(Paste)),
        row(Adopted, "before the probe", Some(Look)),
        row(Adopted, "between probe and paste", Some(Paste)),
        row(Respawn, "before the probe", Some(Look)),
        row(Respawn, "in kill-session", Some(Clear)),
        row(Respawn, "in new-session", Some(Spawn)),
        row(Start, "before the probe", Some(Look)),
        row(Start, "in new-session", Some(Spawn)),
    ]
};

const fn row(journey: Journey, when: &'static str, before: Option<Call>) -> Row {
    Row {
        journey,
        when,
        before,
    }
}

fn play(row: &Row) {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, row.journey);
    let server = stage.server();
    let before = stage.world.agents().starts().len();
    let _daemon = match row.before {
        Some(call) => {
            stage.gate.hold(call, Side::Before);
            stage.write_event();
            let daemon = stage.daemon();
            let held = stage.gate.wait();
            signal(server, Signal::STOP);
            stage.gate.open();
            wait_until("the call is given up", GIVEN_UP, || held.is_gone());
            daemon
        }
        None => {
            let daemon = stage.world.daemon();
            signal(server, Signal::STOP);
            stage.write_event();
            daemon
        }
    };
    // The first look of a start decides nothing: it goes on to ask for the session.
    if (row.journey, row.before) != (Journey::Start, Some(Call::Look)) {
        let failed = "SELECT count(*) FROM deliveries WHERE error IS NOT NULL";
        wait_until("the attempt fails", GIVEN_UP, || {
            stage.database.number(failed) == 1
        });
    }
    let starts = stage.world.agents().starts().len();
    assert_eq!(starts, before, "an agent was started meanwhile");
    signal(server, Signal::CONT);
    stage.check();
}

/// AC1, AC2, DEL-3, SP-9: whatever tmux was asked for when it stopped, its silence starts nothing and
/// ends nothing; and what it does late is done once.
#[test]
fn a_tmux_that_stops_at_any_step_delays_an_event_and_does_nothing_twice() {
    play_at_once(
        ROWS.len(),
        ROWS,
        |row| format!("{:?}, stopped {}", row.journey, row.when),
        play,
    );
}
