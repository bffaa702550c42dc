//! Every command, flag and argument.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::model::WorkItemRef;
use crate::telemetry::{LogFormat, Verbosity};

/// Turns GitHub activity into work for coding agents that live in named tmux sessions
#[derive(Debug, Parser)]
#[command(
    name = "the-loop",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed (or the answer is no), 2 wrong usage or configuration"
)]
pub struct Cli {
    #[command(flatten, next_help_heading = "Options of every command")]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    // Not a doc comment: there the variable would need backticks, and the terminal would show them.
    #[arg(
        short,
        long,
        global = true,
        value_name = "PATH",
        help = "Read this configuration, instead of $THE_LOOP_CLI_CONFIG or ~/.the-loop/cli-config.yaml"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Log more to stderr (-vv: every request and every tmux call)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// No warnings and no progress; poll says only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// How log lines on stderr look; with json, poll prints its decisions as JSON lines too
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) log_format: LogFormat,
}

impl Global {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        }
    }

    /// Returns the flags that let another process of this program log the same.
    pub(crate) fn logging_flags(&self) -> Vec<String> {
        let mut flags = vec!["--log-format".to_owned(), self.log_format.to_string()];
        flags.extend(self.quiet.then(|| "--quiet".to_owned()));
        flags.extend((0..self.verbose).map(|_| "--verbose".to_owned()));
        flags
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch GitHub by asking it
    Poll(PollArgs),
    /// See and steer the agents' sessions
    Sessions(SessionsArgs),
    /// Ask the log of decisions
    Events(EventsArgs),
    /// Show daemons, sessions, inbox and failures on one screen
    Status(JsonArgs),
    /// Check and show the configuration
    Config(ConfigArgs),
    /// See it work: real daemon, real tmux, a local GitHub, a scripted agent
    Demo(DemoArgs),
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "`the-loop poll --once` is `the-loop poll start --once`"
)]
pub(crate) struct PollArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PollCommand>,
    #[command(flatten)]
    pub(crate) start: PollStartArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PollCommand {
    /// Watch the configured repositories, in the foreground
    #[command(
        after_help = "Exit codes: 0 stopped as asked, 1 could not run (another poller runs), 2 wrong usage or \
                      configuration, 130 ended at once by a second signal. With --once: 0 all worked, also where a running poller does the work, \
                      1 something failed"
    )]
    Start(PollStartArgs),
    /// Stop the running poller and wait until it has ended; agents keep running
    #[command(after_help = "Exit codes: 0 it has ended, 1 none runs or it still runs")]
    Stop {
        /// Give up waiting after this many seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        timeout: u64,
    },
    /// Tell whether a poller runs, and how its last cycle went
    #[command(after_help = "Exit codes: 0 one runs, 1 none does")]
    Status(JsonArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PollStartArgs {
    /// Run one cycle, dispatch what is due, and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between cycles, instead of polling.intervalSeconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) interval: Option<u64>,
    /// Attempts per delivery, instead of polling.maxRetries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_retries: Option<u32>,
    /// Go to the background once the daemon is ready
    #[arg(long, conflicts_with = "once")]
    pub(crate) detach: bool,
    /// Run as the background half of --detach
    #[arg(long, hide = true, conflicts_with_all = ["once", "detach"])]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions
    #[command(after_help = "Exit codes: 0 these are all, 1 one of them could not be read")]
    List {
        /// Only sessions in this state; paused and closed ones also where their agent has ended or
        /// runs on
        // Scripts may know it as `--status active`.
        #[arg(long, alias = "status", value_enum)]
        state: Option<StateFilter>,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Show one session with all that is recorded of it
    Show {
        /// The work item: o/r#15, github:o/r#15 or its URL
        work_item: WorkItemRef,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Attach this terminal to the agent
    Attach {
        /// The work item: o/r#15, github:o/r#15 or its URL
        work_item: WorkItemRef,
        /// Look only; keys do not reach the agent
        #[arg(long)]
        read_only: bool,
    },
    /// Start the item's session, or resume a paused one
    Start(SteerArgs),
    /// Keep the session, deliver nothing
    Pause(SteerArgs),
    /// Deliver again into a paused session
    Resume(SteerArgs),
    /// Close the session, end its agent as routing.tmux.killHarnessOnClose says, and drop what is queued
    Stop(SteerArgs),
    /// Close the session as the end of its work item would; the item stays started, so that its next
    /// event begins a new session (stop prevents that)
    Close {
        #[command(flatten)]
        steer: SteerArgs,
        /// Leave the tmux session readable, instead of routing.tmux.keepSessionOnClose
        #[arg(long, conflicts_with = "kill_tmux")]
        keep_tmux: bool,
        /// End the tmux session too, and the agent in it
        #[arg(long)]
        kill_tmux: bool,
    },
    /// Forget sessions, control words and what waits of work items; what was said stays known
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Reset {
        /// The work items
        #[arg(group = "which")]
        work_items: Vec<WorkItemRef>,
        /// Every recorded work item
        #[arg(long, group = "which")]
        all: bool,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
}

impl SessionsCommand {
    /// Reads every work item as a person means it whose GitHub is `host`.
    pub(crate) fn meant_on(mut self, host: &str) -> Self {
        let mean = |item: &mut WorkItemRef| *item = item.clone().meant_on(host);
        match &mut self {
            Self::List { .. } => {}
            Self::Show { work_item, .. } | Self::Attach { work_item, .. } => mean(work_item),
            Self::Start(steer)
            | Self::Pause(steer)
            | Self::Resume(steer)
            | Self::Stop(steer)
            | Self::Close { steer, .. } => mean(&mut steer.work_item),
            Self::Reset { work_items, .. } => work_items.iter_mut().for_each(mean),
        }
        self
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SteerArgs {
    /// The work item: o/r#15, github:o/r#15 or its URL
    pub(crate) work_item: WorkItemRef,
    #[command(flatten)]
    pub(crate) json: JsonFlag,
}

/// `--json`, for commands that also take other arguments.
#[derive(Debug, Clone, Args)]
pub(crate) struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFilter {
    Spawning,
    #[value(alias = "active")]
    Running,
    Unknown,
    Ended,
    Paused,
    Closed,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only these types; * and ? match (dispatch.*); may be repeated
    #[arg(long = "type", value_name = "PATTERN")]
    pub(crate) types: Vec<String>,
    /// Only this work item
    #[arg(long, value_name = "REF")]
    pub(crate) work_item: Option<WorkItemRef>,
    /// Only this delivery or event key
    #[arg(long, value_name = "ID")]
    pub(crate) delivery: Option<String>,
    /// Only from this source: poll, gh-webhook or cli
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Only this level and above: debug, info, warning or error [default: info; with --json, --type
    /// or --delivery all]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    /// Only since then: 2026-11-30T14:00:00Z, or 90s, 15m, 2h, 3d ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only the last N; 0 is all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Go on with new records until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print the records as they are stored, one JSON object a line; with --types one array
    #[arg(long)]
    pub(crate) json: bool,
    /// Tell the story of one work item or one event, how it stands, and what can be done now
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["types", "work_item", "delivery", "source", "level", "since", "follow"])]
    pub(crate) explain: Option<String>,
    /// Print every type of record there is, and exit
    #[arg(long = "types", conflicts_with_all = ["types", "work_item", "delivery", "source", "level", "since", "limit", "follow", "explain"])]
    pub(crate) catalogue: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration and name every problem
    Check(JsonArgs),
    /// Show the values in force and where each comes from
    Show(JsonArgs),
    /// Print the JSON Schema of the configuration
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave everything running at the end, to look around
    #[arg(long)]
    pub(crate) keep: bool,
    /// Tell the story from the background, on a terminal of this width, and stay for --keep
    #[arg(long, hide = true, value_name = "COLUMNS", requires = "keep")]
    pub(crate) backstage: Option<usize>,
}

#[cfg(test)]
#[expect(clippy::panic, reason = "how a test of a variant fails")]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_process_that_is_given_the_logging_flags_logs_the_same() {
        let read = |flags: Vec<String>| {
            let mut line = vec!["the-loop".to_owned()];
            line.extend(flags);
            line.push("status".to_owned());
            let global = Cli::try_parse_from(line).unwrap().global;
            (
                global.verbosity(),
                global.log_format,
                global.logging_flags(),
            )
        };
        for flags in ["", "-q", "-v", "-vv --log-format json", "-vvv"] {
            let asked = read(flags.split_whitespace().map(str::to_owned).collect());
            assert_eq!(read(asked.2.clone()), asked, "{flags}");
        }
    }

    #[test]
    fn poll_once_is_poll_start_once() {
        let short = Cli::try_parse_from(["the-loop", "poll", "--once"]).unwrap();
        let Command::Poll(PollArgs {
            command: None,
            start,
        }) = short.command
        else {
            panic!("{:?}", short.command)
        };
        assert!(start.once);
        let long = Cli::try_parse_from(["the-loop", "poll", "start", "--once"]).unwrap();
        let Command::Poll(PollArgs {
            command: Some(PollCommand::Start(start)),
            ..
        }) = long.command
        else {
            panic!("{:?}", long.command)
        };
        assert!(start.once);
    }

    #[test]
    fn reset_takes_items_or_all_but_not_both() {
        for bad in [
            vec!["sessions", "reset"],
            vec!["sessions", "reset", "o/r#1", "--all"],
        ] {
            let args = std::iter::once("the-loop").chain(bad);
            assert!(Cli::try_parse_from(args).is_err());
        }
    }
}
