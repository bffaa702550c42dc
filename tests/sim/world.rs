//! One machine with its daemons, and the hand that moves time.
//!
//! Time stands still until everything that can be done at an instant is done. The store has one
//! connection, so that its answers come in one order, files are written at once, and everything else
//! waits for time: so a seed is the same story each time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tempfile::TempDir;
use the_loop::clock::Clock;
use the_loop::config::{Config, InteractionMode};
use the_loop::demo::github::LocalGitHub;
use the_loop::dispatch::{Dispatcher, Parts, TmuxForHosts};
use the_loop::eventlog::{EventLog, Record};
use the_loop::harness::Surroundings;
use the_loop::ingress::poll::{self, CycleReport, Poller};
use the_loop::model::{ProcessId, SessionStatus, Source, TmuxSocket, WorkItemRef};
use the_loop::routing::prompt::Prompts;
use the_loop::runner::{Limits, Machine as _, TmuxRunner, TmuxServer as _};
use the_loop::store::{ClaimOwner, Store};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::act::Command;
use crate::clock::StoryClock;
use crate::fake_tmux::{AtSocket, FakeTmux};
use crate::github;
use crate::line::Line;
use crate::machine::StoryMachine;
use crate::numbers::Numbers;
use crate::pulse::{KilledAt, Pulse};
use crate::rest::{self, Rest};
use crate::setting;
use crate::tmux::StoryTmux;

/// The repository of every story.
pub(crate) const REPO: &str = "demo/app";

/// How long a dispatcher sleeps at most: longer than in life, as whatever is accepted wakes all of them,
/// and a look that finds nothing is most of what a story takes.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How a daemon learns what people do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ingress {
    /// It asks GitHub.
    Poll,
    /// It is told.
    Push,
}

/// A daemon of the story.
struct Daemon {
    process: ProcessId,
    pulse: Pulse,
    task: JoinHandle<()>,
    polls: bool,
}

pub(crate) struct World {
    pub(crate) ingress: Ingress,
    pub(crate) github: Arc<LocalGitHub>,
    pub(crate) clock: StoryClock,
    pub(crate) machine: StoryMachine,
    pub(crate) tmux: FakeTmux,
    pub(crate) store: Store,
    pub(crate) wake: Arc<Notify>,
    /// The commands of people, and when they gave them.
    pub(crate) commands: Vec<(u64, Command, i64)>,
    /// What went wrong on the way.
    pub(crate) broken: Vec<String>,
    config: Arc<Config>,
    publish: watch::Sender<Arc<Config>>,
    records: Arc<Mutex<Vec<Record>>>,
    /// When each item was first seen with its label.
    armed: Arc<Mutex<BTreeMap<String, i64>>>,
    /// How many daemons there were.
    pub(crate) starts: usize,
    daemons: Vec<Daemon>,
    line: Line,
    rest: Rest,
    /// How many cycles in a row went well, to their end.
    whole_cycles: Arc<AtomicU64>,
    /// Say who comes next in the line.
    turns: Numbers,
    folder: TempDir,
    /// Keeps tokio from moving time by itself.
    _holds_time: mpsc::Sender<()>,
}

