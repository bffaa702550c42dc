//! What `poll start` shows while it runs: one line per decision, and on a terminal a last line that
//! says how things stand.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use super::decisions::{Decisions, Detail};
use super::layout::{width, wrap};
use super::output::{self, Paint, colours, grouped, paint};
use super::screen;
use crate::config::{Environment, Loaded, SpawnPolicy, display_path};
use crate::daemon::{PollNews, PollOptions, Run, Standing, StandingNews};
use crate::eventlog::{Level, Record};
use crate::model::text::count;
use crate::process::detach::{close_report, terminal_width};
use crate::telemetry::{LogFormat, Verbosity};

/// The running display.
#[derive(Debug, Clone)]
pub(super) struct Live {
    face: Face,
    verbosity: Verbosity,
    header: Vec<String>,
    decisions: Arc<Mutex<Decisions>>,
}

/// What the display writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    /// A terminal: lines, and a last line that is drawn over.
    Terminal,
    /// A pipe or a file: plain lines.
    Plain,
    /// A program: the records of the event log, one JSON object a line.
    Json,
    /// The parent of a daemon that goes to the background: one line, then nothing.
    Report,
    /// Nobody: a one-shot run prints its summary only.
    None,
}

impl Face {
    fn of(options: &PollOptions, verbosity: Verbosity, format: LogFormat) -> Self {
        match (format, options.run) {
            (LogFormat::Json, _) => Self::Json,
            (LogFormat::Text, Run::Once) if verbosity <= Verbosity::Normal => Self::None,
            (LogFormat::Text, Run::Once) => Self::Plain,
            (LogFormat::Text, Run::Forever) if draws_over() => Self::Terminal,
            (LogFormat::Text, Run::Forever) => Self::Plain,
        }
    }
}

/// Tells whether stdout is a terminal on which a line can be drawn over.
fn draws_over() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdout().is_terminal() && !is_dumb
}

impl Live {
    pub(super) fn new(
        loaded: &Loaded,
        options: &PollOptions,
        verbosity: Verbosity,
        format: LogFormat,
    ) -> Self {
        let repos: Vec<String> = repos(loaded);
        // Room for a number of three digits behind the longest repository.
        let subjects: Vec<String> = repos.iter().map(|repo| format!("{repo}#123")).collect();
        let detail = if verbosity > Verbosity::Normal {
            Detail::Full
        } else {
            Detail::Brief
        };
        let decisions = Decisions::new(subjects.iter().map(String::as_str), colours(), detail);
        Self {
            face: Face::of(options, verbosity, format),
            verbosity,
            header: header(loaded, options, &repos),
            decisions: Arc::new(Mutex::new(decisions)),
        }
    }

    /// The display of a daemon that goes to the background.
    pub(super) fn report(self) -> Self {
        Self {
            face: Face::Report,
            ..self
        }
    }

    /// Shows a piece of news of the poller.
    pub(super) fn show(&self, news: &PollNews<'_>) {
        match news {
            PollNews::Ready => self.ready(),
            PollNews::Decided(record) => self.decided(record),
            PollNews::Standing(standing) => {
                let room = terminal_width().unwrap_or(80).saturating_sub(1);
                screen::last_line(&last_line(standing, Utc::now(), room));
            }
            PollNews::EndsAtOnce => {
                // Whatever the terminal does not take by then is in the event log.
                let _taken = screen::end_within(screen::LAST_WORDS);
            }
        }
    }

    fn ready(&self) {
        match self.face {
            Face::Report => {
                output::line("ready");
                if let Err(error) = close_report() {
                    tracing::warn!("cannot move the output to the log: {error}");
                }
            }
            Face::Terminal | Face::Plain if self.verbosity > Verbosity::Quiet => {
                let room = output::room().unwrap_or(usize::MAX);
                for line in self.header.iter().flat_map(|line| wrap(line, room)) {
                    screen::line(&line);
                }
            }
            Face::Terminal | Face::Plain | Face::Json | Face::None => {}
        }
    }

    fn decided(&self, record: &Record) {
        let wanted = match self.verbosity {
            Verbosity::Quiet => Level::Error,
            Verbosity::Normal => Level::Info,
            Verbosity::Verbose | Verbosity::Debug => Level::Debug,
        };
        if record.level < wanted {
            return;
        }
        match self.face {
            Face::Json => screen::line(&record.to_json()),
            // The header says it already.
            Face::Terminal | Face::Plain if record.event == "poller.started" => {}
            Face::Terminal | Face::Plain => {
                let mut decisions = self
                    .decisions
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                for line in decisions.lines(record) {
                    screen::line(&format!("{line}{}", attach_hint(record)));
                }
            }
            Face::Report | Face::None => {}
        }
    }

