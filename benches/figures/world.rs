//! A world of its own for one measurement: folders, configuration, environment, tmux server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::{PROGRAM, Result};

/// How long anything may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The one who may act.
pub(crate) const ADA: &str = "ada";
/// The label that makes an issue a work item.
pub(crate) const LABEL: &str = "the-loop: auto-execute";

/// Folders, configuration and tmux server of one measurement; dropping it ends the server.
#[derive(Debug)]
pub(crate) struct World {
    root: PathBuf,
    _folder: TempDir,
}

impl World {
    /// Makes a world that watches these repositories of the GitHub at `url`.
    pub(crate) fn new(url: &str, repos: &[String], interval_seconds: u32) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("loop-").tempdir()?;
        let root = folder.path().canonicalize()?;
        for name in ["home", "tmux", "work"] {
            fs::create_dir(root.join(name))?;
        }
        let world = Self {
            root,
            _folder: folder,
        };
        // JSON is YAML too.
        let config = json!({
            "state": { "root": world.path("state") },
            "polling": {
                "intervalSeconds": interval_seconds,
                "sources": [{ "repos": repos }],
            },
            "routing": {
                "authorizedUsers": [ADA],
                "defaultHarness": "reader",
                "spawnOnUnmatched": "labeled",
                "spawnWorkdir": world.path("work"),
                "tmux": { "socketName": "bench", "resumeProbeSeconds": 0.5 },
            },
            "harnesses": {
                "reader": {
                    "command": std::env::current_exe()?,
                    "args": [super::reader::VERB, world.path("read.jsonl")],
                    "readyDelaySeconds": 0,
                },
            },
            "integrations": { "github": { "apiUrl": url } },
        });
        fs::write(world.path("cli-config.yaml"), config.to_string())?;
        Ok(world)
    }

    /// Returns a path in the world.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Prepares a program with the world's environment and no other.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = start(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env("GH_TOKEN", "bench")
            // Says when something is stored, to the microsecond.
            .env("THE_LOOP_LOG", "the_loop::ingress::poll::accept=debug")
            .env("THE_LOOP_CLI_CONFIG", self.path("cli-config.yaml"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    /// Starts the measured program and lets it run.
    pub(crate) fn run(&self, args: &[&str]) -> Result<Running> {
        let log = File::create(self.path("run.log"))?;
        let child = self
            .command(Path::new(PROGRAM))
            .args(args)
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Running(child))
    }

    /// Returns the log of the measured program so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("run.log")).unwrap_or_default()
    }

    /// Returns the event log so far.
    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.path("state/logs/events.jsonl")).unwrap_or_default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Where no server runs there is nothing to end.
        let ended = self
            .command(Path::new("tmux"))
            .args(["-L", "bench", "kill-server"])
            .stderr(Stdio::null())
            .status();
        if let Err(error) = ended {
            super::figure::complain(&format!("tmux: {error}"));
        }
    }
}

/// A program that runs; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Not reaped yet, so the number still means this child.
        kill_process(Pid::from_child(&self.0), Signal::TERM).ok();
        self.0.wait().ok();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a measurement starts the program as a person does"
)]
pub(crate) fn start(program: &Path) -> Command {
    Command::new(program)
}

/// Looks every few milliseconds until there is an answer.
pub(crate) async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(answer) = look() {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("waited {PATIENCE:?} for: {what}").into())
}
