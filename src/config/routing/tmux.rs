//! `routing.tmux`: how sessions run in tmux.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Checker;
use crate::config::harnesses::{program, seconds};
use crate::config::key_path::KeyPath;
use crate::config::show::Settings;

/// How sessions run in tmux.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct TmuxFile {
    /// The tmux program: a name to find on PATH, or a path.
    #[schemars(extend("x-default" = "tmux"))]
    binary: Option<String>,
    /// The name of a tmux server of its own (`tmux -L <name>`), which no stray `kill-server` or
    /// `tmux.conf` touches. Open sessions stay on the server that they were made on.
    #[schemars(extend("x-default" = "the user's default server"))]
    socket_name: Option<String>,
    /// Whether the tmux session of a closed session stays readable.
    keep_session_on_close: bool,
    /// Whether the screen of an agent that ended stays readable.
    remain_on_exit: bool,
    /// Whether a session that died resumes its conversation, rather than beginning a new one.
    resume_on_respawn: bool,
    /// How long an agent that was started, for the first time or to resume, must survive to count as
    /// started; a conversation that does not is begun afresh.
    #[schemars(range(min = 0, max = 600))]
    resume_probe_seconds: f64,
    /// Whether stop, close and the end of a work item end its agent. Where `keepSessionOnClose` is
    /// false, or `sessions close --kill-tmux` is said, it is ended all the same.
    kill_harness_on_close: bool,
    /// How long an agent that was asked to end may take before it is killed.
    #[schemars(range(min = 0, max = 600))]
    harness_kill_grace_seconds: f64,
}

impl Default for TmuxFile {
    fn default() -> Self {
        Self {
            binary: None,
            socket_name: None,
            keep_session_on_close: true,
            remain_on_exit: true,
            resume_on_respawn: true,
            resume_probe_seconds: 2.0,
            kill_harness_on_close: true,
            harness_kill_grace_seconds: 5.0,
        }
    }
}

/// How sessions run in tmux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tmux {
    /// The tmux program, a bare name or an absolute path; `None` is `tmux` on PATH.
    pub binary: Option<PathBuf>,
    /// The tmux server (`-L`); `None` is the user's default one.
    pub socket_name: Option<String>,
    /// Whether the tmux session of a closed session stays readable.
    pub keep_session_on_close: bool,
    /// Whether the screen of an agent that ended stays readable.
    pub remain_on_exit: bool,
    /// Whether a session that died resumes its conversation.
    pub resume_on_respawn: bool,
    /// How long a resumed conversation must survive to count as resumed.
    pub resume_probe: Duration,
    /// Whether closing a session that is kept ends its agent.
    pub kill_harness_on_close: bool,
    /// How long an agent that was asked to end may take before it is killed.
    pub harness_kill_grace: Duration,
}

impl TmuxFile {
    pub(super) fn validate(self, checker: &mut Checker<'_>) -> Tmux {
        let section = KeyPath::of("routing.tmux");
        let binary = self
            .binary
            .map(|text| program(&text, &section.key("binary"), checker).into());
        if let Some(name) = &self.socket_name
            && !is_socket_name(name)
        {
            checker.problem(
                &section.key("socketName"),
                "expected a name of letters, digits, -, _ and ., beginning with a letter or digit",
            );
        }
        Tmux {
            binary,
            socket_name: self.socket_name,
            keep_session_on_close: self.keep_session_on_close,
            remain_on_exit: self.remain_on_exit,
            resume_on_respawn: self.resume_on_respawn,
            resume_probe: seconds(self.resume_probe_seconds),
            kill_harness_on_close: self.kill_harness_on_close,
            harness_kill_grace: seconds(self.harness_kill_grace_seconds),
        }
    }
}

/// The name becomes a file in tmux's folder, and the path of a socket has room for about 100 bytes.
fn is_socket_name(name: &str) -> bool {
    name.len() <= 40
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

impl Tmux {
    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        let section = KeyPath::of("routing.tmux");
        out.put_at(
            &section.key("binary"),
            self.binary.clone().unwrap_or_else(|| "tmux".into()),
        );
        out.put_at(&section.key("socketName"), &self.socket_name);
        out.put_at(
            &section.key("keepSessionOnClose"),
            self.keep_session_on_close,
        );
        out.put_at(&section.key("remainOnExit"), self.remain_on_exit);
        out.put_at(&section.key("resumeOnRespawn"), self.resume_on_respawn);
        out.put_at(
            &section.key("resumeProbeSeconds"),
            self.resume_probe.as_secs_f64(),
        );
        out.put_at(
            &section.key("killHarnessOnClose"),
            self.kill_harness_on_close,
        );
        out.put_at(
            &section.key("harnessKillGraceSeconds"),
            self.harness_kill_grace.as_secs_f64(),
        );
    }
}
