//! What the operator decided: who may act, what arms an item, and the control words.

use std::collections::{BTreeMap, HashSet};

use crate::config::{Config, SpawnPolicy};
use crate::model::{ControlCommand, Login};

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

/// The rules that an event is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    authorized: HashSet<Login>,
    spawn: SpawnPolicy,
    label: String,
    control: Option<ControlWords>,
}

impl Policy {
    /// Makes the rules from `routing.authorizedUsers`, `routing.spawnOnUnmatched`,
    /// `routing.autoExecuteLabel` and `routing.control`; no control words where they are switched off.
    ///
    /// An empty list of users authorises nobody.
    #[must_use]
    pub fn new(
        authorized_users: impl IntoIterator<Item = Login>,
        spawn: SpawnPolicy,
        label: &str,
        control: Option<ControlWords>,
    ) -> Self {
        Self {
            authorized: authorized_users
                .into_iter()
                .filter(|login| !login.as_str().is_empty())
                .collect(),
            spawn,
            label: label.to_owned(),
            control,
        }
    }

    /// Tells whether this account may act; a deleted account is nobody.
    #[must_use]
    pub fn authorizes(&self, actor: Option<&Login>) -> bool {
        actor.is_some_and(|login| self.authorized.contains(login))
    }

    /// Tells whether an open item with these labels is armed; GitHub compares labels without case.
    #[must_use]
    pub fn arms<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> bool {
        let wanted = self.label.to_lowercase();
        match self.spawn {
            SpawnPolicy::Never => false,
            SpawnPolicy::Labeled => labels
                .into_iter()
                .any(|label| label.to_lowercase() == wanted),
            SpawnPolicy::Always => true,
        }
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

    /// Returns the label that arms an item.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }
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
            &routing.auto_execute_label,
            control,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(users: &[&str], spawn: SpawnPolicy) -> Policy {
        let users = users.iter().map(|user| Login::new(user));
        Policy::new(
            users,
            spawn,
            "the-loop: auto-execute",
            Some(ControlWords::default()),
        )
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
    fn a_label_arms_in_any_case_and_only_where_labels_do() {
        let labels = ["bug", "The-Loop: Auto-Execute"];
        assert!(policy(&[], SpawnPolicy::Labeled).arms(labels));
        assert!(!policy(&[], SpawnPolicy::Labeled).arms(["bug"]));
        assert!(!policy(&[], SpawnPolicy::Never).arms(labels));
        assert!(policy(&[], SpawnPolicy::Always).arms([]));
    }
}
