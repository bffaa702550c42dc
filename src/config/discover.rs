//! Which file is the configuration.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::check::absolute;
use super::load::ConfigError;
use super::problem::{FileName, display_path};

/// The variable that names the configuration file.
pub const VARIABLE: &str = "THE_LOOP_CLI_CONFIG";

const FILE: &str = ".the-loop/cli-config.yaml";

/// What the search for the file depends on, passed in so that tests decide it.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The value of [`VARIABLE`].
    pub variable: Option<OsString>,
    /// The working directory.
    pub working_dir: PathBuf,
}

impl Environment {
    /// Reads the environment of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let is_set = |value: &OsString| !value.is_empty();
        Self {
            home: std::env::var_os("HOME").filter(is_set).map(PathBuf::from),
            variable: std::env::var_os(VARIABLE).filter(is_set),
            working_dir: std::env::current_dir().unwrap_or_default(),
        }
    }
}

/// Who named the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// The option `--config`.
    Flag,
    /// The variable [`VARIABLE`].
    Variable,
    /// Nobody: it is where the program looks by itself.
    Default,
}

impl FoundBy {
    /// Says it in a few words, for messages.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Flag => "named by --config",
            Self::Variable => "named by $THE_LOOP_CLI_CONFIG",
            Self::Default => "the default",
        }
    }
}

/// Returns the file to read, absolute: `--config`, then [`VARIABLE`], then `~/.the-loop`.
pub(super) fn discover(
    explicit: Option<&Path>,
    env: &Environment,
) -> Result<(PathBuf, FoundBy), ConfigError> {
    let named = match (explicit, env.variable.as_deref()) {
        (Some(path), _) => Some((path, FoundBy::Flag)),
        (None, Some(path)) if !path.is_empty() => Some((Path::new(path), FoundBy::Variable)),
        (None, _) => None,
    };
    let Some((path, found_by)) = named else {
        let home = env.home.as_deref().ok_or(ConfigError::NoHome)?;
        return Ok((env.working_dir.join(home).join(FILE), FoundBy::Default));
    };
    let unusable = |reason: &str| ConfigError::Unusable {
        file: FileName::of(path, None),
        named: found_by.describe(),
        reason: reason.to_owned(),
    };
    // Neither cron nor a service manager expands ~, so it is done here; a name that is not UTF-8
    // cannot begin with one that we would have to expand.
    let path = match path.to_str() {
        Some(text) => absolute(text, &env.working_dir, env.home.as_deref()).map_err(unusable)?,
        None => env.working_dir.join(path),
    };
    Ok((path, found_by))
}

/// Says that a file in the working directory is not read, if one lies there.
///
/// A checkout is not trusted: its file could name other users, programs and folders.
pub(super) fn ignored_file(used: &Path, env: &Environment) -> Option<String> {
    let there = env.working_dir.join(FILE);
    let there_real = std::fs::canonicalize(&there).ok()?;
    if std::fs::canonicalize(used).ok().as_deref() == Some(&there_real) {
        return None;
    }
    Some(format!(
        "{} is not read: a checkout is not trusted; to use it, name it with --config",
        display_path(&there, env.home.as_deref())
    ))
}
