//! The configuration: finding it, reading it, refusing what is wrong in it.
//!
//! Each section's file holds the shape of the YAML (`…File`: what may be written, with the texts of
//! the reference) beside the validated value that the program uses. The shapes are the only
//! description: the JSON Schema comes from them, and the file is compared with the schema on a tree
//! that knows every line and column, so that all problems are reported at once, each with its place.
//! Nothing here decides policy. Start reading at [`Config::load`].

mod check;
mod discover;
mod event_log;
mod github;
mod harnesses;
mod key_path;
mod load;
mod polling;
mod problem;
#[cfg(any(test, fuzzing))]
pub mod property;
#[cfg(test)]
mod reference;
mod retired;
mod routing;
pub mod schema;
mod secret;
mod show;
mod state;
mod suggest;
mod template;
#[cfg(test)]
mod tests;
mod tree;
mod walk;

use std::collections::BTreeMap;

pub use check::Purpose;
pub use discover::{Environment, FoundBy, VARIABLE};
pub use event_log::EventLog;
pub use github::{GitHub, Integrations};
pub use harnesses::{CLAUDE, EnvValue, HarnessConfig, SESSION_ID_PLACEHOLDER};
pub use load::{ConfigError, Loaded};
pub use polling::{Monitor, Polling, WatchedRepos};
pub use problem::{FileName, Place, Problem, Problems, display_path, table};
pub use routing::{Control, InteractionMode, Routing, SpawnPolicy, Tmux};
pub use show::{Origin, Origins, Setting};
pub use state::State;
pub use template::{PLACEHOLDERS, Part, Placeholder, Template, TemplateFile, UnknownPlaceholder};

use crate::model::HarnessName;

/// A configuration that is enough to begin with; error messages and the documentation show it.
pub const MINIMAL: &str = "\
polling:
  sources:
    - repos: [octo/app]
routing:
  authorizedUsers: [octocat]
  spawnOnUnmatched: labeled
  spawnWorkdir: ~/src/app
";

/// The validated configuration: every path absolute, every name checked, every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where the program keeps what must survive.
    pub state: State,
    /// What is watched on GitHub, and how often.
    pub polling: Polling,
    /// Who may act, which items get a session, and how sessions run.
    pub routing: Routing,
    /// The agent programs, by name; `claude` is always there.
    pub harnesses: BTreeMap<HarnessName, HarnessConfig>,
    /// The record of every decision.
    pub event_log: EventLog,
    /// Other services.
    pub integrations: Integrations,
}
