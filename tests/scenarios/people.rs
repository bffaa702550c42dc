//! What people do to the sessions and to their tmux: nobody's work is harmed, nothing is lost.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::checks::{agents_alive, signal};
use crate::journey::{Journey, MINE, Stage, TEXT, by_hand};
use crate::many::play_all;
use crate::support::{SOON, Scratch, wait_until};
use crate::world::{short, stop};

/// A person's configuration, as odd as they come.
const ODD: &str = "\
set -t mine destroy-unattached off
set -g destroy-unattached on
set -g base-index 1
setw -g pane-base-index 1
set -g renumber-windows on
set -g remain-on-exit on
setw -t mine: window-size manual
setw -g aggressive-resize on
setw -g automatic-rename on
setw -g mode-keys vi
set -g status-position top
set -g default-command 'exec sh'
set -g default-size 40x10
set -g assume-paste-time 0
set -g detach-on-destroy off
set-hook -g session-created 'set-option -g @seen 1'
set-hook -g after-new-session 'rename-window hooked'
set-hook -g pane-died 'set-option -g @died 1'
set-hook -g after-send-keys 'set-option -g @typed 1'
";

/// The pane of the item's agent.
fn pane(stage: &Stage<'_>) -> String {
    let target = format!("={}:", stage.world.name(stage.number));
    let format = "#{session_id} #{pane_pid}";
    let shown = stage
        .world
        .scratch
        .tmux(&["display-message", "-p", "-t", &target, format]);
    shown.trim().to_owned()
}

/// A terminal of a person, attached to the item's session; on a tmux server of its own.
fn attach(stage: &Stage<'_>, how: &str) {
    let scratch = stage.world.scratch;
    let name = stage.world.name(stage.number);
    let line = format!(
        "env -u TMUX tmux -L {} attach {how} -t '={name}'",
        scratch.tmux_socket()
    );
    let words = [
        "-f",
        "/dev/null",
        "-L",
        "person",
        "new-session",
        "-d",
        "-x",
        "80",
        "-y",
        "24",
    ];
    let clients = || {
        let shown = scratch.tmux(&["list-clients", "-t", &format!("={name}")]);
        shown.lines().count()
    };
    let before = clients();
    let status = scratch.command("tmux").args(words).arg(line).status();
    assert!(status.unwrap().success());
    wait_until("the person is attached", SOON, || clients() > before);
}

/// What a person types at the newest of these terminals.
fn type_at(stage: &Stage<'_>, keys: &[&str]) {
    let scratch = stage.world.scratch;
    let words = ["-f", "/dev/null", "-L", "person", "send-keys"];
    let status = scratch.command("tmux").args(words).args(keys).status();
    assert!(status.unwrap().success());
}

fn reasons(stage: &Stage<'_>, pattern: &str) -> Vec<Value> {
    let events = stage.world.events(pattern);
    events.iter().map(|one| one["reason"].clone()).collect()
}

/// SP-28: base-index 1, remain-on-exit, destroy-unattached, hooks and more.
#[test]
fn a_persons_odd_configuration_of_tmux_changes_nothing() {
    let all = [Journey::Start, Journey::Message, Journey::Respawn];
    play_all(
        &all,
        |journey| format!("{journey:?}"),
        |journey| {
            let scratch = Scratch::new();
            let conf = scratch.path("odd.conf");
            std::fs::write(&conf, ODD).unwrap();
            let mut stage = Stage::configured(&scratch, *journey, Some(&conf), |the_loop| the_loop);
            stage.write_event();
            let _daemon = stage.daemon();
            stage.check();
            let target = format!("={}:", stage.world.name(stage.number));
            let size = [
                "display-message",
                "-p",
                "-t",
                &target,
                "#{pane_width}x#{pane_height}",
            ];
            assert_eq!(scratch.tmux(&size).trim(), "200x50");
        },
    );
}

/// SP-24: this tmux ends when it makes a session while the global `window-size` is `manual`.
#[test]
fn a_server_that_a_new_session_would_end_gets_none_until_it_is_safe() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Start);
    let server = stage.server();
    scratch.tmux(&["set-option", "-gw", "window-size", "manual"]);
    stage.write_event();
    let _daemon = stage.daemon();
    wait_until("the start failed or went well", SOON, || {
        !stage.world.events("session.spawn*").is_empty()
    });
    scratch.tmux(&["set-option", "-gw", "window-size", "latest"]);

    stage.check();
    assert_eq!(stage.server(), server);
}

/// AC3, SP-5: the name is held by a session that a person made and that lives.
#[test]
fn a_persons_live_session_of_the_name_is_left_alone_and_the_remedies_are_named() {
    let scratch = Scratch::new();
    let stage = Stage::with(&scratch, Journey::Start, |the_loop| {
        the_loop.set("polling.maxRetries", json!(1))
    });
    let name = stage.world.name(stage.number);
    scratch.tmux(&["new-session", "-d", "-s", &name, "sleep 1000"]);
    let before = pane(&stage);
    stage.write_event();
    let _daemon = stage.daemon();
    wait_until("the start is given up", SOON, || {
        !stage.world.events("poll.spawn_failed").is_empty()
    });

    let failures = stage.world.events("session.spawn_failed");
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(failures[0]["reason"], json!("name-taken-live"));
    let error = failures[0]["error"].as_str().unwrap();
    assert!(
        error.contains("kill-session") && error.contains("sessions reset"),
        "{error}"
    );
    assert_eq!(pane(&stage), before);
    assert!(stage.world.agents().starts().is_empty());
}

