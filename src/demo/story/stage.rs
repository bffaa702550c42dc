//! The stage: a throw-away folder, a local GitHub, a private tmux server, and the real daemon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::demo::agent::{self, Entry};
use crate::demo::github::LocalGitHub;
use crate::eventlog::{self, Filter, Record};
use crate::model::ProcessId;
use crate::process::background::Background;
use crate::process::detach::own_program;
use crate::process::identity::{Life, identify, life};
use crate::process::signal::{Signal, signal};
use crate::process::{self, Command, Environment, find_program};

/// The repository of the story.
pub(super) const REPO: &str = "demo/app";
/// The one who may act.
pub(super) const OCTOCAT: &str = "octocat";
/// Everybody's label.
pub(super) const LABEL: &str = "the-loop: auto-execute";

const TMUX_NAME: &str = "the-loop-demo";

/// Why the story cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// tmux is missing.
    #[error(
        "tmux is not found on the PATH: install it (Debian: apt-get install tmux, macOS: brew install tmux)"
    )]
    NoTmux,
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> StageError {
    move |source| StageError::System { what, source }
}

/// The set stage.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) github: LocalGitHub,
    root: PathBuf,
    tmux: PathBuf,
    daemon: Option<Background>,
    /// The issue that the story is about.
    pub(super) issue: u64,
    /// The comment that the agent got first; it arrives again later.
    pub(super) comment: u64,
    /// What people wrote to the agent, in order; each is on its screen once.
    pub(super) said: Vec<String>,
}

