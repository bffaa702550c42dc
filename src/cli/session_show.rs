//! `the-loop sessions show`: one session with all that is recorded of it, and what its screen shows.

use chrono::{DateTime, Local, Utc};
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::layout::clip;
use super::session_list::Row;
use super::sessions::latest;
use super::{output, setup};
use crate::config::Config;
use crate::daemon::runner;
use crate::model::text::one_line;
use crate::model::{Ending, Phase, Session, WorkItemRef};
use crate::runner::{Address, LocalMachine, Machine, last_lines};

/// How much of the screen is shown.
const LINES: usize = 12;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    #[serde(flatten)]
    row: Row,
    /// How the harness ended, where its host recorded that.
    ended: Option<Ended>,
    /// The last lines of the screen, where tmux has it.
    screen: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    how: Ending,
    at: Option<DateTime<Utc>>,
}

impl Ended {
    fn of(config: &Config, session: &Session) -> Option<Self> {
        let machine = LocalMachine::new(config.state.root.clone());
        match machine.record(&session.owner)?.phase {
            Phase::Ended { ending, at_ms, .. } => Some(Self {
                how: ending,
                at: DateTime::from_timestamp_millis(at_ms),
            }),
            Phase::Starting | Phase::Running { .. } => None,
        }
    }

    fn words(&self) -> String {
        let how = match &self.how {
            Ending::Code(0) => "by itself (exit code 0)".to_owned(),
            Ending::Code(code) => format!("with exit code {code}"),
            Ending::Signal(signal) => format!("by signal {signal}"),
            Ending::Failed(why) => format!("before it ran: {why}"),
        };
        match self.at {
            Some(at) => format!("{how}, {}", time(at)),
            None => how,
        }
    }
}

pub(super) fn show(config: &Config, item: &WorkItemRef, json: bool) -> Result<Exit, Failure> {
    let shown = setup::block_on(async {
        let (store, face) = latest(config, item).await?;
        store.close().await;
        let ended = Ended::of(config, &face.session);
        let screen = screen(config, &face.session).await;
        Ok(Shown {
            row: Row::from(face),
            ended,
            screen,
        })
    })?;
    if json {
        output::json(&shown)?;
    } else {
        print(&shown);
    }
    Ok(Exit::Success)
}

/// Reads the screen; without tmux, or where it does not answer, there is none to show.
async fn screen(config: &Config, session: &Session) -> Vec<String> {
    let (Ok(runner), Ok(name)) = (runner(config), session.minted_ref.session_name()) else {
        return Vec::new();
    };
    let address = Address {
        name,
        owner: Some(session.owner.clone()),
        target: session.target.clone(),
    };
    match runner.capture(&address).await {
        Ok(screen) => last_lines(&screen.unwrap_or_default(), LINES),
        Err(unanswered) => {
            output::note(format!("note: the screen cannot be shown: {unanswered}"));
            Vec::new()
        }
    }
}

fn print(shown: &Shown) {
    let session = &shown.row.session;
    let line = |head: &str, text: &str| output::line(format!("{head:<13} {text}"));
    line(
        "work item",
        &format!(
            "{}  {}",
            session.work_item.short(),
            one_line(&shown.row.title, 200)
        ),
    );
    line("state", &shown.row.state.to_string());
    if let Some(ended) = &shown.ended {
        line("ended", &ended.words());
    }
    line(
        "harness",
        &format!(
            "{}, conversation {}",
            session.harness, session.harness_session_id
        ),
    );
    line("directory", &session.cwd.display().to_string());
    line("tmux", &shown.row.tmux);
    if let Some(target) = &session.target {
        line(
            "pane",
            &format!(
                "{} of {} (server {})",
                target.pane, target.session_id, target.server
            ),
        );
        line(
            "processes",
            &format!("host {}, harness {}", target.host, target.harness),
        );
    }
    line("created", &time(session.created_at));
    if let Some(at) = session.last_event_at {
        line(
            "last event",
            &format!("{}  {}", time(at), shown.row.last_words()),
        );
    }
    if let Some(at) = session.closed_at {
        line("closed", &time(at));
    }
    let attach = format!("the-loop sessions attach {}", session.work_item.short());
    line("attach", &attach);
    if !shown.screen.is_empty() {
        output::line("");
        for text in &shown.screen {
            let text = output::room().map_or_else(|| text.clone(), |room| clip(text, room - 2));
            output::line(format!("│ {text}"));
        }
    }
}

fn time(at: DateTime<Utc>) -> String {
    let local = at.with_timezone(&Local);
    local.format("%Y-%m-%d %H:%M:%S").to_string()
}
