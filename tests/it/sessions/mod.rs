//! The commands that see and steer sessions, as a person types them, beside running daemons.

mod attaching;
mod explaining;
mod seeing;
mod steering;
mod surviving;
mod world;
