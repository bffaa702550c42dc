//! The dispatcher against a real store, real tmux and scripted agents, with faults put exactly where
//! they hurt.

mod collisions;
mod delivering;
mod respawning;
mod silence;
mod spawning;
mod stage;
mod steering;
mod touchy;
