//! The files of one spawn: its ticket, its prompt, and the record that its host keeps.
//!
//! A ticket starts one harness or none: the host takes it by one rename, whoever gives the spawn up
//! revokes it by another, and the file system lets exactly one of them win. All functions here
//! block for a few file operations with their syncs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::identity::{Life, life_in};
use crate::model::{BootId, HostPaths, OwnerId, ProcessId, PromptPassing, Record, Ticket};

/// Why a file of a spawn could not be written, read or believed.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// A file operation failed.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder could have been prepared by somebody else.
    #[error("{} is not a folder that only this user can enter: {why}; remove it", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The spawn has a ticket already, open or settled.
    #[error("the spawn in {} has its ticket already; revoke it and mint a new owner id", path.display())]
    AlreadyIssued {
        /// The folder.
        path: PathBuf,
    },
    /// The work on the files broke down.
    #[error("the work on a ticket broke down: {0}")]
    BrokenDown(#[from] io::Error),
    /// A file does not hold what it should.
    #[error("reading {}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

/// What became of a ticket that was to be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// It is revoked, now or earlier: it started nothing and never will.
    Won,
    /// The host has it: the harness is ours to complete or to end.
    AlreadyTaken,
    /// There never was one.
    Absent,
}

/// The processes that a record names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedProcesses {
    /// The host.
    pub host: ProcessId,
    /// The harness, where it was started.
    pub harness: Option<ProcessId>,
    /// The boot in which they run.
    pub boot: BootId,
}

impl RecordedProcesses {
    /// Returns one that is not proved gone.
    #[must_use]
    pub fn left(&self) -> Option<ProcessId> {
        let mut all = self.harness.into_iter().chain([self.host]);
        all.find(|process| life_in(&self.boot, process) != Life::Gone)
    }
}

/// Where a ticket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketState {
    /// None was issued.
    Absent,
    /// Nobody has it yet.
    Open,
    /// The host took it.
    Taken,
    /// It was given up.
    Revoked,
}

/// Writes the prompt and then the ticket of a spawn, in a folder of its own.
///
/// The prompt is written only where the ticket passes one.
///
/// # Errors
///
/// [`TicketError::AlreadyIssued`] when the owner id was used before; an interrupted call leaves no
/// ticket and can be repeated.
pub fn issue(paths: &HostPaths, ticket: &Ticket, prompt: &str) -> Result<(), TicketError> {
    make_folder(paths.dir())?;
    if state(paths)? != TicketState::Absent {
        return Err(TicketError::AlreadyIssued {
            path: paths.dir().to_owned(),
        });
    }
    if ticket.prompt == PromptPassing::LastArgument {
        write_private(&paths.prompt(), prompt.as_bytes())?;
    }
    let text = serde_json::to_vec(ticket).map_err(|source| TicketError::Malformed {
        path: paths.ticket(),
        source,
    })?;
    let draft = write_draft(&paths.ticket(), &text)?;
    // A link, unlike a rename, never replaces a ticket that appeared meanwhile.
    let linked = fs::hard_link(&draft, paths.ticket());
    fs::remove_file(&draft).map_err(io_error("removing the draft", &draft))?;
    linked.map_err(io_error("issuing the ticket", &paths.ticket()))?;
    sync_folder(paths.dir())
}

/// Gives a ticket up, unless the host has it.
///
/// # Errors
///
/// An error proves nothing: the ticket may still be open.
pub fn revoke(paths: &HostPaths) -> Result<Revoked, TicketError> {
    match fs::rename(paths.ticket(), paths.revoked()) {
        Ok(()) => {
            empty(&paths.revoked());
            sync_folder(paths.dir())?;
            Ok(Revoked::Won)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(match settled(paths)? {
            Some(TicketState::Taken) => Revoked::AlreadyTaken,
            Some(_) => Revoked::Won,
            None => Revoked::Absent,
        }),
        Err(error) => Err(io_error("revoking the ticket", &paths.ticket())(error)),
    }
}

/// Tells where a ticket stands.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn state(paths: &HostPaths) -> Result<TicketState, TicketError> {
    // In this order: a ticket only ever moves from open to settled, so none is missed.
    if present(&paths.ticket())? {
        return Ok(TicketState::Open);
    }
    Ok(settled(paths)?.unwrap_or(TicketState::Absent))
}

/// Reads what the host recorded; none while it has not taken the ticket.
///
/// # Errors
///
/// When the record cannot be read or understood; that says nothing about the harness.
pub fn record(paths: &HostPaths) -> Result<Option<Record>, TicketError> {
    read_json(paths.record())
}

