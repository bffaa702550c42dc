//! Agents in real tmux: probed, started, typed into, ended.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the support of tests fails them by panicking"
)]

#[path = "../support/tmux.rs"]
mod tmux;

mod clearing;
mod delivering;
mod ending;
mod entering;
mod hostile;
mod probing;
mod rig;
mod silence;
mod sockets;
mod spawning;
mod viewing;
