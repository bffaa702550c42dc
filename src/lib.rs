//! Turns GitHub activity into work for coding agents that live in named tmux sessions.
//!
//! One event, walked: an *ingress* gets a payload, *routing* makes it an event, the *store*'s inbox
//! keeps it, the *dispatcher* claims it and asks the session registry, the *runner* delivers it into
//! the live tmux session or spawns one. Ingress and dispatcher never call each other: they meet at
//! the inbox. `docs/architecture.md` has the map.

pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod demo;
pub mod dispatch;
pub mod eventlog;
pub mod github;
pub mod harness;
pub mod host;
pub mod ingress;
pub mod model;
pub mod planted;
pub mod process;
#[cfg(test)]
mod references;
pub mod routing;
pub mod runner;
pub mod store;
pub mod telemetry;
pub mod workspace;
