//! `the-loop demo` where it is interrupted, and where it stays.

use std::path::PathBuf;

use super::World;
use crate::support::{SOON, eventually, wait_until};

/// The demo's folders in the world; its folder for temporary files is the world's own.
fn folders(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.scratch.path(".")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().contains("the-loop-demo-"))
        .collect()
}

/// Nothing of the demo runs or lies around any more.
fn is_clean(world: &World) -> bool {
    folders(world).is_empty() && world.scratch.processes("the-loop-demo-").is_empty()
}

#[test]
fn ctrl_c_at_any_moment_of_the_demo_leaves_nothing_behind() {
    for moment in ["nothing leaves", "on the agent's screen", "tmux is frozen"] {
        let world = World::new();
        world.terminal(&world.the_loop(), (80, 24), "\"$loop\" demo");
        world.shown(moment);

        world.keys("C-c");

        let screen = world.shown("[exit 1]");
        assert!(screen.contains("interrupted"), "{screen}");
        assert!(is_clean(&world), "{:?}", folders(&world));
    }
}

#[test]
fn a_demo_whose_terminal_is_closed_leaves_nothing_behind() {
    let world = World::new();
    world.terminal(&world.the_loop(), (80, 24), "\"$loop\" demo");
    world.shown("→ session");

    world.scratch.tmux(&["kill-session", "-t", super::TERMINAL]);

    wait_until("an empty stage", SOON, || is_clean(&world));
}

#[test]
fn a_kept_demo_can_be_looked_at_and_ends_as_it_says() {
    let world = World::new();
    world.terminal(&world.the_loop(), (300, 50), "\"$loop\" demo --keep");
    let screen = eventually("the end of the story", || {
        let screen = world.screen();
        screen.contains("[exit ").then_some(screen)
    });
    assert!(screen.contains("6 of 6 as promised"), "{screen}");
    assert!(screen.contains("[exit 0]"), "{screen}");

    let command = |name: &str| {
        let found = screen.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap().trim().to_owned()
    };
    let sh = |line: &str| {
        let output = world.scratch.command("sh").args(["-c", line]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let status = sh(&command("status:"));
    assert!(status.contains("poll  running"), "{status}");
    assert!(status.contains("demo/app  1 item  1 session"), "{status}");
    assert!(command("attach:").starts_with("TMUX_TMPDIR="), "{screen}");
    let attach = command("attach:").replace("attach", "show");
    let shown = sh(&attach);
    assert!(shown.contains("│ one more thing"), "{shown}");

    let stop = command("stop:");
    sh(stop.split("  (").next().unwrap());
    wait_until("an empty stage", SOON, || is_clean(&world));
}
