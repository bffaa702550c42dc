//! `the-loop poll …`: start, stop, status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;

use super::args::{Global, JsonArgs, PollArgs, PollCommand, PollStartArgs};
use super::exit::{Exit, Failure};
use super::live::Live;
use super::screen::Taken;
use super::{output, screen, setup};
use crate::config::{Loaded, Purpose};
use crate::daemon::heartbeat::{self, Heartbeat};
use crate::daemon::lock::{Holder, InstanceLock, LockError, LockState};
use crate::daemon::{PollError, PollOptions, Run, StandingNews, detach, lock_path, run_poll};
use crate::process::detach::leave_terminal;
use crate::process::identity::{Life, life};
use crate::process::signal::{Signal, signal};
use crate::telemetry::{LogFormat, Verbosity};

pub(super) fn run(global: &Global, args: PollArgs) -> Result<Exit, Failure> {
    match args.command {
        None => start(global, &args.start),
        Some(PollCommand::Start(start_args)) => start(global, &start_args),
        Some(PollCommand::Stop { timeout }) => stop(global, Duration::from_secs(timeout)),
        Some(PollCommand::Status(json)) => status(global, &json),
    }
}

fn start(global: &Global, args: &PollStartArgs) -> Result<Exit, Failure> {
    let loaded = setup::load(global)?;
    loaded
        .require_sources()
        .map_err(|error| Failure::config(&error))?;
    if args.detach {
        return start_detached(global, args, &loaded);
    }
    if args.detached {
        leave_terminal()
            .map_err(|error| Failure::of(format!("cannot leave the terminal: {error}")))?;
    }
    let options = PollOptions {
        run: if args.once { Run::Once } else { Run::Forever },
        interval: args.interval.map(Duration::from_secs),
        max_retries: args.max_retries,
        standing: StandingNews::Never,
    };
    let ended = setup::block_on(async {
        let live = Live::new(&loaded, &options, global.verbosity(), global.log_format);
        let live = if args.detached {
            let log = detach::log_path(&loaded.config.state.root);
            tokio::spawn(detach::keep_log_short(log));
            live.report()
        } else {
            live
        };
        // Decisions are shown while the store is being written, which must not wait for a reader; one
        // run waits at its end. A log file takes everything at once.
        let patience = match options.run {
            Run::Forever => screen::LAST_WORDS,
            Run::Once => Duration::MAX,
        };
        if !args.detached
            && let Err(error) = screen::write_from_thread(global.log_format, patience)
        {
            tracing::warn!("cannot write from a thread of its own: {error}");
        }
        let options = PollOptions {
            standing: live.standing_news(),
            ..options.clone()
        };
        Ok(run_poll(
            loaded.config.clone(),
            &options,
            Arc::new(move |news| live.show(&news)),
        )
        .await)
    });
    let taken = screen::end();
    let ended = ended?;
    if taken == Taken::Stuck {
        // A word more would wait for ever; the event log has all of it.
        return Ok(match ended {
            Ok(_) => Exit::Success,
            Err(_) => Exit::Failure,
        });
    }
    match ended {
        Ok(end) => {
            let is_for_people = global.log_format == LogFormat::Text;
            if options.run == Run::Once && is_for_people && global.verbosity() > Verbosity::Quiet {
                output::line(end.summary());
            }
            let worked = options.run == Run::Forever || end.worked();
            // Quiet says no more than errors, and cron mails them; a failure is never silent.
            if !worked && global.verbosity() == Verbosity::Quiet {
                output::error(&end.summary());
            }
            Ok(if worked { Exit::Success } else { Exit::Failure })
        }
        // From cron, a poller that runs already does the work.
        Err(PollError::Lock(error @ LockError::Held { .. })) if options.run == Run::Once => {
            if global.verbosity() > Verbosity::Quiet {
                output::line(format!("nothing to do: {error}"));
            }
            Ok(Exit::Success)
        }
        Err(error) if args.detached => {
            // The parent waits for the reason on standard output.
            output::line(error.to_string());
            Ok(Exit::Failure)
        }
        Err(error) => Err(Failure::of(error)),
    }
}

