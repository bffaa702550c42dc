//! A dispatcher in this process, whose tmux can be made to fail at a chosen call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::Utc;
use rustix::process::Signal;
use serde_json::json;
use the_loop::clock::SystemClock;
use the_loop::config::{Config, Environment, InteractionMode};
use the_loop::dispatch::{Dispatcher, LOOK_AGAIN, Parts, TmuxForHosts};
use the_loop::eventlog::{self, EventLog, Filter, Record, Rotation};
use the_loop::harness::Surroundings;
use the_loop::model::{
    Class, DeliveryId, Detail, Edit, Event, EventKey, EventKind, ItemKind, Login, OperatorCommand,
    Session, Source, TmuxSocket, WorkItemRef,
};
use the_loop::process::identity::{boot_id, own};
use the_loop::routing::prompt::Prompts;
use the_loop::runner::{Invocation, Limits, LocalMachine, RealTmux, TmuxRunner, TmuxServer};
use the_loop::store::{
    Acceptance, Arming, Arrival, ArrivalOutcome, ClaimOwner, Disposition, ItemSighting,
    QueueFilter, QueueRow, Store, Track,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::touchy::{Fate, Fates, TouchyTmux};
use crate::support::{AgentLog, Scratch, TheLoop, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_the-loop");
const MACHINE: &str = "test-host";

/// A dispatcher and all that it works on.
pub(crate) struct Stage<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) store: Store,
    pub(crate) dispatcher: Dispatcher<TouchyTmux, LocalMachine>,
    pub(crate) agents: AgentLog,
    fates: Fates,
    config: Arc<Config>,
    comments: AtomicU64,
    _publish: watch::Sender<Arc<Config>>,
}

/// The configuration of an agent that is ready soon.
pub(crate) fn quick(scratch: &Scratch) -> TheLoop<'_> {
    TheLoop::new(scratch)
        .set("harnesses.agent.readyDelaySeconds", json!(0))
        .set("harnesses.agent.submitGapMilliseconds", json!(60))
        .set("routing.tmux.resumeProbeSeconds", json!(0.3))
}

/// An answer that is waited for so long, and no longer.
pub(crate) fn hasty() -> Limits {
    Limits {
        answer: Duration::from_millis(500),
        between_questions: Duration::from_millis(100),
        ..Limits::default()
    }
}

impl<'a> Stage<'a> {
    pub(crate) async fn open(scratch: &'a Scratch, the_loop: &TheLoop<'_>) -> Self {
        Self::open_with(scratch, the_loop, Limits::default()).await
    }

    pub(crate) async fn open_with(
        scratch: &'a Scratch,
        the_loop: &TheLoop<'_>,
        limits: Limits,
    ) -> Self {
        let owner = ClaimOwner {
            process: own(),
            boot: boot_id(),
        };
        Self::open_as(scratch, the_loop, limits, owner).await
    }

    pub(crate) async fn open_as(
        scratch: &'a Scratch,
        the_loop: &TheLoop<'_>,
        limits: Limits,
        owner: ClaimOwner,
    ) -> Self {
        let environment = Environment {
            home: Some(scratch.path("home")),
            variable: None,
            working_dir: scratch.path("work"),
        };
        let loaded = Config::load(Some(&the_loop.config_file()), &environment).unwrap();
        let config = Arc::new(loaded.config);
        let clock = Arc::new(SystemClock);
        let database = config.state.root.join("loop.db");
        let store = Store::open(&database, MACHINE, clock.clone())
            .await
            .unwrap();
        let program = scratch.tmux_program();
        let real = RealTmux::new(program.clone()).with_sockets_in(scratch.path("tmux"));
        let fates: Fates = Arc::new(Mutex::new(Box::new(|_| Fate::Served)));
        let socket = TmuxSocket::Name(scratch.tmux_socket().to_owned());
        let socket_path = real.path_of(&socket);
        let tmux = TouchyTmux {
            real,
            fates: Arc::clone(&fates),
        };
        let (publish, receiver) = watch::channel(Arc::clone(&config));
        let path = std::env::var("PATH").unwrap();
        let home = scratch.path("home").display().to_string();
        let dispatcher = Dispatcher::new(Parts {
            store: store.clone(),
            runner: TmuxRunner::new(
                tmux,
                LocalMachine::new(config.state.root.clone()),
                socket,
                limits,
            ),
            tmux: TmuxForHosts {
                binary: program,
                socket: socket_path,
            },
            config: receiver,
            log: EventLog::open(
                &config.event_log.path,
                Source::Poll,
                Rotation {
                    max_bytes: config.event_log.max_bytes,
                    keep_files: 3,
                },
            ),
            clock,
            owner,
            around: Surroundings::of(&[
                ("PATH", &path),
                ("HOME", &home),
                ("LANG", "C.UTF-8"),
                ("GH_TOKEN", "secret"),
                ("TMUX", "/elsewhere,1,0"),
            ]),
            program: BINARY.into(),
            prompts: Prompts::new(None, None, InteractionMode::Cli),
            wake: Arc::new(Notify::new()),
            look_again: LOOK_AGAIN,
        });
        Self {
            scratch,
            store,
            dispatcher,
            agents: the_loop.agents(),
            fates,
            config,
            comments: AtomicU64::new(1),
            _publish: publish,
        }
    }

