//! Other processes: running one to its end, telling them apart, signalling them.
//!
//! The only module that starts processes. It reports what happened and never decides what a failure
//! means.

pub mod background;
pub mod blocking;
pub mod child;
pub mod detach;
pub mod identity;
#[cfg(target_os = "linux")]
mod identity_linux;
#[cfg(not(target_os = "linux"))]
mod identity_ps;
pub mod panic;
mod run;
pub mod signal;
pub mod table;
pub mod table_lock;
pub mod ticket;

pub use blocking::blocking;
pub use run::{Command, Completeness, Environment, Error, Output, exec, find_program, run};
