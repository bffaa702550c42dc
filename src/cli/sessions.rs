//! `the-loop sessions …`: attach, and what `session_list.rs`, `session_show.rs`, `steer.rs` and
//! `reset.rs` do.

use super::args::{Global, SessionsArgs, SessionsCommand};
use super::exit::{Exit, Failure};
use super::{output, reset, session_list, session_show, setup, steer};
use crate::config::{Config, Purpose};
use crate::daemon::{open_store, runner};
use crate::model::{OperatorCommand, TmuxFate, WorkItemRef};
use crate::process::exec;
use crate::runner::{Access, Address};
use crate::store::{SessionFace, Store};

pub(super) fn run(global: &Global, args: SessionsArgs) -> Result<Exit, Failure> {
    let purpose = match args.command {
        SessionsCommand::Start(_) => Purpose::Work,
        _ => Purpose::Look,
    };
    let loaded = setup::load_or_defaults(global, purpose)?;
    let config = &loaded.config;
    match args.command.meant_on(&config.integrations.github.host) {
        SessionsCommand::List { state, json } => session_list::list(config, state, json.json),
        SessionsCommand::Show { work_item, json } => {
            session_show::show(config, &work_item, json.json)
        }
        SessionsCommand::Attach {
            work_item,
            read_only,
        } => attach(config, &work_item, read_only),
        SessionsCommand::Start(steer) => steer::command(config, &steer, OperatorCommand::Start),
        SessionsCommand::Pause(steer) => steer::command(config, &steer, OperatorCommand::Pause),
        SessionsCommand::Resume(steer) => steer::command(config, &steer, OperatorCommand::Resume),
        SessionsCommand::Stop(steer) => steer::command(config, &steer, OperatorCommand::Stop),
        SessionsCommand::Close {
            steer,
            keep_tmux,
            kill_tmux,
        } => {
            let tmux = match (keep_tmux, kill_tmux) {
                (true, _) => TmuxFate::Keep,
                (_, true) => TmuxFate::Kill,
                (false, false) => TmuxFate::AsConfigured,
            };
            steer::command(config, &steer, OperatorCommand::Close { tmux })
        }
        SessionsCommand::Reset {
            work_items,
            all,
            dry_run,
            json,
        } => {
            let which = if all {
                reset::Which::All
            } else {
                reset::Which::These(work_items)
            };
            let mode = if dry_run {
                reset::Mode::DryRun
            } else {
                reset::Mode::Remove
            };
            reset::run(config, which, mode, json.json)
        }
    }
}

/// Opens the store and returns the item's session, open or closed.
pub(super) async fn latest(
    config: &Config,
    item: &WorkItemRef,
) -> Result<(Store, SessionFace), Failure> {
    if let Some(store) = open_store(config).await?
        && let Some(face) = store.registry().latest_face(item).await?
    {
        return Ok((store, face));
    }
    Err(Failure::of(format!(
        "no session is recorded for {}",
        item.short()
    )))
}

fn attach(config: &Config, item: &WorkItemRef, read_only: bool) -> Result<Exit, Failure> {
    let session = setup::block_on(async {
        let (store, face) = latest(config, item).await?;
        store.close().await;
        Ok(face.session)
    })?;
    let name = session.minted_ref.session_name()?;
    let access = if read_only || !session.status.is_open() {
        Access::ReadOnly
    } else {
        Access::ReadWrite
    };
    if access == Access::ReadOnly && !read_only {
        output::note(format!(
            "the session of {} is closed: attaching read-only",
            item.short()
        ));
    }
    let address = Address {
        name,
        owner: Some(session.owner.clone()),
        target: session.target.clone(),
    };
    let command = runner(config)?.attach_command(&address, access);
    // Returns only where tmux could not be started.
    Err(Failure::of(exec(&command)))
}
