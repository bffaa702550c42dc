//! Reading the file and making it a [`Config`].

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check::{Checker, Purpose};
use super::discover::{self, Environment, FoundBy};
use super::harnesses;
use super::key_path::KeyPath;
use super::problem::{FileName, Findings, Place, Problem, Problems, Verdict};
use super::schema::ConfigFile;
use super::show::Origins;
use super::tree::{self, Node};
use super::walk;
use super::{Config, MINIMAL};

/// Far above any real file; it keeps a wrong path (a log, a device) from being read whole.
const MAX_BYTES: u64 = 1024 * 1024;

/// A configuration and all that is worth saying about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration, valid and complete.
    pub config: Config,
    /// The file that it comes from, absolute; `None` when there is none.
    pub path: Option<PathBuf>,
    /// Who named the file.
    pub found_by: FoundBy,
    /// The file as it is shown to people.
    pub shown_path: String,
    /// Where each value comes from.
    pub origins: Origins,
    /// What is allowed but hardly meant.
    pub warnings: Vec<Problem>,
    /// What the operator should know and need not change.
    pub notes: Vec<String>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No file is named and there is no home directory to look in.
    #[error("no configuration: HOME is not set; name a file with --config")]
    NoHome,
    /// No file is named and the default one does not exist.
    #[error(
        "no configuration: {file} does not exist\n\nWrite it; this is enough to begin with:\n\n{}\nor name another file with --config or $THE_LOOP_CLI_CONFIG.",
        indented(MINIMAL)
    )]
    NoFile {
        /// The file.
        file: FileName,
    },
    /// The named file cannot be read.
    #[error("cannot use {file}, {named}: {reason}")]
    Unusable {
        /// The file.
        file: FileName,
        /// Who named it.
        named: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The file has problems; all of them.
    #[error("{0}")]
    Invalid(Problems),
    /// Polling was asked for and nothing is to be polled.
    #[error(
        "nothing to poll: {file} has no polling.sources; add for example\n\n{}",
        indented(MINIMAL)
    )]
    NoSources {
        /// The file.
        file: FileName,
    },
}

impl ConfigError {
    /// Returns the object that `config check --json` prints.
    #[must_use]
    pub fn json(&self) -> Value {
        let (file, own) = match self {
            Self::Invalid(found) => {
                return Verdict {
                    file: found.file.path.as_deref(),
                    valid: false,
                    problems: &found.list,
                    warnings: &found.warnings,
                    notes: &found.notes,
                }
                .json();
            }
            Self::NoFile { file } | Self::Unusable { file, .. } | Self::NoSources { file } => {
                (file.path.as_deref(), self.to_string())
            }
            Self::NoHome => (None, self.to_string()),
        };
        Verdict {
            file,
            valid: false,
            problems: &[Problem::new(None, &KeyPath::default(), &own)],
            warnings: &[],
            notes: &[],
        }
        .json()
    }

    /// Returns the closing line of a report, where the message does not say what to do itself.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(_) => Some(
                "`the-loop config check` checks again; `the-loop config schema` lists every key.",
            ),
            Self::NoHome | Self::NoFile { .. } | Self::Unusable { .. } | Self::NoSources { .. } => {
                None
            }
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

impl Config {
    /// Finds, reads and validates the configuration, to work by it.
    ///
    /// # Errors
    /// [`ConfigError`]; [`ConfigError::Invalid`] holds every problem of the file at once.
    pub fn load(explicit: Option<&Path>, env: &Environment) -> Result<Loaded, ConfigError> {
        Self::load_for(Purpose::Work, explicit, env)
    }

    /// The same for a purpose.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_for(
        purpose: Purpose,
        explicit: Option<&Path>,
        env: &Environment,
    ) -> Result<Loaded, ConfigError> {
        let (path, found_by) = discover::discover(explicit, env)?;
        let file = FileName::of(&path, env.home.as_deref());
        let (bytes, mode) = read(&path).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound && found_by == FoundBy::Default {
                ConfigError::NoFile { file: file.clone() }
            } else {
                ConfigError::Unusable {
                    file: file.clone(),
                    named: found_by.describe(),
                    reason: error.to_string(),
                }
            }
        })?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let notes: Vec<String> = discover::ignored_file(&path, env).into_iter().collect();
        let invalid =
            |found| ConfigError::Invalid(Problems::new(file.clone(), found, notes.clone()));
        let text = utf8(&bytes).map_err(|problem| invalid(only(vec![problem])))?;
        let home = env.home.as_deref();
        let parsed = build(text, folder, home, Some(mode), purpose).map_err(invalid)?;
        Ok(Loaded {
            config: parsed.config,
            origins: Origins::of(&parsed.tree),
            warnings: parsed.warnings,
            path: Some(path),
            found_by,
            shown_path: file.shown,
            notes,
        })
    }
}

