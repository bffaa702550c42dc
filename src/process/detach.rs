//! Starting this program again in the background.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};

/// A process that was started to outlive this one.
#[derive(Debug)]
pub struct Detached {
    /// Its pid.
    pub pid: i32,
    /// What it writes to its standard output: how its start went.
    pub report: ChildStdout,
}

/// Starts this program with `args`: no input, standard error appended to `log`, standard output a
/// pipe to the caller.
///
/// The child calls [`leave_terminal`] itself, so that it survives the shell that started it.
///
/// # Errors
/// When the log cannot be opened or the process cannot be started.
pub fn spawn_detached(args: &[String], log: &Path) -> io::Result<Detached> {
    let log = open_log(log)?;
    #[expect(clippy::disallowed_methods, reason = "this is the process module")]
    let mut child = std::process::Command::new(own_program()?)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let report = child
        .stdout
        .take()
        .ok_or_else(|| io::Error::other("the child has no output pipe"))?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Ok(Detached { pid, report })
}

/// Opens the file that a child's output is appended to; it is for the owner's eyes only.
pub(super) fn open_log(log: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)
}

/// Makes this process the leader of a session of its own, without a terminal.
///
/// # Errors
/// When it already leads a process group.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Points standard output to where standard error goes, once the report is given.
///
/// # Errors
/// When the descriptor cannot be replaced.
pub fn close_report() -> io::Result<()> {
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(())
}

/// Returns how many columns the terminal on standard output has.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Returns the absolute path of this program, as it can be started again.
///
/// Asked once, when a daemon starts: after an upgrade the running file is gone, and tmux would be
/// told a path that does not exist any more.
///
/// # Errors
/// When the system does not say.
pub fn own_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    // Linux marks a replaced file this way; the new one lies at the plain path.
    match path
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"))
    {
        Some(plain) => Ok(PathBuf::from(plain)),
        None => Ok(path),
    }
}
