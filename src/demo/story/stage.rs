//! The stage: a throw-away folder, a local GitHub, a private tmux server, and the real daemon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::folder::Folder;
use super::screen::{latest_message, shorten};
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
/// The issue of the story; the ones before it are nobody's business.
pub(super) const ISSUE: u64 = 15;
/// The one who may act.
pub(super) const OCTOCAT: &str = "octocat";
/// Everybody's label.
pub(super) const LABEL: &str = "the-loop: auto-execute";

const TMUX_NAME: &str = "the-loop-demo";
/// How long the parts may take to end when they are asked to.
const ENDING: Duration = Duration::from_secs(5);

/// How to look around on a stage that still stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookAround {
    /// The folder that everything lies in.
    pub folder: PathBuf,
    /// The configuration of the demo's daemon.
    pub config: PathBuf,
    /// The `TMUX_TMPDIR` of the demo's daemon, where its tmux server listens.
    pub tmux_folder: PathBuf,
    /// The work item whose session can be attached to.
    pub work_item: String,
}

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
    folder: Folder,
    tmux: PathBuf,
    daemon: Option<Background>,
    /// The tmux server, once it was asked who it is; it may be frozen later.
    server: Option<ProcessId>,
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
        let uid = rustix::process::getuid().as_raw();
        let socket = Path::new("tmux")
            .join(format!("tmux-{uid}"))
            .join(TMUX_NAME);
        let folder = Folder::make(&socket).map_err(system("make a folder for the demo"))?;
        let github = LocalGitHub::start()
            .await
            .map_err(system("start the local GitHub"))?;
        github.repo(REPO);
        write_config(folder.path(), &program, &github.url())
            .map_err(system("write the demo's configuration"))?;
        let mut stage = Self {
            github,
            folder,
            tmux,
            daemon: None,
            server: None,
            issue: 0,
            comment: 0,
            said: Vec::new(),
        };
        let daemon = Background::start(
            &program,
            &["--config", &stage.path("cli-config.yaml"), "poll", "start"],
            &stage.environment(),
            &stage.folder.path().join("daemon.log"),
        );
        stage.daemon = Some(daemon.map_err(system("start the daemon"))?);
        Ok(stage)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("HOME".to_owned(), self.path("home")),
            ("TMUX_TMPDIR".to_owned(), self.path("tmux")),
            // The local GitHub is reached directly, whatever proxy leads out of this machine.
            ("NO_PROXY".to_owned(), "127.0.0.1".to_owned()),
            ("no_proxy".to_owned(), "127.0.0.1".to_owned()),
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
        let path = self.folder.path().join("state/logs/events.jsonl");
        eventlog::tail(&path, filter, 1000)
            .map(|tail| tail.records)
            .unwrap_or_default()
    }

    /// Returns every text that an agent of the story read, in order: boot prompts and messages.
    pub(super) fn heard(&self) -> Vec<String> {
        agent::heard(self.journal())
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
        agent::read(&self.folder.path().join("agent.jsonl")).unwrap_or_default()
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

    /// Returns the process of the tmux server, and remembers it.
    pub(super) async fn tmux_server(&mut self) -> Option<ProcessId> {
        let answer = self.ask_tmux(&["display-message", "-p", "#{pid}"]).await?;
        self.server = identify(answer.trim().parse().ok()?);
        self.server
    }

    /// Returns what the agent's screen shows of the last message: the message and the answer.
    ///
    /// The agent has read it before it draws, so the screen is given a moment.
    pub(super) async fn latest_on_screen(&self) -> Vec<String> {
        let last = self.heard().pop().unwrap_or_default();
        let last = last.lines().rev().find(|line| !line.is_empty());
        let until = Instant::now() + Duration::from_secs(2);
        loop {
            let shown = self.screen().await;
            let is_drawn = shown.iter().any(|line| Some(line.as_str()) == last);
            if is_drawn && shown.last().is_some_and(|line| line.starts_with('•'))
                || Instant::now() > until
            {
                return shorten(shown);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn screen(&self) -> Vec<String> {
        let Some(session) = self.session() else {
            return Vec::new();
        };
        let target = format!("={session}:");
        let text = self
            .ask_tmux(&["capture-pane", "-p", "-t", &target])
            .await
            .unwrap_or_default();
        latest_message(&text)
    }

    /// Says why something was not seen: the daemon's last words, where it has ended.
    pub(super) fn explain(&mut self, missed: &str) -> String {
        let ended = self.daemon.as_mut().is_none_or(Background::has_ended);
        if !ended {
            return missed.to_owned();
        }
        let log = std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default();
        let words = log.lines().rev().find(|line| !line.trim().is_empty());
        format!(
            "{missed}; the daemon has ended: {}",
            words.unwrap_or("without a word")
        )
    }

    /// Says how to look around.
    pub(super) fn look_around(&self) -> LookAround {
        LookAround {
            folder: self.folder.path().to_owned(),
            config: self.folder.path().join("cli-config.yaml"),
            tmux_folder: self.folder.path().join("tmux"),
            work_item: format!("{REPO}#{}", self.issue),
        }
    }

    /// Ends the daemon, the agents and the tmux server, and removes the folder.
    pub(super) async fn strike(mut self) {
        // Interrupted in the scene with the frozen tmux, it must be able to hear that it is over.
        if let Some(server) = self.server {
            thaw(&server);
        }
        let mut processes = self.agents().await;
        processes.extend(self.tmux_server().await.or(self.server));
        if let Some(daemon) = self.daemon.take() {
            daemon.end(ENDING).await;
        }
        let _answer = self.ask_tmux(&["kill-server"]).await;
        let all_gone = |_: &Self| {
            let gone = |process| life(process) == Life::Gone;
            processes.iter().all(gone).then_some(())
        };
        if self.wait(ENDING, all_gone).await.is_none() {
            for process in &processes {
                // What did not end when asked is ended: nothing of the demo may stay behind.
                let _ended_meanwhile = signal(process, Signal::Kill);
            }
            let _given_up = self.wait(ENDING, all_gone).await;
        }
    }

    /// The processes in the panes, and the agents below them.
    async fn agents(&self) -> Vec<ProcessId> {
        let panes = self
            .ask_tmux(&["list-panes", "-a", "-F", "#{pane_pid}"])
            .await
            .unwrap_or_default();
        let panes = panes.lines().filter_map(|pid| pid.trim().parse().ok());
        let agents = self.starts().into_iter();
        let agents = agents.filter_map(|(pid, _, _)| i32::try_from(pid).ok());
        panes.chain(agents).filter_map(identify).collect()
    }
}

/// Lets a frozen process go on.
pub(super) fn thaw(process: &ProcessId) {
    // One that is gone needs no thawing.
    let _gone = signal(process, Signal::Continue);
}

fn write_config(root: &Path, program: &Path, api: &str) -> std::io::Result<()> {
    let config = json!({
        "state": { "root": root.join("state") },
        "polling": { "intervalSeconds": 1, "sources": [{ "provider": "github", "repos": [REPO] }] },
        "integrations": { "github": { "apiUrl": api, "host": "github.com" } },
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
