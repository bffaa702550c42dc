//! Starting the harness behind a barrier.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::claim::Taken;
use super::journal::Journal;
use super::start;
use super::terminal::Terminal;
use crate::model::{Phase, ProcessId};
use crate::process::child::{self, Child, Environment, Streams};
use crate::process::identity;
use crate::process::signal::{Signal, signal_group};

/// A harness that was let go.
pub(super) struct Harness {
    pub(super) id: ProcessId,
    /// Ends when the program was executed; carries the reason when it was not.
    pub(super) barrier: UnixStream,
}

impl Harness {
    /// Reads why the program was not executed, once its process has ended.
    pub(super) fn failure(&mut self) -> Option<String> {
        let mut why = Vec::new();
        self.barrier.set_nonblocking(true).ok();
        // What was read before an error counts.
        self.barrier.read_to_end(&mut why).ok();
        (!why.is_empty()).then(|| String::from_utf8_lossy(&why).into_owned())
    }
}

/// Starts the harness's process, records it, and only then lets it run the program.
pub(super) fn launch(
    taken: &Taken,
    terminal: &Terminal,
    journal: &mut Journal,
) -> Result<Harness, String> {
    let cwd = &taken.ticket.cwd;
    std::env::set_current_dir(cwd).map_err(|error| {
        format!(
            "the working directory {} cannot be entered: {error}",
            cwd.display()
        )
    })?;
    adopt_orphans();
    let (mut barrier, theirs) =
        UnixStream::pair().map_err(|error| format!("making the barrier: {error}"))?;
    let pid = spawn(taken, theirs.into()).map_err(|error| explain(taken, &error.to_string()))?;
    let Some(id) = identity::identify(pid) else {
        // Closing the barrier ends it too; it never ran the program.
        signal_group(pid, Signal::Kill).ok();
        return Err(format!(
            "the system does not tell when process {pid} started"
        ));
    };
    journal.advance(Phase::Running { harness: id });
    terminal.lend(pid);
    // A process that is gone already is seen by its end.
    barrier.write_all(&[start::GO]).ok();
    Ok(Harness { id, barrier })
}

/// Names the file that could not be executed and the usual reason.
pub(super) fn explain(taken: &Taken, why: &str) -> String {
    let program = taken.ticket.argv.first().map_or("", String::as_str);
    format!(
        "{program} cannot be executed: {why} (is it there, and the interpreter that its first line names?)"
    )
}

fn spawn(taken: &Taken, barrier: OwnedFd) -> io::Result<i32> {
    let mut args: Vec<OsString> = vec![
        start::SUBCOMMAND.into(),
        identity::own_pid().to_string().into(),
    ];
    args.extend(taken.ticket.argv.first().map(OsString::from));
    args.extend(taken.arguments.iter().cloned());
    child::start(Child {
        program: &own_program()?,
        args,
        env: Environment::Exactly(&taken.environment),
        streams: Streams::InputFrom(barrier),
    })
}

/// This very program, also when its file was replaced or removed since.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}

/// Makes this process the parent of orphans below it, so that they can be found at the end.
#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // Without it they are still found by terminal session and by mark.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}
