//! A GitHub, a configuration and the real binary.

use std::time::Duration;

use serde_json::{Value, json};
use the_loop::demo::github::LocalGitHub;
use the_loop::model::WorkItemRef;
use tokio::runtime::Runtime;

use crate::support::{AgentLog, Finished, Running, SOON, Scratch, TheLoop, wait_until};

pub(crate) const REPO: &str = "demo/app";
const LABEL: &str = "the-loop: auto-execute";

/// Everything that a person at this machine has.
pub(crate) struct World<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) the_loop: TheLoop<'a>,
    pub(crate) github: LocalGitHub,
    // Dropped last: the local GitHub runs on it.
    _runtime: Runtime,
}

impl<'a> World<'a> {
    pub(crate) fn new(scratch: &'a Scratch) -> Self {
        Self::with(scratch, |the_loop| the_loop)
    }

    pub(crate) fn with(
        scratch: &'a Scratch,
        configure: impl FnOnce(TheLoop<'a>) -> TheLoop<'a>,
    ) -> Self {
        let runtime = Runtime::new().unwrap();
        let github = runtime.block_on(LocalGitHub::start()).unwrap();
        github.repo(REPO);
        let the_loop = TheLoop::new(scratch)
            .github(&github.url())
            .set("harnesses.agent.readyDelaySeconds", json!(0.5))
            .set("harnesses.agent.submitGapMilliseconds", json!(60))
            .set("routing.tmux.resumeProbeSeconds", json!(0.3));
        Self {
            scratch,
            the_loop: configure(the_loop),
            github,
            _runtime: runtime,
        }
    }

    pub(crate) fn agents(&self) -> AgentLog {
        self.the_loop.agents()
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.the_loop.run(args)
    }

    /// Runs a command that answers with JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.run(args).ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Opens a labelled issue.
    pub(crate) fn issue(&self, title: &str) -> u64 {
        let number = self.github.open_issue(REPO, "ada", title, "");
        self.github.label(REPO, number, "ada", LABEL).unwrap();
        number
    }

    pub(crate) fn comment(&self, number: u64, text: &str) {
        self.github.comment(REPO, number, "ada", text).unwrap();
    }

    /// Starts the session of an issue without any daemon, and waits until its agent listens.
    pub(crate) fn started(&self, title: &str) -> u64 {
        let ready = self.agents().starts().len() + 1;
        let number = self.issue(title);
        self.run(&["poll", "--once"]).ok();
        self.run(&["sessions", "start", &short(number)]).ok();
        self.agents().wait_ready(ready);
        number
    }

    /// Starts the poller and waits until it has been round once.
    pub(crate) fn daemon(&self) -> Running {
        let daemon = self.the_loop.start(&["poll", "start"]);
        wait_until("a first cycle", SOON, || {
            let status = self.run(&["poll", "status", "--json"]);
            let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
            status["running"] == json!(true) && !status["heartbeat"]["lastCycle"].is_null()
        });
        daemon
    }

    /// What the event log says of these types.
    pub(crate) fn events(&self, pattern: &str) -> Vec<Value> {
        let text = self
            .run(&["events", "--json", "--limit", "0", "--type", pattern])
            .ok();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The newest recorded session of an item.
    pub(crate) fn session(&self, number: u64) -> Value {
        self.json(&["sessions", "show", &short(number), "--json"])
    }

    pub(crate) fn times_heard(&self, text: &str) -> usize {
        let heard = self.agents().heard();
        heard.iter().filter(|heard| heard.contains(text)).count()
    }

    pub(crate) fn wait_heard(&self, text: &str) {
        let what = format!("{text:?} is heard");
        wait_until(&what, SOON, || self.times_heard(text) > 0);
    }

    /// The tmux session of an item.
    pub(crate) fn name(&self, number: u64) -> String {
        let url = self.github.url();
        let host = url.trim_start_matches("http://");
        let item: WorkItemRef = short(number).parse().unwrap();
        let name = item.meant_on(host).session_name().unwrap();
        name.to_string()
    }

    /// The sessions on the tmux server.
    pub(crate) fn tmux_sessions(&self) -> Vec<String> {
        let output = self
            .scratch
            .tmux_output(&["list-sessions", "-F", "#{session_name}"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(str::to_owned).collect()
    }
}

/// Writes into a session's row what no version of this program writes.
pub(crate) fn spoil(scratch: &Scratch, session: &Value) {
    use sqlx::Connection;
    let url = format!(
        "sqlite://{}",
        scratch.state_root().join("loop.db").display()
    );
    let conversation = session["harnessSessionId"].as_str().unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let mut db = sqlx::SqliteConnection::connect(&url).await.unwrap();
        let spoiled = sqlx::query("UPDATE sessions SET owner = '?' WHERE harness_session_id = $1")
            .bind(conversation)
            .execute(&mut db)
            .await
            .unwrap();
        assert_eq!(spoiled.rows_affected(), 1);
        db.close().await.unwrap();
    });
}

pub(crate) fn short(number: u64) -> String {
    format!("{REPO}#{number}")
}

/// Ends a daemon in an orderly way.
pub(crate) fn stop(daemon: Running) -> Finished {
    daemon.signal(rustix::process::Signal::TERM);
    daemon.wait(Duration::from_secs(30))
}
