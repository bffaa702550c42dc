//! The runner before answers that real tmux gives only in a rare moment: tmux says what a script tells
//! it to, and processes are values.

mod clearing;
mod delivering;
mod ending;
mod entering;
mod probing;
mod silence;
mod spawning;
mod surviving;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use crate::model::{Ending, Phase, Record, WorkItemRef};
use crate::process::signal::{Signal, SignalError};

use super::*;

const SERVER: i32 = 41;
const HOST: i32 = 43;
const HARNESS: i32 = 44;
const OWNER: &str = "0b6f3a52-6a0e-4a43-9c58-000000000001";
const STRANGER: &str = "0b6f3a52-6a0e-4a43-9c58-000000000002";

const LIMITS: Limits = Limits {
    answer: Duration::from_secs(3),
    between_questions: Duration::from_secs(7),
    record: Duration::from_millis(500),
    socket: Duration::from_secs(2),
    start: Duration::from_secs(4),
};

type Runner = TmuxRunner<Script, Table>;
type Said = Result<Answer, Unanswered>;

/// A tmux that gives these answers one after the other, and the last one for ever.
struct Script {
    answers: Mutex<VecDeque<Said>>,
    calls: Mutex<Vec<Invocation>>,
}

impl TmuxServer for Script {
    async fn call(&self, invocation: &Invocation) -> Said {
        self.calls.lock().unwrap().push(invocation.clone());
        next(&self.answers)
    }

    async fn version(&self) -> Result<String, Unanswered> {
        Ok("tmux 3.3a".to_owned())
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        match socket {
            TmuxSocket::Path(path) => path.clone(),
            TmuxSocket::Default | TmuxSocket::Name(_) => PathBuf::from("/tmp/tmux/s"),
        }
    }
}

/// Processes that live or not, and one host's record as it is read time after time.
#[derive(Default)]
struct Table {
    lives: HashMap<i32, Life>,
    records: Mutex<VecDeque<Option<Record>>>,
    /// When each harness ends; never where nothing is said.
    ends_after: Option<Duration>,
}

impl Table {
    fn with(mut self, pid: i32, life: Life) -> Self {
        self.lives.insert(pid, life);
        self
    }

    fn recording(self, phases: impl IntoIterator<Item = Phase>) -> Self {
        let records = phases.into_iter().map(|phase| Some(record(phase)));
        Self {
            records: Mutex::new(records.collect()),
            ..self
        }
    }
}

impl Machine for Table {
    fn identify(&self, pid: i32) -> Option<ProcessId> {
        Some(process(pid))
    }

    fn life(&self, _: &BootId, process: &ProcessId) -> Life {
        *self.lives.get(&process.pid).unwrap_or(&Life::Gone)
    }

    fn boot(&self) -> BootId {
        boot()
    }

    fn signal(&self, process: &ProcessId, _: Signal) -> Result<(), SignalError> {
        match self.life(&boot(), process) {
            Life::Gone => Err(SignalError::Gone { pid: process.pid }),
            Life::Running | Life::Unknown => Ok(()),
        }
    }

