//! What most commands begin with: the configuration, logging, the runtime.

use std::io::IsTerminal;

use super::args::Global;
use super::exit::Failure;
use super::output;
use super::screen::LogLines;
use crate::config::{Config, ConfigError, Environment, Loaded, Purpose};
use crate::telemetry::{self, Colour, Verbosity};

/// Loads the configuration, says its warnings, and starts logging.
pub(super) fn load(global: &Global) -> Result<Loaded, Failure> {
    start_logging(global);
    let loaded = Config::load(global.config.as_deref(), &Environment::of_this_process())
        .map_err(|error| Failure::config(&error))?;
    if global.verbosity() > Verbosity::Quiet {
        for warning in &loaded.warnings {
            output::warning(&format!("{}: {warning}", loaded.shown_path));
        }
        for note in &loaded.notes {
            output::note(format!("note: {note}"));
        }
    }
    Ok(loaded)
}

/// Loads the configuration for a command that does not poll: without a file, the defaults do.
pub(super) fn load_or_defaults(global: &Global, purpose: Purpose) -> Result<Loaded, Failure> {
    start_logging(global);
    let environment = Environment::of_this_process();
    match Config::load_for(purpose, global.config.as_deref(), &environment) {
        Ok(loaded) => Ok(loaded),
        Err(ConfigError::NoFile { .. }) => {
            Loaded::defaults(&environment).map_err(|error| Failure::config(&error))
        }
        Err(error) => Err(Failure::config(&error)),
    }
}

pub(super) fn start_logging(global: &Global) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = if std::io::stderr().is_terminal() && !plain {
        Colour::On
    } else {
        Colour::Off
    };
    telemetry::start(global.log_format, global.verbosity(), colour, LogLines);
}

/// Runs a command's asynchronous part on this thread.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of(format!("cannot start the runtime: {error}")))?
        .block_on(work)
}
