//! One hosted harness in a tmux of its own.

use std::fs;
use std::path::PathBuf;

use the_loop::clock::{Clock, SystemClock};
use the_loop::model::{
    AfterEnd, Ending, HostPaths, OwnerId, Phase, ProcessId, PromptPassing, Record, Ticket,
    TmuxSocket,
};
use the_loop::process::identity::{Life, identify, life};
use the_loop::process::signal::{Signal, signal};
use the_loop::process::ticket;

use crate::tmux::{PrivateTmux, wait_for};

/// The session of every test.
pub(crate) const SESSION: &str = "loop-x";
/// Its pane.
pub(crate) const PANE: &str = "=loop-x:";

/// A spawn and everything around it; nothing of it is left after a test.
pub(crate) struct Hosted {
    pub(crate) tmux: PrivateTmux,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) paths: HostPaths,
    pub(crate) ticket: Ticket,
    pub(crate) prompt: String,
    strays: Vec<ProcessId>,
}

impl Hosted {
    /// Prepares a harness that is a shell script; its `$1` is the prompt, if one is passed. The
    /// variable `DIR` names the test's folder.
    pub(crate) fn new(script: &str) -> Self {
        let tmux = PrivateTmux::new();
        let dir = tempfile::tempdir().unwrap();
        let owner = OwnerId::mint();
        let paths = HostPaths::new(&dir.path().join("state"), &owner);
        let ticket = Ticket {
            v: Ticket::VERSION,
            owner,
            work_item: "github:o/r#1".parse().unwrap(),
            socket: TmuxSocket::Path(tmux.socket()),
            tmux: PrivateTmux::program(),
            cwd: dir.path().to_owned(),
            argv: ["/bin/sh", "-c", script, "agent"].map(str::to_owned).into(),
            env: [
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("DIR", dir.path().to_str().unwrap()),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            prompt: PromptPassing::None,
            not_after_ms: SystemClock.now().timestamp_millis() + 60_000,
            grace_ms: 300,
            after_end: AfterEnd::KeepScreen,
        };
        Self {
            tmux,
            dir,
            paths,
            ticket,
            prompt: String::new(),
            strays: Vec::new(),
        }
    }

    /// Issues the ticket and creates the session.
    pub(crate) fn start(self) -> Self {
        self.issue();
        self.create(SESSION);
        self
    }

    /// Writes the ticket.
    pub(crate) fn issue(&self) {
        ticket::issue(&self.paths, &self.ticket, &self.prompt).unwrap();
    }

    /// Creates a session whose pane is the host, as the daemon does.
    pub(crate) fn create(&self, session: &str) {
        let ticket = self.paths.ticket();
        let program = env!("CARGO_BIN_EXE_the-loop");
        // The last part fails when the host had nothing to do and is gone already.
        self.tmux.run(&[
            "set-option",
            "-g",
            "alternate-screen",
            "off",
            ";",
            "new-session",
            "-d",
            "-s",
            session,
            "-x",
            "150",
            "-y",
            "40",
            "--",
            program,
            "host",
            ticket.to_str().unwrap(),
        ]);
    }

    /// A file in the test's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a file appear that a script waits for.
    pub(crate) fn touch(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    /// Waits for a file that a script writes, whole, as `printf … > x.new && mv x.new x`.
    pub(crate) fn wait_for_file(&self, name: &str) -> String {
        let path = self.file(name);
        wait_for(name, || path.exists());
        fs::read_to_string(path).unwrap()
    }

    /// The process whose pid a script wrote to a file; ended with the test, whatever happens.
    pub(crate) fn process(&mut self, name: &str) -> ProcessId {
        let pid = self.wait_for_file(name).trim().parse().unwrap();
        let id = identify(pid).unwrap_or_else(|| panic!("{name} runs"));
        self.strays.push(id);
        id
    }

    /// The record, where there is one.
    pub(crate) fn record(&self) -> Option<Record> {
        ticket::record(&self.paths).unwrap()
    }

    /// Waits until the harness runs; returns host and harness.
    pub(crate) fn wait_until_running(&mut self) -> (ProcessId, ProcessId) {
        let mut found = None;
        wait_for("a running harness", || {
            if let Some(record) = self.record()
                && let Phase::Running { harness } = record.phase
            {
                found = Some((record.host, harness));
            }
            found.is_some()
        });
        let (host, harness) = found.unwrap();
        self.strays.extend([host, harness]);
        (host, harness)
    }

    /// Waits for the recorded end.
    pub(crate) fn wait_for_end(&self) -> (Record, Ending) {
        let mut end = None;
        wait_for("a recorded end", || {
            if let Some(record) = self.record()
                && let Phase::Ended { ending, .. } = &record.phase
            {
                end = Some((record.clone(), ending.clone()));
            }
            end.is_some()
        });
        end.unwrap()
    }

    /// The pane's option.
    pub(crate) fn option(&self) -> String {
        self.tmux
            .ok(&["display-message", "-p", "-t", PANE, "#{@loop_exit}"])
    }

    /// Waits until the option names this ending.
    pub(crate) fn wait_for_option(&self, ending: &str) {
        wait_for("a record", || self.record().is_some());
        let host = self.record().unwrap().host;
        let expected = format!("{host} {ending}");
        wait_for(&format!("@loop_exit {expected}"), || {
            self.option() == expected
        });
    }

    /// Waits until nothing is left of the session.
    pub(crate) fn wait_until_closed(&self) {
        self.tmux
            .wait_for("the session's end", |tmux| tmux.sessions().is_empty());
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // One that ended, as it should, is not signalled.
        for stray in &self.strays {
            signal(stray, Signal::Kill).ok();
        }
    }
}

/// Waits until a process is gone.
pub(crate) fn wait_until_gone(what: &str, process: &ProcessId) {
    wait_for(&format!("the end of {what}"), || {
        life(process) == Life::Gone
    });
}