    /// Decides from now on what becomes of each call of tmux.
    pub(crate) fn fate(&self, decide: impl FnMut(&Invocation) -> Fate + Send + 'static) {
        *self.fates.lock().unwrap() = Box::new(decide);
    }

    /// Lets tmux answer everything again.
    pub(crate) fn heal(&self) {
        self.fate(|_| Fate::Served);
    }

    /// Makes an armed work item known, and has it started.
    pub(crate) async fn start(&self, number: u64) {
        self.know(number).await;
        // What armed it is dropped before the start comes, as in a cycle of its own.
        self.drain().await;
        self.accept(
            comment(number, 1_000_000 + number, "the-loop start"),
            Class::Control,
        )
        .await;
        self.drain().await;
    }

    /// Has a known work item started beside the test.
    pub(crate) async fn run_start(&self, number: u64) -> tokio::task::JoinHandle<()> {
        self.accept(
            comment(number, 1_000_000 + number, "the-loop start"),
            Class::Control,
        )
        .await;
        let dispatcher = self.dispatcher.clone();
        tokio::spawn(async move {
            dispatcher.drain(&CancellationToken::new()).await.unwrap();
        })
    }

    /// Makes an armed work item known.
    pub(crate) async fn know(&self, number: u64) {
        let acceptance = Acceptance {
            items: vec![sighting(number)],
            ..Acceptance::default()
        };
        self.store.inbox().accept(&acceptance).await.unwrap();
    }

    /// Accepts a comment that is for the agent.
    pub(crate) async fn comment(&self, number: u64, text: &str) -> DeliveryId {
        let id = self.comments.fetch_add(1, Ordering::Relaxed);
        self.accept(comment(number, id, text), Class::Event).await
    }

    /// Accepts an operator's command.
    pub(crate) async fn command(&self, number: u64, command: OperatorCommand) -> DeliveryId {
        let id = self.comments.fetch_add(1, Ordering::Relaxed);
        let event = Event {
            kind: EventKind::Command,
            key: EventKey::new("github.com", EventKind::Command, &id.to_string(), "1"),
            detail: Detail::Command { command },
            ..comment(number, id, "")
        };
        self.accept(event, Class::Control).await
    }

    async fn accept(&self, event: Event, class: Class) -> DeliveryId {
        let acceptance = Acceptance {
            arrivals: vec![Arrival {
                version_at: event.occurred_at,
                event,
                source: Source::Poll,
                guid: None,
                disposition: Disposition::Deliver { class },
            }],
            ..Acceptance::default()
        };
        let accepted = self.store.inbox().accept(&acceptance).await.unwrap();
        match accepted.arrivals.first() {
            Some(ArrivalOutcome::New { delivery, .. }) => *delivery,
            other => panic!("not new: {other:?}"),
        }
    }

    /// Works all that is due.
    pub(crate) async fn drain(&self) {
        let stop = CancellationToken::new();
        self.dispatcher.drain(&stop).await.unwrap();
    }

    /// Runs the dispatcher beside the test, until the guard is dropped or stopped.
    pub(crate) fn run(&self) -> Running {
        let stop = CancellationToken::new();
        let (dispatcher, token) = (self.dispatcher.clone(), stop.clone());
        let task = tokio::spawn(async move {
            dispatcher.run(token).await.unwrap();
        });
        Running { stop, task }
    }

    /// How far a delivery has come.
    pub(crate) async fn row(&self, delivery: DeliveryId) -> QueueRow {
        self.store.queue().get(delivery).await.unwrap().unwrap()
    }

