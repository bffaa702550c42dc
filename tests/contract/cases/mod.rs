//! The cases, by what they are about. Each is one fact that the runner rests on.

pub(crate) mod guards;
pub(crate) mod names;
pub(crate) mod pasting;
pub(crate) mod servers;
pub(crate) mod silence;
