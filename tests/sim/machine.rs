//! The machine of a story: its processes are values. Hosts take real tickets and write real records;
//! agents note what reaches them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chrono::{DateTime, Utc};
use the_loop::clock::Clock as _;
use the_loop::model::{
    AfterEnd, BootId, Ending, HostPaths, OwnerId, PaneId, Phase, ProcessId, PromptPassing, Record,
    Ticket, TmuxSocket,
};
use the_loop::process::identity::Life;
use the_loop::process::signal::{Signal, SignalError};
use the_loop::process::ticket::{self, TicketState};
use the_loop::runner::Machine;

use crate::clock::StoryClock;
use crate::fake_tmux::{FakeTmux, Program, Programs};
use crate::numbers::Numbers;

const FIRST_PID: i32 = 1_000;

/// Something that an agent read.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) at_ms: i64,
    pub(crate) item: String,
    pub(crate) agent: i32,
    pub(crate) text: String,
}

/// The end of an agent, and who brought it about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The story.
    Itself,
    /// Its terminal went away with its session or server.
    HungUp,
    /// The daemon asked its host.
    Asked,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) item: String,
    pub(crate) began_ms: i64,
    pub(crate) ended: Option<(i64, Cause)>,
    host: i32,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Host {
    ticket: PathBuf,
    due_ms: i64,
    agent: Option<i32>,
    record: Option<Record>,
    after_end: AfterEnd,
    paths: Option<HostPaths>,
    ending: Option<(Ending, Cause)>,
    hung_up: bool,
    /// How its agent ended, for its pane, once tmux answers.
    mark: Option<String>,
}

/// How a host behaves, as the story decides when it is forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Luck {
    Good,
    /// It is killed before it takes its ticket.
    DiesFirst,
    /// It is killed right after.
    DiesWithTicket,
    /// Its agent ends with an error at once.
    BadStart,
}

#[derive(Debug)]
struct Table {
    clock: StoryClock,
    numbers: Numbers,
    troubles: bool,
    root: PathBuf,
    boot: BootId,
    next_pid: i32,
    alive: BTreeMap<i32, u64>,
    sockets_wanted: Vec<i32>,
    hosts: BTreeMap<i32, Host>,
    agents: BTreeMap<i32, Agent>,
    heard: Vec<Heard>,
    trace: Vec<String>,
}

/// The processes, and what they did; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct StoryMachine(Arc<Mutex<Table>>);