fn start_detached(global: &Global, args: &PollStartArgs, loaded: &Loaded) -> Result<Exit, Failure> {
    let log = detach::log_path(&loaded.config.state.root);
    let folder = log.parent().unwrap_or(&loaded.config.state.root);
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::of(format!(
            "cannot make the log folder {}: {error}",
            folder.display()
        ))
    })?;
    let mut child: Vec<String> = Vec::new();
    // The daemon reads the file that was checked here, wherever it is started from.
    if let Some(path) = &loaded.path {
        child.extend(["--config".to_owned(), path.display().to_string()]);
    }
    child.extend(global.logging_flags());
    child.extend([
        "poll".to_owned(),
        "start".to_owned(),
        "--detached".to_owned(),
    ]);
    if let Some(interval) = args.interval {
        child.extend(["--interval".to_owned(), interval.to_string()]);
    }
    if let Some(max_retries) = args.max_retries {
        child.extend(["--max-retries".to_owned(), max_retries.to_string()]);
    }
    let pid = detach::start(&child, &log)?;
    output::line(format!(
        "the poller runs in the background (pid {pid}); its log is {}",
        log.display()
    ));
    output::line("stop it with: the-loop poll stop");
    Ok(Exit::Success)
}

fn stop(global: &Global, patience: Duration) -> Result<Exit, Failure> {
    let loaded = setup::load_or_defaults(global, Purpose::Look)?;
    let lock = lock_path(&loaded.config);
    let holder = match InstanceLock::state(&lock)? {
        LockState::Free => return Err(Failure::of("no poller runs on this state")),
        LockState::Held(None) => {
            return Err(Failure::of(format!(
                "a process holds {}, and it does not prove to be a poller: nothing was signalled",
                lock.display()
            )));
        }
        LockState::Held(Some(holder)) => holder,
    };
    signal(&holder.process, Signal::Terminate).map_err(|error| {
        Failure::of(format!(
            "cannot stop the poller (pid {}): {error}",
            holder.process
        ))
    })?;
    let asked = Instant::now();
    while asked.elapsed() < patience {
        if life(&holder.process) == Life::Gone {
            output::line(format!(
                "the poller (pid {}) has ended; agents keep running",
                holder.process
            ));
            return Ok(Exit::Success);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Failure::of(format!(
        "the poller (pid {}) was asked to stop and still runs after {} s; a second `the-loop poll stop` ends it at once",
        holder.process,
        patience.as_secs()
    )))
}

fn status(global: &Global, args: &JsonArgs) -> Result<Exit, Failure> {
    let loaded = setup::load_or_defaults(global, Purpose::Look)?;
    let holder = match InstanceLock::state(&lock_path(&loaded.config))? {
        LockState::Free => None,
        LockState::Held(holder) => Some(holder),
    };
    let beat = heartbeat::read(&loaded.config.state.root);
    let exit = if holder.is_some() {
        Exit::Success
    } else {
        Exit::Failure
    };
    if args.json {
        output::json(&serde_json::json!({
            "running": holder.is_some(),
            "holder": holder.flatten(),
            "heartbeat": beat,
        }))?;
    } else {
        output::line(describe(holder.as_ref(), beat.as_ref()));
    }
    Ok(exit)
}

/// One line about the poller: whether it runs, and how its last cycle went.
pub(super) fn describe(holder: Option<&Option<Holder>>, beat: Option<&Heartbeat>) -> String {
    let now = Utc::now();
    let mut text = match holder {
        None => "not running".to_owned(),
        Some(None) => "running (its process does not say who it is)".to_owned(),
        Some(Some(holder)) => {
            format!(
                "running {} (pid {})",
                output::age((now - holder.since).num_seconds()),
                holder.process
            )
        }
    };
    if let Some(cycle) = beat.and_then(|beat| beat.last_cycle.as_ref()) {
        let how = match cycle.errors.first() {
            None => "ok".to_owned(),
            Some(error) => format!("failed in part: {error}"),
        };
        text.push_str(", last cycle ");
        text.push_str(&output::age((now - cycle.ended_at).num_seconds()));
        text.push_str(" ago ");
        text.push_str(&how);
    }
    if let (Some(_), Some(next)) = (holder, beat.and_then(|beat| beat.next_cycle_at)) {
        text.push_str(", next in ");
        text.push_str(&output::age((next - now).num_seconds()));
    }
    text
}
