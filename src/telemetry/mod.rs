//! Logging of the program itself: what the developer or operator of the daemon reads on stderr.
//!
//! Decisions about work items are not logged here: they go to the event log, which can be queried.
//! Nothing reads these lines back.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// How the lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// One readable line each.
    #[default]
    Text,
    /// One JSON object each.
    Json,
}

impl std::fmt::Display for LogFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// How much is logged; the environment variable `THE_LOOP_LOG` refines it per module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Warnings and errors.
    #[default]
    Normal,
    /// What the daemon does.
    Verbose,
    /// Every request and every tmux call.
    Debug,
}

impl Verbosity {
    fn directive(self) -> &'static str {
        match self {
            Self::Quiet => "error",
            Self::Normal => "warn",
            Self::Verbose => "info,the_loop=info",
            Self::Debug => "info,the_loop=debug",
        }
    }
}

/// Starts logging to `writer`; a second call in one process changes nothing.
pub fn start<W>(format: LogFormat, verbosity: Verbosity, colour: Colour, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = std::env::var("THE_LOOP_LOG")
        .ok()
        .and_then(|directives| EnvFilter::try_new(directives).ok())
        .unwrap_or_else(|| EnvFilter::new(verbosity.directive()));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_ansi(colour == Colour::On)
        // A reader that went away is no reason to complain on the very same stream.
        .log_internal_errors(false)
        .with_writer(writer);
    // Under systemd the journal stamps every line itself.
    let under_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    // Fails only when a subscriber is set already, and then that one stays.
    let _already_set = match (format, under_journal) {
        (LogFormat::Json, _) => builder.json().finish().try_init(),
        (LogFormat::Text, true) => builder.without_time().finish().try_init(),
        (LogFormat::Text, false) => builder.finish().try_init(),
    };
}

/// Whether lines may carry colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Escape sequences are welcome.
    On,
    /// Plain text.
    Off,
}
