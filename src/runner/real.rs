//! The real tmux, run as a child.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::model::{SessionName, TmuxSocket};
use crate::process::{self, Command, Completeness, Environment, Output, run};

use super::command::Target;
use super::render::arguments;
use super::server::{Answer, Invocation, Listener, Start, TmuxServer, Unanswered};

/// A screen with all its history may be long; an answer that is longer is none.
const OUTPUT_LIMIT: usize = 16 << 20;

/// What a server that we start may know of our environment: enough for a person's windows, and none
/// of the tokens that the daemon may have been given.
const KEPT_VARIABLES: &[&str] = &[
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
];

/// Runs the tmux binary; which server it talks to depends on the socket and on nothing inherited.
#[derive(Debug, Clone)]
pub struct RealTmux {
    binary: PathBuf,
    sockets: Option<PathBuf>,
    temporary: PathBuf,
}

/// Whether a person who attaches may type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything typed goes to the agent.
    ReadWrite,
    /// Looking only; the size of the session stays as it is.
    ReadOnly,
}

impl RealTmux {
    /// Uses this binary, an absolute path.
    #[must_use]
    pub fn new(binary: PathBuf) -> Self {
        Self {
            binary,
            sockets: None,
            temporary: real(PathBuf::from("/tmp")),
        }
    }

    /// Keeps named sockets and the default one below this folder instead of `/tmp`.
    ///
    /// The folder must exist: tmux silently takes `/tmp` for one that does not.
    #[must_use]
    pub fn with_sockets_in(mut self, folder: PathBuf) -> Self {
        self.sockets = Some(real(folder));
        self
    }

    /// Returns the binary.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Returns the command with which a person attaches to a session.
    #[must_use]
    pub fn attach(&self, socket: &TmuxSocket, session: &SessionName, access: Access) -> Command {
        let mut command = Command::new(&self.binary).args(self.address(socket));
        // Attaching would start a server where none runs, with what its configuration says.
        command = command.args(["-N", "attach-session"]);
        if access == Access::ReadOnly {
            command = command.args(["-r"]);
        }
        command = command.args(["-t", &Target::Name(session.clone()).render()]);
        let mut set = BTreeMap::new();
        if let Some(folder) = &self.sockets {
            set.insert("TMUX_TMPDIR".into(), folder.into());
        }
        command.env = Environment::Inherit {
            set,
            remove: ["TMUX", "TMUX_PANE", "TMUX_TMPDIR"]
                .map(Into::into)
                .to_vec(),
        };
        command
    }

    fn address(&self, socket: &TmuxSocket) -> Vec<OsString> {
        match socket {
            TmuxSocket::Default => Vec::new(),
            TmuxSocket::Name(name) => vec!["-L".into(), name.into()],
            TmuxSocket::Path(path) => vec!["-S".into(), path.into()],
        }
    }

    fn environment(&self) -> Environment {
        let mut all: BTreeMap<OsString, OsString> = KEPT_VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)))
            .collect();
        all.insert("LANG".into(), "C.UTF-8".into());
        if let Some(folder) = &self.sockets {
            all.insert("TMUX_TMPDIR".into(), folder.into());
        }
        Environment::Exactly(all)
    }

    fn command(&self, invocation: &Invocation) -> Result<Command, Unanswered> {
        let words = arguments(&invocation.commands).map_err(|error| Unanswered::NotRun {
            reason: error.to_string(),
        })?;
        let mut command = Command::new(&self.binary).args(["-u"]);
        if invocation.start == Start::Never {
            command = command.args(["-N"]);
        }
        // A server of our own reads no configuration that was written for another one.
        if matches!(invocation.socket, TmuxSocket::Name(_) | TmuxSocket::Path(_)) {
            command = command.args(["-f", "/dev/null"]);
        }
        command = command.args(self.address(&invocation.socket)).args(words);
        command.env = self.environment();
        command.cwd = Some(match &invocation.folder {
            Some(folder) if folder.is_dir() => folder.clone(),
            _ => PathBuf::from("/"),
        });
        command.stdin = invocation.input.clone().map(String::into_bytes);
        command.deadline = invocation.deadline;
        command.output_limit = OUTPUT_LIMIT;
        Ok(command)
    }

    /// Asks the system, not tmux's words, whether anybody listens.
    async fn listener(&self, socket: &TmuxSocket) -> Listener {
        let path = self.path_of(socket);
        match timeout(Duration::from_secs(1), UnixStream::connect(&path)).await {
            Ok(Err(error))
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused
                ) =>
            {
                Listener::Absent
            }
            _ => Listener::Present,
        }
    }
}