    /// Waits until a delivery is as wanted.
    pub(crate) async fn wait_row(
        &self,
        what: &str,
        delivery: DeliveryId,
        wanted: impl Fn(&QueueRow) -> bool,
    ) -> QueueRow {
        let until = tokio::time::Instant::now() + Duration::from_secs(40);
        loop {
            let row = self.row(delivery).await;
            if wanted(&row) {
                return row;
            }
            assert!(
                tokio::time::Instant::now() < until,
                "waited for {what}: {row:?}\n{:#?}",
                self.events("*")
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The item's deliveries.
    pub(crate) async fn queue(&self, number: u64) -> Vec<QueueRow> {
        let item = item(number);
        let filter = QueueFilter::Of(&item);
        self.store.queue().list(filter, 1000).await.unwrap()
    }

    /// The item's newest session.
    pub(crate) async fn session(&self, number: u64) -> Session {
        let latest = self.store.registry().latest(&item(number)).await.unwrap();
        latest.expect("a session is recorded")
    }

    /// The decisions of these types, oldest first.
    pub(crate) fn events(&self, pattern: &str) -> Vec<Record> {
        let filter = Filter {
            types: vec![pattern.to_owned()],
            ..Filter::default()
        };
        eventlog::tail(&self.config.event_log.path, filter, 10_000)
            .unwrap()
            .records
    }

    /// How often a text was read by any agent, as boot prompt or as message.
    pub(crate) fn times_heard(&self, text: &str) -> usize {
        self.agents
            .heard()
            .iter()
            .filter(|heard| heard.contains(text))
            .count()
    }

    /// Waits until an agent read the text.
    pub(crate) fn wait_heard(&self, text: &str) {
        wait_until(
            &format!("{text:?} is heard"),
            Duration::from_secs(20),
            || self.times_heard(text) > 0,
        );
    }

    /// The process of the newest agent.
    pub(crate) fn newest_agent(&self) -> i32 {
        let pid = self.agents.starts().last().expect("an agent started").pid;
        i32::try_from(pid).unwrap()
    }

    /// Kills an agent and waits until nothing is left of it.
    pub(crate) fn kill_agent(&self) {
        let pid = self.newest_agent();
        signal(pid, Signal::KILL);
        wait_gone(pid);
    }

    /// The process of the tmux server.
    pub(crate) fn server(&self) -> i32 {
        self.scratch
            .tmux(&["display-message", "-p", "#{pid}"])
            .trim()
            .parse()
            .unwrap()
    }

    /// The names of all sessions on the server.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let output = self
            .scratch
            .tmux_output(&["list-sessions", "-F", "#{session_name}"]);
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

/// A dispatcher that runs beside the test.
pub(crate) struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    assert!(pid > 1);
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits until a process is gone, reaped or not.
pub(crate) fn wait_gone(pid: i32) {
    wait_until("the process ends", Duration::from_secs(10), || {
        the_loop::process::identity::identify(pid).is_none_or(|process| {
            the_loop::process::identity::life(&process) == the_loop::process::identity::Life::Gone
        })
    });
}

pub(crate) fn item(number: u64) -> WorkItemRef {
    format!("github:demo/app#{number}").parse().unwrap()
}

/// The tmux session of an item.
pub(crate) fn name(number: u64) -> String {
    item(number).session_name().unwrap().to_string()
}

fn sighting(number: u64) -> ItemSighting {
    ItemSighting {
        item: item(number),
        repo_id: Some(77),
        kind: ItemKind::Issue,
        title: format!("Title {number}"),
        url: format!("https://github.com/demo/app/issues/{number}"),
        author: Some(Login::new("ada")),
        open: true,
        closed_at: None,
        merged: false,
        updated_at: Utc::now(),
        arming: Arming::ByAct(Some(Login::new("ada"))),
        pull: None,
        seen_at: Utc::now(),
        baseline_at: Utc::now(),
        source: Source::Poll,
        track: Track::Always,
    }
}

fn comment(number: u64, id: u64, text: &str) -> Event {
    let item = item(number);
    Event {
        key: EventKey::new(
            item.repo().host(),
            EventKind::IssueComment,
            &id.to_string(),
            "1",
        ),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(77),
        number,
        on: ItemKind::Issue,
        actor: Some(Login::new("ada")),
        edit: Edit::Never,
        title: format!("Title {number}"),
        body: text.to_owned(),
        url: String::new(),
        occurred_at: Utc::now(),
        detail: Detail::None,
    }
}
