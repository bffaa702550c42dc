//! The acceptance criteria under `SIGSTOP` and `kill -9`: the real daemon, real tmux, scripted agents
//! and the local GitHub, with everything stopped or killed at a chosen step.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails its test"
)]

#[path = "../it/support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "the support of the tests does more than this needs"
)]
mod support;
#[path = "../it/sessions/world.rs"]
#[expect(
    dead_code,
    reason = "the support of the tests does more than this needs"
)]
mod world;

mod checks;
mod frozen;
mod gate;
mod journey;
mod killed;
mod machine;
mod many;
mod people;
mod trap;
