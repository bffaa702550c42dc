//! Steering sessions from this machine: the same deliveries, under the same claims, as a comment.
//!
//! A command is accepted into the inbox like any event. If no daemon holds the item, this process
//! claims it and executes it; else it waits until the holder has.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::json;

use super::args::SteerArgs;
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::config::Config;
use crate::daemon::Services;
use crate::eventlog::{self, Decision};
use crate::model::{
    Class, DeliveryId, DeliveryState, Detail, DropReason, Edit, Event, EventKey, EventKind,
    ItemKind, Login, OperatorCommand, Source, TmuxFate, WorkItemRef,
};
use crate::store::{
    Acceptance, Arrival, ArrivalOutcome, Disposition, ItemFilter, ItemSighting, ResetMode,
    ResetReport, StoreError, Track,
};

/// How long a command waits for whoever holds its work item.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a reset ends sessions that come back.
const ENDS: u32 = 3;

/// Somebody else was faster.
const NO_SESSION: &str = DropReason::NoSession.as_str();

/// Which work items a reset is about.
pub(super) enum Which {
    /// Every recorded one.
    All,
    /// These.
    These(Vec<WorkItemRef>),
}

/// Whether a reset removes anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It only says what it would do.
    DryRun,
    /// It does it.
    Remove,
}

/// Executes an operator's command on a work item.
pub(super) fn command(
    config: &Config,
    args: &SteerArgs,
    command: OperatorCommand,
) -> Result<Exit, Failure> {
    let (state, reason) = setup::block_on(async {
        let services = Services::open(config.clone(), Source::Cli).await?;
        let ended = Box::pin(execute(&services, &args.work_item, command)).await;
        services.store.close().await;
        ended
    })?;
    let word = command.as_str();
    if args.json.json {
        output::json(
            &json!({ "workItem": args.work_item, "command": word, "state": state, "reason": reason }),
        )?;
    } else if state == DeliveryState::Delivered {
        output::line(format!("{}: {word} done", args.work_item.short()));
    } else {
        let why = reason.unwrap_or_else(|| state.to_string());
        let why = eventlog::drop_phrase(&why);
        return Err(Failure::of(format!(
            "{}: {word} was not done: {why}",
            args.work_item.short()
        )));
    }
    Ok(if state == DeliveryState::Delivered {
        Exit::Success
    } else {
        Exit::Failure
    })
}

