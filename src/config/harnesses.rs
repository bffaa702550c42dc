//! `harnesses`: the agent programs, and what they are started with.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::key_path::KeyPath;
use super::secret::is_secret_name;
use super::show::Settings;
use crate::model::HarnessName;

/// The name of the harness that needs no configuration.
pub const CLAUDE: &str = "claude";

/// Where the conversation's id goes in `sessionArgs` and `resumeArgs`.
pub const SESSION_ID_PLACEHOLDER: &str = "{sessionId}";

/// The agent programs, by name.
pub(super) type HarnessesFile = BTreeMap<String, HarnessFile>;

/// One agent program.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct HarnessFile {
    /// The program: a name to find on PATH, or a path. Required unless the harness is `claude`.
    #[schemars(extend("x-default" = "claude, for the harness of this name"))]
    command: Option<String>,
    /// Arguments of every start.
    args: Vec<String>,
    /// Arguments that begin a conversation; `{sessionId}` stands for an id that we mint.
    #[schemars(extend("x-default" = "for claude: --session-id {sessionId}"))]
    session_args: Option<Vec<String>>,
    /// Arguments that resume a conversation; without them a session that died begins a new one.
    #[schemars(extend("x-default" = "for claude: --resume {sessionId}"))]
    resume_args: Option<Vec<String>>,
    /// Environment variables and their values.
    env: BTreeMap<String, String>,
    /// Names of environment variables that are passed on as the daemon has them. Nothing else of
    /// the daemon's environment reaches the agent but what a terminal program needs.
    pass_env: Vec<String>,
    /// How long a started program is left alone before text is pasted into it.
    #[schemars(range(min = 0, max = 600))]
    ready_delay_seconds: f64,
    /// The time between pasting a text and pressing Enter.
    #[schemars(range(min = 1, max = 10_000))]
    submit_gap_milliseconds: u32,
}

impl Default for HarnessFile {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            session_args: None,
            resume_args: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            ready_delay_seconds: 3.0,
            submit_gap_milliseconds: 150,
        }
    }
}

/// What is known of a program without being configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HarnessKind {
    /// Claude Code.
    Claude,
    /// Any other program.
    Command,
}

/// One agent program and what it is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessConfig {
    /// The program: a name to find on PATH, or an absolute path.
    pub command: String,
    /// Arguments of every start; those of `routing.harnessArgs` come last.
    pub args: Vec<String>,
    /// Arguments that begin a conversation, with [`SESSION_ID_PLACEHOLDER`].
    pub session_args: Vec<String>,
    /// Arguments that resume one; `None` means that the program cannot.
    pub resume_args: Option<Vec<String>>,
    /// The variables that the harness gets, by name.
    pub env: BTreeMap<String, EnvValue>,
    /// How long a started program is left alone before text is pasted into it.
    pub ready_delay: Duration,
    /// The time between a paste and its Enter.
    pub submit_gap: Duration,
}

/// Where the value of a harness's variable comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// From the configuration.
    Value(String),
    /// From the environment of the process that starts the harness, if it is set there.
    FromEnvironment,
}

/// Never shows a value: it may be a secret, and `Debug` output ends up in logs.
impl fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(_) => "Value(…)",
            Self::FromEnvironment => "FromEnvironment",
        })
    }
}

/// Validates all harnesses; `claude` is there whether the file names it or not.
pub(super) fn validate(
    mut file: HarnessesFile,
    extra_args: &BTreeMap<String, Vec<String>>,
    checker: &mut Checker<'_>,
) -> BTreeMap<HarnessName, HarnessConfig> {
    file.entry(CLAUDE.to_owned()).or_default();
    let section = KeyPath::of("harnesses");
    file.into_iter()
        .map(|(name, harness)| {
            let path = section.key(&name);
            if !is_harness_name(&name) {
                checker.problem(
                    &path,
                    "a harness is named with letters, digits, - and _ only",
                );
            }
            let extra = extra_args.get(&name).map_or(&[][..], Vec::as_slice);
            let harness = harness.validate(&name, extra, &path, checker);
            (HarnessName(name), harness)
        })
        .collect()
}

