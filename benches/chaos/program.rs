//! A program in a world of its own: how it is started, and what belongs to it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
#[cfg(target_os = "linux")]
use rustix::{fs::OFlags, io::ioctl_fionread};
use serde_json::json;
use the_loop::demo::agent::{Entry, Record};
use the_loop::demo::github::LocalGitHub;

use crate::support::{AgentLog, Found, Scratch, TheLoop};

/// The program of this repository, which is also the scripted agent.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_the-loop");

/// A program and its world; dropping it ends what it left in tmux.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) scratch: Scratch,
    pub(crate) command: PathBuf,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// The name of its tmux server, as `-L` takes it.
    pub(crate) socket: String,
}

impl Program {
    /// The program of this repository.
    pub(crate) fn ours(github: &LocalGitHub) -> Self {
        let scratch = Scratch::new();
        let the_loop = TheLoop::new(&scratch)
            .github(&github.url())
            .set("harnesses.agent.submitGapMilliseconds", json!(30))
            .set("harnesses.agent.readyDelaySeconds", json!(0.2))
            .set("routing.tmux.resumeProbeSeconds", json!(0.2))
            .set("routing.maxConcurrentDispatches", json!(8))
            // Each kill of an agent may spend an attempt, and a spent budget is an answer of its own.
            .set("polling.maxRetries", json!(20));
        let config = the_loop.config_file();
        drop(the_loop);
        Self {
            name: "the-loop",
            command: BINARY.into(),
            environment: vec![
                ("THE_LOOP_CLI_CONFIG", config.into()),
                ("GH_TOKEN", "test-token".into()),
            ],
            socket: scratch.tmux_socket().to_owned(),
            scratch,
        }
    }

    /// Starts the daemon.
    pub(crate) fn start(&self) -> Daemon {
        self.run("start")
    }

    /// Starts one cycle beside the daemon, as cron would.
    pub(crate) fn start_once(&self) -> Daemon {
        // The Python program has it as a flag of start.
        if self.command == Path::new(BINARY) {
            self.run("--once")
        } else {
            self.run("start --once")
        }
    }

    fn run(&self, how: &str) -> Daemon {
        // A file, not a pipe: a tmux server that the program starts would keep a pipe open.
        let said = File::options()
            .append(true)
            .create(true)
            .open(self.scratch.path("said"))
            .unwrap();
        let child = self
            .scratch
            .command(&self.command)
            .envs(self.environment.iter().cloned())
            .arg("poll")
            .args(how.split(' '))
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        Daemon(child)
    }

    /// Returns its tmux server, as long as that answers.
    pub(crate) fn server(&self) -> Option<Found> {
        let output = self
            .scratch
            .command("tmux")
            .args(["-L", &self.socket, "display-message", "-p", "#{pid}"])
            .output()
            .unwrap();
        let pid = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .ok()?;
        Some(Found {
            pid,
            command: "tmux".to_owned(),
        })
    }

    /// Returns the agents that run.
    pub(crate) fn agents(&self) -> Vec<Found> {
        let mut agents = self.scratch.processes("demo-agent");
        // A host names the agent's command too.
        let command = format!("{BINARY} demo-agent ");
        agents.retain(|found| found.command.starts_with(&command));
        agents
    }

    /// Returns what the agents wrote down.
    pub(crate) fn records(&self) -> Vec<Record> {
        AgentLog::at(self.scratch.path("agent.jsonl")).records()
    }

    /// Returns the items for which an agent was started.
    pub(crate) fn items(&self) -> BTreeSet<u64> {
        self.records().iter().filter_map(started_for).collect()
    }

    /// Copies its logs to where they outlive it, and returns their common beginning.
    pub(crate) fn keep_logs(&self, seed: u64) -> PathBuf {
        let kept = std::env::temp_dir().join(format!("chaos-{seed}-{}", self.name));
        let events = self.scratch.state_root().join("logs/events.jsonl");
        let logs = [
            (events, "events.jsonl"),
            (self.scratch.path("agent.jsonl"), "agents.jsonl"),
            (self.scratch.path("said"), "said.txt"),
        ];
        for (log, ending) in logs {
            let to = kept.with_extension(ending);
            if let Err(error) = fs::copy(&log, &to) {
                eprintln!("{} cannot be kept: {error}", log.display());
            }
        }
        kept
    }
}

/// Tells whether an agent sleeps and its terminal holds nothing that it has not read.
#[cfg(target_os = "linux")]
pub(crate) fn is_at_rest(agent: &Found) -> bool {
    let at = Path::new("/proc").join(agent.pid.to_string());
    let terminal = File::options()
        .read(true)
        .custom_flags(OFlags::NOCTTY.bits().cast_signed())
        .open(at.join("fd/0"));
    let unread = terminal.map(|terminal| ioctl_fionread(&terminal));
    // What comes in from here on wakes it.
    let sleeps = fs::read_to_string(at.join("stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" S"))
    });
    sleeps && matches!(unread, Ok(Ok(0)))
}

/// Supposes that it is: here nobody can ask.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_at_rest(_agent: &Found) -> bool {
    true
}

/// Returns the number of the item that an agent's start was for.
pub(crate) fn started_for(record: &Record) -> Option<u64> {
    match &record.entry {
        Entry::Start { env, .. } => {
            let (_, number) = env.get("THE_LOOP_WORK_ITEM")?.rsplit_once('#')?;
            number.parse().ok()
        }
        _ => None,
    }
}

/// A daemon or a one-shot run; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn signal(&self, signal: Signal) {
        // Not reaped yet, so the number still means this child.
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
