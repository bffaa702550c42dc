//! Running a child to its end, with a deadline and capped output.
//!
//! A child leads a process group of its own, and the whole group is killed when its time is up or
//! when nobody waits for it any more. What an exit status means is for the caller to say.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::time::timeout;

/// How long output is still read once the child itself has ended: what it wrote is in the pipe by
/// then, and a grandchild may hold the other end for ever.
const DRAIN: Duration = Duration::from_millis(250);

/// How long a killed child may take to be reaped here; after that the runtime does it by itself.
const REAP: Duration = Duration::from_secs(1);

/// A program to run, as data.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// The program; absolute, or found with [`find_program`].
    pub program: PathBuf,
    /// Its arguments, as they reach it.
    pub args: Vec<OsString>,
    /// Its environment.
    pub env: Environment,
    /// Its directory; ours when not given.
    pub cwd: Option<PathBuf>,
    /// What it reads; nothing when not given.
    pub stdin: Option<Vec<u8>>,
    /// When its whole group is killed.
    pub deadline: Duration,
    /// How many bytes of stdout, and of stderr, are kept; the rest is read and thrown away.
    pub output_limit: usize,
}

/// The environment of a child.
#[derive(Clone, PartialEq, Eq)]
pub enum Environment {
    /// Ours, without the names in `remove`, and then with `set`.
    Inherit {
        /// Variables to set.
        set: BTreeMap<OsString, OsString>,
        /// Variables to take away.
        remove: Vec<OsString>,
    },
    /// These variables and no others.
    Exactly(BTreeMap<OsString, OsString>),
}

impl Default for Environment {
    fn default() -> Self {
        Self::Inherit {
            set: BTreeMap::new(),
            remove: Vec::new(),
        }
    }
}

impl Command {
    /// Makes a command without arguments: inherited environment, 10 seconds, 1 MiB of output.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Environment::default(),
            cwd: None,
            stdin: None,
            deadline: Duration::from_secs(10),
            output_limit: 1 << 20,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that starts processes"
    )]
    fn prepared(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args);
        match &self.env {
            Environment::Inherit { set, remove } => {
                for name in remove {
                    command.env_remove(name);
                }
                command.envs(set);
            }
            Environment::Exactly(all) => {
                command.env_clear().envs(all);
            }
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }
}

/// The program and its arguments, quoted where a shell would need it; never the environment.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(self.program.as_os_str()))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('=') {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Shows what is run, and of the environment only the names: values may be secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("line", &self.to_string())
            .field("env", &self.env)
            .field("cwd", &self.cwd)
            .field("stdin", &self.stdin.as_ref().map(Vec::len))
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inherit { set, remove } => f
                .debug_struct("Inherit")
                .field("set", &set.keys())
                .field("remove", remove)
                .finish(),
            Self::Exactly(all) => f.debug_tuple("Exactly").field(&all.keys()).finish(),
        }
    }
}

/// What a child that ended by itself left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended: with a code, or by somebody else's signal.
    pub status: ExitStatus,
    /// The first bytes that it wrote to stdout.
    pub stdout: Vec<u8>,
    /// The first bytes that it wrote to stderr.
    pub stderr: Vec<u8>,
    /// Whether everything that it wrote was kept.
    pub completeness: Completeness,
}

/// Whether the kept output is all that there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// All of it was kept.
    Whole,
    /// There was more than the limit.
    Cut,
}

