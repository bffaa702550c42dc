//! The event log: what the program decided, one JSON object a line.
//!
//! [`Decision`] is the whole vocabulary: what is not in it cannot be written. [`EventLog`] appends,
//! [`read`], [`tail`] and [`Follower`] read back, [`describe()`] says a record in words. The log is
//! written for people and never read to decide anything; a log that cannot be written changes nothing
//! but a warning. `docs/event-types.md` is generated from [`TYPES`] and [`FIELDS`].

mod advice;
mod append;
mod decision;
mod describe;
mod fields;
mod files;
mod filter;
mod follow;
mod lines;
mod phrases;
#[cfg(any(test, fuzzing))]
pub mod property;
mod reader;
mod record;
mod reference;
mod sentences;
mod story;
mod vocabulary;
mod writer;

pub use advice::{Advice, drop_advice, hold_advice, spawn_advice_of};
pub use append::Rotation;
pub use decision::{About, CloseReason, ControlOrigin, Effect, EventType, SpawnFailure};
pub use describe::{Line, describe};
pub use fields::{FIELDS, Field};
pub use filter::{BadSince, Filter, parse_since};
pub use follow::{Beginning, Follower};
pub use phrases::{hold_phrase, kind_phrase};
pub use reader::{Error, Reader, Tail, read, tail};
pub use record::{Level, Record};
pub use reference::reference;
pub use story::{tell, tell_same_failure};
pub use vocabulary::{Decision, TYPES};
pub use writer::EventLog;

pub use phrases::drop_phrase;

#[cfg(test)]
mod tests;
