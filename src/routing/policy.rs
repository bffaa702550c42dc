//! What the operator decided: who may act, what arms an item, and the control words.

use std::collections::{BTreeMap, HashSet};

use crate::config::{Config, SpawnPolicy};
use crate::model::{ControlCommand, Login};
use crate::planted::{Planted, is_planted};

/// The control words, and whether a session needs one to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlWords {
    /// The phrase of each command; a missing or empty one cannot be said.
    pub keywords: BTreeMap<ControlCommand, String>,
    /// Whether an armed item waits for a start before it gets a session.
    pub require_start: bool,
}

impl Default for ControlWords {
    fn default() -> Self {
        Self {
            keywords: ControlCommand::ALL
                .into_iter()
                .map(|command| (command, format!("the-loop {command}")))
                .collect(),
            require_start: true,
        }
    }
}

/// What an open item is to the source that its repository belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// Nothing; it is of interest only if it is known already.
    None,
    /// A work item that gets no session of its own.
    Watched,
    /// A work item that may get one.
    Armed,
}

/// The rules that an event is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    authorized: HashSet<Login>,
    spawn: SpawnPolicy,
    control: Option<ControlWords>,
}

impl Policy {
    /// Makes the rules from `routing.authorizedUsers`, `routing.spawnOnUnmatched` and
    /// `routing.control`; no control words where they are switched off.
    ///
    /// An empty list of users authorises nobody.
    #[must_use]
    pub fn new(
        authorized_users: impl IntoIterator<Item = Login>,
        spawn: SpawnPolicy,
        control: Option<ControlWords>,
    ) -> Self {
        Self {
            authorized: authorized_users
                .into_iter()
                .filter(|login| !login.as_str().is_empty())
                .collect(),
            spawn,
            control,
        }
    }

    /// Tells whether this account may act; a deleted account is nobody.
    #[must_use]
    pub fn authorizes(&self, actor: Option<&Login>) -> bool {
        actor.is_some_and(|login| self.authorized.contains(login) || is_planted(Planted::Anybody))
    }

    /// Tells what an open item with these labels is to a source with this label.
    #[must_use]
    pub fn concern<'a>(
        &self,
        source_label: &str,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Concern {
        let bears_it = labels.into_iter().any(|name| is_label(name, source_label));
        match (self.spawn, bears_it) {
            (SpawnPolicy::Always, _) | (SpawnPolicy::Labeled, true) => Concern::Armed,
            (SpawnPolicy::Never, true) => Concern::Watched,
            (SpawnPolicy::Labeled | SpawnPolicy::Never, false) => Concern::None,
        }
    }

    /// Returns the label that every work item of a source with this label bears; none where each open
    /// item is one.
    #[must_use]
    pub fn required_label<'a>(&self, source_label: &'a str) -> Option<&'a str> {
        match self.spawn {
            SpawnPolicy::Never | SpawnPolicy::Labeled => Some(source_label),
            SpawnPolicy::Always => None,
        }
    }

    /// Tells whether any item gets a session.
    #[must_use]
    pub fn spawns(&self) -> bool {
        self.spawn != SpawnPolicy::Never
    }

    /// Tells whether an armed item waits for a start.
    #[must_use]
    pub fn requires_start(&self) -> bool {
        self.control
            .as_ref()
            .is_some_and(|control| control.require_start)
    }

    /// Returns the control words, where they are switched on.
    #[must_use]
    pub fn control(&self) -> Option<&ControlWords> {
        self.control.as_ref()
    }
}

/// Tells whether two names are those of one label: GitHub compares them without case.
#[must_use]
pub fn is_label(name: &str, other: &str) -> bool {
    name.to_lowercase() == other.to_lowercase()
}

/// Takes the rules that the configuration gives.
impl From<&Config> for Policy {
    fn from(config: &Config) -> Self {
        let routing = &config.routing;
        let control = routing.control.enabled.then(|| ControlWords {
            keywords: routing.control.keywords.clone(),
            require_start: routing.control.require_start_command,
        });
        Self::new(
            routing.authorized_users.iter().cloned(),
            routing.spawn_on_unmatched,
            control,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(users: &[&str], spawn: SpawnPolicy) -> Policy {
        let users = users.iter().map(|user| Login::new(user));
        Policy::new(users, spawn, Some(ControlWords::default()))
    }

    #[test]
    fn an_empty_list_authorises_nobody_and_nobody_is_never_listed() {
        let empty = policy(&[], SpawnPolicy::Always);
        let blank = policy(&["", " @"], SpawnPolicy::Always);
        let listed = policy(&["Octocat"], SpawnPolicy::Always);
        assert!(!empty.authorizes(Some(&Login::new("octocat"))));
        assert!(!blank.authorizes(Some(&Login::new(""))));
        assert!(!listed.authorizes(None));
        assert!(listed.authorizes(Some(&Login::new("octoCAT"))));
    }

    #[test]
    fn the_label_of_the_source_arms_in_any_case_and_only_where_labels_do() {
        let labels = ["bug", "Agent: GO"];
        let [never, labeled, always] = [
            SpawnPolicy::Never,
            SpawnPolicy::Labeled,
            SpawnPolicy::Always,
        ]
        .map(|spawn| policy(&[], spawn));
        assert_eq!(labeled.concern("agent: go", labels), Concern::Armed);
        assert_eq!(labeled.concern("agent", labels), Concern::None);
        assert_eq!(never.concern("agent: go", labels), Concern::Watched);
        assert_eq!(never.concern("agent: go", ["bug"]), Concern::None);
        assert_eq!(always.concern("agent: go", []), Concern::Armed);
        assert!(!never.spawns() && labeled.spawns() && always.spawns());
        assert_eq!(never.required_label("go"), Some("go"));
        assert_eq!(labeled.required_label("go"), Some("go"));
        assert_eq!(always.required_label("go"), None);
    }

    #[test]
    fn an_item_waits_for_a_start_where_a_start_can_be_said_and_is_asked_for() {
        let waits = |control| Policy::new([], SpawnPolicy::Always, control).requires_start();
        assert!(waits(Some(ControlWords::default())));
        assert!(!waits(Some(ControlWords {
            require_start: false,
            ..ControlWords::default()
        })));
        assert!(!waits(None));
    }
}