    /// Tells whether there is a last line to say how things stand.
    pub(super) fn standing_news(&self) -> StandingNews {
        if self.face == Face::Terminal && self.verbosity > Verbosity::Quiet {
            StandingNews::EverySecond
        } else {
            StandingNews::Never
        }
    }
}

fn repos(loaded: &Loaded) -> Vec<String> {
    let sources = loaded.config.polling.sources.iter();
    sources
        .flat_map(|source| source.repos.iter().map(ToString::to_string))
        .collect()
}

fn header(loaded: &Loaded, options: &PollOptions, repos: &[String]) -> Vec<String> {
    let config = &loaded.config;
    let tmux = config.routing.tmux.socket_name.as_ref().map_or_else(
        || "tmux (your default server)".to_owned(),
        |name| format!("tmux -L {name}"),
    );
    let home = Environment::of_this_process().home;
    let sources = config.polling.sources.iter();
    let mut labels: Vec<String> = sources
        .map(|source| format!("\"{}\"", source.label))
        .collect();
    labels.dedup();
    let armed = match config.routing.spawn_on_unmatched {
        SpawnPolicy::Always => "every open item".to_owned(),
        SpawnPolicy::Never | SpawnPolicy::Labeled => format!("label {}", labels.join(", ")),
    };
    let users: Vec<String> = config
        .routing
        .authorized_users
        .iter()
        .map(ToString::to_string)
        .collect();
    let interval = options.interval.unwrap_or(config.polling.interval);
    let every = match options.run {
        Run::Once => "once".to_owned(),
        Run::Forever => format!("every {} s", interval.as_secs()),
    };
    let users = if users.is_empty() {
        "nobody (routing.authorizedUsers is empty)".to_owned()
    } else {
        users.join(", ")
    };
    vec![
        format!(
            "the-loop {} · config {} · state {} · {tmux}",
            env!("CARGO_PKG_VERSION"),
            loaded.shown_path,
            display_path(&config.state.root, home.as_deref())
        ),
        format!(
            "watching {} {every} · acting for {users} · {armed}",
            repos.join(", "),
        ),
        String::new(),
    ]
}

/// How to look at an agent that was just started.
fn attach_hint(record: &Record) -> String {
    let item = record.text("work_item");
    match item.filter(|_| record.event == "session.spawned") {
        Some(item) => {
            let item = item.trim_start_matches("github:");
            let hint = format!("   (the-loop sessions attach {item})");
            paint(&hint, if colours() { Paint::Dim } else { Paint::Plain })
        }
        None => String::new(),
    }
}

/// Says how things stand; where the room is short, the least important parts are left out.
fn last_line(standing: &Standing, now: DateTime<Utc>, room: usize) -> String {
    let mut parts = vec![
        count(standing.sessions, "session"),
        count(standing.items, "item"),
        match standing.inbox {
            0 => "inbox empty".to_owned(),
            n => format!("{n} waiting"),
        },
        match standing.next_cycle_at.map(|next| next - now) {
            Some(rest) if rest > TimeDelta::zero() => {
                format!("next cycle in {}", output::age(rest.num_seconds()))
            }
            Some(_) | None => "asking GitHub".to_owned(),
        },
    ];
    if let Some(rate) = &standing.rate {
        let (left, limit) = (grouped(rate.remaining), grouped(rate.limit));
        parts.push(format!("GitHub {left} of {limit} left"));
    }
    parts.push("ctrl-c stops, agents keep running".to_owned());
    while parts.len() > 1 && width(&parts.join(" · ")) > room {
        parts.pop();
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_whole_parts_of_the_last_line() {
        let now = Utc::now();
        let standing = Standing {
            sessions: 1,
            items: 9,
            inbox: 0,
            next_cycle_at: Some(now + TimeDelta::seconds(41)),
            rate: None,
        };
        assert_eq!(
            last_line(&standing, now, 120),
            "1 session · 9 items · inbox empty · next cycle in 41 s · ctrl-c stops, agents keep running"
        );
        assert_eq!(
            last_line(&standing, now, 60),
            "1 session · 9 items · inbox empty · next cycle in 41 s"
        );
        assert_eq!(last_line(&standing, now, 5), "1 session");
    }

    #[test]
    fn a_cycle_that_is_due_is_under_way() {
        let standing = Standing {
            next_cycle_at: Some(Utc::now()),
            ..Standing::default()
        };
        let said = last_line(&standing, Utc::now(), 200);
        assert!(said.contains("asking GitHub"), "{said}");
    }
}
