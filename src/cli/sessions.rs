//! `the-loop sessions …`: list, show, attach, and what `steer.rs` does.

use chrono::Utc;
use serde::Serialize;

use super::args::{Global, SessionsArgs, SessionsCommand, StatusFilter};
use super::exit::{Exit, Failure};
use super::{output, setup, steer};
use crate::config::Config;
use crate::daemon::{open_store, runner};
use crate::model::{OperatorCommand, Session, SessionStatus, TmuxFate, WorkItemRef};
use crate::process::exec;
use crate::process::identity::{Life, life_in};
use crate::runner::{Access, Address};
use crate::store::{SessionFilter, Store};

pub(super) fn run(global: &Global, args: SessionsArgs) -> Result<Exit, Failure> {
    let loaded = setup::load_or_defaults(global)?;
    let config = &loaded.config;
    match args.command.meant_on(&config.integrations.github.host) {
        SessionsCommand::List { status, json } => list(config, status, json.json),
        SessionsCommand::Show { work_item, json } => show(config, &work_item, json.json),
        SessionsCommand::Attach {
            work_item,
            read_only,
        } => attach(config, &work_item, read_only),
        SessionsCommand::Start(steer) => steer::command(config, &steer, OperatorCommand::Start),
        SessionsCommand::Pause(steer) => steer::command(config, &steer, OperatorCommand::Pause),
        SessionsCommand::Resume(steer) => steer::command(config, &steer, OperatorCommand::Resume),
        SessionsCommand::Stop(steer) => steer::command(config, &steer, OperatorCommand::Stop),
        SessionsCommand::Close {
            steer,
            keep_tmux,
            kill_tmux,
        } => {
            let tmux = match (keep_tmux, kill_tmux) {
                (true, _) => TmuxFate::Keep,
                (_, true) => TmuxFate::Kill,
                (false, false) => TmuxFate::AsConfigured,
            };
            steer::command(config, &steer, OperatorCommand::Close { tmux })
        }
        SessionsCommand::Reset {
            work_items,
            all,
            dry_run,
            json,
        } => {
            let which = if all {
                steer::Which::All
            } else {
                steer::Which::These(work_items)
            };
            let mode = if dry_run {
                steer::Mode::DryRun
            } else {
                steer::Mode::Remove
            };
            steer::reset(config, which, mode, json.json)
        }
    }
}

/// A session as lists show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    session: Session,
    title: String,
    /// What it is in, seen from outside.
    state: &'static str,
    tmux: String,
}

impl Row {
    async fn of(store: &Store, session: Session) -> Result<Self, Failure> {
        let title = store
            .ledger()
            .item(&session.work_item)
            .await?
            .map(|row| row.title)
            .unwrap_or_default();
        let tmux = session
            .minted_ref
            .session_name()
            .map(|name| name.to_string())
            .unwrap_or_default();
        Ok(Self {
            state: state(&session),
            title,
            tmux,
            session,
        })
    }

    fn cells(&self) -> Vec<String> {
        let now = Utc::now();
        let age = |at: chrono::DateTime<Utc>| output::age((now - at).num_seconds());
        vec![
            self.session.work_item.short(),
            crate::model::text::one_line(&self.title, 30),
            self.session.harness.to_string(),
            self.state.to_owned(),
            age(self.session.created_at),
            self.session
                .last_event_at
                .map_or_else(|| "-".to_owned(), age),
            self.tmux.clone(),
        ]
    }
}

/// Says what a session is in, from its row and from whether its harness still runs.
fn state(session: &Session) -> &'static str {
    let runs = session
        .target
        .as_ref()
        .map(|target| life_in(&target.boot, &target.harness));
    match (session.status, runs) {
        (SessionStatus::Spawning, _) => "spawning",
        (SessionStatus::Active, Some(Life::Running)) => "running",
        (SessionStatus::Active, Some(Life::Unknown)) => "unknown",
        // The next event starts it again.
        (SessionStatus::Active, Some(Life::Gone) | None) => "ended",
        (SessionStatus::Paused, Some(Life::Running)) => "paused",
        (SessionStatus::Paused, _) => "paused, ended",
        (SessionStatus::Closed, Some(Life::Running)) => "closed, runs on",
        (SessionStatus::Closed, _) => "closed",
    }
}