/// Why a child left no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("starting {program}", program = program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It was killed, with its whole group, because its time was up.
    #[error("{program} did not end within {after:?} and was killed", program = program.display())]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// Its deadline.
        after: Duration,
    },
    /// It was started, but the system would not tell how it ended.
    #[error("waiting for {program}", program = program.display())]
    Wait {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Runs a command to its end and returns what it left behind.
///
/// Dropping the future kills the group. After a kill nothing is read any more: another process may
/// own a copy of the pipe, as a tmux server does of its client's.
///
/// # Errors
/// When the program cannot be started, or does not end within its deadline.
pub async fn run(command: &Command) -> Result<Output, Error> {
    let mut prepared = command.prepared();
    prepared.process_group(0);
    let mut prepared = tokio::process::Command::from(prepared);
    prepared
        .stdin(if command.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = prepared.spawn().map_err(|source| Error::Start {
        program: command.program.clone(),
        source,
    })?;
    let mut group = Group(child);
    let ended = timeout(command.deadline, finish(&mut group.0, command)).await;
    match ended {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(source)) => Err(Error::Wait {
            program: command.program.clone(),
            source,
        }),
        Err(_) => {
            group.kill();
            // An answer that comes now is no longer one; the wait only reaps the child.
            if timeout(REAP, group.0.wait()).await.is_err() {
                tracing::debug!(program = %command.program.display(), "a killed child lingers");
            }
            Err(Error::TimedOut {
                program: command.program.clone(),
                after: command.deadline,
            })
        }
    }
}

/// A child that leads its own group, killed whole unless it was reaped.
struct Group(Child);

impl Group {
    fn kill(&self) {
        // `id` is none once the child was reaped, so the number is still ours and not a stranger's.
        let leader = self.0.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(leader) = leader.and_then(Pid::from_raw)
            && let Err(error) = kill_process_group(leader, Signal::KILL)
        {
            tracing::debug!(%error, "killing a process group");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Feeds and reads the child until it ends, and then for as long as its own output takes.
async fn finish(child: &mut Child, command: &Command) -> io::Result<Output> {
    let mut out = Capture::up_to(command.output_limit);
    let mut err = Capture::up_to(command.output_limit);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let status = {
        let streams = async {
            tokio::join!(
                feed(stdin, command.stdin.as_deref()),
                out.read(stdout),
                err.read(stderr)
            );
        };
        tokio::pin!(streams);
        let (status, streaming) = tokio::select! {
            status = child.wait() => (status?, true),
            () = &mut streams => (child.wait().await?, false),
        };
        if streaming && timeout(DRAIN, streams).await.is_err() {
            tracing::debug!(program = %command.program.display(), "somebody else holds the output");
        }
        status
    };
    let completeness = if out.cut || err.cut {
        Completeness::Cut
    } else {
        Completeness::Whole
    };
    Ok(Output {
        status,
        stdout: out.bytes,
        stderr: err.bytes,
        completeness,
    })
}

/// Writes all of the text and closes the pipe; a child that stops reading is no error.
async fn feed(stdin: Option<ChildStdin>, text: Option<&[u8]>) {
    if let (Some(mut stdin), Some(text)) = (stdin, text)
        && let Err(error) = stdin.write_all(text).await
    {
        tracing::debug!(%error, "a child did not read all of its input");
    }
}

struct Capture {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Capture {
    fn up_to(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            cut: false,
        }
    }

    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut chunk = [0; 4096];
        loop {
            match stream.read(&mut chunk).await {
                Ok(0) => return,
                Ok(got) => {
                    let keep = got.min(self.limit - self.bytes.len());
                    self.bytes.extend(chunk.iter().take(keep));
                    self.cut |= keep < got;
                }
                Err(error) => {
                    tracing::debug!(%error, "reading a child's output");
                    return;
                }
            }
        }
    }
}

/// Replaces this process by the command; returns only when that failed.
///
/// Input, deadline and output limit do not apply: the command has our terminal and our time.
#[must_use]
pub fn exec(command: &Command) -> Error {
    Error::Start {
        program: command.program.clone(),
        source: command.prepared().exec(),
    }
}

/// Finds an executable file: by its path when the name has a slash, else in `path` (`$PATH` when
/// none is given).
///
/// Relative entries of the search path are passed over: what a checkout holds is not trusted.
#[must_use]
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.contains('/') {
        let named = std::path::absolute(name).ok()?;
        return is_executable(&named).then_some(named);
    }
    let inherited = std::env::var_os("PATH");
    std::env::split_paths(path.or(inherited.as_deref())?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
