//! `the-loop events`: asks the log of decisions.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::Utc;
use tokio_util::sync::CancellationToken;

use super::args::{EventsArgs, Global};
use super::decisions::{Decisions, Detail};
use super::exit::{Exit, Failure};
use super::layout::{Column, Fit};
use super::{explain, output, setup};
use crate::config::Purpose;
use crate::eventlog::{self, Beginning, Filter, Follower, Level, Record, describe, parse_since};
use crate::model::Source;

/// The catalogue's columns.
const TYPES: [Column; 3] = [
    ("TYPE", Fit::Whole),
    ("LEVEL", Fit::Whole),
    ("MEANING", Fit::Cut(40)),
];

/// How often one who follows looks whether somebody still reads: `| head` ends before the log does.
const LOOK_FOR_READER: Duration = Duration::from_millis(250);

pub(super) fn run(global: &Global, args: &EventsArgs) -> Result<Exit, Failure> {
    if args.catalogue && args.json {
        output::json(&eventlog::TYPES)?;
        return Ok(Exit::Success);
    }
    if args.catalogue {
        let rows: Vec<Vec<String>> = eventlog::TYPES
            .iter()
            .map(|kind| [kind.name, kind.levels[0].as_str(), kind.description])
            .map(|cells| cells.map(str::to_owned).to_vec())
            .collect();
        output::table(&TYPES, &rows);
        return Ok(Exit::Success);
    }
    let loaded = setup::load_or_defaults(global, Purpose::Look)?;
    let filter = filter(args, &loaded.config.integrations.github.host)?;
    let path = &loaded.config.event_log.path;
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    if let Some(what) = &args.explain {
        return explain::run(&loaded.config, what, limit, args.json);
    }
    if args.follow {
        return follow(args, path, filter, limit);
    }
    let tail = eventlog::tail(path, filter, limit)?;
    let subjects: Vec<String> = tail
        .records
        .iter()
        .map(|record| describe(record).subject)
        .collect();
    let mut printer = Printer::new(args, subjects.iter().map(String::as_str));
    for record in &tail.records {
        printer.show(record);
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
    let everything = args.json || !args.types.is_empty() || args.delivery.is_some();
    let min_level = match args.level.as_deref() {
        Some(level) => Some(level.parse().map_err(Failure::usage)?),
        None if everything => None,
        None => Some(Level::Info),
    };
    Ok(Filter {
        types: args.types.clone(),
        work_item: args.work_item.clone().map(|item| item.meant_on(host)),
        delivery: args.delivery.clone(),
        source,
        min_level,
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
        let (interrupted, unread) = (stop.clone(), stop.clone());
        tokio::spawn(async move {
            // Without the handler, ctrl-c ends the process, which is what it is for.
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        tokio::spawn(async move {
            while !output::reader_is_gone() {
                tokio::time::sleep(LOOK_FOR_READER).await;
            }
            unread.cancel();
        });
        let mut follower = Follower::open(path, filter, Beginning::CurrentFile)?;
        let mut last = VecDeque::new();
        while let Some(record) = follower.try_next()? {
            last.push_back(record);
            if last.len() > limit {
                last.pop_front();
            }
        }
        let mut printer = Printer::new(args, std::iter::empty());
        for record in &last {
            printer.show(record);
        }
        while let Some(record) = follower.next(&stop).await {
            printer.show(&record?);
        }
        Ok(Exit::Success)
    })
}

/// Prints records as they were asked for.
struct Printer {
    /// None: as they are stored.
    decisions: Option<Decisions>,
}

impl Printer {
    fn new<'a>(args: &EventsArgs, subjects: impl Iterator<Item = &'a str>) -> Self {
        let decisions =
            (!args.json).then(|| Decisions::new(subjects, output::colours(), Detail::Full));
        Self { decisions }
    }

    fn show(&mut self, record: &Record) {
        match &mut self.decisions {
            None => output::line(record.to_json()),
            Some(decisions) => {
                for line in decisions.lines(record) {
                    output::line(line);
                }
            }
        }
    }
}
