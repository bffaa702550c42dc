//! Starting this program again in the background.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};

/// The size at which a log is put aside, under its name with `.1`; an older one goes.
const LOG_LIMIT: u64 = 5 * 1024 * 1024;

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
    put_aside(log, LOG_LIMIT)?;
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

/// Keeps the log that this process writes its output to from growing without end.
///
/// # Errors
/// When the log cannot be put aside or opened; this process goes on with the one that it has.
pub fn renew_log(log: &Path) -> io::Result<()> {
    let own = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    if let Some(new) = successor(log, &own, LOG_LIMIT)? {
        rustix::stdio::dup2_stderr(&new)?;
        rustix::stdio::dup2_stdout(&new)?;
    }
    Ok(())
}

/// Puts a full log aside, and opens the one that follows `own`, where that is no longer it.
fn successor(log: &Path, own: &File, limit: u64) -> io::Result<Option<File>> {
    put_aside(log, limit)?;
    let own = own.metadata()?;
    let is_own =
        fs::metadata(log).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
    if is_own {
        Ok(None)
    } else {
        open_log(log).map(Some)
    }
}

fn put_aside(log: &Path, limit: u64) -> io::Result<()> {
    match fs::metadata(log) {
        Ok(found) if found.len() >= limit => {
            let mut aside = log.as_os_str().to_owned();
            aside.push(".1");
            fs::rename(log, aside)
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_full_log_is_put_aside_and_its_writers_follow() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("poll.out");
        let mut own = open_log(&log).unwrap();
        own.write_all(b"first").unwrap();
        assert!(successor(&log, &own, 6).unwrap().is_none());

        own.write_all(b"!").unwrap();
        let mut next = successor(&log, &own, 6).unwrap().unwrap();
        next.write_all(b"second").unwrap();
        let aside = dir.path().join("poll.out.1");
        assert_eq!(fs::read_to_string(&aside).unwrap(), "first!");

        // Somebody else has put it aside.
        put_aside(&log, 6).unwrap();
        assert!(successor(&log, &next, 6).unwrap().is_some());
        assert_eq!(fs::read_to_string(&aside).unwrap(), "second");
        assert_eq!(dir.path().read_dir().unwrap().count(), 2);
    }
}
