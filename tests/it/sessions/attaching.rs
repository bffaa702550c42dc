//! `sessions attach`: the process becomes tmux.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::world::{World, short};
use crate::support::{SOON, Scratch, wait_until};

/// A tmux that says with which arguments it was run, and in which process.
fn stand_in(scratch: &Scratch) -> std::path::PathBuf {
    let path = scratch.path("stand-in-tmux");
    std::fs::write(&path, "#!/bin/sh\necho \"$$ $*\"\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn attach_becomes_tmux_on_exactly_the_recorded_session() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Attached");
    let name = world.name(number);
    let tmux = stand_in(&scratch);
    let World {
        the_loop, github, ..
    } = &world;
    the_loop.run(&["config", "check"]).ok();
    let pretend = crate::support::TheLoop::new(&scratch)
        .github(&github.url())
        .set("routing.tmux.binary", json!(tmux));

    let attached = pretend.run(&["sessions", "attach", &short(number)]).ok();
    let words: Vec<&str> = attached.split_whitespace().collect();
    assert_eq!(words[1], "-S", "{attached}");
    assert_eq!(
        words[3..],
        ["-N", "attach-session", "-t", &format!("={name}:")]
    );
    let looking = pretend
        .run(&["sessions", "attach", "--read-only", &short(number)])
        .ok();
    assert!(looking.contains("attach-session -r -t"), "{looking}");

    world
        .run(&["sessions", "close", &short(number), "--keep-tmux"])
        .ok();
    let closed = pretend.run(&["sessions", "attach", &short(number)]);
    assert!(closed.stdout.contains("attach-session -r -t"), "{closed:?}");
    assert!(closed.stderr.contains("read-only"), "{closed:?}");
}

/// Session and pane ids begin anew with every server, so a recorded one is soon another item's.
#[test]
fn nobody_attaches_to_the_session_of_another_item_after_tmux_was_restarted() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let gone = world.started("Gone with its server");
    scratch.tmux(&["kill-server"]);
    let other = world.started("First of the next server");
    let place = |number| {
        let target = &world.session(number)["target"];
        (target["sessionId"].clone(), target["pane"].clone())
    };
    assert_eq!(place(gone), place(other), "the ids are used again");

    for read_only in [&[][..], &["--read-only"]] {
        let item = short(gone);
        let words = [&["sessions", "attach", &item][..], read_only].concat();
        let refused = world.run(&words);
        assert_eq!(refused.code(), 1, "{refused:?}");
        let name = world.name(gone);
        let said = format!("can't find session: {name}");
        assert!(refused.stderr.contains(&said), "{refused:?}");
    }
    assert_eq!(world.session(gone)["screen"], json!([]));
    assert_ne!(world.session(other)["screen"], json!([]));
}

/// A small terminal looks at a session without changing what the agent sees.
#[test]
fn a_small_terminal_that_attaches_does_not_change_the_agents_size() {
    let scratch = Scratch::new();
    let world = World::new(&scratch);
    let number = world.started("Small");
    let binary = env!("CARGO_BIN_EXE_the-loop");
    world.the_loop.config_file();
    let line = format!(
        "env THE_LOOP_CLI_CONFIG={} {binary} sessions attach {}",
        scratch.path("cli-config.yaml").display(),
        short(number)
    );
    scratch.tmux(&[
        "new-session",
        "-d",
        "-s",
        "small",
        "-x",
        "60",
        "-y",
        "12",
        &line,
    ]);
    let agent = format!("={}:", world.name(number));
    wait_until("the terminal is attached", SOON, || {
        let clients = [
            "list-clients",
            "-t",
            &agent,
            "-F",
            "#{client_width}x#{client_height}",
        ];
        scratch.tmux(&clients).trim() == "60x12"
    });
    world.comment(number, "with somebody watching");
    world.run(&["poll", "--once"]).ok();
    world.wait_heard("with somebody watching");

    let size = [
        "display-message",
        "-p",
        "-t",
        &agent,
        "#{window_width}x#{window_height}",
    ];
    assert_eq!(scratch.tmux(&size).trim(), "200x50");
    assert_eq!(world.times_heard("with somebody watching"), 1);
}
