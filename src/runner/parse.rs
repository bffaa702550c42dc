//! Lines that tmux printed for us, read back.

use std::path::PathBuf;

use crate::model::{OwnerId, PaneId, TmuxSessionId};

use super::command::TmuxCommand;
use super::field::{Field, Marker, OptionName};
use super::server::{Answer, Unanswered};

/// What [`Marker::Server`] lines show.
const SERVER: &[Field] = &[Field::ServerPid, Field::AnySession, Field::SocketPath];

/// What [`Marker::Pane`] lines show.
const PANE: &[Field] = &[
    Field::SessionId,
    Field::PaneId,
    Field::PanePid,
    Field::PaneDead,
    Field::PaneInFront,
    Field::Hosted,
    Field::HarnessEnded,
    Field::SessionAttached,
    Field::Option(OptionName::Owner),
    Field::Foreground,
    Field::SessionName,
];

/// What a made session shows.
pub(super) const MADE: &[Field] = &[
    Field::ServerPid,
    Field::SessionId,
    Field::PaneId,
    Field::PanePid,
    Field::SocketPath,
];

/// A server at one moment, whole: everything is from one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) server: i32,
    pub(super) socket: PathBuf,
    pub(super) panes: Vec<SeenPane>,
}

/// A pane at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenPane {
    pub(super) session: TmuxSessionId,
    pub(super) pane: PaneId,
    /// None where tmux does not know it any more: the pane is dead, and no host's.
    pub(super) pid: Option<i32>,
    pub(super) dead: bool,
    pub(super) in_front: bool,
    pub(super) hosted: bool,
    pub(super) ended: bool,
    pub(super) attached: u32,
    pub(super) owner: Option<OwnerId>,
    pub(super) foreground: String,
    pub(super) name: String,
}

impl Snapshot {
    /// Returns the session of ours whose pane this is, where another one only shows it: a person's that
    /// shares its windows (`new-session -t`, `link-window`).
    pub(super) fn shown_from(&self, pane: &SeenPane) -> Option<&str> {
        let is_its = |other: &&SeenPane| other.pane == pane.pane && other.owner.is_some();
        let its = self.panes.iter().find(is_its)?;
        pane.owner.is_none().then_some(its.name.as_str())
    }
}

/// What a made session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MadePane {
    pub(super) server: i32,
    pub(super) session: TmuxSessionId,
    pub(super) pane: PaneId,
    pub(super) pid: i32,
    pub(super) socket: PathBuf,
}

/// The question that [`snapshot`] reads the answer of.
pub(super) fn snapshot_question() -> Vec<TmuxCommand> {
    vec![
        TmuxCommand::DisplayMessage {
            target: None,
            marker: Marker::Server,
            fields: SERVER.to_vec(),
        },
        TmuxCommand::ListPanes(PANE.to_vec()),
    ]
}

/// Reads a snapshot; `None` when the answer lacks our marker, so that nothing is known.
///
/// A server without sessions refuses to list panes: its first line says so already.
pub(super) fn snapshot(answer: &Answer) -> Result<Snapshot, Unanswered> {
    let unread = || Unanswered::NoVerdict {
        detail: format!(
            "status {}, {:?}, {} bytes of output",
            answer.status,
            answer.words,
            answer.output.len()
        ),
    };
    let server = fields_of(answer, Marker::Server, SERVER.len())
        .next()
        .ok_or_else(unread)?;
    let [pid, sessions, socket] = server[..] else {
        return Err(unread());
    };
    let panes = fields_of(answer, Marker::Pane, PANE.len())
        .map(|words| pane(&words))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(unread)?;
    // Every session has a pane, so an empty list is the truth of an empty server only.
    let listed = answer.status == 0 && !panes.is_empty();
    if !listed && !sessions.is_empty() {
        return Err(unread());
    }
    Ok(Snapshot {
        server: pid.parse().map_err(|_| unread())?,
        socket: socket.into(),
        panes,
    })
}

