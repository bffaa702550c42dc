//! What every test of the whole program stands on.
//!
//! A [`Scratch`] is a world of its own: folders, environment, tmux server. When it is dropped nothing
//! of that world may still run. [`TheLoop`] runs the real binary in it.

mod agent_log;
mod processes;
mod scratch;
mod the_loop;
mod wait;

pub(crate) use agent_log::AgentLog;
pub(crate) use processes::Found;
pub(crate) use scratch::Scratch;
pub(crate) use the_loop::{Finished, Running, TheLoop};
pub(crate) use wait::{SOON, eventually, poll, wait_until};
