//! Forgetting what nobody needs any more: old payloads, and the files of spawns that are over.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::services::Services;
use crate::eventlog::Decision;
use crate::model::{HostPaths, OwnerId, Session};
use crate::process::blocking;
use crate::process::ticket::{self, TicketError, TicketState};
use crate::store::{Acceptance, CursorUpdate, SessionFilter, StoreError};

/// Where the last pruning is kept: a one-shot run from cron must not do it every minute.
const PRUNED: &str = "pruned";
const PRUNE_EVERY: TimeDelta = TimeDelta::days(1);

/// How long the files of a spawn that was given up tell whose its session is, should a busy tmux make
/// that one late.
const REVOKED_KEPT: Duration = Duration::from_secs(3600);

/// Tidies up. What fails is tried again the next time; nothing depends on it.
pub(super) async fn tidy(services: &Services) {
    if let Err(error) = prune(services).await {
        tracing::warn!("old payloads were not removed: {error}");
    }
    if let Err(error) = remove_runs(services).await {
        tracing::warn!("the files of ended agents were not removed: {error}");
    }
}

/// Removes the payloads that are older than `state.retentionDays`, unless that was done today; their
/// keys stay.
async fn prune(services: &Services) -> Result<(), StoreError> {
    let now = services.clock.now();
    let last = services.store.ledger().cursor(PRUNED).await?;
    if last.is_some_and(|last| now - last.last_success < PRUNE_EVERY) {
        return Ok(());
    }
    let days = services.config.borrow().state.retention_days;
    let age = TimeDelta::days(i64::from(days));
    let count = services.store.ledger().prune(age).await?;
    if count > 0 {
        services.log.emit(&Decision::InboxPruned { count });
    }
    let cursor = CursorUpdate {
        name: PRUNED.to_owned(),
        etag: None,
        since: None,
        last_success: now,
    };
    let done = Acceptance {
        cursors: vec![cursor],
        ..Acceptance::default()
    };
    services.store.inbox().accept(&done).await?;
    Ok(())
}