impl StoryMachine {
    pub(crate) fn new(root: &Path, clock: StoryClock, numbers: Numbers) -> Self {
        Self(Arc::new(Mutex::new(Table {
            clock,
            numbers,
            troubles: true,
            root: root.to_owned(),
            boot: BootId("boot-1".to_owned()),
            next_pid: FIRST_PID,
            alive: BTreeMap::new(),
            sockets_wanted: Vec::new(),
            hosts: BTreeMap::new(),
            agents: BTreeMap::new(),
            heard: Vec::new(),
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

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.table().note(text.into());
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.table().trace.clone()
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.table().heard.clone()
    }

    /// All agents there ever were: item, when it began, when and why it ended.
    pub(crate) fn agents(&self) -> Vec<(i32, String, i64, Option<(i64, Cause)>)> {
        let table = self.table();
        let agents = table.agents.iter();
        agents
            .map(|(pid, it)| (*pid, it.item.clone(), it.began_ms, it.ended))
            .collect()
    }

    /// From now on everything that is started works.
    pub(crate) fn heal(&self) {
        self.table().troubles = false;
    }

    /// An agent that runs ends, for reasons of its own.
    pub(crate) fn end_an_agent(&self, ending: Ending) {
        let mut table = self.table();
        let Some(agent) = table.one_running() else {
            return;
        };
        let host = table.agents[&agent].host;
        table.note(format!("agent {agent} ends: {ending}"));
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
            table.note(format!("host {host} of agent {agent} is killed"));
            table.end_agent(agent, Cause::Itself);
            table.alive.remove(&host);
            table.hosts.remove(&host);
            host
        };
        tmux.program_ended(killed);
    }

    /// Lets the hosts do what is due.
    pub(crate) fn tick(&self, tmux: &FakeTmux) {
        let wanted = std::mem::take(&mut self.table().sockets_wanted);
        for server in wanted {
            tmux.make_socket_again(server);
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

impl Table {
    fn note(&mut self, text: String) {
        let at = self.clock.elapsed_ms();
        self.trace.push(format!("{:>9} ms  {text}", at));
    }

    fn fork(&mut self) -> i32 {
        let pid = self.next_pid;
        self.next_pid += 1;
        self.alive.insert(pid, u64::try_from(pid).unwrap() * 7);
        pid
    }

    fn id(&self, pid: i32) -> ProcessId {
        ProcessId {
            pid,
            start: self.alive.get(&pid).copied().unwrap_or_default(),
        }
    }

    fn one_running(&mut self) -> Option<i32> {
        let running = |(_, agent): &(&i32, &Agent)| agent.ended.is_none();
        let agents = self.agents.iter().filter(running);
        let agents: Vec<i32> = agents.map(|(pid, _)| *pid).collect();
        self.numbers.pick(&agents).copied()
    }

    fn end_agent(&mut self, pid: i32, cause: Cause) {
        let at = self.clock.elapsed_ms();
        self.alive.remove(&pid);
        if let Some(agent) = self.agents.get_mut(&pid) {
            agent.ended = Some((at, cause));
        }
    }

    fn take_mark(&mut self, host: i32) -> Option<String> {
        self.hosts.get_mut(&host)?.mark.take()
    }

    /// One step of a host; tells whether it ends by it.
    fn step(&mut self, pid: i32, place: Option<&(TmuxSocket, PaneId)>) -> bool {
        let now = self.clock.elapsed_ms();
        let Some(mut host) = self.hosts.remove(&pid) else {
            return false;
        };
        if host.due_ms > now {
            self.hosts.insert(pid, host);
            return false;
        }
        if host.record.is_none() {
            let goes_on = !host.hung_up && self.begin(pid, &mut host, place);
            if goes_on {
                self.hosts.insert(pid, host);
            } else {
                self.alive.remove(&pid);
            }
            return !goes_on;
        }
        let Some((ending, cause)) = host.ending.take() else {
            let ends = host.hung_up;
            if ends {
                self.alive.remove(&pid);
            } else {
                self.hosts.insert(pid, host);
            }
            return ends;
        };
        host.mark = Some(ending.to_string());
        if let Some(agent) = host.agent.take() {
            self.note(format!("agent {agent} has ended: {ending} ({cause:?})"));
            self.end_agent(agent, cause);
            let at_ms = self.clock.now().timestamp_millis();
            let harness = Some(self.id_of_dead(agent));
            self.write(
                &mut host,
                Phase::Ended {
                    harness,
                    ending,
                    at_ms,
                },
            );
        }
        let ends = host.hung_up || host.after_end == AfterEnd::CloseSession;
        if ends {
            self.alive.remove(&pid);
        } else {
            self.hosts.insert(pid, host);
        }
        ends
    }

    fn id_of_dead(&self, pid: i32) -> ProcessId {
        ProcessId {
            pid,
            start: u64::try_from(pid).unwrap() * 7,
        }
    }

    /// A host takes its ticket and starts its agent; false where it does not.
    fn begin(&mut self, pid: i32, host: &mut Host, place: Option<&(TmuxSocket, PaneId)>) -> bool {
        let Some((_, pane)) = place else { return false };
        let luck = match self.numbers.below(100) {
            _ if !self.troubles => Luck::Good,
            0..4 => Luck::DiesFirst,
            4..8 => Luck::DiesWithTicket,
            8..14 => Luck::BadStart,
            _ => Luck::Good,
        };
        if luck == Luck::DiesFirst {
            self.note(format!("host {pid} is killed before it takes its ticket"));
            return false;
        }
        let paths = HostPaths::beside(&host.ticket).unwrap();
        let Ok(Some(issued)) = ticket::open(&paths) else {
            self.note(format!("host {pid} finds no ticket and ends"));
            return false;
        };
        if issued.is_expired(self.clock.now().timestamp_millis()) {
            self.note(format!("host {pid} finds its ticket out of date and ends"));
            fs::rename(paths.ticket(), paths.revoked()).unwrap();
            return false;
        }
        fs::rename(paths.ticket(), paths.taken()).unwrap();
        if luck == Luck::DiesWithTicket {
            self.note(format!("host {pid} is killed with its ticket in hand"));
            return false;
        }
        self.start_agent(pid, host, paths, &issued, pane, luck);
        true
    }

    fn start_agent(
        &mut self,
        pid: i32,
        host: &mut Host,
        paths: HostPaths,
        issued: &Ticket,
        pane: &PaneId,
        luck: Luck,
    ) {
        let agent = self.fork();
        let item = issued.work_item.to_string();
        self.note(format!("host {pid} starts agent {agent} for {item}"));
        host.agent = Some(agent);
        host.after_end = issued.after_end;
        host.record = Some(Record {
            v: Record::VERSION,
            owner: issued.owner.clone(),
            host: self.id(pid),
            boot: self.boot.clone(),
            pane: pane.clone(),
            started_ms: Some(self.clock.now().timestamp_millis()),
            phase: Phase::Starting,
        });
        host.paths = Some(paths.clone());
        let harness = self.id(agent);
        self.write(host, Phase::Running { harness });
        if luck == Luck::BadStart {
            host.ending = Some((Ending::Code(1), Cause::Itself));
        }
        let began_ms = self.clock.elapsed_ms();
        self.agents.insert(
            agent,
            Agent {
                item,
                began_ms,
                ended: None,
                host: pid,
                buffer: Vec::new(),
            },
        );
        if issued.prompt == PromptPassing::LastArgument {
            let prompt = fs::read_to_string(paths.prompt()).unwrap();
            self.hear(agent, prompt);
        }
    }

    fn write(&mut self, host: &mut Host, phase: Phase) {
        let (Some(record), Some(paths)) = (&mut host.record, &host.paths) else {
            return;
        };
        record.phase = phase;
        let text = serde_json::to_vec(record).unwrap();
        let draft = paths.dir().join("record.draft");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .unwrap();
        file.write_all(&text).unwrap();
        fs::rename(draft, paths.record()).unwrap();
    }

    fn hear(&mut self, agent: i32, text: String) {
        let at_ms = self.clock.elapsed_ms();
        let item = self.agents[&agent].item.clone();
        let shown = text.replace('\n', " ");
        let cut: String = shown.chars().rev().take(60).collect();
        let cut: String = cut.chars().rev().collect();
        self.note(format!("agent {agent} reads: …{cut}"));
        self.heard.push(Heard {
            at_ms,
            item,
            agent,
            text,
        });
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
        table.note(format!("tmux makes a pane for host {pid}"));
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
        table.note(format!("a tmux server starts: {pid}"));
        pid
    }

    fn typed(&mut self, pid: i32, bytes: &[u8]) {
        let mut table = self.table();
        let Some(agent) = table.hosts.get(&pid).and_then(|host| host.agent) else {
            table.note(format!("typed into host {pid}, which has no agent"));
            return;
        };
        let it = table.agents.get_mut(&agent).unwrap();
        it.buffer.extend(bytes);
        if bytes == b"\r" {
            let typed = std::mem::take(&mut it.buffer);
            let text = String::from_utf8(typed).unwrap();
            if text.trim().is_empty() {
                table.note(format!("agent {agent} gets an empty line"));
            } else {
                table.hear(agent, text);
            }
        }
    }

    fn hung_up(&mut self, pid: i32) {
        let mut table = self.table();
        table.note(format!("host {pid} loses its terminal"));
        if let Some(host) = table.hosts.get_mut(&pid) {
            host.hung_up = true;
            host.due_ms = 0;
            if host.agent.is_some() && host.ending.is_none() {
                host.ending = Some((Ending::Signal(1), Cause::HungUp));
            }
        }
    }

    fn server_ended(&mut self, pid: i32) {
        let mut table = self.table();
        table.note(format!("tmux server {pid} has ended"));
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
        table.note(format!("process {pid} is signalled: {signal:?}"));
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
