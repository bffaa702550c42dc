//! `the-loop config …`: check, show, schema.

use super::args::{ConfigArgs, ConfigCommand, Global};
use super::exit::{Exit, Failure};
use super::{output, setup};
use crate::config::{Config, Environment, schema};

pub(super) fn run(global: &Global, args: &ConfigArgs) -> Result<Exit, Failure> {
    match &args.command {
        ConfigCommand::Schema => output::print(&schema::text()),
        ConfigCommand::Check => {
            setup::start_logging(global);
            let loaded = Config::load(global.config.as_deref(), &Environment::of_this_process())
                .map_err(|error| Failure::config(&error))?;
            output::print(&loaded.check_report());
        }
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
