//! The commands that see and steer sessions, as a person types them, beside running daemons.

mod attaching;
mod seeing;
mod steering;
mod surviving;
mod world;