    async fn exited(&self, _: &ProcessId) {
        match self.ends_after {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
    }

    fn record(&self, owner: &OwnerId) -> Option<Record> {
        if self.records.lock().unwrap().is_empty() {
            return None;
        }
        next(&self.records).filter(|record| record.owner == *owner)
    }

    fn is_given_up(&self, _: &OwnerId) -> bool {
        false
    }
}

fn next<V: Clone>(all: &Mutex<VecDeque<V>>) -> V {
    let mut all = all.lock().unwrap();
    match all.len() {
        0 | 1 => all.front().cloned().expect("an answer for the call"),
        _ => all.pop_front().unwrap(),
    }
}

fn boot() -> BootId {
    BootId("this boot".to_owned())
}

fn process(pid: i32) -> ProcessId {
    ProcessId { pid, start: 7 }
}

fn owner() -> OwnerId {
    OWNER.parse().unwrap()
}

fn record(phase: Phase) -> Record {
    Record {
        v: Record::VERSION,
        owner: owner(),
        host: process(HOST),
        boot: boot(),
        pane: "%2".parse().unwrap(),
        started_ms: Some(0),
        phase,
    }
}

fn running() -> Phase {
    Phase::Running {
        harness: process(HARNESS),
    }
}

fn ended() -> Phase {
    Phase::Ended {
        harness: Some(process(HARNESS)),
        ending: Ending::Code(0),
        at_ms: 1,
    }
}

fn runner(answers: impl IntoIterator<Item = Said>, table: Table) -> Runner {
    let script = Script {
        answers: Mutex::new(answers.into_iter().collect()),
        calls: Mutex::default(),
    };
    TmuxRunner::new(script, table, TmuxSocket::Default, LIMITS)
}

fn calls(runner: &Runner) -> Vec<Invocation> {
    runner.tmux.calls.lock().unwrap().clone()
}

fn name() -> SessionName {
    let item: WorkItemRef = "github:o/r#15".parse().unwrap();
    item.session_name().unwrap()
}

/// An agent of ours, as it was registered.
fn address() -> Address {
    Address {
        name: name(),
        owner: Some(owner()),
        target: Some(TmuxTarget {
            socket: TmuxSocket::Default,
            server: process(SERVER),
            session_id: "$1".parse().unwrap(),
            pane: "%2".parse().unwrap(),
            host: process(HOST),
            harness: process(HARNESS),
            boot: boot(),
        }),
    }
}

fn adopted() -> Address {
    let mut address = address();
    if let Some(target) = &mut address.target {
        target.harness = target.host;
    }
    address
}

fn open() -> BoxFuture<Result<(), FenceLost>> {
    Box::pin(std::future::ready(Ok(())))
}

fn said(line: &str) -> Said {
    Ok(Answer {
        status: 0,
        output: format!("{line}\n"),
        words: String::new(),
        listener: Listener::Present,
    })
}

fn complained(words: &str) -> Said {
    Ok(Answer {
        status: 1,
        output: String::new(),
        words: words.to_owned(),
        listener: Listener::Present,
    })
}

fn nobody_listens() -> Said {
    Ok(Answer {
        status: 1,
        output: String::new(),
        words: String::new(),
        listener: Listener::Absent,
    })
}

fn timed_out() -> Said {
    Err(Unanswered::TimedOut {
        after: Duration::from_secs(10),
    })
}

/// A pane as tmux lists it.
#[derive(Clone)]
struct Pane {
    pid: i32,
    dead: u8,
    hosted: u8,
    ended: u8,
    owner: &'static str,
    session: String,
}

impl Pane {
    /// The one of our host.
    fn of_host() -> Self {
        Self {
            pid: HOST,
            dead: 0,
            hosted: 1,
            ended: 0,
            owner: OWNER,
            session: name().to_string(),
        }
    }

    /// One that a person opened in our session.
    fn of_person() -> Self {
        Self {
            pid: 50,
            hosted: 0,
            ..Self::of_host()
        }
    }
}

fn listed(panes: &[Pane]) -> Said {
    let lines = panes.iter().zip(2..).map(|(pane, number)| {
        let Pane {
            pid,
            dead,
            hosted,
            ended,
            owner,
            session,
        } = pane;
        format!("loop-pane|$1|%{number}|{pid}|{dead}|0|{hosted}|{ended}|0|{owner}|sh|{session}")
    });
    let server = "loop-server|41|ss|/tmp/tmux/s".to_owned();
    let all: Vec<String> = std::iter::once(server).chain(lines).collect();
    said(&all.join("\n"))
}

/// A server on which the name is free.
fn name_free() -> Said {
    listed(&[Pane {
        session: "other".to_owned(),
        ..Pane::of_person()
    }])
}
