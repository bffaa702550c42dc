//! Steering sessions from this machine: the same deliveries, under the same claims, as a comment.
//!
//! A command is accepted into the inbox like any event. If no daemon holds the item, this process
//! claims it and executes it; else it waits until the holder has.

use std::time::{Duration, Instant};

use chrono::Utc;
use serde_json::json;

use super::args::SteerArgs;
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::config::Config;
use crate::daemon::lock::{InstanceLock, LockState};
use crate::daemon::{LocalDispatcher, Services, lock_path};
use crate::dispatch::DispatchError;
use crate::eventlog::{self, About, Decision};
use crate::model::{
    Class, DeliveryId, DeliveryState, Detail, DropReason, Edit, Event, EventKey, EventKind,
    ItemKind, Login, OperatorCommand, Source, WorkItemRef,
};
use crate::store::{
    Acceptance, Arrival, ArrivalOutcome, Disposition, ItemSighting, StoreError, Tuning,
};

/// How long a command waits for whoever holds its work item.
const PATIENCE: Duration = Duration::from_secs(120);

/// Executes an operator's command on a work item.
pub(super) fn command(
    config: &Config,
    args: &SteerArgs,
    command: OperatorCommand,
) -> Result<Exit, Failure> {
    let (state, reason) = setup::block_on(async {
        let services = Services::open(config.clone(), Source::Cli, Tuning::one_reader()).await?;
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
        let said = not_done(command, &why);
        return Err(Failure::of(format!("{}: {said}", args.work_item.short())));
    }
    Ok(if state == DeliveryState::Delivered {
        Exit::Success
    } else {
        Exit::Failure
    })
}

/// Says why a command did nothing to a session.
fn not_done(command: OperatorCommand, why: &str) -> String {
    let word = command.as_str();
    let is_remembered = matches!(command, OperatorCommand::Stop | OperatorCommand::Pause);
    if is_remembered && why == DropReason::NoSession.as_str() {
        return format!("there is no session; {word} is remembered as the last command");
    }
    format!("{word} was not done: {}", eventlog::drop_phrase(why))
}

/// What a look at a queued command found.
enum Turn {
    /// Nothing: it was reset meanwhile.
    Vanished,
    /// Its end.
    Over(DeliveryState, Option<String>),
    /// Its try failed, and it waits for another.
    Failed(String),
    /// It was worked on just now.
    Worked,
    /// Somebody else works on its item.
    Waits,
}

/// Queues a command and sees it through: one try, which is its end where it fails and no daemon runs.
pub(super) async fn execute(
    services: &Services,
    item: &WorkItemRef,
    command: OperatorCommand,
) -> Result<(DeliveryState, Option<String>), Failure> {
    let dispatcher = services.dispatcher()?;
    let event = event(item, command);
    let delivery = accept(services, item, &event).await?;
    Box::pin(see_through(services, &dispatcher, item, (delivery, &event))).await
}

async fn see_through(
    services: &Services,
    dispatcher: &LocalDispatcher,
    item: &WorkItemRef,
    (delivery, event): (DeliveryId, &Event),
) -> Result<(DeliveryState, Option<String>), Failure> {
    let began = Instant::now();
    loop {
        let why = match Box::pin(turn(services, dispatcher, delivery)).await {
            Ok(Turn::Vanished) => {
                return Err(Failure::of(format!(
                    "the command for {} vanished from the inbox: it was reset meanwhile",
                    item.short()
                )));
            }
            Ok(Turn::Over(state, why)) => return Ok((state, why)),
            Ok(Turn::Failed(error)) => {
                return after_failure(services, item, delivery, event, error).await;
            }
            Ok(Turn::Worked) => continue,
            Ok(Turn::Waits) => format!("{} is still busy with something else", item.short()),
            // It is queued already, so a store that is locked for long fails nothing.
            Err(error) if error.is_transient() => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        if began.elapsed() > PATIENCE {
            return Err(Failure::of(format!(
                "{why}; the command stays in the inbox and runs as soon as it can"
            )));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Looks at a queued command, and works on it where nobody else does.
async fn turn(
    services: &Services,
    dispatcher: &LocalDispatcher,
    delivery: DeliveryId,
) -> Result<Turn, StoreError> {
    let Some(row) = services.store.queue().get(delivery).await? else {
        return Ok(Turn::Vanished);
    };
    if row.state.is_final() {
        return Ok(Turn::Over(row.state, row.error.or(row.reason)));
    }
    // It waits again, and has an error: its try is over.
    if row.state != DeliveryState::Claimed
        && let Some(error) = row.error
    {
        return Ok(Turn::Failed(error));
    }
    // Whoever works it, its attempts and looks keep their distance.
    if row.next_at > services.clock.now() {
        return Ok(Turn::Waits);
    }
    match Box::pin(dispatcher.work_one(delivery)).await {
        Ok(true) => Ok(Turn::Worked),
        Ok(false) => Ok(Turn::Waits),
        Err(DispatchError::Store(error)) => Err(error),
    }
}

/// Leaves a command that failed to the running poller; without one it is dropped, so that it does not
/// run when nobody expects it any more.
async fn after_failure(
    services: &Services,
    item: &WorkItemRef,
    delivery: DeliveryId,
    event: &Event,
    error: String,
) -> Result<(DeliveryState, Option<String>), Failure> {
    let lock = lock_path(&services.config.borrow());
    if InstanceLock::state(&lock)? != LockState::Free {
        let left = format!("{error}; the running poller tries it again");
        return Ok((DeliveryState::Pending, Some(left)));
    }
    let reason = DropReason::ByOperator;
    let say = || {
        let about = About::of(item, delivery, event);
        let dropped = Decision::dropped(about, reason, Some(error.clone()));
        services.log.emit(&dropped);
    };
    let queue = services.store.queue();
    if !queue.drop_one(delivery, reason, say).await? {
        let left = format!("{error}; it stays in the inbox, and the next poller goes on with it");
        return Ok((DeliveryState::Pending, Some(left)));
    }
    Ok((DeliveryState::Dropped, Some(error)))
}

async fn accept(
    services: &Services,
    item: &WorkItemRef,
    event: &Event,
) -> Result<DeliveryId, Failure> {
    let known = services.store.ledger().item(item).await?;
    let starts = Detail::Command {
        command: OperatorCommand::Start,
    };
    if known.is_none() && event.detail != starts {
        return Err(Failure::of(format!(
            "nothing is recorded for {}",
            item.short()
        )));
    }
    let items = if known.is_none() {
        vec![ItemSighting::introduced(item, services.clock.now())]
    } else {
        Vec::new()
    };
    let arrival = Arrival {
        event: event.clone(),
        version_at: event.occurred_at,
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

/// Who runs this command.
pub(super) fn operator() -> Option<Login> {
    std::env::var("USER").ok().map(|user| Login::new(&user))
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
        actor: operator(),
        edit: Edit::Never,
        title: String::new(),
        body: String::new(),
        url: String::new(),
        occurred_at: Utc::now(),
        detail: Detail::Command { command },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Environment;
    use crate::store::Store;

    async fn services(folder: &tempfile::TempDir) -> Services {
        let path = folder.path().join("config.yaml");
        let config = json!({ "state": { "root": folder.path().join("state") } });
        std::fs::write(&path, config.to_string()).unwrap();
        let environment = Environment {
            home: Some(folder.path().to_owned()),
            variable: None,
            working_dir: folder.path().to_owned(),
        };
        let config = Config::load(Some(&path), &environment).unwrap().config;
        let mut services = Services::open(config, Source::Cli, Tuning::one_reader())
            .await
            .unwrap();
        let tuning = Tuning {
            busy_timeout: Duration::from_millis(20),
            ..Tuning::default()
        };
        let database = folder.path().join("state/loop.db");
        let clock = Arc::clone(&services.clock);
        let store = Store::open_with(&database, "host", clock, tuning).await;
        services.store = store.unwrap();
        services
    }

    #[tokio::test]
    async fn a_store_that_is_locked_for_long_fails_no_command_that_is_queued() {
        let folder = tempfile::tempdir().unwrap();
        let services = services(&folder).await;
        let dispatcher = services.dispatcher().unwrap();
        let item: WorkItemRef = "github:o/r#1".parse().unwrap();
        let event = event(&item, OperatorCommand::Start);
        let Ok(delivery) = accept(&services, &item, &event).await else {
            unreachable!("nobody holds the store yet")
        };
        let file = folder.path().join("state/loop.db");
        let file = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
        let other = sqlx::SqlitePool::connect_with(file).await.unwrap();
        let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let seen = see_through(&services, &dispatcher, &item, (delivery, &event));
        let mut seen = Box::pin(seen);

        let much_longer_than_the_store_waits = Duration::from_millis(300);
        let early = tokio::time::timeout(much_longer_than_the_store_waits, &mut seen).await;
        assert!(early.is_err(), "{early:?}");
        lock.rollback().await.unwrap();

        let state = seen.await.map(|(state, _)| state.is_final());
        assert!(state.is_ok_and(|is_final| is_final));
    }
}