/// Why no files were removed.
#[derive(Debug, thiserror::Error)]
enum NotRemoved {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Ticket(#[from] TicketError),
}

async fn remove_runs(services: &Services) -> Result<(), NotRemoved> {
    let root = services.config.borrow().state.root.clone();
    // The files first: each spawn was recorded before they were made.
    let listed = root.clone();
    let found = blocking(move || ticket::all(&listed)).await?;
    let open = services.store.registry().list(SessionFilter::Open).await?;
    let needed: HashSet<OwnerId> = open.into_iter().flat_map(owners).collect();
    let now = services.clock.now();
    blocking(move || {
        let over = found.iter().filter(|owner| !needed.contains(owner));
        for paths in over.map(|owner| HostPaths::new(&root, owner)) {
            // One that cannot be read keeps its own files, and nobody else's.
            if let Err(error) = remove_if_over(&paths, now) {
                tracing::warn!("{error}");
            }
        }
        Ok::<(), TicketError>(())
    })
    .await?;
    Ok(())
}

fn remove_if_over(paths: &HostPaths, now: DateTime<Utc>) -> Result<(), TicketError> {
    match is_over(paths, now)? {
        true => ticket::remove(paths),
        false => Ok(()),
    }
}

/// The spawns that an open session needs the files of.
fn owners(session: Session) -> impl Iterator<Item = OwnerId> {
    let attempt = session.attempt.map(|attempt| attempt.owner);
    std::iter::once(session.owner).chain(attempt)
}

/// Tells whether nothing of a spawn runs, or ever will.
///
/// An open ticket whose time has passed is revoked, as a host would do that found it: nobody needs
/// what it holds, and a host that takes it in this moment has it.
fn is_over(paths: &HostPaths, now: DateTime<Utc>) -> Result<bool, TicketError> {
    Ok(match ticket::state(paths)? {
        TicketState::Revoked => age(&paths.revoked()).is_some_and(|age| age > REVOKED_KEPT),
        TicketState::Taken => {
            ticket::recorded_processes(paths)?.is_some_and(|recorded| recorded.left().is_none())
        }
        TicketState::Open => {
            if ticket::open(paths)?.is_some_and(|ticket| ticket.is_expired(now.timestamp_millis()))
            {
                ticket::revoke(paths)?;
            }
            false
        }
        TicketState::Absent => false,
    })
}

/// How long ago a file was last written; none where the system does not tell.
fn age(path: &Path) -> Option<Duration> {
    let written = std::fs::metadata(path).and_then(|meta| meta.modified());
    written.ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::model::{
        AfterEnd, BootId, Ending, Phase, ProcessId, PromptPassing, Record, Ticket, TmuxSocket,
    };
    use crate::process::identity::{boot_id, own};

    const NOT_AFTER_MS: i64 = 1_800_000_000_000;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).unwrap()
    }

    fn issued(root: &Path) -> HostPaths {
        let owner = OwnerId::mint();
        let paths = HostPaths::new(root, &owner);
        let ticket = Ticket {
            v: Ticket::VERSION,
            owner,
            work_item: "github:o/r#1".parse().unwrap(),
            socket: TmuxSocket::Default,
            tmux: "/usr/bin/tmux".into(),
            cwd: "/".into(),
            argv: vec!["/bin/true".to_owned()],
            env: std::collections::BTreeMap::new(),
            prompt: PromptPassing::None,
            not_after_ms: NOT_AFTER_MS,
            grace_ms: 1,
            after_end: AfterEnd::KeepScreen,
        };
        ticket::issue(&paths, &ticket, "").unwrap();
        paths
    }

    fn taken(root: &Path, host: ProcessId, boot: BootId) -> HostPaths {
        let paths = issued(root);
        std::fs::rename(paths.ticket(), paths.taken()).unwrap();
        let record = Record {
            v: Record::VERSION,
            owner: OwnerId::mint(),
            host,
            boot,
            pane: "%1".parse().unwrap(),
            started_ms: None,
            phase: Phase::Ended {
                harness: None,
                ending: Ending::Code(0),
                at_ms: 0,
            },
        };
        ticket::write_private(&paths.record(), &serde_json::to_vec(&record).unwrap()).unwrap();
        paths
    }

    #[test]
    fn the_files_of_a_spawn_go_only_when_nothing_of_it_runs_or_ever_will() {
        let root = tempfile::tempdir().unwrap();
        let open = issued(root.path());
        let [revoked, long_revoked] = [(); 2].map(|()| issued(root.path()));
        ticket::revoke(&revoked).unwrap();
        ticket::revoke(&long_revoked).unwrap();
        let long_ago = SystemTime::now() - 2 * REVOKED_KEPT;
        let file = std::fs::File::create(long_revoked.revoked()).unwrap();
        file.set_modified(long_ago).unwrap();
        let running = taken(root.path(), own(), boot_id());
        let gone = ProcessId {
            start: own().start + 1,
            ..own()
        };
        let ended = taken(root.path(), gone, boot_id());
        let unrecorded = issued(root.path());
        std::fs::rename(unrecorded.ticket(), unrecorded.taken()).unwrap();

        for (name, paths, over) in [
            ("nobody took it yet", &open, false),
            ("tmux may still make its session", &revoked, false),
            ("revoked long ago", &long_revoked, true),
            ("its host keeps the screen", &running, false),
            ("its host has ended", &ended, true),
            ("taken, and not recorded yet", &unrecorded, false),
        ] {
            let now = at(NOT_AFTER_MS);
            assert_eq!(is_over(paths, now).unwrap(), over, "{name}");
        }
        assert_eq!(ticket::all(root.path()).unwrap().len(), 6);
        assert_eq!(ticket::state(&open).unwrap(), TicketState::Open);
    }

    #[test]
    fn a_ticket_that_nobody_took_in_its_time_is_revoked_and_keeps_no_environment() {
        let root = tempfile::tempdir().unwrap();
        let paths = issued(root.path());

        let now = at(NOT_AFTER_MS + 1);
        assert!(
            !is_over(&paths, now).unwrap(),
            "tmux may still make its session"
        );

        assert_eq!(ticket::state(&paths).unwrap(), TicketState::Revoked);
        assert_eq!(std::fs::read(paths.revoked()).unwrap(), b"");
    }
}