async fn execute(
    services: &Services,
    item: &WorkItemRef,
    command: OperatorCommand,
) -> Result<(DeliveryState, Option<String>), Failure> {
    let dispatcher = services.dispatcher()?;
    let delivery = accept(services, item, command).await?;
    let began = Instant::now();
    loop {
        Box::pin(dispatcher.work_one(delivery)).await?;
        let Some(row) = services.store.queue().get(delivery).await? else {
            return Err(Failure::of(format!(
                "the command for {} vanished from the inbox: it was reset meanwhile",
                item.short()
            )));
        };
        if row.state.is_final() {
            return Ok((row.state, row.error.or(row.reason)));
        }
        if began.elapsed() > PATIENCE {
            return Err(Failure::of(format!(
                "{} is still busy with something else; the command stays in the inbox and runs as soon as it is free",
                item.short()
            )));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn accept(
    services: &Services,
    item: &WorkItemRef,
    command: OperatorCommand,
) -> Result<DeliveryId, Failure> {
    let known = services.store.ledger().item(item).await?;
    if known.is_none() && command != OperatorCommand::Start {
        return Err(Failure::of(format!(
            "nothing is recorded for {}",
            item.short()
        )));
    }
    let items = if known.is_none() {
        vec![introduce(item)]
    } else {
        Vec::new()
    };
    let arrival = Arrival {
        event: event(item, command),
        source: Source::Cli,
        guid: None,
        disposition: Disposition::Deliver {
            class: Class::Control,
        },
    };
    let batch = Acceptance {
        items,
        arrivals: vec![arrival],
        ..Acceptance::default()
    };
    let accepted = services.store.inbox().accept(&batch).await?;
    match accepted.arrivals.first() {
        Some(ArrivalOutcome::New { delivery, .. }) => Ok(*delivery),
        other => Err(Failure::of(format!(
            "the inbox did not take the command: {other:?}"
        ))),
    }
}

/// Makes the row of an item that no daemon has seen yet; the next cycle fills in the rest.
fn introduce(item: &WorkItemRef) -> ItemSighting {
    let repo = item.repo();
    ItemSighting {
        item: item.clone(),
        repo_id: None,
        kind: ItemKind::Issue,
        title: String::new(),
        url: format!(
            "https://{}/{}/{}/issues/{}",
            repo.host(),
            repo.owner(),
            repo.name(),
            item.number()
        ),
        author: None,
        open: true,
        closed_at: None,
        merged: false,
        // Whatever GitHub says of it later is newer.
        updated_at: DateTime::UNIX_EPOCH,
        armed: false,
        armed_by: None,
        pull: None,
        seen_at: Utc::now(),
        baseline_at: Utc::now(),
        source: Source::Cli,
        track: Track::Always,
    }
}

fn event(item: &WorkItemRef, command: OperatorCommand) -> Event {
    let id = uuid::Uuid::new_v4().simple().to_string();
    Event {
        key: EventKey::new(item.repo().host(), EventKind::Command, &id, "1"),
        kind: EventKind::Command,
        repo: item.repo().clone(),
        repo_id: None,
        number: item.number(),
        on: ItemKind::Issue,
        actor: std::env::var("USER").ok().map(|user| Login::new(&user)),
        edit: Edit::Never,
        title: String::new(),
        body: String::new(),
        url: String::new(),
        occurred_at: Utc::now(),
        detail: Detail::Command { command },
    }
}

/// Forgets what is recorded of work items: all of them, or none.
pub(super) fn reset(
    config: &Config,
    which: Which,
    mode: Mode,
    json: bool,
) -> Result<Exit, Failure> {
    let reports = setup::block_on(async {
        let services = Services::open(config.clone(), Source::Cli).await?;
        let done = Box::pin(reset_all(&services, which, mode)).await;
        services.store.close().await;
        done
    })?;
    if json {
        output::json(&reports)?;
    } else {
        for report in &reports {
            output::line(describe(report, mode));
        }
    }
    if reports.is_empty() {
        return Err(Failure::of("nothing is recorded"));
    }
    Ok(Exit::Success)
}

async fn reset_all(
    services: &Services,
    which: Which,
    mode: Mode,
) -> Result<Vec<ResetReport>, Failure> {
    let mut items = match which {
        Which::These(items) => items,
        Which::All => services
            .store
            .ledger()
            .items(ItemFilter::All)
            .await?
            .into_iter()
            .map(|row| row.item)
            .collect(),
    };
    // Named twice, in whatever spelling, it is reset once.
    let mut known = HashSet::new();
    items.retain(|item| known.insert(item.key()));
    for item in &items {
        if services.store.ledger().item(item).await?.is_none() {
            return Err(Failure::of(format!(
                "nothing is recorded for {}; nothing was reset",
                item.short()
            )));
        }
    }
    if mode == Mode::DryRun {
        return Ok(services
            .store
            .registry()
            .reset(&items, ResetMode::DryRun)
            .await?);
    }
    let mut ends = 0;
    let reports = loop {
        for item in &items {
            end_session(services, item).await?;
        }
        ends += 1;
        // A daemon may have started one again in between: nothing is removed under a running agent.
        match services
            .store
            .registry()
            .reset(&items, ResetMode::Apply)
            .await
        {
            Err(StoreError::SessionOpen { .. }) if ends < ENDS => {}
            reports => break reports?,
        }
    };
    for report in &reports {
        services.log.emit(&Decision::SessionReset {
            work_item: report.item.clone(),
            actor: None,
            removed: removed(report),
            was_live: report
                .sessions
                .iter()
                .any(|session| session.status.is_open()),
            found: true,
            error: None,
        });
    }
    Ok(reports)
}

async fn end_session(services: &Services, item: &WorkItemRef) -> Result<(), Failure> {
    let latest = services.store.registry().latest(item).await?;
    if !latest.is_some_and(|session| session.status.is_open()) {
        return Ok(());
    }
    let close = OperatorCommand::Close {
        tmux: TmuxFate::AsConfigured,
    };
    let (state, reason) = Box::pin(execute(services, item, close)).await?;
    if state == DeliveryState::Delivered || reason.as_deref() == Some(NO_SESSION) {
        return Ok(());
    }
    let why = reason.unwrap_or_else(|| state.to_string());
    Err(Failure::of(format!(
        "the session of {} was not ended ({why}); nothing was reset",
        item.short()
    )))
}

fn removed(report: &ResetReport) -> Vec<String> {
    let mut parts = Vec::new();
    if !report.sessions.is_empty() {
        parts.push("session".to_owned());
    }
    if report.control.is_some() {
        parts.push("control".to_owned());
    }
    parts.push("poll".to_owned());
    parts
}

fn describe(report: &ResetReport, mode: Mode) -> String {
    let verb = match mode {
        Mode::DryRun => "would forget",
        Mode::Remove => "forgot",
    };
    let mut text = format!(
        "{}: {verb} {}",
        report.item.short(),
        removed(report).join(", ")
    );
    if report.queued > 0 {
        text = format!("{text}, {} waiting deliveries", report.queued);
    }
    if report
        .sessions
        .iter()
        .any(|session| session.status.is_open())
        && mode == Mode::DryRun
    {
        text.push_str("; its session is open and would be ended");
    }
    text
}
