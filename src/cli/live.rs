//! What `poll start` shows while it runs: one line per decision, and on a terminal a last line that
//! says how things stand.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::output;
use crate::config::Loaded;
use crate::daemon::{PollNews, PollOptions, Run, Standing};
use crate::eventlog::{Level, Record, describe};
use crate::process::detach::{close_report, terminal_width};
use crate::telemetry::Verbosity;

/// The running display.
#[derive(Debug, Clone)]
pub(super) struct Live {
    face: Face,
    verbosity: Verbosity,
    header: Vec<String>,
    last_line: Arc<Mutex<Option<String>>>,
}

/// What the display writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    /// A terminal: lines, and a last line that is drawn over.
    Terminal,
    /// A pipe or a file: plain lines.
    Plain,
    /// The parent of a daemon that goes to the background: one line, then nothing.
    Report,
    /// Nobody: a one-shot run prints its summary only.
    None,
}

impl Live {
    pub(super) fn new(
        loaded: &Loaded,
        options: &PollOptions,
        verbosity: Verbosity,
        detached: bool,
    ) -> Self {
        let face = match (detached, options.run, std::io::stdout().is_terminal()) {
            (true, ..) => Face::Report,
            (false, Run::Once, _) => Face::None,
            (false, Run::Forever, true) => Face::Terminal,
            (false, Run::Forever, false) => Face::Plain,
        };
        Self {
            face,
            verbosity,
            header: header(loaded, options),
            last_line: Arc::default(),
        }
    }

    fn say(&self, line: &str) {
        let last = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut out = std::io::stdout().lock();
        let text = match (&*last, self.face) {
            (Some(status), Face::Terminal) => format!("\r\u{1b}[K{line}\n{status}"),
            _ => format!("{line}\n"),
        };
        // A reader that went away must not end the daemon.
        let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

fn header(loaded: &Loaded, options: &PollOptions) -> Vec<String> {
    let config = &loaded.config;
    let tmux = config
        .routing
        .tmux
        .socket_name
        .as_ref()
        .map_or_else(|| "tmux".to_owned(), |name| format!("tmux -L {name}"));
    let repos: Vec<String> = config
        .polling
        .sources
        .iter()
        .flat_map(|source| source.repos.iter().map(ToString::to_string))
        .collect();
    let labels: Vec<String> = config
        .polling
        .sources
        .iter()
        .map(|source| format!("{:?}", source.label))
        .collect();
    let users: Vec<String> = config
        .routing
        .authorized_users
        .iter()
        .map(ToString::to_string)
        .collect();
    let interval = options.interval.unwrap_or(config.polling.interval);
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
            config.state.root.display()
        ),
        format!(
            "watching {} every {} s · acting for {users} · label {}",
            repos.join(", "),
            interval.as_secs(),
            labels.join(", ")
        ),
        String::new(),
    ]
}

impl Live {
    /// Shows a piece of news of the poller.
    pub(super) fn show(&self, news: &PollNews<'_>) {
        match news {
            PollNews::Ready => self.ready(),
            PollNews::Decided(record) => self.decided(record),
            PollNews::Standing(standing) => self.standing(standing),
            PollNews::Ended => self.ended(),
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
                for line in &self.header {
                    self.say(line);
                }
            }
            Face::Terminal | Face::Plain | Face::None => {}
        }
    }

    fn decided(&self, record: &Record) {
        let wanted = match self.verbosity {
            Verbosity::Quiet => Level::Error,
            Verbosity::Normal => Level::Info,
            Verbosity::Verbose | Verbosity::Debug => Level::Debug,
        };
        if matches!(self.face, Face::Terminal | Face::Plain) && record.level >= wanted {
            self.say(&describe(record).to_string());
        }
    }

    fn standing(&self, standing: &Standing) {
        if self.face != Face::Terminal || self.verbosity == Verbosity::Quiet {
            return;
        }
        let width = terminal_width().unwrap_or(80);
        let status: String = last_line(standing, Utc::now())
            .chars()
            .take(width.saturating_sub(1))
            .collect();
        let mut last = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut out = std::io::stdout().lock();
        let _gone = out
            .write_all(format!("\r\u{1b}[K{status}").as_bytes())
            .and_then(|()| out.flush());
        *last = Some(status);
    }

    fn ended(&self) {
        let mut last = self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.take().is_some() {
            let mut out = std::io::stdout().lock();
            let _gone = out.write_all(b"\n").and_then(|()| out.flush());
        }
    }
}

fn last_line(standing: &Standing, now: DateTime<Utc>) -> String {
    let mut parts = vec![
        count(standing.sessions, "session"),
        count(standing.items, "item"),
        match standing.inbox {
            0 => "inbox empty".to_owned(),
            n => format!("{n} waiting"),
        },
    ];
    if let Some(next) = standing.next_cycle_at {
        parts.push(format!(
            "next cycle in {}",
            output::age((next - now).num_seconds())
        ));
    }
    if let Some(rate) = &standing.rate {
        parts.push(format!("GitHub {} of {} left", rate.remaining, rate.limit));
    }
    parts.push("ctrl-c stops, agents keep running".to_owned());
    parts.join(" · ")
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
