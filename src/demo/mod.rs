//! Stand-ins for the world outside, for the demo and the tests.
//!
//! Nothing but the command line and tests uses them.

pub mod github;
