//! `the-loop events`: asks the log of decisions.

use std::collections::VecDeque;

use chrono::Utc;
use tokio_util::sync::CancellationToken;

use super::args::{EventsArgs, Global};
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::eventlog::{self, Beginning, Filter, Follower, Record, describe, parse_since};
use crate::model::Source;

pub(super) fn run(global: &Global, args: &EventsArgs) -> Result<Exit, Failure> {
    if args.catalogue {
        for kind in eventlog::TYPES {
            output::line(format!(
                "{:<28} {:<8} {}",
                kind.name, kind.levels[0], kind.description
            ));
        }
        return Ok(Exit::Success);
    }
    let loaded = setup::load_or_defaults(global)?;
    let filter = filter(args, &loaded.config.integrations.github.host)?;
    let path = &loaded.config.event_log.path;
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    if args.follow {
        return follow(args, path, filter, limit);
    }
    let tail = eventlog::tail(path, filter, limit)?;
    for record in &tail.records {
        show(args, record);
    }
    if tail.skipped > 0 {
        output::note(format!(
            "note: {} lines of {} are no records and were skipped",
            tail.skipped,
            path.display()
        ));
    }
    if tail.records.is_empty() && !args.json {
        output::note(format!("no matching events in {}", path.display()));
    }
    Ok(Exit::Success)
}

fn filter(args: &EventsArgs, host: &str) -> Result<Filter, Failure> {
    let source = match args.source.as_deref() {
        None => None,
        Some(name) => match [Source::Poll, Source::GhWebhook, Source::Cli]
            .iter()
            .find(|known| known.as_str() == name)
        {
            Some(_) => Some(name.to_owned()),
            None => {
                return Err(Failure::usage(format!(
                    "{name:?} is not a source: use poll, gh-webhook or cli"
                )));
            }
        },
    };
    Ok(Filter {
        types: args.types.clone(),
        work_item: args.work_item.clone().map(|item| item.meant_on(host)),
        delivery: args.delivery.clone(),
        source,
        min_level: args
            .level
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(Failure::usage)?,
        since: args
            .since
            .as_deref()
            .map(|text| parse_since(text, Utc::now()))
            .transpose()
            .map_err(Failure::usage)?,
    })
}

fn follow(
    args: &EventsArgs,
    path: &std::path::Path,
    filter: Filter,
    limit: usize,
) -> Result<Exit, Failure> {
    setup::block_on(async {
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        tokio::spawn(async move {
            // Without the handler, ctrl-c ends the process, which is what it is for.
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        let mut follower = Follower::open(path, filter, Beginning::CurrentFile)?;
        let mut last = VecDeque::new();
        while let Some(record) = follower.try_next()? {
            last.push_back(record);
            if last.len() > limit {
                last.pop_front();
            }
        }
        for record in &last {
            show(args, record);
        }
        while let Some(record) = follower.next(&stop).await {
            show(args, &record?);
        }
        Ok(Exit::Success)
    })
}

fn show(args: &EventsArgs, record: &Record) {
    if args.json {
        output::line(record.to_json());
    } else {
        output::line(describe(record).to_string());
    }
}
