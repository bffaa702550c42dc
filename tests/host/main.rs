//! The process in the pane, with real tmux.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the support of tests fails them by panicking"
)]

#[path = "../support/tmux.rs"]
mod tmux;

mod ends;
mod hosted;
mod screen;
mod starts;
mod tickets;
