//! `the-loop sessions list`: every session on one line.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::args::StateFilter;
use super::exit::{Exit, Failure};
use super::layout::{Column, Fit};
use super::session_state::State;
use super::{output, setup};
use crate::config::Config;
use crate::daemon::open_store;
use crate::eventlog::kind_phrase;
use crate::model::text::one_line;
use crate::model::{Session, WorkItemRef};
use crate::store::{SessionFace, SessionFaces, SessionFilter, UnreadableSession};

/// Ids are whole, so that they can be copied; titles give first.
const COLUMNS: [Column; 7] = [
    ("WORK ITEM", Fit::Whole),
    ("TITLE", Fit::Cut(12)),
    ("HARNESS", Fit::Cut(7)),
    ("STATE", Fit::Whole),
    ("AGE", Fit::Whole),
    ("LAST EVENT", Fit::Cut(20)),
    ("TMUX", Fit::Optional),
];

/// A session as lists show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) session: Session,
    pub(super) title: String,
    /// What it is in, seen from outside.
    pub(super) state: State,
    pub(super) tmux: String,
    last_event: Option<LastEvent>,
}

/// What reached the session last.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LastEvent {
    kind: String,
    actor: Option<String>,
}

impl Row {
    fn cells(&self, now: DateTime<Utc>) -> Vec<String> {
        let age = |at: DateTime<Utc>| output::age((now - at).num_seconds());
        vec![
            self.session.work_item.short(),
            one_line(&self.title, 40),
            self.session.harness.to_string(),
            self.state.to_string(),
            age(self.session.created_at),
            match self.session.last_event_at {
                Some(at) => format!("{}  {}", age(at), self.last_words()),
                None => "-".to_owned(),
            },
            self.tmux.clone(),
        ]
    }

    /// `comment @octocat`; empty where nothing reached it yet.
    pub(super) fn last_words(&self) -> String {
        let Some(last) = &self.last_event else {
            return String::new();
        };
        match &last.actor {
            Some(actor) => format!("{} @{actor}", kind_phrase(&last.kind)),
            None => kind_phrase(&last.kind).to_owned(),
        }
    }
}

impl From<SessionFace> for Row {
    fn from(face: SessionFace) -> Self {
        let SessionFace {
            session,
            title,
            last_kind,
            last_actor,
        } = face;
        let tmux = session
            .minted_ref
            .session_name()
            .map(|name| name.to_string())
            .unwrap_or_default();
        Self {
            state: State::of(&session),
            title,
            tmux,
            last_event: last_kind.map(|kind| LastEvent {
                kind,
                actor: last_actor,
            }),
            session,
        }
    }
}

pub(super) fn list(
    config: &Config,
    state: Option<StateFilter>,
    json: bool,
) -> Result<Exit, Failure> {
    let SessionFaces {
        readable,
        unreadable,
    } = setup::block_on(async {
        let Some(store) = open_store(config).await? else {
            return Ok(SessionFaces::default());
        };
        let faces = store.registry().faces(SessionFilter::All).await?;
        store.close().await;
        Ok(faces)
    })?;
    let rows: Vec<Row> = readable
        .into_iter()
        .map(Row::from)
        .filter(|row| state.is_none_or(|wanted| row.state.is(wanted)))
        .collect();
    for session in &unreadable {
        output::warning(&cannot_be_read(session));
    }
    if json {
        output::json(&rows)?;
    } else if rows.is_empty() && state.is_some() {
        output::note("no session in this state");
    } else if rows.is_empty() && unreadable.is_empty() {
        output::note(
            "no sessions; one starts with a comment `the-loop start` on an armed item, or with the-loop sessions start",
        );
    } else {
        let now = Utc::now();
        let cells: Vec<Vec<String>> = rows.iter().map(|row| row.cells(now)).collect();
        output::table(&COLUMNS, &cells);
        say_how_to_attach(&rows);
    }
    Ok(if unreadable.is_empty() {
        Exit::Success
    } else {
        Exit::Failure
    })
}

/// Says of a row that nobody can show what it is, and what to do.
pub(super) fn cannot_be_read(session: &UnreadableSession) -> String {
    let item = session.work_item.as_ref();
    let whose = item.map_or_else(|| "a work item".to_owned(), WorkItemRef::short);
    format!(
        "the session of {whose} cannot be read (row {} of table sessions: {}); a newer the-loop may have written \
         it, and can show and close it",
        session.session, session.detail
    )
}

/// Names the command for the session that moved last; a pipe gets the table alone.
fn say_how_to_attach(rows: &[Row]) {
    let attachable = rows.iter().filter(|row| row.session.status.is_open());
    let latest = attachable.max_by_key(|row| row.session.last_event_at);
    if let (Some(row), Some(_)) = (latest, output::room()) {
        let item = row.session.work_item.short();
        output::line("");
        output::line(format!("attach: the-loop sessions attach {item}"));
    }
}
