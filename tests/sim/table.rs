//! What is recorded of a story's processes, and what hosts do step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use the_loop::clock::Clock as _;
use the_loop::model::{
    AfterEnd, BootId, Ending, HostPaths, PaneId, Phase, ProcessId, PromptPassing, Record, Ticket,
    TmuxSocket,
};
use the_loop::process::ticket;

use crate::clock::StoryClock;
use crate::numbers::Numbers;

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
    /// Its terminal went away with its server, as the story has it.
    HungUp,
    /// Its terminal went away, and its server did not.
    SessionEnded,
    /// The daemon asked its host.
    Asked,
}

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) item: String,
    pub(crate) began_ms: i64,
    pub(crate) ended: Option<(i64, Cause)>,
    pub(crate) host: i32,
    pub(crate) buffer: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) ticket: PathBuf,
    pub(crate) due_ms: i64,
    pub(crate) agent: Option<i32>,
    pub(crate) record: Option<Record>,
    pub(crate) after_end: AfterEnd,
    pub(crate) paths: Option<HostPaths>,
    pub(crate) ending: Option<(Ending, Cause)>,
    pub(crate) hung_up: bool,
    /// How its agent ended, for its pane, once tmux answers.
    pub(crate) mark: Option<String>,
}

/// How a host behaves, as the story decides when it is forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Luck {
    Good,
    /// It is killed before it takes its ticket.
    DiesFirst,
    /// It is killed right after.
    DiesWithTicket,
    /// Its agent ends with an error at once.
    BadStart,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) clock: StoryClock,
    pub(crate) numbers: Numbers,
    pub(crate) troubles: bool,
    pub(crate) starts_broken: bool,
    pub(crate) ends_at_paste: bool,
    /// The story ends a tmux server just now.
    pub(crate) tmux_goes: bool,
    pub(crate) root: PathBuf,
    pub(crate) boots: u32,
    pub(crate) boot: BootId,
    pub(crate) next_pid: i32,
    pub(crate) alive: BTreeMap<i32, u64>,
    pub(crate) sockets_wanted: Vec<i32>,
    pub(crate) hosts: BTreeMap<i32, Host>,
    pub(crate) agents: BTreeMap<i32, Agent>,
    pub(crate) heard: Vec<Heard>,
    /// The programs that people run beside agents.
    pub(crate) people: BTreeSet<i32>,
    pub(crate) wrongs: Vec<String>,
    pub(crate) trace: Vec<String>,
}

impl Table {
    pub(crate) fn note(&mut self, text: &str) {
        let at = self.clock.elapsed_ms();
        self.trace.push(format!("{at:>9} ms  {text}"));
    }

    pub(crate) fn wrong(&mut self, what: String) {
        self.note(&what);
        self.wrongs.push(what);
    }

    pub(crate) fn fork(&mut self) -> i32 {
        let pid = self.next_pid;
        self.next_pid += 1;
        self.alive.insert(pid, u64::try_from(pid).unwrap() * 7);
        pid
    }

    pub(crate) fn id(&self, pid: i32) -> ProcessId {
        ProcessId {
            pid,
            start: self.alive.get(&pid).copied().unwrap_or_default(),
        }
    }

    pub(crate) fn one_running(&mut self) -> Option<i32> {
        let running = |(_, agent): &(&i32, &Agent)| agent.ended.is_none();
        let agents = self.agents.iter().filter(running);
        let agents: Vec<i32> = agents.map(|(pid, _)| *pid).collect();
        self.numbers.pick(&agents).copied()
    }

    pub(crate) fn end_agent(&mut self, pid: i32, cause: Cause) {
        let at = self.clock.elapsed_ms();
        self.alive.remove(&pid);
        if let Some(agent) = self.agents.get_mut(&pid) {
            agent.ended = Some((at, cause));
        }
    }

    pub(crate) fn take_mark(&mut self, host: i32) -> Option<String> {
        self.hosts.get_mut(&host)?.mark.take()
    }

    /// One step of a host; tells whether it ends by it.
    pub(crate) fn step(&mut self, pid: i32, place: Option<&(TmuxSocket, PaneId)>) -> bool {
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
            self.note(&format!("agent {agent} has ended: {ending} ({cause:?})"));
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

    pub(crate) fn id_of_dead(&self, pid: i32) -> ProcessId {
        ProcessId {
            pid,
            start: u64::try_from(pid).unwrap() * 7,
        }
    }

    /// A host takes its ticket and starts its agent; false where it does not.
    pub(crate) fn begin(
        &mut self,
        pid: i32,
        host: &mut Host,
        place: Option<&(TmuxSocket, PaneId)>,
    ) -> bool {
        let Some((_, pane)) = place else { return false };
        let luck = match self.numbers.below(100) {
            _ if self.starts_broken => Luck::BadStart,
            _ if !self.troubles => Luck::Good,
            0..4 => Luck::DiesFirst,
            4..8 => Luck::DiesWithTicket,
            8..14 => Luck::BadStart,
            _ => Luck::Good,
        };
        if luck == Luck::DiesFirst {
            self.note(&format!("host {pid} is killed before it takes its ticket"));
            return false;
        }
        let paths = HostPaths::beside(&host.ticket).unwrap();
        let Ok(Some(issued)) = ticket::open(&paths) else {
            self.note(&format!("host {pid} finds no ticket and ends"));
            return false;
        };
        if issued.is_expired(self.clock.now().timestamp_millis()) {
            self.note(&format!("host {pid} finds its ticket out of date and ends"));
            fs::rename(paths.ticket(), paths.revoked()).unwrap();
            return false;
        }
        fs::rename(paths.ticket(), paths.taken()).unwrap();
        if luck == Luck::DiesWithTicket {
            self.note(&format!("host {pid} is killed with its ticket in hand"));
            return false;
        }
        self.start_agent(pid, host, &paths, &issued, pane, luck);
        true
    }

    pub(crate) fn start_agent(
        &mut self,
        pid: i32,
        host: &mut Host,
        paths: &HostPaths,
        issued: &Ticket,
        pane: &PaneId,
        luck: Luck,
    ) {
        let agent = self.fork();
        let item = issued.work_item.to_string();
        self.note(&format!("host {pid} starts agent {agent} for {item}"));
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

    pub(crate) fn write(&mut self, host: &mut Host, phase: Phase) {
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

    pub(crate) fn hear(&mut self, agent: i32, text: String) {
        let at_ms = self.clock.elapsed_ms();
        let item = self.agents[&agent].item.clone();
        let shown = text.replace('\n', " ");
        let cut: String = shown.chars().rev().take(60).collect();
        let cut: String = cut.chars().rev().collect();
        self.note(&format!("agent {agent} reads: …{cut}"));
        self.heard.push(Heard {
            at_ms,
            item,
            agent,
            text,
        });
    }
}