impl Stage {
    /// Sets the stage: folder, GitHub, configuration, daemon.
    pub(super) async fn set() -> Result<Self, StageError> {
        let tmux =
            find_program("tmux", std::env::var_os("PATH").as_deref()).ok_or(StageError::NoTmux)?;
        let program = own_program().map_err(system("find this program's own file"))?;
        let root = make_root().map_err(system("make a folder for the demo"))?;
        let github = LocalGitHub::start()
            .await
            .map_err(system("start the local GitHub"))?;
        github.repo(REPO);
        write_config(&root, &program, &github.url())
            .map_err(system("write the demo's configuration"))?;
        let mut stage = Self {
            github,
            root,
            tmux,
            daemon: None,
            issue: 0,
            comment: 0,
            said: Vec::new(),
        };
        let daemon = Background::start(
            &program,
            &["--config", &stage.path("cli-config.yaml"), "poll", "start"],
            &stage.environment(),
            &stage.root.join("daemon.log"),
        );
        stage.daemon = Some(daemon.map_err(system("start the daemon"))?);
        Ok(stage)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("HOME".to_owned(), self.path("home")),
            ("TMUX_TMPDIR".to_owned(), self.path("tmux")),
            // Means something to the local GitHub only.
            ("GH_TOKEN".to_owned(), "demo".to_owned()),
        ]
    }

    /// Waits until `look` sees something, for at most `patience`.
    pub(super) async fn wait<T>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&Self) -> Option<T>,
    ) -> Option<T> {
        let began = Instant::now();
        loop {
            if let Some(seen) = look(self) {
                return Some(seen);
            }
            if began.elapsed() > patience {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the records of the event log of these types.
    pub(super) fn events(&self, types: &[&str]) -> Vec<Record> {
        let filter = Filter {
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            ..Filter::default()
        };
        let path = self.root.join("state/logs/events.jsonl");
        eventlog::tail(&path, filter, 1000)
            .map(|tail| tail.records)
            .unwrap_or_default()
    }

    /// Returns every text that an agent of the story read, in order: boot prompts and messages.
    pub(super) fn heard(&self) -> Vec<String> {
        self.journal()
            .into_iter()
            .filter_map(|record| match record.entry {
                Entry::Start { prompt, .. } => prompt,
                Entry::Message { text, .. } => Some(text),
                _ => None,
            })
            .collect()
    }

    /// Returns how often a text was read.
    pub(super) fn times_heard(&self, text: &str) -> usize {
        self.heard()
            .iter()
            .map(|heard| heard.matches(text).count())
            .sum()
    }

    /// Returns the starts of agents: process, conversation, whether it was resumed.
    pub(super) fn starts(&self) -> Vec<(u32, Option<String>, bool)> {
        self.journal()
            .into_iter()
            .filter_map(|record| match record.entry {
                Entry::Start {
                    session, resumed, ..
                } => Some((record.pid, session, resumed)),
                _ => None,
            })
            .collect()
    }

    fn journal(&self) -> Vec<agent::Record> {
        agent::read(&self.root.join("agent.jsonl")).unwrap_or_default()
    }

    /// Returns the tmux session's name, once it is there.
    pub(super) fn session(&self) -> Option<String> {
        let spawned = self.events(&["session.spawned"]);
        spawned.first()?.text("tmux_target").map(str::to_owned)
    }

    /// Asks tmux something and returns its answer.
    pub(super) async fn ask_tmux(&self, args: &[&str]) -> Option<String> {
        let command = Command::new(&self.tmux)
            .args(["-L", TMUX_NAME])
            .args(args.iter().copied());
        let env = Environment::Inherit {
            set: [("TMUX_TMPDIR".into(), self.path("tmux").into())].into(),
            remove: vec!["TMUX".into()],
        };
        let command = Command {
            env,
            deadline: Duration::from_secs(5),
            ..command
        };
        let output = process::run(&command).await.ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns the process of the tmux server.
    pub(super) async fn tmux_server(&self) -> Option<ProcessId> {
        identify(
            self.ask_tmux(&["display-message", "-p", "#{pid}"])
                .await?
                .trim()
                .parse()
                .ok()?,
        )
    }

    /// Returns what stands on the agent's screen, without empty lines.
    pub(super) async fn screen(&self) -> Vec<String> {
        let Some(session) = self.session() else {
            return Vec::new();
        };
        let target = format!("={session}:");
        let text = self
            .ask_tmux(&["capture-pane", "-p", "-t", &target])
            .await
            .unwrap_or_default();
        text.lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Leaves everything running and says how to look around.
    pub(super) fn keep(mut self) -> Vec<String> {
        let tmux = format!("TMUX_TMPDIR={} tmux -L {TMUX_NAME}", self.path("tmux"));
        let session = self.session().unwrap_or_default();
        let config = self.path("cli-config.yaml");
        let lines = vec![
            format!("everything lies in {}", self.root.display()),
            format!("attach:  {tmux} attach -t '={session}:'"),
            format!("events:  the-loop --config {config} events"),
            format!(
                "stop:    the-loop --config {config} poll stop; {tmux} kill-server; rm -r {}",
                self.root.display()
            ),
        ];
        // Dropped, it runs on.
        self.daemon = None;
        lines
    }

    /// Ends the daemon, the agents and the tmux server, and removes the folder.
    pub(super) async fn strike(mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.end(Duration::from_secs(10)).await;
        }
        if let Some(server) = self.tmux_server().await {
            let _answer = self.ask_tmux(&["kill-server"]).await;
            let gone = self
                .wait(Duration::from_secs(5), |_| {
                    (life(&server) == Life::Gone).then_some(())
                })
                .await;
            if gone.is_none() {
                // It did not end when asked; nothing of the demo may stay behind.
                let _ended_meanwhile = signal(&server, Signal::Kill);
            }
        }
        if let Err(error) = std::fs::remove_dir_all(&self.root) {
            tracing::warn!("cannot remove {}: {error}", self.root.display());
        }
    }
}

fn make_root() -> std::io::Result<PathBuf> {
    // A short path: a socket's is limited to about a hundred bytes.
    let root = std::env::temp_dir().join(format!("the-loop-demo-{}", std::process::id()));
    for folder in ["", "home", "tmux", "state", "work", "conversations"] {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(root.join(folder))?;
    }
    root.canonicalize()
}

fn write_config(root: &Path, program: &Path, api: &str) -> std::io::Result<()> {
    let config = json!({
        "state": { "root": root.join("state") },
        "polling": { "intervalSeconds": 1, "sources": [{ "provider": "github", "repos": [REPO] }] },
        "integrations": { "github": { "apiUrl": api } },
        "routing": {
            "authorizedUsers": [OCTOCAT],
            "defaultHarness": "demo",
            "spawnOnUnmatched": "labeled",
            "spawnWorkdir": root.join("work"),
            "tmux": { "socketName": TMUX_NAME, "resumeProbeSeconds": 0.3 },
        },
        "harnesses": { "demo": {
            "command": program,
            "args": ["demo-agent", "--log", root.join("agent.jsonl"), "--conversations", root.join("conversations")],
            "sessionArgs": ["--session", "{sessionId}"],
            "resumeArgs": ["--resume", "{sessionId}"],
            "readyDelaySeconds": 0.5,
        } },
    });
    std::fs::write(root.join("cli-config.yaml"), format!("{config:#}\n"))
}
