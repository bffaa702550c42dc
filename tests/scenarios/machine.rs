//! What breaks away below the daemon: sockets, servers, hosts, the machine itself.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use the_loop::process::identity::{boot_id, identify};

use crate::checks::{agents_alive, signal, wait_gone};
use crate::gate::{Call, Side};
use crate::journey::{Journey, Stage, TEXT};
use crate::support::{SOON, Scratch, wait_until};

/// Another boot of this machine.
const EARLIER_BOOT: &str = "00000000-1111-4222-8333-444444444444";

fn socket(scratch: &Scratch) -> PathBuf {
    let shown = scratch.tmux(&["display-message", "-p", "#{socket_path}"]);
    PathBuf::from(shown.trim())
}

/// SP-7: the socket is removed while the server runs.
#[test]
fn a_text_reaches_its_agent_though_the_socket_was_removed() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    let server = stage.server();
    fs::remove_file(socket(&scratch)).unwrap();
    stage.write_event();
    let _daemon = stage.daemon();
    stage.check();
    assert_eq!(stage.server(), server);
}

/// SP-7: somebody starts another server where the socket was; nothing is started for the session on
/// it, and its agent is told when the path is free again.
#[test]
fn a_server_that_took_over_the_socket_gets_nothing_of_the_recorded_one() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    let server = stage.server();
    fs::remove_file(socket(&scratch)).unwrap();
    scratch.tmux(&["new-session", "-d", "-s", "usurper", "sleep 1000"]);
    let usurper = stage.server();
    assert_ne!(usurper, server);
    stage.write_event();
    let _daemon = stage.daemon();
    let waits = "SELECT count(*) FROM deliveries WHERE state = 'held'";
    wait_until("the text is held", SOON, || {
        stage.database.number(waits) == 1
    });

    assert_eq!(stage.world.tmux_sessions(), ["usurper"]);
    assert_eq!(stage.world.agents().starts().len(), 1);
    assert_eq!(stage.world.times_heard(TEXT), 0);
    signal(usurper, Signal::KILL);
    wait_gone(usurper);
    stage.check();
    assert_eq!(stage.server(), server);
}

/// AC12: the whole server is killed.
#[test]
fn an_agent_whose_tmux_was_killed_is_respawned_with_its_conversation() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Respawn);
    let server = stage.server();
    signal(server, Signal::KILL);
    wait_gone(server);
    stage.sessions.clear();
    stage.write_event();
    let _daemon = stage.daemon();
    stage.check();
    assert_eq!(stage.world.events("session.respawned")[0]["resumed"], true);
}

/// SP-6: the host of an agent that ignores the loss of its terminal is killed in the moment in which
/// a text comes: at no time do two agents run.
#[test]
fn no_second_agent_runs_beside_one_whose_host_was_killed() {
    let scratch = Scratch::new();
    let stage = Stage::with(&scratch, Journey::Message, |the_loop| {
        the_loop.agent_args(&["--ignore-hup", "--ignore-term"])
    });
    let first = stage.world.agents().starts()[0].pid.cast_signed();
    for host in scratch.processes(" host ") {
        host.signal(Signal::KILL);
    }
    stage.write_event();
    let _daemon = stage.daemon();
    let mut most = 0;
    wait_until("the text is heard", SOON, || {
        most = most.max(agents_alive(&scratch));
        stage.world.times_heard(TEXT) > 0
    });

    assert!(most <= 1, "{most} agents ran at once");
    wait_gone(first);
    assert_eq!(stage.world.times_heard(TEXT), 1);
    assert_eq!(stage.world.agents().starts().len(), 2);
    scratch.kill("demo-agent");
}

/// AC12, DEL-10, SP-15: the machine goes down in the middle of a paste; at its next boot other
/// programs have the recorded numbers, and they are neither asked nor signalled.
#[test]
fn after_a_reboot_a_session_is_respawned_and_the_new_holders_of_its_numbers_are_left_alone() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    let server = stage.server();
    stage.gate.hold(Call::Paste, Side::Before);
    stage.write_event();
    let daemon = stage.daemon();
    let held = stage.gate.wait();
    daemon.signal(Signal::KILL);
    drop(daemon);
    held.kill();
    signal(server, Signal::KILL);
    wait_gone(server);
    wait_until("nothing is left", SOON, || agents_alive(&scratch) == 0);
    let mut stranger = scratch.command("sleep").arg("1000").spawn().unwrap();
    let pid = i32::try_from(stranger.id()).unwrap();
    let start = identify(pid).unwrap().start;
    for (table, boot, holders) in [
        ("sessions", "boot_id", &["server", "host", "harness"][..]),
        ("deliveries", "claim_boot", &["claim"]),
    ] {
        let numbers: Vec<String> = holders
            .iter()
            .map(|holder| format!("{holder}_pid = {pid}, {holder}_start = {start}"))
            .collect();
        stage.database.change(&format!(
            "UPDATE {table} SET {boot} = '{EARLIER_BOOT}', {} WHERE {boot} IS NOT NULL",
            numbers.join(", ")
        ));
    }
    for folder in fs::read_dir(scratch.state_root().join("run")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let text = fs::read_to_string(&file).unwrap();
            fs::write(file, text.replace(&boot_id().0, EARLIER_BOOT)).unwrap();
        }
    }

    let _daemon = stage.daemon();
    stage.world.wait_heard(TEXT);
    stage.wait_delivered();
    assert!(stranger.try_wait().unwrap().is_none(), "it was signalled");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert_eq!(stage.world.times_heard(TEXT), 1);
    assert_eq!(stage.world.agents().starts().len(), 2);
    assert_eq!(agents_alive(&scratch), 1);
    assert_eq!(stage.world.events("session.respawned")[0]["resumed"], true);
}

/// DEL-3, DEL-9: a daemon stands still in its paste until its lease has run out; another process says
/// the text; then the first goes on, and so does its paste.
#[test]
fn of_two_claimants_of_a_delivery_the_slow_one_says_nothing() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    stage.gate.hold(Call::Paste, Side::Before);
    stage.write_event();
    let slow = stage.daemon();
    let held = stage.gate.wait();
    slow.signal(Signal::STOP);
    stage
        .database
        .change("UPDATE deliveries SET lease_until = 1 WHERE claim_lead = 1");
    // Without it a second daemon does not know of the first.
    fs::remove_file(scratch.state_root().join("poll.lock")).unwrap();
    let _quick = stage.daemon();
    stage.world.wait_heard(TEXT);
    stage.wait_delivered();
    stage.gate.open();
    held.wait_gone();
    slow.signal(Signal::CONT);
    stage.check();
}