/// Reads which processes a record names, whatever else a newer version of the program wrote into it.
///
/// # Errors
///
/// When the record cannot be read or does not name its host; that says nothing about the harness.
pub fn recorded_processes(paths: &HostPaths) -> Result<Option<RecordedProcesses>, TicketError> {
    read_json(paths.record())
}

/// Reads a ticket that nobody has yet.
///
/// # Errors
///
/// When the ticket cannot be read or understood.
pub fn open(paths: &HostPaths) -> Result<Option<Ticket>, TicketError> {
    read_ticket(paths.ticket())
}

/// Reads a ticket that the host took; none where nobody did, or its host had to empty it.
///
/// # Errors
///
/// When the ticket cannot be read or understood.
pub fn taken(paths: &HostPaths) -> Result<Option<Ticket>, TicketError> {
    read_ticket(paths.taken())
}

/// Returns the spawns that have files below this state root.
///
/// # Errors
///
/// When the folder of the spawns cannot be read.
pub fn all(state_root: &Path) -> Result<Vec<OwnerId>, TicketError> {
    let folder = HostPaths::all(state_root);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io_error("listing", &folder))?,
    };
    let mut owners = Vec::new();
    for entry in entries {
        let name = entry.map_err(io_error("listing", &folder))?.file_name();
        // What is not called as we call them is not ours.
        owners.extend(name.to_str().and_then(|name| name.parse().ok()));
    }
    Ok(owners)
}

/// Removes the files of a spawn whose session is verified gone.
///
/// # Errors
///
/// When something remains.
pub fn remove(paths: &HostPaths) -> Result<(), TicketError> {
    match fs::remove_dir_all(paths.dir()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(io_error("removing", paths.dir())(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn read_json<R: DeserializeOwned>(path: PathBuf) -> Result<Option<R>, TicketError> {
    read(&path)?.map(|text| parse(path, &text)).transpose()
}

/// Reads a ticket; none as well where it was emptied.
fn read_ticket(path: PathBuf) -> Result<Option<Ticket>, TicketError> {
    let text = read(&path)?.filter(|text| !text.is_empty());
    text.map(|text| parse(path, &text)).transpose()
}

fn parse<R: DeserializeOwned>(path: PathBuf, text: &[u8]) -> Result<R, TicketError> {
    serde_json::from_slice(text).map_err(|source| TicketError::Malformed { path, source })
}

/// Reads a whole file; none when it is not there. Links are not followed.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, TicketError> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(no_follow)
        .open(path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("reading", path)(error)),
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(io_error("reading", path))?;
    Ok(Some(text))
}

/// Writes a file that only this user reads, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), TicketError> {
    let draft = write_draft(path, bytes)?;
    fs::rename(&draft, path).map_err(io_error("writing", path))?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Refuses a folder that somebody else owns, can enter, or put a link in the place of.
pub(crate) fn check_folder(dir: &Path) -> Result<(), TicketError> {
    let meta = fs::symlink_metadata(dir).map_err(io_error("examining", dir))?;
    let why = if !meta.is_dir() {
        "it is a link or a file"
    } else if meta.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if meta.mode() & 0o077 != 0 {
        "other users have access to it"
    } else {
        return Ok(());
    };
    Err(TicketError::Unsafe {
        path: dir.to_owned(),
        why,
    })
}

fn make_folder(dir: &Path) -> Result<(), TicketError> {
    if let Some(parent) = dir.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.map_err(io_error("creating", parent))?;
        check_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(io_error("creating", dir)(error))
        }
        Ok(()) | Err(_) => check_folder(dir),
    }
}

/// Empties a settled ticket, which may hold secrets: from then on only its name matters.
pub(crate) fn empty(settled: &Path) {
    // Shortening works on a full disk too; where it fails the file is still this user's alone.
    let file = OpenOptions::new().write(true).open(settled);
    file.and_then(|file| file.set_len(0)).ok();
}

fn write_draft(path: &Path, bytes: &[u8]) -> Result<PathBuf, TicketError> {
    let draft = path.with_extension("new");
    // What cannot be removed cannot be created anew either.
    fs::remove_file(&draft).ok();
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(io_error("writing", &draft))?;
    Ok(draft)
}

fn settled(paths: &HostPaths) -> Result<Option<TicketState>, TicketError> {
    Ok(if present(&paths.taken())? {
        Some(TicketState::Taken)
    } else if present(&paths.revoked())? {
        Some(TicketState::Revoked)
    } else {
        None
    })
}

fn present(path: &Path) -> Result<bool, TicketError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io_error("examining", path)(error)),
    }
}

fn sync_folder(dir: &Path) -> Result<(), TicketError> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(io_error("syncing", dir))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TicketError + use<> {
    let path = path.to_owned();
    move |source| TicketError::Io {
        doing,
        path,
        source,
    }
}

#[cfg(test)]
#[path = "ticket_tests.rs"]
mod tests;
