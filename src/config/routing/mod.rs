//! `routing`: who may act, which items get a session, and how sessions run.

mod control;
mod tmux;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use control::Control;
pub use tmux::Tmux;

use super::check::Checker;
use super::harnesses::CLAUDE;
use super::key_path::KeyPath;
use super::polling::check_label;
use super::show::Settings;
use super::suggest;
use super::template::{Template, TemplateFile};
use crate::model::text::one_line;
use crate::model::{HarnessName, Login};
use control::ControlFile;
use tmux::TmuxFile;

/// Who may act, which items get a session, and how sessions run.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RoutingFile {
    /// The GitHub logins whose comments, labels and reviews count. Everybody else is ignored; an
    /// empty list means nobody.
    authorized_users: Vec<String>,
    /// The harness of new sessions: `claude`, or a name from `harnesses`.
    default_harness: String,
    /// Which work items get a session of their own.
    spawn_on_unmatched: SpawnPolicy,
    /// The label of the sources that name none; compared without case, as GitHub does.
    auto_execute_label: String,
    /// The words that steer a work item in comments.
    control: ControlFile,
    /// Where the agent asks its questions.
    interaction: InteractionFile,
    /// The folder that sessions start in.
    #[schemars(extend("x-default" = "the config file's folder"))]
    spawn_workdir: Option<String>,
    /// How sessions run in tmux.
    tmux: TmuxFile,
    /// How many work items are worked on at the same time.
    #[schemars(range(min = 1, max = 256))]
    max_concurrent_dispatches: u32,
    /// A file with the text of a delivered event, also where it is the first text of an agent that is
    /// started again, instead of the built-in one; `$name` placeholders.
    #[schemars(extend("x-default" = "built in"))]
    prompt_template: Option<String>,
    /// A file with the first text of a work item's new session, instead of the built-in one; `$name`
    /// placeholders.
    #[schemars(extend("x-default" = "built in"))]
    spawn_prompt_template: Option<String>,
    /// Arguments appended to every start of a harness, by its name.
    harness_args: BTreeMap<String, Vec<String>>,
}

impl Default for RoutingFile {
    fn default() -> Self {
        Self {
            authorized_users: Vec::new(),
            default_harness: CLAUDE.to_owned(),
            spawn_on_unmatched: SpawnPolicy::default(),
            auto_execute_label: "the-loop: auto-execute".to_owned(),
            control: ControlFile::default(),
            interaction: InteractionFile::default(),
            spawn_workdir: None,
            tmux: TmuxFile::default(),
            max_concurrent_dispatches: 4,
            prompt_template: None,
            spawn_prompt_template: None,
            harness_args: BTreeMap::new(),
        }
    }
}

/// Which work items get a session of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpawnPolicy {
    /// None; events go only to sessions that exist.
    #[default]
    Never,
    /// Those that carry the label of their source.
    Labeled,
    /// Every open one of the watched repositories, with or without a label.
    Always,
}

/// Where the agent asks its questions.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct InteractionFile {
    /// Where the agent asks its questions.
    mode: InteractionMode,
}

/// Where the agent asks its questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InteractionMode {
    /// On the issue or pull request.
    #[default]
    WorkItem,
    /// In the terminal, to whoever attaches.
    Cli,
}

/// Who may act, which items get a session, and how sessions run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// Whose acts count; empty means nobody's.
    pub authorized_users: Vec<Login>,
    /// The harness of new sessions; always a key of `Config::harnesses`.
    pub default_harness: HarnessName,
    /// Which work items get a session of their own.
    pub spawn_on_unmatched: SpawnPolicy,
    /// The label of the sources that name none.
    pub auto_execute_label: String,
    /// The words that steer a work item in comments.
    pub control: Control,
    /// Where the agent asks its questions.
    pub interaction: InteractionMode,
    /// The folder that sessions start in; absolute.
    pub spawn_workdir: PathBuf,
    /// How sessions run in tmux.
    pub tmux: Tmux,
    /// How many work items are worked on at the same time; at least 1.
    pub max_concurrent_dispatches: usize,
    /// What replaces the built-in text of a delivered event.
    pub prompt_template: Option<TemplateFile>,
    /// What replaces the built-in first text of a session.
    pub spawn_prompt_template: Option<TemplateFile>,
}

impl RoutingFile {
    /// Returns the appended arguments by harness.
    pub(super) fn harness_args(&self) -> &BTreeMap<String, Vec<String>> {
        &self.harness_args
    }

