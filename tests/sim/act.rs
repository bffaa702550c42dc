//! The single things that people do, and that break.

use the_loop::demo::github::Fault;
use the_loop::model::{Class, Ending};

use crate::fake_tmux::Client;
use crate::push;
use crate::said::{STRANGER, Said, mark};
use crate::story::item;
use crate::world::{Ingress, REPO, World};

#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// An item is armed and started.
    Start(u64),
    /// Somebody writes; what is pushed may be pushed twice.
    Comment(u64, u64),
    Edit(u64, u64),
    Delete(u64, u64),
    /// Somebody stops the agent of an item, or starts it again.
    Command(u64, Command),
    /// Somebody writes who may not command any agent.
    Stranger(u64),
    GitHubFails(Fault),
    FreezeTmux,
    ThawTmux,
    KillTmux,
    RemoveSocket,
    /// Somebody starts tmux where no one listens, or ends what was started so.
    AnotherTmux,
    EndOtherTmux,
    EndAgent(i32),
    /// The next agent that is typed to ends before it reads that.
    EndAtPaste,
    KillHost,
    KillDaemon,
    Jump(i64),
    /// Somebody scrolls in the pane of an agent, or goes back to its end.
    Scroll,
    Unscroll,
    /// Somebody looks at the session of an agent, or nobody does any more.
    LookOn(Client),
    LookAway,
    /// Somebody works in a pane of their own beside an agent.
    Split,
    /// From now on no agent starts well, or they all do again.
    BreakStarts,
    MendStarts,
    FillDisk,
    ClearDisk,
    Reboot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Start,
    Stop,
}

impl Command {
    fn words(self) -> &'static str {
        match self {
            Self::Start => "the-loop start",
            Self::Stop => "the-loop stop",
        }
    }
}

pub(crate) async fn perform(world: &mut World, act: Act, said: &mut Vec<Said>) {
    let socket = world.socket();
    let listens = world.tmux.listens(&socket);
    match act {
        Act::Start(item) => start(world, item).await,
        Act::Comment(item, number) => comment(world, item, number, said).await,
        Act::Edit(item, number) => edit(world, item, number, said),
        Act::Delete(item, number) => delete(world, item, number, said),
        Act::Stranger(item) => {
            world.machine.note("a stranger writes");
            let written = world.github.comment(REPO, item, "mallory", STRANGER);
            written.unwrap();
        }
        Act::Command(item, what) => command(world, item, what).await,
        Act::Scroll => {
            if let Some(host) = world.machine.a_host() {
                world
                    .machine
                    .note(format!("somebody scrolls in the pane of host {host}"));
                world.tmux.scroll(Some(host));
            }
        }
        Act::Unscroll => world.tmux.scroll(None),
        Act::LookOn(client) => {
            if let Some(host) = world.machine.a_host() {
                let note = format!("somebody looks at host {host}: {client:?}");
                world.machine.note(note);
                world.tmux.look_on(host, client);
            }
        }
        Act::LookAway => world.tmux.look_away(),
        Act::Split => {
            if let Some(host) = world.machine.a_host() {
                let program = world.machine.persons_program();
                let (pid, note) = (program.pid, "somebody works beside host");
                world.machine.note(format!("{note} {host}: {pid}"));
                world.tmux.split_beside(host, program);
            }
        }
        Act::BreakStarts => {
            world.machine.note("agents end as soon as they are started");
            world.machine.break_starts(true);
        }
        Act::MendStarts => world.machine.break_starts(false),
        Act::FillDisk => {
            world.machine.note("the disk is full");
            world.fill_disk(true);
        }
        Act::ClearDisk => world.fill_disk(false),
        Act::Reboot => world.reboot(),
        Act::GitHubFails(fault) => {
            world
                .machine
                .note(format!("GitHub will answer with {fault:?}"));
            world.github.fail("", 1, fault);
        }
        Act::FreezeTmux if listens => {
            world.machine.note("tmux is stopped");
            world.tmux.freeze(&socket);
        }
        Act::ThawTmux => {
            world.machine.note("tmux goes on");
            world.tmux.thaw_all();
        }
        Act::KillTmux if listens => {
            world.machine.note("tmux is killed");
            world.machine.tmux_goes();
            world.tmux.kill_server(&socket);
        }
        Act::RemoveSocket if listens => {
            world.machine.note("the socket is removed");
            world.tmux.remove_socket(&socket);
        }
        Act::AnotherTmux if !listens => {
            world.machine.note("somebody starts tmux");
            world.tmux.start_another(&socket);
        }
        Act::EndOtherTmux => world.tmux.end_unused(),
        Act::AnotherTmux | Act::FreezeTmux | Act::KillTmux | Act::RemoveSocket => {}
        Act::EndAgent(code) => world.machine.end_an_agent(Ending::Code(code)),
        Act::EndAtPaste => world.machine.end_at_paste(),
        Act::KillHost => world.machine.kill_a_host(&world.tmux),
        Act::KillDaemon => world.kill_daemon(0),
        Act::Jump(ms) => {
            world.machine.note(format!("the clock jumps by {ms} ms"));
            world.clock.jump(ms);
        }
    }
}

