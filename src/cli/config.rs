//! `the-loop config …`: check, show, schema.

use super::args::{ConfigArgs, ConfigCommand, Global, JsonArgs};
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::config::{Config, Environment, schema};

pub(super) fn run(global: &Global, args: &ConfigArgs) -> Result<Exit, Failure> {
    match &args.command {
        ConfigCommand::Schema => output::print(&schema::text()),
        ConfigCommand::Check(json) => return check(global, json),
        ConfigCommand::Show(json) => {
            setup::start_logging(global);
            let loaded = Config::load(global.config.as_deref(), &Environment::of_this_process())
                .map_err(|error| Failure::config(&error))?;
            if json.json {
                output::json(&loaded.show_json())?;
            } else {
                output::print(&loaded.show());
            }
        }
    }
    Ok(Exit::Success)
}

fn check(global: &Global, json: &JsonArgs) -> Result<Exit, Failure> {
    setup::start_logging(global);
    match Config::load(global.config.as_deref(), &Environment::of_this_process()) {
        Ok(loaded) if json.json => output::json(&loaded.check_json())?,
        Ok(loaded) => output::print(&loaded.check_report()),
        Err(error) if json.json => {
            output::json(&error.json())?;
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(Failure::config(&error)),
    }
    Ok(Exit::Success)
}
