//! The real binary before a local GitHub, with tmux and the scripted agent.

use std::fs;

use serde_json::Value;
use the_loop::demo::github::{LocalGitHub, PullOptions};
use tokio::runtime::Runtime;

use crate::support::{Scratch, TheLoop, eventually};

use super::rig::{LABEL, REPO};

/// A local GitHub that runs beside the test, which blocks.
pub(crate) struct Hub {
    pub(crate) github: LocalGitHub,
    _runtime: Runtime,
}

impl Hub {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let github = runtime.block_on(LocalGitHub::start()).unwrap();
        github.repo(REPO);
        Self {
            github,
            _runtime: runtime,
        }
    }

    pub(crate) fn program<'a>(&self, scratch: &'a Scratch) -> TheLoop<'a> {
        TheLoop::new(scratch).github(&self.github.url())
    }

    /// Opens an issue of ada's with the label and a start.
    pub(crate) fn started_issue(&self) -> u64 {
        let issue = self.github.open_issue(REPO, "ada", "A title", "A body");
        self.github.label(REPO, issue, "ada", LABEL).unwrap();
        self.comment(issue, "the-loop start");
        issue
    }

    pub(crate) fn comment(&self, number: u64, body: &str) -> u64 {
        self.github.comment(REPO, number, "ada", body).unwrap()
    }

    pub(crate) fn pull(&self, body: &str) -> u64 {
        self.github.open_pull(
            REPO,
            &PullOptions {
                author: "ada",
                title: "A change",
                body,
                head_branch: "feature",
                head_sha: "1111111111111111111111111111111111111111",
                ..PullOptions::default()
            },
        )
    }
}

/// Returns the records of the event log of one type.
pub(crate) fn records(scratch: &Scratch, event: &str) -> Vec<Value> {
    let path = scratch.state_root().join("logs/events.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|record| record["event"] == event)
        .collect()
}

/// Waits until the event log has so many records of a type.
pub(crate) fn wait_for_records(scratch: &Scratch, event: &str, count: usize) -> Vec<Value> {
    eventually(&format!("{count} of {event}"), || {
        let found = records(scratch, event);
        (found.len() >= count).then_some(found)
    })
}

/// Counts how often the agents of a world read a text, in boot prompts and messages.
pub(crate) fn times_read(program: &TheLoop<'_>, text: &str) -> usize {
    use the_loop::demo::agent::Entry;
    program
        .agents()
        .records()
        .into_iter()
        .filter_map(|record| match record.entry {
            Entry::Start { prompt, .. } => prompt,
            Entry::Message { text, .. } => Some(text),
            _ => None,
        })
        .map(|read| read.matches(text).count())
        .sum()
}

/// Waits until an agent read a text.
pub(crate) fn wait_read(program: &TheLoop<'_>, text: &str) {
    eventually(&format!("an agent reads {text:?}"), || {
        (times_read(program, text) > 0).then_some(())
    });
}
