//! The poll ingress, from GitHub to the inbox, and from `poll start` to the agent.

mod arming;
mod binding;
mod ci;
mod closing;
mod comments;
mod daemon;
mod faults;
mod first_sight;
mod idle;
mod isolation;
mod paging;
mod reviews;
mod rig;
mod sessions;
mod stage;