    /// Validates against the names of the defined harnesses.
    pub(super) fn validate(self, harnesses: &[&str], checker: &mut Checker<'_>) -> Routing {
        let section = KeyPath::of("routing");
        let key = section.key("defaultHarness");
        check_harness(&self.default_harness, harnesses, &key, checker);
        for name in self.harness_args.keys() {
            check_harness(
                name,
                harnesses,
                &section.key("harnessArgs").key(name),
                checker,
            );
        }
        check_label(
            &section.key("autoExecuteLabel"),
            &self.auto_execute_label,
            checker,
        );
        let spawn_workdir = match &self.spawn_workdir {
            None => checker.folder().to_owned(),
            Some(text) => {
                let key = section.key("spawnWorkdir");
                let path = checker.path(&key, text);
                if !path.is_dir() {
                    checker.amiss(&key, [format!("{} is not a folder", path.display())]);
                }
                path
            }
        };
        Routing {
            authorized_users: logins(
                &self.authorized_users,
                &section.key("authorizedUsers"),
                checker,
            ),
            default_harness: HarnessName(self.default_harness),
            spawn_on_unmatched: self.spawn_on_unmatched,
            auto_execute_label: self.auto_execute_label,
            control: self.control.validate(checker),
            interaction: self.interaction.mode,
            spawn_workdir,
            tmux: self.tmux.validate(checker),
            max_concurrent_dispatches: usize::try_from(self.max_concurrent_dispatches).unwrap_or(1),
            prompt_template: template(
                self.prompt_template,
                &section.key("promptTemplate"),
                checker,
            ),
            spawn_prompt_template: template(
                self.spawn_prompt_template,
                &section.key("spawnPromptTemplate"),
                checker,
            ),
        }
    }
}

fn check_harness(name: &str, defined: &[&str], key: &KeyPath, checker: &mut Checker<'_>) {
    if defined.contains(&name) {
        return;
    }
    let advice = suggest::nearest(name, defined.iter().copied()).map_or_else(
        || format!("defined are {}", defined.join(", ")),
        |near| format!("did you mean {near}?"),
    );
    let shown = one_line(name, 40);
    checker.problem(
        key,
        &format!("no harness \"{shown}\" in harnesses; {advice}"),
    );
}

fn logins(texts: &[String], key: &KeyPath, checker: &mut Checker<'_>) -> Vec<Login> {
    if texts.is_empty() {
        checker.warning(
            key,
            "is empty: nobody may start or steer an agent; list the GitHub logins that may",
        );
    }
    let mut logins = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let login = Login::new(text);
        if !is_login(login.as_str()) {
            let shown = one_line(text, 40);
            checker.problem(
                &key.index(at),
                &format!("\"{shown}\" is not a GitHub login"),
            );
        } else if !logins.contains(&login) {
            logins.push(login);
        }
    }
    logins
}

/// Letters, digits and `-`; `_` before the short code of a managed account; `[bot]` behind an app.
fn is_login(login: &str) -> bool {
    let name = login.strip_suffix("[bot]").unwrap_or(login);
    !name.is_empty()
        && name.len() <= 100
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

fn template(
    text: Option<String>,
    key: &KeyPath,
    checker: &mut Checker<'_>,
) -> Option<TemplateFile> {
    let path = checker.path(key, &text?);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            checker.amiss(key, [message]);
            return None;
        }
    };
    match Template::parse(&text) {
        Ok(template) => Some(TemplateFile { path, template }),
        Err(unknowns) => {
            let messages = unknowns
                .iter()
                .map(|unknown| format!("{}:{}: {unknown}", path.display(), unknown.place));
            checker.amiss(key, messages);
            None
        }
    }
}

impl Routing {
    /// Warns where agents would work among what the program must keep.
    pub(super) fn check_apart(&self, state_root: &Path, checker: &mut Checker<'_>) {
        if self.spawn_on_unmatched == SpawnPolicy::Never {
            return;
        }
        // What does not exist yet has no real path, and none that leads elsewhere.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (workdir, state) = (real(&self.spawn_workdir), real(state_root));
        let how = if workdir == state {
            "is"
        } else if workdir.starts_with(&state) {
            "lies in"
        } else if state.starts_with(&workdir) {
            "contains"
        } else {
            return;
        };
        let message = format!(
            "{how} the state folder {}, so that agents can change what the-loop keeps there: name a folder apart from it",
            state_root.display()
        );
        checker.warning(&KeyPath::of("routing.spawnWorkdir"), &message);
    }

    pub(super) fn settings(&self, out: &mut Settings<'_>) {
        let users: Vec<&str> = self.authorized_users.iter().map(Login::as_str).collect();
        out.put("routing.authorizedUsers", users);
        out.put("routing.defaultHarness", &self.default_harness);
        out.put("routing.spawnOnUnmatched", self.spawn_on_unmatched);
        out.put("routing.autoExecuteLabel", &self.auto_execute_label);
        self.control.settings(out);
        out.put("routing.interaction.mode", self.interaction);
        out.put("routing.spawnWorkdir", &self.spawn_workdir);
        self.tmux.settings(out);
        out.put(
            "routing.maxConcurrentDispatches",
            self.max_concurrent_dispatches,
        );
        let path = |file: &Option<TemplateFile>| file.as_ref().map(|file| file.path.clone());
        out.put("routing.promptTemplate", path(&self.prompt_template));
        out.put(
            "routing.spawnPromptTemplate",
            path(&self.spawn_prompt_template),
        );
    }
}
