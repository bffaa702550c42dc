//! The long-lived parts that daemons and commands share, built once, in order.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::host_id::{self, HostIdError};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Routing, TemplateFile};
use crate::dispatch::{Dispatcher, LOOK_AGAIN, Parts, TmuxForHosts};
use crate::eventlog::{EventLog, Rotation};
use crate::github::{Endpoint, GitHub, GitHubError, Limits, TokenSource};
use crate::harness::Surroundings;
use crate::model::{Source, TmuxSocket};
use crate::process::detach::own_program;
use crate::process::find_program;
use crate::process::identity::{boot_id, own};
use crate::process::table_lock::{TableLock, TableLockError};
use crate::routing::prompt::Prompts;
use crate::runner::{self, LocalMachine, RealTmux, TmuxRunner, TmuxServer, Unanswered, Version};
use crate::store::{ClaimOwner, Store, StoreError, Tuning};

/// The permission bits that let the group and everybody else change a folder.
const OTHERS_WRITE: u32 = 0o022;

/// The permission bit of folders like `/tmp`, which are everybody's on purpose.
const STICKY: u32 = 0o1000;

/// Why the parts could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The state root cannot be used.
    #[error("cannot use the state folder {}: {source}; set state.root in the configuration to a folder of yours", path.display())]
    StateRoot {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others could replace what is in the state root.
    #[error("the state folder {} {why}; set state.root in the configuration to a folder of yours", path.display())]
    SharedStateRoot {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        why: &'static str,
    },
    /// tmux is not installed.
    #[error(
        "tmux is not found on the PATH: install it (Debian: apt-get install tmux, macOS: brew install tmux)"
    )]
    TmuxMissing,
    /// This program does not know its own path.
    #[error("cannot find this program's own file, which every pane runs: {0}")]
    OwnProgram(#[source] std::io::Error),
    /// tmux lacks what the program needs.
    #[error("tmux {found} is too old: {} or newer is needed", runner::OLDEST)]
    TmuxTooOld {
        /// Its version.
        found: Version,
    },
    /// tmux could not be asked for its version.
    #[error("tmux does not tell its version: {0}")]
    TmuxUnanswered(#[from] Unanswered),
    /// Others, whose processes cannot be seen, work on the state root.
    #[error(transparent)]
    TableLock(#[from] TableLockError),
    /// The host has no id.
    #[error(transparent)]
    HostId(#[from] HostIdError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The API client.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
}

/// The shared parts.
#[derive(Debug, Clone)]
pub struct Services {
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
    /// Keeps the configuration channel open, and replaces its value.
    pub publish: Arc<watch::Sender<Arc<Config>>>,
    /// The database.
    pub store: Store,
    /// The log of decisions.
    pub log: EventLog,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Rung after something was accepted.
    pub wake: Arc<Notify>,
    /// Keeps those away whose processes cannot be seen from here.
    _table: Arc<TableLock>,
}

impl Services {
    /// Opens the state root, the database and the event log.
    ///
    /// # Errors
    /// When one of them cannot be used; nothing was changed then.
    pub async fn open(
        config: Config,
        source: Source,
        tuning: Tuning,
    ) -> Result<Self, ServiceError> {
        make_private(&config.state.root)?;
        let table = TableLock::join(&config.state.root)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let host = host_id::of(&config.state.root)?;
        let store = Store::open_with(&database(&config), &host, Arc::clone(&clock), tuning).await?;
        let log = open_log(&config, source);
        let (publish, config) = watch::channel(Arc::new(config));
        Ok(Self {
            config,
            publish: Arc::new(publish),
            store,
            log,
            clock,
            wake: Arc::new(Notify::new()),
            _table: Arc::new(table),
        })
    }

    /// Builds the dispatcher.
    ///
    /// # Errors
    /// When tmux or this program's own file is not found.
    pub fn dispatcher(&self) -> Result<LocalDispatcher, ServiceError> {
        let config = Arc::clone(&self.config.borrow());
        let tmux = tmux(&config)?;
        let socket = socket(&config);
        Ok(Dispatcher::new(Parts {
            store: self.store.clone(),
            tmux: TmuxForHosts {
                binary: tmux.binary().to_owned(),
                socket: tmux.path_of(&socket),
            },
            runner: runner(&config)?,
            config: self.config.clone(),
            log: self.log.clone(),
            clock: Arc::clone(&self.clock),
            owner: ClaimOwner {
                process: own(),
                boot: boot_id(),
            },
            around: Surroundings::current(),
            program: own_program().map_err(ServiceError::OwnProgram)?,
            prompts: prompts(&config.routing),
            wake: Arc::clone(&self.wake),
            look_again: LOOK_AGAIN,
        }))
    }

    /// Checks that this machine's tmux can do what is needed of it.
    ///
    /// # Errors
    /// When it is missing, does not run, or is too old. A version that cannot be read is let pass: it
    /// is somebody's own build.
    pub async fn check_tmux(&self) -> Result<(), ServiceError> {
        let config = Arc::clone(&self.config.borrow());
        let text = tmux(&config)?.version().await?;
        match Version::parse(&text) {
            Some(found) if found < runner::OLDEST => Err(ServiceError::TmuxTooOld { found }),
            _ => Ok(()),
        }
    }

    /// Builds the API client; nothing is asked before its first request.
    ///
    /// # Errors
    /// When the configured address cannot be used.
    pub fn github(&self) -> Result<GitHub, ServiceError> {
        let config = self.config.borrow();
        let github = &config.integrations.github;
        let endpoint = Endpoint::new(&github.api_url, &github.host)?;
        let tokens = TokenSource::of_process(github.token_env.clone());
        Ok(GitHub::new(endpoint, tokens, Limits::default()))
    }
}

/// A dispatcher of this machine's tmux and processes.
pub type LocalDispatcher = Dispatcher<RealTmux, LocalMachine>;

/// A runner of this machine's tmux and processes.
pub type LocalRunner = TmuxRunner<RealTmux, LocalMachine>;

/// Takes the operator's templates, where there are some.
fn prompts(routing: &Routing) -> Prompts {
    let template = |file: &Option<TemplateFile>| file.as_ref().map(|file| file.template.clone());
    Prompts::new(
        template(&routing.prompt_template),
        template(&routing.spawn_prompt_template),
        routing.interaction,
    )
}

/// The database of a configuration.
#[must_use]
pub(super) fn database(config: &Config) -> PathBuf {
    config.state.root.join("loop.db")
}

/// Opens the event log of a configuration.
#[must_use]
pub(super) fn open_log(config: &Config, source: Source) -> EventLog {
    let log = &config.event_log;
    if !log.enabled {
        return EventLog::disabled(source);
    }
    EventLog::open(
        &log.path,
        source,
        Rotation {
            max_bytes: log.max_bytes,
            keep_files: usize::try_from(log.keep_files).unwrap_or(usize::MAX),
        },
    )
}

/// Opens the database of a configuration, for a command that only looks; none where there is none
/// yet, because looking makes nothing.
///
/// # Errors
/// When it cannot be opened.
pub async fn open_store(config: &Config) -> Result<Option<Store>, ServiceError> {
    let (root, database) = (&config.state.root, database(config));
    let exists = database.try_exists();
    let exists = exists.map_err(|source| ServiceError::StateRoot {
        path: root.clone(),
        source,
    })?;
    if !exists {
        return Ok(None);
    }
    make_private(root)?;
    let host = host_id::of(root)?;
    let clock = Arc::new(SystemClock);
    let store = Store::open_with(&database, &host, clock, Tuning::one_reader()).await?;
    Ok(Some(store))
}

/// Builds the tmux runner of a configuration.
///
/// # Errors
/// When tmux is not installed.
pub fn runner(config: &Config) -> Result<LocalRunner, ServiceError> {
    let machine = LocalMachine::new(config.state.root.clone());
    Ok(TmuxRunner::new(
        tmux(config)?,
        machine,
        socket(config),
        runner::Limits::default(),
    ))
}

fn tmux(config: &Config) -> Result<RealTmux, ServiceError> {
    let name = config
        .routing
        .tmux
        .binary
        .as_deref()
        .unwrap_or(Path::new("tmux"));
    let path = std::env::var_os("PATH");
    let binary =
        find_program(&name.to_string_lossy(), path.as_deref()).ok_or(ServiceError::TmuxMissing)?;
    let tmux = RealTmux::new(binary);
    // tmux takes /tmp for a folder that does not exist, and people's own tmux then does too.
    match std::env::var_os("TMUX_TMPDIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_dir())
    {
        Some(folder) => Ok(tmux.with_sockets_in(folder)),
        None => Ok(tmux),
    }
}

fn socket(config: &Config) -> TmuxSocket {
    config
        .routing
        .tmux
        .socket_name
        .clone()
        .map_or(TmuxSocket::Default, TmuxSocket::Name)
}

/// Makes the state root, or makes sure that nobody else can put files into it: whoever can replace
/// the database there decides what agents are told.
fn make_private(root: &Path) -> Result<(), ServiceError> {
    let io = |source| ServiceError::StateRoot {
        path: root.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(root)
        .map_err(io)?;
    let found = std::fs::metadata(root).map_err(io)?;
    let mode = found.mode() & 0o7777;
    let shared = |why| ServiceError::SharedStateRoot {
        path: root.to_owned(),
        why,
    };
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(shared("belongs to another user"));
    }
    if mode & STICKY != 0 {
        return Err(shared("is shared by all users"));
    }
    if mode & OTHERS_WRITE != 0 {
        let permissions = Permissions::from_mode(mode & !OTHERS_WRITE);
        std::fs::set_permissions(root, permissions).map_err(io)?;
        tracing::warn!(
            "{} could be written by others and no longer can",
            root.display()
        );
    }
    Ok(())
}

/// Returns what people call this machine.
pub(super) fn machine_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_state_root_is_made_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("a/b");
        make_private(&root).unwrap();
        assert_eq!(mode(&root), 0o700);
    }

    #[test]
    fn nobody_else_can_write_into_a_state_root_that_was_there() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        make_private(dir.path()).unwrap();
        assert_eq!(mode(dir.path()), 0o755);
    }

    #[test]
    fn a_folder_that_is_everybodys_on_purpose_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        let error = make_private(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is shared by all users"), "{error}");
        assert_eq!(mode(dir.path()), 0o1777);
    }

    #[test]
    fn a_state_root_of_another_user_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::fs::chown(dir.path(), Some(nobody), None).unwrap();
            dir.path()
        } else {
            Path::new("/usr")
        };
        let error = make_private(theirs).unwrap_err().to_string();
        assert!(
            error.contains(&theirs.display().to_string())
                && error.contains("belongs to another user"),
            "{error}"
        );
    }
}
