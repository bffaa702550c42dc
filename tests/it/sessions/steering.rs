//! `sessions start|pause|resume|stop|close|reset`, with and without a daemon.

use serde_json::json;

use super::world::{World, short, spoil, stop};
use crate::support::{SOON, Scratch, wait_until};

#[test]
fn a_session_is_started_for_an_item_that_nobody_has_seen() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let done = world.run(&["sessions", "start", "demo/app#7"]).ok();
    assert!(done.contains("demo/app#7"), "{done}");
    world.agents().wait_ready(1);
    assert_eq!(world.session(7)["state"], json!("running"));
    let source = &world.json(&["status", "--json"])["sources"][0];
    assert_eq!(
        source["unchangedSince"],
        json!(null),
        "GitHub was not asked"
    );
    // Again: it runs already, and no second one is started.
    world.run(&["sessions", "start", "demo/app#7"]).ok();
    assert_eq!(world.agents().starts().len(), 1);
    assert_eq!(world.tmux_sessions(), [world.name(7)]);
}

#[test]
fn a_command_that_fails_is_tried_once_and_says_why() {
    let scratch = Scratch::new();
    let world = World::with(&scratch, |program| {
        program
            .set(
                "harnesses",
                json!({ "agent": { "command": "false", "sessionArgs": [] } }),
            )
            .set("polling.intervalSeconds", json!(60))
    });
    let failed = world.run(&["sessions", "start", "demo/app#7"]);
    assert_eq!(failed.code(), 1);
    assert!(failed.stderr.contains("exit code 1"), "{}", failed.stderr);
    assert_eq!(world.events("dispatch.failed").len(), 1);
    assert_eq!(
        world.events("dispatch.dropped")[0]["reason"],
        json!("by-operator")
    );
    // Nothing of it is left to run later.
    let later = world.run(&["poll", "--once"]).stdout;
    assert!(later.contains("0 failed"), "{later}");

    let daemon = world.daemon();
    let left = world.run(&["sessions", "start", "demo/app#7"]);
    assert_eq!(left.code(), 1);
    let tried_again = left.stderr.contains("the running poller tries it again");
    assert!(tried_again, "{}", left.stderr);
    stop(daemon);
}

#[test]
fn a_reset_says_of_each_text_that_waited_that_it_is_dropped() {
    let scratch = Scratch::new();
    let world = World::with(&scratch, |program| {
        program
            .set(
                "harnesses",
                json!({ "agent": { "command": "false", "sessionArgs": [] } }),
            )
            .set("polling.intervalSeconds", json!(60))
    });
    let number = world.issue("Waiting");
    // The label alone is dropped, and does not wait behind the start.
    world.run(&["poll", "--once"]).ok();
    world.comment(number, "the-loop start");
    assert_eq!(world.run(&["poll", "--once"]).code(), 1);
    let item = short(number);

    let dry = world.run(&["sessions", "reset", &item, "--dry-run"]).ok();
    assert!(dry.contains("would forget"), "{dry}");
    assert!(dry.contains("1 unfinished delivery"), "{dry}");
    assert!(!dry.contains("poll"), "{dry}");
    let told = world.events("dispatch.dropped").len();
    world.run(&["sessions", "reset", &item]).ok();

    let dropped = world.events("dispatch.dropped");
    let new = &dropped[told..];
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(new[0]["reason"], json!("reset"));
    assert_eq!(
        world.events("session.reset")[0]["removed"],
        json!(["control", "queue"])
    );
}

