//! What the demo and the tests put in place of the outside world.
//!
//! Only `cli` and tests import this module; nothing of the daemon depends on it.

pub mod agent;
