//! The machine of a story: its processes are values. Hosts take real tickets and write real records;
//! agents note what reaches them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chrono::{DateTime, Utc};
use the_loop::clock::Clock as _;
use the_loop::model::{AfterEnd, BootId, Ending, HostPaths, OwnerId, ProcessId, Record};
use the_loop::process::identity::Life;
use the_loop::process::signal::{Signal, SignalError};
use the_loop::process::ticket::{self, TicketState};
use the_loop::runner::Machine;

use crate::clock::StoryClock;
use crate::fake_tmux::{FakeTmux, Program, Programs};
use crate::numbers::Numbers;
use crate::table::{Agent, Cause, Heard, Host, Table};

const FIRST_PID: i32 = 1_000;

/// The processes, and what they did; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct StoryMachine(Arc<Mutex<Table>>);

impl StoryMachine {
    pub(crate) fn new(root: &Path, clock: StoryClock, numbers: Numbers) -> Self {
        Self(Arc::new(Mutex::new(Table {
            clock,
            numbers,
            troubles: true,
            starts_broken: false,
            ends_at_paste: false,
            tmux_goes: false,
            root: root.to_owned(),
            boots: 1,
            boot: BootId("boot-1".to_owned()),
            next_pid: FIRST_PID,
            alive: BTreeMap::new(),
            sockets_wanted: Vec::new(),
            hosts: BTreeMap::new(),
            agents: BTreeMap::new(),
            heard: Vec::new(),
            people: BTreeSet::new(),
            wrongs: Vec::new(),
            trace: Vec::new(),
        })))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap()
    }

    /// Makes a process that is none of tmux's: a daemon.
    pub(crate) fn daemon(&self) -> ProcessId {
        let mut table = self.table();
        let pid = table.fork();
        table.id(pid)
    }

    pub(crate) fn kill_daemon(&self, process: ProcessId) {
        self.table().alive.remove(&process.pid);
    }

    pub(crate) fn note(&self, text: impl AsRef<str>) {
        self.table().note(text.as_ref());
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.table().trace.clone()
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.table().heard.clone()
    }

    /// All agents there ever were, by their pids.
    pub(crate) fn agents(&self) -> BTreeMap<i32, Agent> {
        self.table().agents.clone()
    }

    /// A program that a person starts in a pane of their own.
    pub(crate) fn persons_program(&self) -> Program {
        let mut table = self.table();
        let pid = table.fork();
        table.people.insert(pid);
        Program {
            pid,
            name: "vim".to_owned(),
            bracketed: true,
        }
    }

    /// What was done to people.
    pub(crate) fn wrongs(&self) -> Vec<String> {
        self.table().wrongs.clone()
    }

    /// From now on everything that is started works.
    pub(crate) fn heal(&self) {
        let mut table = self.table();
        table.troubles = false;
        table.ends_at_paste = false;
    }

    /// An agent that runs ends, for reasons of its own.
    pub(crate) fn end_an_agent(&self, ending: Ending) {
        let mut table = self.table();
        let Some(agent) = table.one_running() else {
            return;
        };
        let host = table.agents[&agent].host;
        table.note(&format!("agent {agent} ends: {ending}"));
        if let Some(host) = table.hosts.get_mut(&host) {
            host.ending = Some((ending, Cause::Itself));
        }
    }

    /// A host is killed, and its agent with it.
    pub(crate) fn kill_a_host(&self, tmux: &FakeTmux) {
        let killed = {
            let mut table = self.table();
            let Some(agent) = table.one_running() else {
                return;
            };
            let host = table.agents[&agent].host;
            table.note(&format!("host {host} of agent {agent} is killed"));
            table.end_agent(agent, Cause::Itself);
            table.alive.remove(&host);
            table.hosts.remove(&host);
            host
        };
        tmux.program_ended(killed);
    }

    pub(crate) fn break_starts(&self, broken: bool) {
        self.table().starts_broken = broken;
    }

    pub(crate) fn end_at_paste(&self) {
        self.table().ends_at_paste = true;
    }

    /// The story ends the tmux server, with all that runs in it.
    pub(crate) fn tmux_goes(&self) {
        self.table().tmux_goes = true;
    }

    /// The machine goes down with all that runs on it, and comes up again.
    pub(crate) fn reboot(&self, tmux: &FakeTmux) {
        self.note("the machine goes down and comes up again");
        self.table().people.clear();
        tmux.kill_all();
        let mut table = self.table();
        let running: Vec<i32> = table.agents.keys().copied().collect();
        for agent in running {
            if table.agents[&agent].ended.is_none() {
                table.end_agent(agent, Cause::Itself);
            }
        }
        table.hosts.clear();
        table.alive.clear();
        table.sockets_wanted.clear();
        table.boots += 1;
        table.boot = BootId(format!("boot-{}", table.boots));
    }

    /// A host whose agent runs.
    pub(crate) fn a_host(&self) -> Option<i32> {
        let mut table = self.table();
        let agent = table.one_running()?;
        Some(table.agents[&agent].host)
    }

    /// Lets the hosts do what is due.
    pub(crate) fn tick(&self, tmux: &FakeTmux) {
        let wanted = std::mem::take(&mut self.table().sockets_wanted);
        for server in wanted {
            if !tmux.make_socket_again(server) {
                self.table().sockets_wanted.push(server);
            }
        }
        let hosts: Vec<i32> = self.table().hosts.keys().copied().collect();
        for host in hosts {
            let place = tmux.pane_of(host);
            let ended = self.table().step(host, place.as_ref());
            if let Some((socket, pane)) = place.filter(|(socket, _)| tmux.answers(socket)) {
                let mark = self.table().take_mark(host);
                if let Some(word) = mark {
                    tmux.set_pane_option(&socket, &pane, "@loop_exit", &format!("{host} {word}"));
                }
            }
            if ended {
                tmux.program_ended(host);
            }
        }
    }
}

