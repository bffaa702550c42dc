//! What the demo and the tests put in place of the world outside, and the story of the demo.
//!
//! Only `cli` and tests import this module; nothing of the daemon depends on it.

pub mod agent;
pub mod github;
pub mod story;