fn list(config: &Config, status: Option<StatusFilter>, json: bool) -> Result<Exit, Failure> {
    let filter = match status {
        None => SessionFilter::All,
        Some(StatusFilter::Spawning) => SessionFilter::In(SessionStatus::Spawning),
        Some(StatusFilter::Active) => SessionFilter::In(SessionStatus::Active),
        Some(StatusFilter::Paused) => SessionFilter::In(SessionStatus::Paused),
        Some(StatusFilter::Closed) => SessionFilter::In(SessionStatus::Closed),
    };
    let rows = setup::block_on(async {
        let store = open_store(config).await?;
        let mut rows = Vec::new();
        for session in store.registry().list(filter).await? {
            rows.push(Row::of(&store, session).await?);
        }
        store.close().await;
        Ok(rows)
    })?;
    if json {
        output::json(&rows)?;
    } else if rows.is_empty() {
        output::note(
            "no sessions; one starts with a comment `the-loop start` on an armed item, or with the-loop sessions start",
        );
    } else {
        let header = [
            "WORK ITEM",
            "TITLE",
            "HARNESS",
            "STATE",
            "AGE",
            "LAST EVENT",
            "TMUX",
        ];
        output::table(&header, rows.iter().map(Row::cells));
    }
    Ok(Exit::Success)
}

async fn latest(store: &Store, item: &WorkItemRef) -> Result<Session, Failure> {
    store
        .registry()
        .latest(item)
        .await?
        .ok_or_else(|| Failure::of(format!("no session is recorded for {}", item.short())))
}

fn show(config: &Config, item: &WorkItemRef, json: bool) -> Result<Exit, Failure> {
    let row = setup::block_on(async {
        let store = open_store(config).await?;
        let session = latest(&store, item).await?;
        let row = Row::of(&store, session).await?;
        store.close().await;
        Ok(row)
    })?;
    if json {
        output::json(&row)?;
        return Ok(Exit::Success);
    }
    let session = &row.session;
    let line = |head: &str, text: &str| output::line(format!("{head:<13} {text}"));
    line(
        "work item",
        &format!("{}  {}", session.work_item, row.title),
    );
    line("state", row.state);
    line(
        "harness",
        &format!(
            "{}, conversation {}",
            session.harness, session.harness_session_id
        ),
    );
    line("directory", &session.cwd.display().to_string());
    line("tmux", &row.tmux);
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
    line("created", &session.created_at.to_rfc3339());
    if let Some(at) = session.last_event_at {
        line("last event", &at.to_rfc3339());
    }
    if let Some(at) = session.closed_at {
        line("closed", &at.to_rfc3339());
    }
    line(
        "attach",
        &format!("the-loop sessions attach {}", session.work_item.short()),
    );
    Ok(Exit::Success)
}

fn attach(config: &Config, item: &WorkItemRef, read_only: bool) -> Result<Exit, Failure> {
    let session = setup::block_on(async {
        let store = open_store(config).await?;
        let session = latest(&store, item).await?;
        store.close().await;
        Ok(session)
    })?;
    let name = session.minted_ref.session_name()?;
    let access = if read_only || !session.status.is_open() {
        Access::ReadOnly
    } else {
        Access::ReadWrite
    };
    if access == Access::ReadOnly && !read_only {
        output::note(format!(
            "the session of {} is closed: attaching read-only",
            item.short()
        ));
    }
    let address = Address {
        name,
        owner: Some(session.owner.clone()),
        target: session.target.clone(),
    };
    let command = runner(config)?.attach_command(&address, access);
    // Returns only where tmux could not be started.
    Err(Failure::of(exec(&command)))
}
