//! The story of `the-loop demo`, as a stranger sees it first.

use std::fs;

use crate::support::Scratch;

#[test]
fn the_demo_keeps_its_promises_and_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let output = scratch
        .command(env!("CARGO_BIN_EXE_the-loop"))
        .arg("demo")
        .output()
        .unwrap();

    let told = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{error}");
    assert!(told.contains("6 of 6 as promised"), "{told}{error}");
    // What still runs in the world, a daemon or an agent, fails the test when the world ends.
    let left: Vec<_> = fs::read_dir(scratch.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with("the-loop-demo"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_demo_without_tmux_says_how_to_get_it() {
    let scratch = Scratch::new();
    let output = scratch
        .command(env!("CARGO_BIN_EXE_the-loop"))
        .arg("demo")
        .env("PATH", scratch.path("work"))
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("apt-get install tmux"), "{error}");
}