/// AC4: the name is held by a session that a person made and whose program has ended.
#[test]
fn a_persons_ended_session_of_the_name_makes_way() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Start);
    let name = stage.world.name(stage.number);
    scratch.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    scratch.tmux(&["new-session", "-d", "-s", &name, "true"]);
    wait_until("the person's program has ended", SOON, || {
        let dead = [
            "display-message",
            "-p",
            "-t",
            &format!("={name}:"),
            "#{pane_dead}",
        ];
        scratch.tmux(&dead).trim() == "1"
    });
    stage.write_event();
    let _daemon = stage.daemon();
    stage.check();
}

/// A person splits the agent's window and works in the other half.
#[test]
fn a_text_goes_to_the_agent_though_a_persons_pane_is_in_front() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    let target = format!("={}:", stage.world.name(stage.number));
    let agent = pane(&stage);
    scratch.tmux(&["split-window", "-b", "-t", &target, "cat > /dev/null"]);
    let split = pane(&stage);
    assert_ne!(split, agent, "the person's pane is in front");
    stage.write_event();
    let _daemon = stage.daemon();
    stage.world.wait_heard(TEXT);

    assert!(!scratch.screen(&target).contains(TEXT));
    assert_eq!(pane(&stage), split);
    assert_eq!(stage.world.times_heard(TEXT), 1);
    assert_eq!(agents_alive(&scratch), 1);
    scratch.tmux(&["kill-pane", "-t", &target]);
    stage.check();
}

/// DEL-14: a person reads back; the text waits, says why, and comes when he is done.
#[test]
fn a_text_waits_for_a_person_in_copy_mode_and_then_comes_once() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    attach(&stage, "");
    let target = format!("={}:", stage.world.name(stage.number));
    scratch.tmux(&["copy-mode", "-t", &target]);
    stage.write_event();
    let _daemon = stage.daemon();
    wait_until("the text is held", SOON, || {
        !stage.world.events("dispatch.held").is_empty()
    });
    assert_eq!(reasons(&stage, "dispatch.held"), [json!("pane-in-mode")]);
    assert_eq!(stage.world.times_heard(TEXT), 0);
    scratch.tmux(&["copy-mode", "-q", "-t", &target]);
    stage.check();
}

/// Whoever looks on, with a small terminal too, keeps no text away.
#[test]
fn a_text_comes_once_while_people_look_on() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Message);
    attach(&stage, "-r");
    attach(&stage, "");
    stage.write_event();
    let _daemon = stage.daemon();
    stage.check();
}

/// DEL-33: what a person had typed and not sent goes with the text, in front of it.
#[test]
fn a_half_typed_draft_is_neither_lost_nor_split_from_what_follows() {
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, Journey::Message);
    attach(&stage, "");
    type_at(&stage, &["-l", "by the way "]);
    let target = format!("={}:", stage.world.name(stage.number));
    wait_until("the draft is there", SOON, || {
        scratch.screen(&target).contains("by the way")
    });
    stage.write_event();
    let _daemon = stage.daemon();
    stage.world.wait_heard(TEXT);

    let messages = stage.world.agents().messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].starts_with("by the way "), "{messages:#?}");
    assert!(messages[0].ends_with(TEXT), "{messages:#?}");
}

/// AC6: a person has started an agent under the name since.
#[test]
fn a_persons_agent_of_the_name_is_told_instead_of_a_new_one() {
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, Journey::Respawn);
    let name = stage.world.name(stage.number);
    scratch.tmux(&["kill-session", "-t", &format!("={name}")]);
    by_hand(&stage.world, &name);
    let mut stage = stage;
    stage.write_event();
    let _daemon = stage.daemon();
    stage.check();
    assert_eq!(stage.world.events("session.respawn_averted").len(), 1);
    assert!(stage.world.events("session.respawned").is_empty());
}

/// SP-26: the database names a person's session as the item's; it is never ended for that.
#[test]
fn what_is_ended_is_found_by_its_minted_name_whatever_is_recorded() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Respawn);
    let shown = [
        "display-message",
        "-p",
        "-t",
        "=mine:",
        "#{session_id} #{pane_id} #{pane_pid}",
    ];
    let mine = scratch.tmux(&shown);
    let words: Vec<&str> = mine.split_whitespace().collect();
    let spoil = format!(
        "UPDATE sessions SET tmux_session_id = '{}', pane = '{}'",
        words[0], words[1]
    );
    stage.database.change(&spoil);
    stage.write_event();
    let daemon = stage.daemon();
    stage.check();
    stop(daemon);

    stage.database.change(&spoil);
    let item = short(stage.number);
    stage
        .world
        .run(&["sessions", "close", &item, "--kill-tmux"])
        .ok();
    assert_eq!(stage.world.tmux_sessions(), [MINE]);
    assert_eq!(scratch.tmux(&shown), mine);
}

/// SP-2: a person has another tmux server with a session of the same name and an agent in it.
#[test]
fn a_second_server_with_the_same_name_is_neither_told_nor_touched() {
    let scratch = Scratch::new();
    let mut stage = Stage::new(&scratch, Journey::Respawn);
    let name = stage.world.name(stage.number);
    let words = ["-f", "/dev/null", "-L", "second"];
    let second = |args: &[&str]| {
        let output = scratch
            .command("tmux")
            .args(words)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let got = scratch.path("got").display().to_string();
    second(&["new-session", "-d", "-s", &name, &format!("cat > {got}")]);
    let shown = [
        "display-message",
        "-p",
        "-t",
        &format!("={name}:"),
        "#{pane_pid}",
    ];
    let before = second(&shown);
    stage.write_event();
    let _daemon = stage.daemon();
    stage.check();

    assert_eq!(second(&shown), before);
    assert_eq!(std::fs::read_to_string(&got).unwrap(), "");
    signal(before.trim().parse().unwrap(), Signal::KILL);
}
