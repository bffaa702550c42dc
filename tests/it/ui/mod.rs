//! What a person sees: the real binary in a real terminal, which is a tmux pane.

mod demo;
mod lists;
mod poll_start;

use serde_json::json;
use the_loop::demo::github::LocalGitHub;
use tokio::runtime::Runtime;

use crate::support::{Scratch, TheLoop, eventually};

const BINARY: &str = env!("CARGO_BIN_EXE_the-loop");
const REPO: &str = "demo/app";
const LABEL: &str = "the-loop: auto-execute";
/// The pane that a person looks at.
const TERMINAL: &str = "=terminal:";

/// A scratch world with a GitHub.
struct World {
    scratch: Scratch,
    github: LocalGitHub,
    _runtime: Runtime,
}

impl World {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let github = runtime.block_on(LocalGitHub::start()).unwrap();
        github.repo(REPO);
        Self {
            scratch: Scratch::new(),
            github,
            _runtime: runtime,
        }
    }

    fn the_loop(&self) -> TheLoop<'_> {
        TheLoop::new(&self.scratch)
            .github(&self.github.url())
            .set("integrations.github.host", json!("github.com"))
    }

    /// Opens an issue, arms it and starts its session.
    fn start_item(&self, title: &str) -> u64 {
        let issue = self.github.open_issue(REPO, "ada", title, "");
        self.github.label(REPO, issue, "ada", LABEL).unwrap();
        self.say(issue, "ada", "the-loop start");
        issue
    }

    fn say(&self, issue: u64, login: &str, text: &str) {
        self.github.comment(REPO, issue, login, text).unwrap();
    }

    /// Runs a command line in a terminal of this size; `$loop` is the program.
    fn terminal(&self, the_loop: &TheLoop<'_>, (columns, rows): (u16, u16), line: &str) {
        let config = the_loop.config_file();
        let shell = format!(
            "trap : INT; export THE_LOOP_CLI_CONFIG='{}' loop='{BINARY}'; {line}; echo \"[exit $?]\"; exec cat",
            config.display()
        );
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let new = [
            "new-session",
            "-d",
            "-s",
            "terminal",
            "-x",
            &columns,
            "-y",
            &rows,
        ];
        let stay = [
            "start-server",
            ";",
            "set-option",
            "-s",
            "exit-empty",
            "off",
            ";",
        ];
        let command = ["--", "sh", "-c", &shell];
        let all: Vec<&str> = stay.iter().chain(&new).chain(&command).copied().collect();
        self.scratch.tmux(&all);
    }

    fn screen(&self) -> String {
        self.scratch.screen(TERMINAL)
    }

    /// Waits until the screen shows a text, and returns the screen.
    fn shown(&self, text: &str) -> String {
        eventually(text, || {
            let screen = self.screen();
            screen.contains(text).then_some(screen)
        })
    }

    fn keys(&self, keys: &str) {
        self.scratch.tmux(&["send-keys", "-t", TERMINAL, keys]);
    }

    fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let args = ["resize-window", "-t", TERMINAL, "-x", &columns, "-y", &rows];
        self.scratch.tmux(&args);
    }
}
