//! The real binary, configured for one scratch world.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::agent_log::AgentLog;
use super::scratch::Scratch;
use super::wait::{SOON, poll};

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_the-loop");

/// Builds a configuration and runs the binary with it.
///
/// The harness is the scripted agent, `ada` is the only one who may act, items are armed by label,
/// and the tmux server is the world's own.
#[derive(Debug)]
pub(crate) struct TheLoop<'a> {
    scratch: &'a Scratch,
    config: Value,
    extra: Vec<(OsString, OsString)>,
    runs: AtomicU32,
}

impl<'a> TheLoop<'a> {
    pub(crate) fn new(scratch: &'a Scratch) -> Self {
        let config = json!({
            "state": { "root": scratch.state_root() },
            "polling": {
                "intervalSeconds": 1,
                "sources": [{ "provider": "github", "repos": ["demo/app"] }],
            },
            "routing": {
                "authorizedUsers": ["ada"],
                "defaultHarness": "agent",
                "spawnOnUnmatched": "labeled",
                "spawnWorkdir": scratch.path("work"),
                "tmux": { "socketName": scratch.tmux_socket(), "resumeProbeSeconds": 0.5 },
            },
            "harnesses": {
                "agent": {
                    "command": BINARY,
                    "args": [
                        "demo-agent",
                        "--log", scratch.path("agent.jsonl"),
                        "--conversations", scratch.path("conversations"),
                    ],
                    "sessionArgs": ["--session", "{sessionId}"],
                    "resumeArgs": ["--resume", "{sessionId}"],
                },
            },
        });
        Self {
            scratch,
            config,
            extra: Vec::new(),
            runs: AtomicU32::new(0),
        }
    }

    /// Talks to this GitHub, with a token that only means something there.
    pub(crate) fn github(self, url: &str) -> Self {
        self.set("integrations.github.apiUrl", json!(url))
            .env("GH_TOKEN", "test-token")
    }

    /// Sets one key of the configuration, written with dots.
    pub(crate) fn set(mut self, key: &str, value: Value) -> Self {
        let target = key
            .split('.')
            .fold(&mut self.config, |at, part| &mut at[part]);
        *target = value;
        self
    }

    /// Gives the agents further arguments.
    pub(crate) fn agent_args(mut self, args: &[&str]) -> Self {
        let list = &mut self.config["harnesses"]["agent"]["args"];
        let list = list.as_array_mut().expect("args is a list");
        list.extend(args.iter().map(|arg| json!(arg)));
        self
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    /// Returns what the agents read.
    pub(crate) fn agents(&self) -> AgentLog {
        AgentLog::at(self.scratch.path("agent.jsonl"))
    }

    /// Writes the configuration and returns its path. JSON is YAML too.
    pub(crate) fn config_file(&self) -> PathBuf {
        let path = self.scratch.path("cli-config.yaml");
        // Put there whole: another run may be reading it.
        let partial = path.with_extension("partial");
        fs::write(&partial, format!("{:#}\n", self.config)).unwrap();
        fs::rename(&partial, &path).unwrap();
        path
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.start(args).wait(SOON)
    }

    /// Starts a command and lets it run.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        // Files, not pipes: a tmux server that the program starts would keep a pipe open.
        let number = self.runs.fetch_add(1, Ordering::SeqCst);
        let stdout = self.scratch.path(&format!("run-{number}.out"));
        let stderr = self.scratch.path(&format!("run-{number}.err"));
        let (out, err) = (
            File::create(&stdout).unwrap(),
            File::create(&stderr).unwrap(),
        );
        let child = self.spawn(args, out.into(), err.into());
        Running {
            child: Some(child),
            stdout,
            stderr,
        }
    }

    /// Starts a command that writes to what the test holds; its output cannot be read afterwards.
    pub(crate) fn start_into(
        &self,
        args: &[&str],
        stdout: impl Into<Stdio>,
        stderr: impl Into<Stdio>,
    ) -> Running {
        let child = self.spawn(args, stdout.into(), stderr.into());
        Running {
            child: Some(child),
            stdout: PathBuf::from("/dev/null"),
            stderr: PathBuf::from("/dev/null"),
        }
    }

    fn spawn(&self, args: &[&str], stdout: Stdio, stderr: Stdio) -> Child {
        self.scratch
            .command(BINARY)
            .env("THE_LOOP_CLI_CONFIG", self.config_file())
            .envs(self.extra.iter().cloned())
            .args(args)
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap()
    }
}

/// A command that may still run; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running {
    /// Returns what it printed so far.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap()
    }

    /// Returns what it complained about so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Signals it.
    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it was not waited for");
        // Not reaped yet, so the number still means this child.
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Waits for its end; what does not end in time is killed and fails the test.
    pub(crate) fn wait(mut self, deadline: Duration) -> Finished {
        let mut child = self.child.take().expect("it is waited for once");
        let status = poll(deadline, || child.try_wait().unwrap());
        let (stdout, stderr) = (self.stdout(), self.stderr());
        let Some(status) = status else {
            end(&mut child);
            panic!("did not end within {deadline:?}\n{stdout}\n{stderr}");
        };
        Finished {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    child.kill().ok();
    child.wait().ok();
}

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Returns the exit code; fails where a signal ended it.
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// Fails unless it ended with 0, and returns its output.
    pub(crate) fn ok(self) -> String {
        assert!(self.status.success(), "{self:#?}");
        self.stdout
    }
}
