//! `the-loop config …`: check, show, schema.

use super::args::{ConfigArgs, ConfigCommand, Global, JsonArgs};
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::config::{Config, ConfigError, Environment, Loaded, schema};

pub(super) fn run(global: &Global, args: &ConfigArgs) -> Result<Exit, Failure> {
    match &args.command {
        ConfigCommand::Schema => {
            output::print(&schema::text());
            Ok(Exit::Success)
        }
        ConfigCommand::Check(json) => match load(global) {
            Ok(loaded) if json.json => told(&loaded.check_json()),
            Ok(loaded) => {
                output::print(&loaded.check_report());
                Ok(Exit::Success)
            }
            Err(error) => refused(&error, json),
        },
        ConfigCommand::Show(json) => match load(global) {
            Ok(loaded) if json.json => told(&loaded.show_json()),
            Ok(loaded) => {
                output::print(&loaded.show());
                Ok(Exit::Success)
            }
            Err(error) => refused(&error, json),
        },
    }
}

fn told(value: &serde_json::Value) -> Result<Exit, Failure> {
    output::json(value)?;
    Ok(Exit::Success)
}

/// Whoever reads JSON finds the problems there.
fn refused(error: &ConfigError, json: &JsonArgs) -> Result<Exit, Failure> {
    if json.json {
        output::json(&error.json())?;
        return Ok(Exit::Usage);
    }
    Err(Failure::config(error))
}

fn load(global: &Global) -> Result<Loaded, ConfigError> {
    setup::start_logging(global);
    Config::load(global.config.as_deref(), &Environment::of_this_process())
}
