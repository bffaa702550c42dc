//! Other processes: running one to its end, telling them apart, signalling them.
//!
//! The only module that starts processes. It reports what happened and never decides what a failure
//! means.

mod identity;
mod run;