impl TmuxServer for RealTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let output = whole(run(&self.command(invocation)?).await.map_err(unanswered)?)?;
        // A client that was ended by a signal says nothing about the server.
        let Some(status) = output.status.code() else {
            return Err(Unanswered::NoVerdict {
                detail: output.status.to_string(),
            });
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let listener = if status != 0 && output.stdout.is_empty() {
            self.listener(&invocation.socket).await
        } else {
            Listener::Present
        };
        Ok(Answer {
            status,
            output: text(&output.stdout),
            words: text(&output.stderr).trim().to_owned(),
            listener,
        })
    }

    async fn version(&self) -> Result<String, Unanswered> {
        let output = run(&Command::new(&self.binary).args([OsStr::new("-V")]))
            .await
            .map_err(unanswered)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        let name = match socket {
            TmuxSocket::Path(path) => return path.clone(),
            TmuxSocket::Name(name) => name.as_str(),
            TmuxSocket::Default => "default",
        };
        let folder = self.sockets.as_ref().unwrap_or(&self.temporary);
        let user = rustix::process::getuid().as_raw();
        folder.join(format!("tmux-{user}")).join(name)
    }
}

/// Half a list would prove absent what stands in the other half.
fn whole(output: Output) -> Result<Output, Unanswered> {
    match output.completeness {
        Completeness::Whole => Ok(output),
        Completeness::Cut => Err(Unanswered::NoVerdict {
            detail: format!("an answer of more than {OUTPUT_LIMIT} bytes"),
        }),
    }
}

/// Resolves links as tmux does, so that what it reports of a socket compares equal.
fn real(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}

fn unanswered(error: process::Error) -> Unanswered {
    match error {
        process::Error::TimedOut { after, .. } => Unanswered::TimedOut { after },
        process::Error::Start { program, source } => Unanswered::NotRun {
            reason: format!("{}: {source}", program.display()),
        },
        process::Error::Wait { source, .. } => Unanswered::NoVerdict {
            detail: source.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::command::TmuxCommand;

    fn question(socket: TmuxSocket, folder: Option<PathBuf>) -> Invocation {
        Invocation {
            socket,
            start: Start::Never,
            commands: vec![TmuxCommand::ShowWindowSize],
            input: None,
            folder,
            deadline: Duration::from_secs(10),
        }
    }

    #[test]
    fn a_folder_that_is_gone_keeps_no_session_from_being_made() {
        let tmux = RealTmux::new(PathBuf::from("tmux"));
        let there = tempfile::tempdir().unwrap();
        let gone = there.path().join("gone");
        let cwd = |folder: &Path| {
            let question = question(TmuxSocket::Default, Some(folder.to_owned()));
            tmux.command(&question).unwrap().cwd
        };

        assert_eq!(cwd(there.path()).as_deref(), Some(there.path()));
        assert_eq!(cwd(&gone).as_deref(), Some(Path::new("/")));
    }

    #[tokio::test]
    async fn only_a_missing_or_refusing_socket_says_that_nobody_listens() {
        let tmux = RealTmux::new(PathBuf::from("tmux"));
        let folder = tempfile::tempdir().unwrap();
        let too_long = folder.path().join("x".repeat(200));

        let at = async |path: PathBuf| tmux.listener(&TmuxSocket::Path(path)).await;

        assert_eq!(at(folder.path().join("gone")).await, Listener::Absent);
        assert_eq!(at(too_long).await, Listener::Present);
    }

    #[tokio::test]
    async fn a_client_that_succeeds_has_reached_somebody() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = TmuxSocket::Path(folder.path().join("gone"));
        let listener = async |program: &str| {
            let tmux = RealTmux::new(PathBuf::from(program));
            let answer = tmux.call(&question(nowhere.clone(), None)).await;
            answer.unwrap().listener
        };

        assert_eq!(listener("true").await, Listener::Present);
        assert_eq!(listener("false").await, Listener::Absent);
    }

    #[test]
    fn an_answer_that_was_cut_is_none() {
        let output = |completeness| Output {
            status: std::process::ExitStatus::default(),
            stdout: b"PANE|".to_vec(),
            stderr: Vec::new(),
            completeness,
        };

        assert!(whole(output(Completeness::Whole)).is_ok());
        let cut = whole(output(Completeness::Cut)).unwrap_err();
        assert!(matches!(cut, Unanswered::NoVerdict { .. }), "{cut:?}");
    }

    #[tokio::test]
    async fn the_client_says_its_version() {
        // It says what it was asked.
        let tmux = RealTmux::new(PathBuf::from("echo"));

        assert_eq!(tmux.version().await.unwrap(), "-V");
    }
}
