//! The whole program from outside: the real binary, real tmux, the scripted agent.
//!
//! One binary, so that the support is compiled and linked once.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test fails its test"
)]

mod command_line;
mod demo;
mod demo_agent;
mod dispatch;
mod poll;
mod sessions;
mod support;
mod ui;
