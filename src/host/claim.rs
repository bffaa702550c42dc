//! Taking the ticket: the one act that decides whether this host starts anything.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::Refusal;
use super::marker;
use crate::model::{HostPaths, OwnerId, PromptPassing, Ticket, text};
use crate::process::ticket::{self, TicketError};

/// The longest single argument that the system passes on.
const ARGUMENT_LIMIT: usize = 131_071;

/// What an attempt to take a ticket came to.
pub(super) enum Claimed {
    /// This host starts the harness.
    Ours(Box<Folder>),
    /// Nothing may be started; why.
    Nothing(&'static str),
}

/// A taken ticket's folder.
pub(super) struct Folder {
    pub(super) paths: HostPaths,
    pub(super) owner: OwnerId,
    /// The ticket, or why it cannot be followed.
    pub(super) content: Result<Taken, String>,
}

impl Folder {
    /// Takes the environment out of the file; if need be, with everything else.
    pub(super) fn forget_secrets(&self) {
        let rewritten = self.content.as_ref().ok().and_then(|claim| {
            let public = Ticket {
                env: BTreeMap::new(),
                ..claim.ticket.clone()
            };
            let text = serde_json::to_vec(&public).ok()?;
            ticket::write_private(&self.paths.taken(), &text).ok()
        });
        if rewritten.is_none() {
            ticket::empty(&self.paths.taken());
        }
    }
}

/// A ticket that can be followed.
pub(super) struct Taken {
    pub(super) ticket: Ticket,
    /// The program's arguments, with the prompt as the last.
    pub(super) arguments: Vec<OsString>,
    /// The harness's whole environment.
    pub(super) environment: BTreeMap<OsString, OsString>,
}

impl Taken {
    /// The program's short name, for messages.
    pub(super) fn name(&self) -> String {
        let program = self.ticket.argv.first().map_or("", String::as_str);
        let name = Path::new(program).file_name().unwrap_or_default();
        text::one_line(&name.to_string_lossy(), 40)
    }
}

/// Takes the ticket by renaming it, or revokes it when its time has passed.
pub(super) fn claim(ticket: &Path, now_ms: i64) -> Result<Claimed, Refusal> {
    let misplaced = || Refusal::Misplaced(ticket.to_owned());
    let paths = HostPaths::beside(ticket).ok_or_else(misplaced)?;
    let by_folder = paths
        .dir()
        .file_name()
        .and_then(OsStr::to_str)
        .and_then(|name| name.parse::<OwnerId>().ok())
        .ok_or_else(misplaced)?;
    match ticket::check_folder(paths.dir()) {
        Err(TicketError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Ok(Claimed::Nothing("its files are removed"));
        }
        checked => checked?,
    }
    let Some(bytes) = ticket::read(&paths.ticket())? else {
        return Ok(Claimed::Nothing("the ticket is taken or revoked"));
    };
    let parsed = parse(&bytes);
    let expired = parsed
        .as_ref()
        .is_ok_and(|ticket| ticket.is_expired(now_ms));
    let settled = if expired {
        paths.revoked()
    } else {
        paths.taken()
    };
    match fs::rename(paths.ticket(), &settled) {
        Ok(()) if expired => {
            ticket::empty(&settled);
            return Ok(Claimed::Nothing("the ticket is out of date"));
        }
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Claimed::Nothing("the ticket is taken or revoked"));
        }
        Err(source) => {
            return Err(Refusal::Ticket(TicketError::Io {
                doing: "taking the ticket",
                path: paths.ticket(),
                source,
            }));
        }
    }
    let owner = parsed
        .as_ref()
        .map_or(by_folder, |ticket| ticket.owner.clone());
    Ok(Claimed::Ours(Box::new(Folder {
        content: parsed.and_then(|ticket| prepare(ticket, &paths)),
        owner,
        paths,
    })))
}

fn parse(bytes: &[u8]) -> Result<Ticket, String> {
    let ticket: Ticket = serde_json::from_slice(bytes)
        .map_err(|error| format!("the ticket cannot be read: {error}"))?;
    if ticket.v > Ticket::VERSION {
        let (theirs, ours) = (ticket.v, Ticket::VERSION);
        return Err(format!(
            "the ticket is of version {theirs}, this program knows {ours}: it was replaced by an older one"
        ));
    }
    Ok(ticket)
}

fn prepare(ticket: Ticket, paths: &HostPaths) -> Result<Taken, String> {
    let mut arguments: Vec<OsString> = ticket.argv.iter().skip(1).map(OsString::from).collect();
    if ticket.argv.is_empty() {
        return Err("the ticket names no program".to_owned());
    }
    if ticket.prompt == PromptPassing::LastArgument {
        arguments.push(OsString::from_vec(prompt(paths)?));
    }
    Ok(Taken {
        environment: environment(&ticket),
        arguments,
        ticket,
    })
}

fn prompt(paths: &HostPaths) -> Result<Vec<u8>, String> {
    let path = paths.prompt();
    let prompt = ticket::read(&path)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("the prompt {} is missing", path.display()))?;
    if prompt.len() > ARGUMENT_LIMIT {
        return Err(format!(
            "the prompt has {} bytes, an argument holds {ARGUMENT_LIMIT}; pass it as a file",
            prompt.len()
        ));
    }
    Ok(prompt)
}

/// Exactly what the ticket names, the terminal's type, and the mark by which leftovers are found.
fn environment(ticket: &Ticket) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> = ticket
        .env
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "TMUX" | "TMUX_PANE"))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    if let Some(terminal) = std::env::var_os("TERM") {
        environment.insert("TERM".into(), terminal);
    }
    environment.insert(marker::NAME.into(), ticket.owner.as_str().into());
    environment
}
