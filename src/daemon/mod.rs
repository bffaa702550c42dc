//! The life of a daemon process: what is built, in which order, and how it ends.
//!
//! The only place that puts the modules together. It holds no policy.

pub mod detach;
pub mod heartbeat;
mod host_id;
pub mod lock;
mod poll;
mod services;
mod signals;
mod tidy;

pub use poll::{
    PollEnd, PollError, PollNews, PollObserver, PollOptions, Run, Standing, StandingNews,
    lock_path, run_poll,
};
pub use services::{LocalDispatcher, LocalRunner, ServiceError, Services, open_store, runner};