impl HarnessFile {
    fn validate(
        self,
        name: &str,
        extra_args: &[String],
        path: &KeyPath,
        checker: &mut Checker<'_>,
    ) -> HarnessConfig {
        let kind = if name == CLAUDE {
            HarnessKind::Claude
        } else {
            HarnessKind::Command
        };
        let for_claude = |flag: &str| {
            (kind == HarnessKind::Claude)
                .then(|| vec![flag.to_owned(), SESSION_ID_PLACEHOLDER.to_owned()])
        };
        let command = command(self.command, kind, path, checker);
        let env = environment(self.env, self.pass_env, path, checker);
        HarnessConfig {
            command,
            args: self
                .args
                .into_iter()
                .chain(extra_args.iter().cloned())
                .collect(),
            session_args: self
                .session_args
                .or_else(|| for_claude("--session-id"))
                .unwrap_or_default(),
            resume_args: self.resume_args.or_else(|| for_claude("--resume")),
            env,
            ready_delay: seconds(self.ready_delay_seconds),
            submit_gap: Duration::from_millis(self.submit_gap_milliseconds.into()),
        }
    }
}

fn command(
    command: Option<String>,
    kind: HarnessKind,
    path: &KeyPath,
    checker: &mut Checker<'_>,
) -> String {
    let key = path.key("command");
    match (command, kind) {
        (None, HarnessKind::Claude) => CLAUDE.to_owned(),
        (None, HarnessKind::Command) => {
            checker.problem(&key, "is missing; name the program to run");
            String::new()
        }
        (Some(command), _) => program(&command, &key, checker),
    }
}

/// Reads a program: a bare name stays one, to be found on PATH; anything else is a path.
pub(super) fn program(text: &str, key: &KeyPath, checker: &mut Checker<'_>) -> String {
    checker.not_blank(key, text);
    if text.contains('/') || text.starts_with('~') {
        checker.path(key, text).to_string_lossy().into_owned()
    } else {
        text.to_owned()
    }
}

/// What the loop itself sets in every pane.
const OURS: [&str; 6] = [
    "THE_LOOP_WORK_ITEM",
    "THE_LOOP_SESSION",
    "THE_LOOP_OWNER",
    "TERM",
    "TMUX",
    "TMUX_PANE",
];

fn environment(
    values: BTreeMap<String, String>,
    passed: Vec<String>,
    path: &KeyPath,
    checker: &mut Checker<'_>,
) -> BTreeMap<String, EnvValue> {
    let mut env = BTreeMap::new();
    let mut holds_secret = false;
    let check = |name: &str, key: &KeyPath, checker: &mut Checker<'_>| {
        if !is_variable_name(name) {
            checker.problem(key, "is not the name of an environment variable");
        }
        if OURS.contains(&name) {
            checker.problem(key, "is set by the-loop itself; delete the line");
        }
    };
    for (name, value) in values {
        check(&name, &path.key("env").key(&name), checker);
        holds_secret |= is_secret_name(&name) && !value.is_empty();
        env.insert(name, EnvValue::Value(value));
    }
    for (at, name) in passed.into_iter().enumerate() {
        let key = path.key("passEnv").index(at);
        check(&name, &key, checker);
        if env.insert(name, EnvValue::FromEnvironment).is_some() {
            checker.problem(&key, "is given twice, in env or in passEnv; delete one");
        }
    }
    if holds_secret {
        checker.holds_secret(&path.key("env"));
    }
    env
}

/// Tells whether every shell and program understands the name.
pub(super) fn is_variable_name(name: &str) -> bool {
    name.bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_harness_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// Makes a duration of seconds that the schema already bounded.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl HarnessConfig {
    pub(super) fn settings(&self, name: &HarnessName, out: &mut Settings<'_>) {
        let path = KeyPath::of("harnesses").key(&name.0);
        out.put_at(&path.key("command"), &self.command);
        let extra = KeyPath::of("routing.harnessArgs").key(&name.0);
        out.put_joined(&path.key("args"), &extra, &self.args);
        out.put_at(&path.key("sessionArgs"), &self.session_args);
        out.put_at(&path.key("resumeArgs"), &self.resume_args);
        let mut passed = Vec::new();
        for (name, value) in &self.env {
            match value {
                EnvValue::Value(_) if is_secret_name(name) => {
                    out.put_at(&path.key("env").key(name), "(hidden)");
                }
                EnvValue::Value(value) => out.put_at(&path.key("env").key(name), value),
                EnvValue::FromEnvironment => passed.push(name.clone()),
            }
        }
        out.put_at(&path.key("passEnv"), passed);
        out.put_at(
            &path.key("readyDelaySeconds"),
            self.ready_delay.as_secs_f64(),
        );
        let gap = u64::try_from(self.submit_gap.as_millis()).unwrap_or(u64::MAX);
        out.put_at(&path.key("submitGapMilliseconds"), gap);
    }
}
