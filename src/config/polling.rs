//! `polling`: what is watched on GitHub, and how often.

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::key_path::KeyPath;
use super::show::Settings;
use crate::model::{DEFAULT_HOST, RepoRef};

/// What is watched on GitHub, and how often.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PollingFile {
    /// The time between two looks at GitHub, and, up to ten minutes, between two attempts to deliver
    /// an event.
    #[schemars(range(min = 1))]
    interval_seconds: u32,
    /// How often the delivery of one event is attempted before it is given up and reported.
    #[schemars(range(min = 1))]
    max_retries: u32,
    /// The repositories to watch, grouped by label. Without one, polling refuses to start.
    sources: Vec<SourceFile>,
}

impl Default for PollingFile {
    fn default() -> Self {
        Self {
            interval_seconds: 60,
            max_retries: 3,
            sources: Vec::new(),
        }
    }
}

/// Repositories that share a label.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct SourceFile {
    /// Where the repositories are.
    provider: ProviderFile,
    /// The label that makes an issue or pull request of these repositories a work item, and arms it;
    /// compared without case, as GitHub does.
    #[schemars(extend("x-default" = "routing.autoExecuteLabel"))]
    label: Option<String>,
    /// The repositories, as `owner/repo`.
    repos: Vec<String>,
    /// Which kinds of work items are watched.
    monitor: MonitorFile,
}

/// Where repositories are.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum ProviderFile {
    /// The one that `integrations.github.apiUrl` names.
    #[default]
    Github,
}

/// Which kinds of work items are watched.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct MonitorFile {
    /// Watch issues.
    issues: bool,
    /// Watch pull requests.
    pull_requests: bool,
}

impl Default for MonitorFile {
    fn default() -> Self {
        Self {
            issues: true,
            pull_requests: true,
        }
    }
}

/// What is watched on GitHub, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polling {
    /// The time between two cycles, and between two attempts of one delivery.
    pub interval: Duration,
    /// Attempts per delivery; at least 1.
    pub max_retries: u32,
    /// What is watched; empty means that polling is not set up.
    pub sources: Vec<WatchedRepos>,
}

/// Repositories that share a label. A repository is in one source only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRepos {
    /// The label that makes an issue or pull request a work item; never empty.
    pub label: String,
    /// The repositories; never empty, all on the configured GitHub host.
    pub repos: Vec<RepoRef>,
    /// Which kinds of work items are watched; at least one.
    pub monitor: Monitor,
}

/// Which kinds of work items are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Monitor {
    /// Whether issues are.
    pub issues: bool,
    /// Whether pull requests are.
    pub pull_requests: bool,
}

impl PollingFile {
    /// Validates against the GitHub host and the label that sources without one inherit.
    pub(super) fn validate(
        self,
        host: &str,
        default_label: &str,
        checker: &mut Checker<'_>,
    ) -> Polling {
        let list = KeyPath::of("polling.sources");
        let mut seen = HashMap::new();
        let sources = self
            .sources
            .into_iter()
            .enumerate()
            .map(|(at, source)| {
                source.validate(&list.index(at), host, default_label, &mut seen, checker)
            })
            .collect();
        Polling {
            interval: Duration::from_secs(self.interval_seconds.into()),
            max_retries: self.max_retries,
            sources,
        }
    }
}

impl SourceFile {
    fn validate(
        self,
        path: &KeyPath,
        host: &str,
        default_label: &str,
        seen: &mut HashMap<RepoRef, usize>,
        checker: &mut Checker<'_>,
    ) -> WatchedRepos {
        if let Some(label) = &self.label {
            check_label(&path.key("label"), label, checker);
        }
        let label = self.label.unwrap_or_else(|| default_label.to_owned());
        let list = path.key("repos");
        if self.repos.is_empty() {
            checker.problem(&list, "names no repository; write for example [octo/app]");
        }
        let mut repos = Vec::new();
        for (at, text) in self.repos.iter().enumerate() {
            let key = list.index(at);
            let Some(repo) = read_repo(text, host, &key, checker) else {
                continue;
            };
            let line = checker.line(&key);
            if let Some(first) = seen.insert(repo.clone(), line) {
                checker.problem(
                    &key,
                    &format!("{repo} is watched twice, first in line {first}; delete one"),
                );
            }
            repos.push(repo);
        }
        let monitor = Monitor {
            issues: self.monitor.issues,
            pull_requests: self.monitor.pull_requests,
        };
        if !monitor.issues && !monitor.pull_requests {
            checker.problem(
                &path.key("monitor"),
                "watches neither issues nor pull requests; set one to true or delete the source",
            );
        }
        WatchedRepos {
            label,
            repos,
            monitor,
        }
    }
}

/// Checks a label that GitHub is asked for.
pub(super) fn check_label(key: &KeyPath, label: &str, checker: &mut Checker<'_>) {
    checker.not_blank(key, label);
    if label.contains(',') {
        // The API takes a list of labels, separated by commas, and offers no way to quote one.
        checker.problem(key, "GitHub cannot be asked for a label with a comma in it");
    }
}

fn read_repo(text: &str, host: &str, key: &KeyPath, checker: &mut Checker<'_>) -> Option<RepoRef> {
    let repo = match text.split('/').collect::<Vec<_>>()[..] {
        [owner, name] => RepoRef::new(host, owner, name),
        _ => text.parse(),
    };
    match repo {
        Ok(repo) if repo.host().eq_ignore_ascii_case(host) => Some(repo),
        Ok(repo) => {
            let other = repo.host();
            checker.problem(
                key,
                &format!("is on {other}, but integrations.github.apiUrl speaks to {host}"),
            );
            None
        }
        Err(_) => {
            let example = if host == DEFAULT_HOST {
                ""
            } else {
                " (the host is that of integrations.github.apiUrl)"
            };
            checker.problem(
                key,
                &format!(
                    "expected owner/repo{example}, found \"{}\"",
                    crate::model::text::one_line(text, 60)
                ),
            );
            None
        }
    }
}

impl Polling {
    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        out.put("polling.intervalSeconds", self.interval.as_secs());
        out.put("polling.maxRetries", self.max_retries);
        if self.sources.is_empty() {
            out.put("polling.sources", Vec::<String>::new());
        }
        let list = KeyPath::of("polling.sources");
        for (at, source) in self.sources.iter().enumerate() {
            let path = list.index(at);
            let repos: Vec<String> = source.repos.iter().map(ToString::to_string).collect();
            out.put_at(&path.key("label"), &source.label);
            out.put_at(&path.key("repos"), repos);
            let monitor = path.key("monitor");
            out.put_at(&monitor.key("issues"), source.monitor.issues);
            out.put_at(&monitor.key("pullRequests"), source.monitor.pull_requests);
        }
    }
}