impl Loaded {
    /// Returns the error of a command that polls, if nothing is to be polled.
    ///
    /// # Errors
    /// [`ConfigError::NoSources`].
    pub fn require_sources(&self) -> Result<(), ConfigError> {
        if self.config.polling.sources.is_empty() {
            return Err(ConfigError::NoSources {
                file: FileName {
                    path: self.path.clone(),
                    shown: self.shown_path.clone(),
                },
            });
        }
        Ok(())
    }

    /// Returns what an empty file would mean, for commands that can do without one.
    ///
    /// The state root is `~/.the-loop`.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn defaults(env: &Environment) -> Result<Self, ConfigError> {
        let home = env.home.as_deref().ok_or(ConfigError::NoHome)?;
        let folder = env.working_dir.join(home).join(".the-loop");
        let file = FileName {
            path: None,
            shown: "the built-in defaults".to_owned(),
        };
        let built = build("", &folder, Some(home), None, Purpose::Work).map_err(|found| {
            ConfigError::Invalid(Problems::new(file.clone(), found, Vec::new()))
        })?;
        Ok(Self {
            config: built.config,
            path: None,
            found_by: FoundBy::Default,
            shown_path: file.shown,
            origins: Origins::of(&built.tree),
            warnings: built.warnings,
            notes: Vec::new(),
        })
    }
}

/// Reads the file and its permissions from one open file, so that both belong together.
fn read(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("is a folder; name the file in it"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(
            "is larger than 1 MiB; is it the right file?",
        ));
    }
    Ok((bytes, metadata.permissions().mode()))
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line_start = valid
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1);
            let place = Place {
                line: valid.iter().filter(|b| **b == b'\n').count() + 1,
                column: String::from_utf8_lossy(valid.get(line_start..).unwrap_or_default())
                    .chars()
                    .count()
                    + 1,
            };
            let message = "not UTF-8; save the file with that encoding";
            Err(Problem::new(Some(place), &KeyPath::default(), message))
        }
    }
}

pub(super) struct Built {
    pub(super) config: Config,
    pub(super) tree: Node,
    pub(super) warnings: Vec<Problem>,
}

pub(super) fn build(
    text: &str,
    folder: &Path,
    home: Option<&Path>,
    mode: Option<u32>,
    purpose: Purpose,
) -> Result<Built, Findings> {
    let (tree, mut problems) = tree::parse(text);
    let Some(tree) = tree else {
        return Err(only(problems));
    };
    let (value, differences) = walk::walk(&tree);
    let file: ConfigFile = match serde_json::from_value(value) {
        Ok(file) => file,
        Err(error) => {
            // The walk promises a value that fits; should it ever break the promise, nothing is
            // accepted unseen.
            let message = format!("not understood: {error}");
            problems.extend(differences);
            problems.push(Problem::new(None, &KeyPath::default(), &message));
            return Err(only(problems));
        }
    };
    let mut checker = Checker::new(&tree, folder, home, purpose, differences);
    let config = file.validate(&mut checker);
    if let Some(mode) = mode {
        check_permissions(mode, &mut checker);
    }
    let (found, warnings) = checker.finish();
    problems.extend(found);
    if problems.is_empty() {
        Ok(Built {
            config,
            tree,
            warnings,
        })
    } else {
        Err(Findings { problems, warnings })
    }
}

/// Findings of a file that could not be read far enough for warnings.
fn only(problems: Vec<Problem>) -> Findings {
    Findings {
        problems,
        warnings: Vec::new(),
    }
}

impl ConfigFile {
    fn validate(self, checker: &mut Checker<'_>) -> Config {
        let integrations = self.integrations.validate(checker);
        let harnesses = harnesses::validate(self.harnesses, self.routing.harness_args(), checker);
        let names: Vec<&str> = harnesses.keys().map(|name| name.0.as_str()).collect();
        let routing = self.routing.validate(&names, checker);
        let polling = self.polling.validate(
            &integrations.github.host,
            &routing.auto_execute_label,
            checker,
        );
        let state = self.state.validate(checker);
        routing.check_apart(&state.root, checker);
        let event_log = self.event_log.validate(&state.root, checker);
        Config {
            state,
            polling,
            routing,
            harnesses,
            event_log,
            integrations,
        }
    }
}

fn check_permissions(mode: u32, checker: &mut Checker<'_>) {
    let top = KeyPath::default();
    if mode & 0o002 != 0 {
        checker.warning(
            &top,
            "everybody on this machine can write the file, and so decide whom the agents obey: chmod 600 it",
        );
    }
    if let Some(key) = checker.secret()
        && mode & 0o044 != 0
    {
        checker.warning(
            &key,
            "holds what looks like a secret, and others can read the file: chmod 600 it, or use passEnv",
        );
    }
}