impl World {
    pub(crate) async fn new(numbers: &mut Numbers) -> Self {
        let (holds_time, released) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || released.recv().ok());
        let folder = setting::new_folder();
        let ingress = if numbers.percent(50) {
            Ingress::Poll
        } else {
            Ingress::Push
        };
        let clock = StoryClock::new();
        let github = setting::github(&clock);
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let machine_numbers = Numbers::of(numbers.below(u64::MAX));
        let machine = StoryMachine::new(folder.path(), clock.clone(), machine_numbers);
        let store = setting::database(folder.path(), &shared).await;
        let config = Arc::new(setting::config(folder.path()));
        let (publish, _) = watch::channel(Arc::clone(&config));
        Self {
            ingress,
            github,
            whole_cycles: Arc::default(),
            tmux: FakeTmux::new(machine.clone(), shared),
            clock,
            machine,
            rest: Rest::of(&store),
            store,
            wake: Arc::new(Notify::new()),
            commands: Vec::new(),
            broken: Vec::new(),
            config,
            publish,
            records: Arc::default(),
            armed: Arc::default(),
            starts: 0,
            daemons: Vec::new(),
            line: Line::default(),
            turns: Numbers::of(numbers.below(u64::MAX)),
            folder,
            _holds_time: holds_time,
        }
    }

    pub(crate) fn socket(&self) -> TmuxSocket {
        TmuxSocket::Default
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap().clone()
    }

    /// Tells whether an item was watched already at a time.
    pub(crate) fn is_watched(&self, item: &WorkItemRef, at_ms: i64) -> bool {
        let armed = self.armed.lock().unwrap();
        armed
            .get(&item.to_string())
            .is_some_and(|since| *since < at_ms)
    }

    /// Returns when somebody first stopped an item.
    pub(crate) fn first_stop(&self, item: u64) -> Option<i64> {
        let mut stops = self
            .commands
            .iter()
            .filter(|(of, what, _)| *of == item && *what == Command::Stop);
        stops.next().map(|(_, _, at)| *at)
    }

    pub(crate) fn last_command(&self, item: u64) -> Option<Command> {
        let mut commands = self.commands.iter().rev();
        commands
            .find(|(of, _, _)| *of == item)
            .map(|(_, what, _)| *what)
    }

    pub(crate) fn fill_disk(&self, full: bool) {
        self.line.fill_disk(full);
    }

    /// The machine goes down, with all daemons.
    pub(crate) fn reboot(&mut self) {
        for daemon in &self.daemons {
            daemon.pulse.stop();
        }
        self.forget_the_dead();
        self.machine.reboot(&self.tmux);
    }

    pub(crate) fn daemons(&self) -> usize {
        self.daemons.len()
    }

    /// Starts a daemon, which is killed at a call of tmux if the story says so.
    pub(crate) fn start_daemon(&mut self, killed_at: Option<KilledAt>, mut numbers: Numbers) {
        let process = self.machine.daemon();
        self.starts += 1;
        let pulse = Pulse::new(process, self.machine.clone());
        self.machine.note(format!(
            "daemon {} starts{}",
            process.pid,
            killed_at.map_or_else(String::new, |at| format!(", to be killed {at:?}"))
        ));
        let (tmux, machine) = (self.tmux.clone(), self.machine.clone());
        let way_numbers = Numbers::of(numbers.below(u64::MAX));
        let tmux = StoryTmux::new(tmux, pulse.clone(), killed_at, numbers);
        let socket = tmux.path_of(&self.socket());
        let log = EventLog::disabled(Source::Poll).observed_by({
            let (records, machine) = (Arc::clone(&self.records), self.machine.clone());
            let (armed, clock) = (Arc::clone(&self.armed), self.clock.clone());
            let pulse = pulse.clone();
            move |record| {
                if pulse.beats() {
                    machine.note(format!("  {} {}", record.event, shown(record)));
                    if record.event == "item.armed" {
                        let item = record.fields["work_item"].as_str().unwrap();
                        let at_ms = clock.elapsed_ms();
                        armed.lock().unwrap().insert(item.to_owned(), at_ms);
                    }
                    records.lock().unwrap().push(record.clone());
                }
            }
        });
        let store = self.store.in_turn(self.line.of(pulse.clone(), killed_at));
        let polls = self.ingress == Ingress::Poll && self.daemons.iter().all(|other| !other.polls);
        let poller = polls.then(|| {
            Poller::new(poll::Parts {
                github: github::client(&self.github, pulse.clone(), way_numbers),
                store: store.clone(),
                config: self.publish.subscribe(),
                log: log.clone(),
                clock: Arc::new(self.clock.clone()),
                wake: Arc::clone(&self.wake),
            })
        });
        let dispatcher = Dispatcher::new(Parts {
            store,
            runner: TmuxRunner::new(tmux, machine, self.socket(), Limits::default()),
            tmux: TmuxForHosts {
                binary: "/usr/bin/tmux".into(),
                socket,
            },
            config: self.publish.subscribe(),
            log,
            clock: Arc::new(self.clock.clone()),
            owner: ClaimOwner {
                process,
                boot: self.machine.boot(),
            },
            around: Surroundings::of(&[("PATH", "/usr/bin:/bin"), ("HOME", "/")]),
            program: "/usr/bin/the-loop".into(),
            prompts: Prompts::new(None, None, InteractionMode::Cli),
            wake: Arc::clone(&self.wake),
            look_again: LOOK_AGAIN,
        });
        let whole_cycles = Arc::clone(&self.whole_cycles);
        let task = tokio::spawn(async move {
            let stop = CancellationToken::new();
            let polling = async {
                if let Some(poller) = poller {
                    poller
                        .run(&stop, |report| count(report, &whole_cycles))
                        .await;
                }
            };
            let (dispatched, ()) = tokio::join!(dispatcher.run(stop.clone()), polling);
            dispatched.unwrap();
        });
        pulse.drives(task.abort_handle());
        self.daemons.push(Daemon {
            process,
            pulse,
            task,
            polls,
        });
    }

    /// Counts the cycles that go well from here on.
    pub(crate) fn forget_cycles(&self) {
        self.whole_cycles.store(0, Ordering::Relaxed);
    }

    /// Tells whether GitHub was read to its end, and once more after that.
    pub(crate) fn has_read_everything(&self) -> bool {
        // The first may have begun before everything was there.
        let enough = 3;
        self.ingress == Ingress::Push || self.whole_cycles.load(Ordering::Relaxed) >= enough
    }

    /// Kills a daemon wherever it is.
    pub(crate) fn kill_daemon(&mut self, place: usize) {
        if let Some(daemon) = self.daemons.get(place) {
            daemon.pulse.stop();
            self.forget_the_dead();
        }
    }

    fn forget_the_dead(&mut self) {
        for daemon in &self.daemons {
            if daemon.pulse.beats() && daemon.task.is_finished() {
                let what = format!("daemon {} ended by itself", daemon.process.pid);
                self.broken.push(what);
                daemon.pulse.stop();
            }
        }
        self.daemons.retain(|daemon| daemon.pulse.beats());
    }

    /// Tells whether the item's session is where nobody can reach it. Then its texts wait for a person,
    /// who ends the one or the other (SP-7).
    ///
    /// Another tmux server has taken the socket of its own; or its own lost it before anybody learned
    /// which one it is, because the daemon died while it started the agent.
    pub(crate) async fn is_cut_off(&self, item: &WorkItemRef) -> bool {
        let face = self.store.registry().latest_face(item).await.unwrap();
        let session = face
            .map(|face| face.session)
            .filter(|session| session.status != SessionStatus::Closed);
        let target = session.as_ref().and_then(|it| it.target.as_ref());
        if target.is_some_and(|it| self.tmux.is_displaced(&self.socket(), it.server.pid)) {
            return true;
        }
        let agents = self.machine.agents();
        let name = item.to_string();
        let mut running = agents.values().filter(|agent| agent.ended.is_none());
        let Some(agent) = running.find(|agent| agent.item == name) else {
            return false;
        };
        match self.tmux.at_socket_of(agent.host) {
            Some(AtSocket::Another) => true,
            Some(AtSocket::Nobody) => {
                session.is_some_and(|session| session.status == SessionStatus::Spawning)
            }
            Some(AtSocket::Own) | None => false,
        }
    }

    /// Lets everything be done that can be done at this instant.
    pub(crate) async fn settle(&mut self) {
        // Everybody goes on until he waits for time or for the store; and so does who was let in.
        loop {
            self.rest.comes().await;
            if !self.line.let_one_in(&mut self.turns) {
                break;
            }
        }
        self.forget_the_dead();
    }

    /// Lets time pass.
    pub(crate) async fn pass(&mut self, ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
        self.github.set_clock(self.clock.undisturbed());
        self.settle().await;
        self.machine.tick(&self.tmux);
    }

    pub(crate) async fn close(self) {
        for daemon in &self.daemons {
            daemon.task.abort();
        }
        rest::forget();
        self.store.close().await;
        drop(self.config);
        drop(self.folder);
    }
}

fn count(report: &CycleReport, whole: &AtomicU64) {
    if report.errors.is_empty() && report.rate_limited_until.is_none() {
        whole.fetch_add(1, Ordering::Relaxed);
    } else {
        whole.store(0, Ordering::Relaxed);
    }
}

fn shown(record: &Record) -> String {
    let mut words = Vec::new();
    for key in [
        "work_item",
        "delivery",
        "reason",
        "error",
        "attempt",
        "possible_repeat",
    ] {
        match record.fields.get(key) {
            Some(serde_json::Value::String(text)) => words.push(format!("{key}={text}")),
            Some(other) if !other.is_null() => words.push(format!("{key}={other}")),
            _ => {}
        }
    }
    words.join(" ")
}
