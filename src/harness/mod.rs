//! The agent programs: how each is started, resumed and spoken to.
//!
//! A harness is turned into values only (arguments, environment, delays); running it is the host's
//! work. `claude` (Claude Code) is built in; every other harness is a program that the
//! configuration describes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Config, EnvValue, HarnessConfig};
use crate::model::{HarnessName, HarnessSessionId, SessionName, WorkItemRef};
use crate::process::find_program;

/// Why a harness cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HarnessError {
    /// The configuration does not describe it.
    #[error(
        "harness {name} is not configured: add harnesses.{name} with a command, or set routing.defaultHarness"
    )]
    Unknown {
        /// The name.
        name: HarnessName,
    },
    /// Its program is not on the PATH.
    #[error(
        "the program {command:?} of harness {name} is not found: install it, or set harnesses.{name}.command to its absolute path"
    )]
    ProgramMissing {
        /// The harness.
        name: HarnessName,
        /// The configured command.
        command: String,
    },
}

/// One agent CLI, resolved on this machine.
#[derive(Debug, Clone)]
pub struct Harness {
    name: HarnessName,
    program: PathBuf,
    config: HarnessConfig,
}

/// The daemon's own environment, as far as it may reach an agent.
#[derive(Debug, Clone, Default)]
pub struct Surroundings(BTreeMap<String, OsString>);

impl Surroundings {
    /// Takes the environment of this process.
    #[must_use]
    pub fn current() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
        )
    }

    /// Takes the given variables, for tests.
    #[must_use]
    pub fn of(vars: &[(&str, &str)]) -> Self {
        Self(
            vars.iter()
                .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
                .collect(),
        )
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.clone().into_string().ok()
    }
}

/// What a terminal program needs of the machine it runs on; all else is named by the configuration.
const PASSED_BY_DEFAULT: [&str; 11] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

impl Harness {
    /// Resolves a harness: its configuration, and its program to an absolute path.
    ///
    /// # Errors
    /// When it is not configured, or its program is not found on `PATH`.
    pub fn resolve(
        name: &HarnessName,
        config: &Config,
        around: &Surroundings,
    ) -> Result<Self, HarnessError> {
        let found = config
            .harnesses
            .get(name)
            .ok_or_else(|| HarnessError::Unknown { name: name.clone() })?;
        let path = around.0.get("PATH").map(OsString::as_os_str);
        let program =
            find_program(&found.command, path).ok_or_else(|| HarnessError::ProgramMissing {
                name: name.clone(),
                command: found.command.clone(),
            })?;
        Ok(Self {
            name: name.clone(),
            program,
            config: found.clone(),
        })
    }

    /// Returns the configured name.
    #[must_use]
    pub fn name(&self) -> &HarnessName {
        &self.name
    }

    /// Returns the absolute program and the arguments that start a new conversation under `id`; the
    /// prompt follows them.
    #[must_use]
    pub fn fresh(&self, id: &HarnessSessionId) -> Vec<String> {
        self.argv(&self.config.session_args, id)
    }

    /// Returns those that resume the conversation `id`, where the harness can (AC12).
    #[must_use]
    pub fn resume(&self, id: &HarnessSessionId) -> Option<Vec<String>> {
        self.config
            .resume_args
            .as_ref()
            .map(|args| self.argv(args, id))
    }

    fn argv(&self, session_args: &[String], id: &HarnessSessionId) -> Vec<String> {
        let mut argv = vec![self.program.to_string_lossy().into_owned()];
        argv.extend(self.config.args.iter().cloned());
        argv.extend(
            session_args
                .iter()
                .map(|arg| arg.replace("{sessionId}", id.as_str())),
        );
        argv
    }

    /// Returns the whole environment of the agent, but for what the pane itself gives.
    #[must_use]
    pub fn environment(
        &self,
        around: &Surroundings,
        item: &WorkItemRef,
        session: &SessionName,
    ) -> BTreeMap<String, String> {
        let mut env: BTreeMap<String, String> = PASSED_BY_DEFAULT
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), around.text(name)?)))
            .collect();
        // Without a locale a TUI draws ASCII and mangles what is pasted.
        env.entry("LANG".to_owned())
            .or_insert_with(|| "C.UTF-8".to_owned());
        for (name, value) in &self.config.env {
            match value {
                EnvValue::Value(value) => drop(env.insert(name.clone(), value.clone())),
                EnvValue::FromEnvironment => {
                    if let Some(value) = around.text(name) {
                        env.insert(name.clone(), value);
                    }
                }
            }
        }
        env.insert("THE_LOOP_WORK_ITEM".to_owned(), item.to_string());
        env.insert("THE_LOOP_SESSION".to_owned(), session.to_string());
        env
    }

    /// Returns how long after its start nothing is pasted into it.
    ///
    /// Text pasted into a booting TUI arrives without its bracket, every line a submit.
    #[must_use]
    pub fn ready_delay(&self) -> Duration {
        self.config.ready_delay
    }

    /// Returns the pause between a paste and its Enter.
    #[must_use]
    pub fn submit_gap(&self) -> Duration {
        self.config.submit_gap
    }
}

#[cfg(test)]
mod tests;