/// tmux starts hosts, types into them, and takes their terminals away.
impl Programs for StoryMachine {
    fn start(&mut self, argv: &[OsString]) -> Program {
        let spec = match argv {
            [_, word, spec] if word == "host" => PathBuf::from(spec),
            _ => panic!("{argv:?}"),
        };
        let mut table = self.table();
        let pid = table.fork();
        let due_ms =
            table.clock.elapsed_ms() + i64::try_from(table.numbers.between(1, 300)).unwrap();
        table.note(&format!("tmux makes a pane for host {pid}"));
        table.hosts.insert(
            pid,
            Host {
                ticket: spec,
                due_ms,
                agent: None,
                record: None,
                after_end: AfterEnd::KeepScreen,
                paths: None,
                ending: None,
                hung_up: false,
                mark: None,
            },
        );
        Program {
            pid,
            name: "the-loop".to_owned(),
            bracketed: true,
        }
    }

    fn start_server(&mut self) -> i32 {
        let mut table = self.table();
        let pid = table.fork();
        table.note(&format!("a tmux server starts: {pid}"));
        pid
    }

    fn typed(&mut self, pid: i32, bytes: &[u8]) {
        let mut table = self.table();
        if table.people.contains(&pid) {
            table.wrong(format!("something is typed into a person's program {pid}"));
            return;
        }
        let Some(agent) = table.hosts.get(&pid).and_then(|host| host.agent) else {
            table.note(&format!("typed into host {pid}, which has no agent"));
            return;
        };
        if bytes != b"\r" && std::mem::take(&mut table.ends_at_paste) {
            table.note(&format!("agent {agent} ends as it is typed to"));
            if let Some(host) = table.hosts.get_mut(&pid) {
                host.ending = Some((Ending::Code(0), Cause::Itself));
            }
        }
        let it = table.agents.get_mut(&agent).unwrap();
        it.buffer.extend(bytes);
        if bytes == b"\r" {
            let typed = std::mem::take(&mut it.buffer);
            let text = String::from_utf8(typed).unwrap();
            if text.trim().is_empty() {
                table.note(&format!("agent {agent} gets an empty line"));
            } else {
                table.hear(agent, text);
            }
        }
    }

    fn hung_up(&mut self, pid: i32) {
        let mut table = self.table();
        table.note(&format!("host {pid} loses its terminal"));
        let tmux_goes = table.tmux_goes;
        if table.people.remove(&pid) {
            table.alive.remove(&pid);
            if !tmux_goes {
                table.wrong(format!("a person's program {pid} is ended"));
            }
        }
        if let Some(host) = table.hosts.get_mut(&pid) {
            host.hung_up = true;
            host.due_ms = 0;
            if host.agent.is_some() && host.ending.is_none() {
                let cause = if tmux_goes {
                    Cause::HungUp
                } else {
                    Cause::SessionEnded
                };
                host.ending = Some((Ending::Signal(1), cause));
            }
        }
    }

    fn server_ended(&mut self, pid: i32) {
        let mut table = self.table();
        table.note(&format!("tmux server {pid} has ended"));
        table.tmux_goes = false;
        table.alive.remove(&pid);
    }

    fn screen(&self, _: i32) -> String {
        String::new()
    }
}

impl Machine for StoryMachine {
    fn now(&self) -> DateTime<Utc> {
        self.table().clock.now()
    }

    fn identify(&self, pid: i32) -> Option<ProcessId> {
        let table = self.table();
        table.alive.contains_key(&pid).then(|| table.id(pid))
    }

    fn life(&self, boot: &BootId, process: &ProcessId) -> Life {
        let table = self.table();
        let runs = *boot == table.boot && table.alive.get(&process.pid) == Some(&process.start);
        if runs { Life::Running } else { Life::Gone }
    }

    fn boot(&self) -> BootId {
        self.table().boot.clone()
    }

    fn signal(&self, process: &ProcessId, signal: Signal) -> Result<(), SignalError> {
        let mut table = self.table();
        let pid = process.pid;
        if table.alive.get(&pid) != Some(&process.start) {
            return Err(SignalError::Gone { pid });
        }
        table.note(&format!("process {pid} is signalled: {signal:?}"));
        if signal == Signal::User1 {
            table.sockets_wanted.push(pid);
        } else if let Some(host) = table.hosts.get_mut(&pid) {
            host.ending = Some((Ending::Signal(15), Cause::Asked));
        } else if table.agents.contains_key(&pid) {
            table.end_agent(pid, Cause::Asked);
        }
        Ok(())
    }

    async fn exited(&self, process: &ProcessId) {
        let boot = self.boot();
        while self.life(&boot, process) == Life::Running {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn record(&self, owner: &OwnerId) -> Option<Record> {
        let root = self.table().root.clone();
        ticket::record(&HostPaths::new(&root, owner)).unwrap()
    }

    fn is_given_up(&self, owner: &OwnerId) -> bool {
        let root = self.table().root.clone();
        let state = ticket::state(&HostPaths::new(&root, owner));
        state.is_ok_and(|state| state == TicketState::Revoked)
    }
}