async fn start(world: &mut World, item: u64) {
    world.machine.note(format!("item {item} is started"));
    match world.ingress {
        Ingress::Push => {
            push::armed(world, item).await;
        }
        Ingress::Poll => world.github.label(REPO, item, "ada", "loop").unwrap(),
    }
    command(world, item, Command::Start).await;
}

async fn command(world: &mut World, item: u64, command: Command) {
    let words = command.words();
    world
        .machine
        .note(format!("ada writes {words:?} on item {item}"));
    world
        .commands
        .push((item, command, world.clock.elapsed_ms()));
    match world.ingress {
        Ingress::Push => {
            let id = 1_000 + u64::try_from(world.commands.len()).unwrap();
            push::comment(world, item, id, words, Class::Control).await;
        }
        Ingress::Poll => {
            world.github.comment(REPO, item, "ada", words).unwrap();
        }
    }
}

async fn comment(world: &World, item: u64, number: u64, said: &mut Vec<Said>) {
    let text = mark(item, number, 0);
    world.machine.note(format!("somebody writes {text}"));
    let (key, comment) = match world.ingress {
        Ingress::Push => {
            let key = push::comment(world, item, number, &text, Class::Event).await;
            (key, None)
        }
        Ingress::Poll => {
            let id = world.github.comment(REPO, item, "ada", &text).unwrap();
            (push::key(&self::item(item), &id.to_string()), Some(id))
        }
    };
    if said.iter().all(|one| one.key != key) {
        said.push(Said {
            item,
            number,
            at_ms: world.clock.elapsed_ms(),
            key,
            comment,
            edits: 0,
            deleted: false,
        });
    }
}

fn edit(world: &World, item: u64, number: u64, said: &mut [Said]) {
    let Some((one, id)) = written(item, number, said) else {
        return;
    };
    one.edits += 1;
    let text = one.last_mark();
    world.machine.note(format!("somebody edits: {text}"));
    world.github.edit(REPO, id, "ada", &text).unwrap();
}

fn delete(world: &World, item: u64, number: u64, said: &mut [Said]) {
    let Some((one, id)) = written(item, number, said) else {
        return;
    };
    one.deleted = true;
    world
        .machine
        .note(format!("somebody deletes {}", one.last_mark()));
    world.github.delete(REPO, id).unwrap();
}

fn written(item: u64, number: u64, said: &mut [Said]) -> Option<(&mut Said, u64)> {
    let one = said
        .iter_mut()
        .find(|one| (one.item, one.number) == (item, number) && !one.deleted)?;
    let id = one.comment?;
    Some((one, id))
}
