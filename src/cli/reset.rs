//! `the-loop sessions reset`: forgetting what is recorded of work items.

use std::collections::HashSet;

use super::exit::{Exit, Failure};
use super::{output, setup, steer};
use crate::config::Config;
use crate::daemon::{Services, open_store};
use crate::eventlog::{About, ControlOrigin, Decision};
use crate::model::text::count;
use crate::model::{DeliveryState, DropReason, OperatorCommand, Source, TmuxFate, WorkItemRef};
use crate::store::{ItemFilter, ResetMode, ResetReport, StoreError, Tuning};

/// How often a reset ends sessions that come back.
const ENDS: u32 = 3;

/// Why a close has nothing to end.
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

/// Forgets what is recorded of work items: all of them, or none.
pub(super) fn run(config: &Config, which: Which, mode: Mode, json: bool) -> Result<Exit, Failure> {
    let reports = setup::block_on(async {
        // Nothing is made in order to find it empty.
        let Some(store) = open_store(config).await? else {
            return Ok(Vec::new());
        };
        store.close().await;
        let services = Services::open(config.clone(), Source::Cli, Tuning::one_reader()).await?;
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
    let mut ended = Vec::new();
    match end_and_forget(services, &items, &mut ended).await {
        Err(failure) if !ended.is_empty() => Err(failure.adding(format!(
            "these sessions were ended before that: {}",
            ended.join(", ")
        ))),
        done => done,
    }
}

/// Ends each session, then forgets all items at once; notes down whose session it has ended.
async fn end_and_forget(
    services: &Services,
    items: &[WorkItemRef],
    ended: &mut Vec<String>,
) -> Result<Vec<ResetReport>, Failure> {
    let mut ends = 0;
    loop {
        for item in items {
            if end_session(services, item).await? == Ended::Now && !ended.contains(&item.short()) {
                ended.push(item.short());
            }
        }
        ends += 1;
        // A daemon may have started one again in between: nothing is removed under a running agent.
        let say = |reports: &[ResetReport]| reports.iter().for_each(|one| say(services, one));
        let registry = services.store.registry();
        match registry.reset_saying(items, ResetMode::Apply, say).await {
            Err(StoreError::SessionOpen { .. }) if ends < ENDS => {}
            reports => return Ok(reports?),
        }
    }
}

/// Writes down what a reset forgets, and each delivery that it drops.
fn say(services: &Services, report: &ResetReport) {
    for waiting in &report.waiting {
        let about = About::of(&waiting.item, waiting.delivery, &waiting.event);
        let dropped = Decision::dropped(about, DropReason::Reset, None);
        services.log.emit(&dropped);
    }
    services.log.emit(&Decision::SessionReset {
        work_item: report.item.clone(),
        via: ControlOrigin::Cli,
        actor: steer::operator(),
        removed: removed(report),
        was_live: report
            .sessions
            .iter()
            .any(|session| session.status.is_open()),
    });
}

/// Who ended a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// This reset.
    Now,
    /// It was over already, or somebody else was faster.
    Before,
}

async fn end_session(services: &Services, item: &WorkItemRef) -> Result<Ended, Failure> {
    let latest = services.store.registry().latest(item).await?;
    if !latest.is_some_and(|session| session.status.is_open()) {
        return Ok(Ended::Before);
    }
    let close = OperatorCommand::Close {
        tmux: TmuxFate::AsConfigured,
    };
    let (state, reason) = Box::pin(steer::execute(services, item, close)).await?;
    if state == DeliveryState::Delivered {
        return Ok(Ended::Now);
    }
    if reason.as_deref() == Some(NO_SESSION) {
        return Ok(Ended::Before);
    }
    let why = reason.unwrap_or_else(|| state.to_string());
    Err(Failure::of(format!(
        "the session of {} was not ended ({why}); nothing was forgotten",
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
    if report.queued > 0 {
        parts.push("queue".to_owned());
    }
    parts
}

fn describe(report: &ResetReport, mode: Mode) -> String {
    let verb = match mode {
        Mode::DryRun => "would forget",
        Mode::Remove => "forgot",
    };
    let mut parts = Vec::new();
    if !report.sessions.is_empty() {
        parts.push(count(report.sessions.len() as u64, "session"));
    }
    if let Some(control) = &report.control {
        parts.push(format!("the last command ({})", control.command));
    }
    if report.queued > 0 {
        parts.push(count(report.queued, "unfinished delivery"));
    }
    if parts.is_empty() {
        parts.push("nothing: it holds no session, no command and nothing unfinished".to_owned());
    }
    let mut text = format!("{}: {verb} {}", report.item.short(), parts.join(", "));
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