#[test]
fn a_paused_session_hears_nothing_of_the_pause_and_goes_on_when_resumed() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Paused");
    let item = short(number);
    world.run(&["sessions", "pause", &item]).ok();
    assert_eq!(world.session(number)["state"], json!("paused"));
    world.comment(number, "during the pause");
    world.run(&["poll", "--once"]).ok();
    let dropped = world.events("dispatch.dropped");
    assert_eq!(dropped.last().unwrap()["reason"], json!("session-paused"));
    world.run(&["sessions", "resume", &item]).ok();
    world.comment(number, "after the pause");
    world.run(&["poll", "--once"]).ok();

    world.wait_heard("after the pause");
    assert_eq!(world.times_heard("during the pause"), 0);
    let nothing = world.run(&["sessions", "resume", &item]);
    assert_eq!(nothing.code(), 1);
    assert!(
        nothing.stderr.contains("nothing is paused"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn a_stop_ends_the_agent_and_keeps_its_screen() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Stopped");
    let item = short(number);
    let answer = world.json(&["sessions", "stop", &item, "--json"]);
    assert_eq!(answer["state"], json!("delivered"));
    assert!(
        scratch
            .processes("demo-agent")
            .iter()
            .all(|one| one.command.contains(" host "))
    );
    assert_eq!(world.session(number)["state"], json!("closed"));
    assert_eq!(world.tmux_sessions(), [world.name(number)]);
    // It is stopped: a second stop has nothing to end, and a comment waits for a start.
    let again = world.run(&["sessions", "stop", &item]);
    assert_eq!(again.code(), 1, "{again:?}");
    let remembered = "there is no session; stop is remembered";
    assert!(again.stderr.contains(remembered), "{again:?}");
    world.comment(number, "hello?");
    world.run(&["poll", "--once"]).ok();
    assert_eq!(world.agents().starts().len(), 1);
    let dropped = world.events("dispatch.dropped");
    assert_eq!(dropped.last().unwrap()["reason"], json!("awaiting-start"));
    // Started again, over its own retained session.
    world.run(&["sessions", "start", &item]).ok();
    world.agents().wait_ready(2);
    assert_eq!(world.tmux_sessions(), [world.name(number)]);
}

#[test]
fn an_agent_that_is_not_to_be_killed_outlives_its_stop_but_not_its_tmux_session() {
    let scratch = Scratch::new();
    let world = World::with(&scratch, |program| {
        program.set("routing.tmux.killHarnessOnClose", json!(false))
    });
    let number = world.started("Left");
    let item = short(number);
    world.run(&["sessions", "stop", &item]).ok();
    assert_eq!(world.session(number)["state"], json!("closed, runs on"));
    assert_eq!(world.events("session.harness_terminated").len(), 0);
    assert_eq!(world.events("session.retained").len(), 1);

    let gone = world.started("Ended");
    world
        .run(&["sessions", "close", &short(gone), "--kill-tmux"])
        .ok();
    assert_eq!(world.session(gone)["state"], json!("closed"));
    assert_eq!(world.tmux_sessions(), [world.name(number)]);
}

#[test]
fn a_close_keeps_or_ends_the_tmux_session_as_told() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let (kept, killed) = (world.started("Kept"), world.started("Killed"));
    world
        .run(&["sessions", "close", &short(kept), "--keep-tmux"])
        .ok();
    world
        .run(&["sessions", "close", &short(killed), "--kill-tmux"])
        .ok();
    assert_eq!(world.tmux_sessions(), [world.name(kept)]);
    for number in [kept, killed] {
        assert_eq!(world.session(number)["state"], json!("closed"));
        let again = world.run(&["sessions", "close", &short(number)]);
        assert_eq!(again.code(), 1, "{again:?}");
    }
}

#[test]
fn a_reset_removes_all_that_was_asked_or_nothing() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let (one, two) = (world.started("One"), world.started("Two"));
    let (first, second) = (short(one), short(two));

    let refused = world.run(&["sessions", "reset", &first, "demo/app#999"]);
    assert_eq!(refused.code(), 1);
    assert!(
        refused.stderr.contains("demo/app#999"),
        "{}",
        refused.stderr
    );
    assert_eq!(world.session(one)["state"], json!("running"));
    let dry = world
        .run(&["sessions", "reset", &first, &second, "--dry-run"])
        .ok();
    assert!(dry.contains(&first) && dry.contains(&second), "{dry}");
    assert_eq!(world.session(one)["state"], json!("running"));

    // Named twice, it is reset once.
    let upper = first.to_uppercase();
    let done = world
        .run(&["sessions", "reset", &first, &second, &upper])
        .ok();
    assert_eq!(done.lines().count(), 2, "{done}");
    assert_eq!(world.json(&["sessions", "list", "--json"]), json!([]));
    assert!(
        scratch
            .processes("demo-agent")
            .iter()
            .all(|one| one.command.contains(" host "))
    );
    assert_eq!(world.events("session.reset").len(), 2);
    world.run(&["sessions", "reset", "--all"]).ok();
}

#[test]
fn a_reset_that_fails_names_the_sessions_that_it_has_ended() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let (good, bad) = (world.started("Good"), world.started("Bad"));
    spoil(&scratch, &world.session(bad));
    let failed = world.run(&["sessions", "reset", &short(good), &short(bad)]);
    assert_eq!(failed.code(), 1, "{failed:?}");
    let told = failed
        .stderr
        .split_once("these sessions were ended before that: ");
    let ended = told.unwrap_or_else(|| panic!("{}", failed.stderr)).1.trim();
    assert!(ended.ends_with(&short(good)), "{ended}");
    assert_eq!(world.session(good)["state"], json!("closed"));
}

/// The daemon and the commands work on the same claims: neither undoes the other.
#[test]
fn commands_hold_while_the_daemon_runs() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Both");
    let item = short(number);
    let daemon = world.daemon();
    world.comment(number, "to a running one");
    world.wait_heard("to a running one");

    world.run(&["sessions", "pause", &item]).ok();
    world.comment(number, "to a paused one");
    wait_until("the drop", SOON, || {
        let dropped = world.events("dispatch.dropped");
        dropped
            .iter()
            .any(|one| one["reason"] == json!("session-paused"))
    });
    assert_eq!(world.session(number)["state"], json!("paused"));
    world.run(&["sessions", "resume", &item]).ok();
    world.comment(number, "to a resumed one");
    world.wait_heard("to a resumed one");
    world.run(&["sessions", "stop", &item]).ok();
    world.comment(number, "to a stopped one");
    wait_until("the second drop", SOON, || {
        let dropped = world.events("dispatch.dropped");
        dropped
            .iter()
            .any(|one| one["reason"] == json!("awaiting-start"))
    });
    assert_eq!(world.session(number)["state"], json!("closed"));
    world.run(&["sessions", "reset", &item]).ok();

    assert_eq!(stop(daemon).code(), 0);
    assert_eq!(world.agents().starts().len(), 1);
    assert_eq!(world.times_heard("to a paused one"), 0);
    assert_eq!(world.times_heard("to a stopped one"), 0);
}
