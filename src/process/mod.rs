//! Other processes: running one to its end, telling them apart, signalling them.
//!
//! The only module that starts processes. It reports what happened and never decides what a failure
//! means.

mod identity;
mod run;

pub use run::{Command, Completeness, Environment, Error, Output, exec, find_program, run};
