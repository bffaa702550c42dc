//! What every story begins with: a folder, a configuration, a database, and issues on GitHub.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::json;
use tempfile::TempDir;
use the_loop::clock::Clock;
use the_loop::config::{Config, Environment};
use the_loop::demo::github::LocalGitHub;
use the_loop::store::{Store, Tuning};

use crate::clock::StoryClock;
use crate::github::ADDRESS;
use crate::story::ITEMS;
use crate::world::REPO;

/// The folder of all stories: in memory, where the system has such a place.
fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

pub(crate) fn new_folder() -> TempDir {
    let made = tempfile::Builder::new()
        .prefix("loop-sim-")
        .tempdir_in(place());
    made.unwrap()
}

/// The configuration of every story; each has a state root of its own.
pub(crate) fn config(root: &Path) -> Config {
    static READ: OnceLock<Config> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let folder = new_folder();
        let path = folder.path().join("cli-config.yaml");
        let file = json!({
            "state": { "root": folder.path() },
            "polling": {
                "intervalSeconds": 6,
                "sources": [{ "provider": "github", "repos": [REPO], "label": "loop" }],
            },
            "routing": {
                "authorizedUsers": ["ada"],
                "defaultHarness": "agent",
                "spawnOnUnmatched": "labeled",
                "spawnWorkdir": place(),
                "tmux": { "resumeProbeSeconds": 1 },
            },
            "harnesses": { "agent": {
                "command": "/bin/sh",
                "sessionArgs": ["--session", "{sessionId}"],
                "resumeArgs": ["--resume", "{sessionId}"],
                "readyDelaySeconds": 1,
            } },
        });
        fs::write(&path, file.to_string()).unwrap();
        let environment = Environment {
            home: Some(folder.path().to_owned()),
            variable: None,
            working_dir: folder.path().to_owned(),
        };
        Config::load(Some(&path), &environment).unwrap().config
    });
    let mut config = read.clone();
    root.clone_into(&mut config.state.root);
    config
}

/// Copies a database that was made once: most of a new one's time goes into its schema.
pub(crate) async fn database(root: &Path, clock: &Arc<dyn Clock>) -> Store {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    let path = root.join("loop.db");
    if let Some(made) = MADE.get() {
        fs::write(&path, made).unwrap();
    } else {
        let folder = new_folder();
        let at = folder.path().join("loop.db");
        let store = Store::open(&at, "here", Arc::clone(clock)).await.unwrap();
        store.close().await;
        let made = MADE.get_or_init(|| fs::read(&at).unwrap());
        fs::write(&path, made).unwrap();
    }
    let tuning = Tuning {
        readers: 0,
        ..Tuning::default()
    };
    let opened = Store::open_with(&path, "here", Arc::clone(clock), tuning).await;
    opened.unwrap()
}

/// The GitHub of a story, with its items.
pub(crate) fn github(clock: &StoryClock) -> Arc<LocalGitHub> {
    let github = LocalGitHub::beside_the_network(ADDRESS.parse().unwrap());
    github.set_clock(clock.undisturbed());
    for number in 1..=ITEMS {
        github.open_issue(REPO, "ada", &format!("Title {number}"), "");
    }
    Arc::new(github)
}