fn pane(words: &[&str]) -> Option<SeenPane> {
    let [
        session,
        pane,
        pid,
        dead,
        in_front,
        hosted,
        ended,
        attached,
        owner,
        foreground,
        name,
    ] = words[..]
    else {
        return None;
    };
    Some(SeenPane {
        session: session.parse().ok()?,
        pane: pane.parse().ok()?,
        pid: match pid {
            "" => None,
            pid => Some(pid.parse().ok()?),
        },
        dead: dead == "1",
        in_front: in_front == "1",
        hosted: hosted == "1",
        ended: ended == "1",
        attached: attached.parse().ok()?,
        owner: owner.parse().ok(),
        foreground: foreground.to_owned(),
        name: name.to_owned(),
    })
}

/// Reads the line of a made session.
pub(super) fn made(answer: &Answer) -> Option<MadePane> {
    let line = fields_of(answer, Marker::Made, MADE.len()).next()?;
    let [server, session, pane, pid, socket] = line[..] else {
        return None;
    };
    Some(MadePane {
        server: server.parse().ok()?,
        session: session.parse().ok()?,
        pane: pane.parse().ok()?,
        pid: pid.parse().ok()?,
        socket: socket.into(),
    })
}

/// Returns the fields of each line with this marker: at most `count`, the last may hold anything.
pub(super) fn fields_of(
    answer: &Answer,
    marker: Marker,
    count: usize,
) -> impl Iterator<Item = Vec<&str>> {
    answer.output.lines().filter_map(move |line| {
        let rest = line.strip_prefix(marker.as_str())?.strip_prefix('|')?;
        Some(rest.splitn(count, '|').collect())
    })
}

/// Tells whether a line with this marker was printed.
pub(super) fn said(answer: &Answer, marker: Marker) -> bool {
    answer
        .output
        .lines()
        .any(|line| line.split('|').next() == Some(marker.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::server::Listener;

    fn answer(status: i32, output: &str) -> Answer {
        Answer {
            status,
            output: output.to_owned(),
            words: String::new(),
            listener: Listener::Present,
        }
    }

    const OWNER: &str = "0b6f3a52-6a0e-4a43-9c58-000000000001";

    #[test]
    fn every_pane_of_the_server_is_read() {
        let text = format!(
            "loop-server|41|ss|/tmp/a b/s\nloop-pane|$1|%2|43|0|1|1|0|2|{OWNER}|claude|loop-x\n\
             loop-pane|$1|%3||1|0|0|0|2|_odd_|sh|a|b\n"
        );

        let seen = snapshot(&answer(0, &text)).unwrap();

        assert_eq!(seen.server, 41);
        assert_eq!(seen.socket, PathBuf::from("/tmp/a b/s"));
        assert_eq!(seen.panes[0].owner.as_ref().unwrap().as_str(), OWNER);
        assert!(seen.panes[0].hosted && !seen.panes[0].ended && !seen.panes[0].dead);
        assert!(seen.panes[0].in_front && !seen.panes[1].in_front && seen.panes[1].dead);
        assert_eq!(seen.panes[0].attached, 2);
        assert_eq!(seen.panes[1].name, "a|b");
        assert_eq!((seen.panes[0].pid, seen.panes[1].pid), (Some(43), None));
        assert_eq!(seen.panes[1].owner, None);
    }

    #[test]
    fn a_success_without_our_marker_says_nothing() {
        assert!(snapshot(&answer(0, "")).is_err());
        assert!(snapshot(&answer(0, "something else\n")).is_err());
    }

    #[test]
    fn a_server_with_sessions_must_list_their_panes() {
        assert!(snapshot(&answer(0, "loop-server|41|s|/s\n")).is_err());
        assert!(snapshot(&answer(1, "loop-server|41|s|/s\n")).is_err());
        let empty = snapshot(&answer(1, "loop-server|41||/s\n")).unwrap();
        assert_eq!(empty.panes, []);
    }

    #[test]
    fn a_line_that_cannot_be_read_leaves_everything_unknown() {
        assert!(snapshot(&answer(0, "loop-server|41|s|/s\nloop-pane|x|%1\n")).is_err());
        assert!(
            snapshot(&answer(
                0,
                "loop-server|41|s|/s\nloop-pane|x|%1|43|0|1|1|0|0||sh|n\n"
            ))
            .is_err()
        );
    }
}
