//! What an event means and whether it may pass: pure functions from values to values.
//!
//! Nothing here does I/O, asks the clock or knows a session. The ingresses make [events](payload)
//! and bind them to work items ([`resolve`]); [`guard::judge`] decides, at accept and again at claim,
//! whether an event passes; the dispatcher asks [`prompt`] what the agent is told.

pub mod control;
pub mod guard;
pub mod marker;
pub mod payload;
pub mod policy;
pub mod prompt;
#[cfg(any(test, fuzzing))]
pub mod property;
mod prose;
pub mod resolve;

pub use guard::{Verdict, judge};
pub use policy::{ControlWords, Policy};
