//! The dispatcher's rules where something goes wrong half-way, with a real store and run folder, and
//! a tmux that answers what the test says.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod after_a_crash;
mod broken;
mod commands;
mod ending;
mod entering;
mod given_up;
mod guards;
mod occupied;
mod order;
mod orphaned;
mod pace;
mod resuming;
mod starting;
mod store_failing;
mod tickets;

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::config::Environment;
use crate::eventlog::Record;
use crate::model::{
    BootId, Class, DeliveryState, Detail, Edit, Event, EventKey, EventKind, HarnessSessionId,
    ItemKind, Login, OwnerId, ProcessId, Session, Source, TmuxSocket, TmuxTarget,
};
use crate::process::identity::{boot_id, own};
use crate::runner::{
    Answer, Field, Invocation, Limits, Listener, LocalMachine, OptionName, TmuxCommand, Unanswered,
};
use crate::store::{
    Acceptance, Arming, Arrival, ArrivalOutcome, Disposition, ItemSighting, NewSession, Registered,
    SessionChange, Settlement, Track, Tuning,
};

const ITEM: &str = "github:o/r#1";

/// What tmux does with a call.
type Script = Box<dyn FnMut(&Invocation) -> Result<Answer, Unanswered> + Send>;

/// A tmux whose answers a test writes.
struct ScriptedTmux(Arc<Mutex<Script>>);

impl TmuxServer for ScriptedTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        // A script may panic, which is what its test is about.
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script(invocation)
    }

    async fn version(&self) -> Result<String, Unanswered> {
        Ok("tmux 3.3a".to_owned())
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        match socket {
            TmuxSocket::Path(path) => path.clone(),
            _ => PathBuf::from("/nowhere/socket"),
        }
    }
}

fn no_server(_: &Invocation) -> Result<Answer, Unanswered> {
    Ok(Answer {
        status: 1,
        output: String::new(),
        words: "no server running".to_owned(),
        listener: Listener::Absent,
    })
}

fn timed_out(_: &Invocation) -> Result<Answer, Unanswered> {
    Err(Unanswered::TimedOut {
        after: Duration::from_secs(10),
    })
}

fn said(output: String) -> Result<Answer, Unanswered> {
    Ok(Answer {
        status: 0,
        output,
        words: String::new(),
        listener: Listener::Present,
    })
}

struct World {
    folder: TempDir,
    clock: ManualClock,
    store: Store,
    dispatcher: Dispatcher<ScriptedTmux, LocalMachine>,
    tmux: Arc<Mutex<Script>>,
    records: Arc<Mutex<Vec<Record>>>,
    breaks_at: Arc<Mutex<Option<&'static str>>>,
    publish: watch::Sender<Arc<Config>>,
}

fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn config(folder: &TempDir, change: &serde_json::Value) -> Config {
    let mut config = json!({
        "state": { "root": folder.path() },
        "polling": { "intervalSeconds": 60, "maxRetries": 2 },
        "routing": {
            "authorizedUsers": ["ada"],
            "defaultHarness": "agent",
            "spawnOnUnmatched": "labeled",
            "spawnWorkdir": folder.path(),
            "maxConcurrentDispatches": 1,
            "control": { "requireStartCommand": false },
        },
        "harnesses": { "agent": { "command": "/bin/true", "readyDelaySeconds": 0 } },
    });
    for (key, value) in change.as_object().unwrap() {
        let target = key
            .split('.')
            .fold(&mut config, |at, part| &mut at[part.to_owned()]);
        *target = value.clone();
    }
    let path = folder.path().join("config.yaml");
    fs::write(&path, config.to_string()).unwrap();
    let environment = Environment {
        home: Some(folder.path().to_owned()),
        variable: None,
        working_dir: folder.path().to_owned(),
    };
    Config::load(Some(&path), &environment).unwrap().config
}

impl World {
    async fn new() -> Self {
        Self::with(Tuning::default()).await
    }

    async fn with(tuning: Tuning) -> Self {
        let folder = TempDir::new().unwrap();
        let clock = ManualClock::starting_at(start());
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let path = folder.path().join("loop.db");
        let opened = Store::open_with(&path, "host-a", Arc::clone(&shared), tuning);
        let store = opened.await.unwrap();
        let tmux: Arc<Mutex<Script>> = Arc::new(Mutex::new(Box::new(no_server)));
        let (publish, config) = watch::channel(Arc::new(config(&folder, &json!({}))));
        let records: Arc<Mutex<Vec<Record>>> = Arc::default();
        let breaks_at: Arc<Mutex<Option<&'static str>>> = Arc::default();
        let dispatcher = Dispatcher::new(Parts {
            store: store.clone(),
            runner: TmuxRunner::new(
                ScriptedTmux(Arc::clone(&tmux)),
                LocalMachine::new(folder.path().to_owned()),
                TmuxSocket::Default,
                Limits::default(),
            ),
            tmux: TmuxForHosts {
                binary: "/usr/bin/tmux".into(),
                socket: "/nowhere/socket".into(),
            },
            config,
            log: EventLog::disabled(Source::Poll).observed_by({
                let (records, breaks_at) = (Arc::clone(&records), Arc::clone(&breaks_at));
                move |record| {
                    records.lock().unwrap().push(record.clone());
                    let breaks = breaks_at.lock().unwrap().take_if(|at| *at == record.event);
                    assert!(breaks.is_none(), "a defect");
                }
            }),
            clock: shared,
            owner: ClaimOwner {
                process: own(),
                boot: boot_id(),
            },
            around: Surroundings::of(&[("PATH", "/bin")]),
            program: "/nowhere/the-loop".into(),
            prompts: Prompts::default(),
            wake: Arc::new(Notify::new()),
            look_again: LOOK_AGAIN,
        });
        let world = Self {
            folder,
            clock,
            store,
            dispatcher,
            tmux,
            records,
            breaks_at,
            publish,
        };
        world.know(ITEM).await;
        world
    }

    fn tmux(&self, script: impl FnMut(&Invocation) -> Result<Answer, Unanswered> + Send + 'static) {
        *self.tmux.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(script);
    }

    /// What the event log was told of these types, oldest first.
    fn records(&self, types: &[&str]) -> Vec<Record> {
        let records = self.records.lock().unwrap();
        let wanted = records
            .iter()
            .filter(|record| types.contains(&record.event.as_str()));
        wanted.cloned().collect()
    }

    /// Lets the work break down once this was written to the event log.
    fn break_at(&self, event: &'static str) {
        *self.breaks_at.lock().unwrap() = Some(event);
    }

    fn configure(&self, change: &serde_json::Value) {
        self.publish
            .send_replace(Arc::new(config(&self.folder, change)));
    }

    fn pass(&self, seconds: i64) {
        self.clock.advance(TimeDelta::seconds(seconds));
    }

    /// Works all that is due now, and returns what came of it.
    async fn work(&self) -> Tally {
        let stop = CancellationToken::new();
        self.dispatcher
            .drain_within(Duration::ZERO, &stop)
            .await
            .unwrap()
    }

    /// Makes an armed item known, without its arming to be delivered.
    async fn know(&self, text: &str) {
        let accepted = self.accept(Acceptance {
            items: vec![sighting(text)],
            ..Acceptance::default()
        });
        let deduper = self.store.deduper();
        for delivery in &accepted.await.sightings[0].deliveries {
            let claim = deduper.claim(*delivery, &dead_owner()).await.unwrap();
            let dropped = Settlement::Dropped(crate::model::DropReason::AwaitingStart);
            deduper
                .settle(&claim.unwrap(), dropped, None)
                .await
                .unwrap();
        }
    }

    async fn accept(&self, acceptance: Acceptance) -> crate::store::Accepted {
        self.store.inbox().accept(&acceptance).await.unwrap()
    }

    async fn comment(&self, text: &str, id: u64) -> DeliveryId {
        self.arrive(comment(text, id), Class::Event).await
    }

    async fn command(&self, event: Event) -> DeliveryId {
        self.arrive(event, Class::Control).await
    }

    async fn arrive(&self, event: Event, class: Class) -> DeliveryId {
        let accepted = self.accept(Acceptance {
            arrivals: vec![Arrival {
                version_at: event.occurred_at,
                event,
                source: Source::Poll,
                guid: None,
                disposition: Disposition::Deliver { class },
            }],
            ..Acceptance::default()
        });
        match accepted.await.arrivals[..] {
            [ArrivalOutcome::New { delivery, .. }] => delivery,
            ref other => panic!("not new: {other:?}"),
        }
    }

    async fn state(&self, delivery: DeliveryId) -> DeliveryState {
        let row = self.store.queue().get(delivery).await.unwrap();
        row.unwrap().state
    }

    async fn attempts(&self, delivery: DeliveryId) -> u64 {
        let row = self.store.queue().get(delivery).await.unwrap().unwrap();
        row.attempts
    }

    async fn session(&self) -> Option<Session> {
        let registry = self.store.registry();
        let latest = registry.latest(&ITEM.parse().unwrap()).await.unwrap();
        latest.filter(|session| session.status.is_open())
    }

    /// Claims what is due as a process that ended together with an earlier boot.
    async fn claim_and_die(&self) -> Claim {
        let deduper = self.store.deduper();
        let claim = deduper.claim_next(&dead_owner(), &|_, _| false).await;
        claim.unwrap().expect("something is due")
    }

    /// Begins a first spawn as that process.
    async fn begin_spawn(&self, claim: &Claim) -> Session {
        self.store.deduper().begin_attempt(claim).await.unwrap();
        let new = NewSession {
            item: claim.item.id,
            owner: OwnerId::mint(),
            harness: HarnessName("agent".to_owned()),
            harness_session_id: HarnessSessionId::mint(),
            cwd: self.folder.path().to_owned(),
            boot_delivery: claim.first().id,
        };
        let registry = self.store.registry();
        registry.begin_spawn(claim, &new).await.unwrap()
    }

    /// Gives the item a session whose agent is this process, or one that is gone.
    async fn active_session(&self, agent: Agent) -> Session {
        self.session_in(target(agent)).await
    }

    async fn session_in(&self, target: TmuxTarget) -> Session {
        let boot = self.comment(ITEM, 900).await;
        let claim = self.claim_and_die().await;
        assert_eq!(claim.first().id, boot);
        let session = self.begin_spawn(&claim).await;
        let registered = Registered {
            session: session.id,
            owner: session.owner.clone(),
            target: Some(target),
            harness_session_id: session.harness_session_id.clone(),
        };
        let delivered = Settlement::Delivered {
            possible_repeat: false,
        };
        let change = SessionChange::Register(registered);
        let deduper = self.store.deduper();
        deduper
            .settle(&claim, delivered, Some(change))
            .await
            .unwrap();
        self.session().await.unwrap()
    }
}

/// Changes a session as a command would.
impl World {
    async fn change(&self, change: SessionChange) {
        let command = self.command(comment(ITEM, 901)).await;
        let deduper = self.store.deduper();
        let claim = deduper.claim(command, &dead_owner()).await.unwrap();
        let delivered = Settlement::Delivered {
            possible_repeat: false,
        };
        deduper
            .settle(&claim.unwrap(), delivered, Some(change))
            .await
            .unwrap();
    }
}

fn dead_owner() -> ClaimOwner {
    ClaimOwner {
        process: ProcessId { pid: 77, start: 7 },
        boot: BootId("an earlier boot".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    Runs,
    Gone,
}

fn gone() -> ProcessId {
    ProcessId {
        pid: own().pid,
        start: own().start + 1,
    }
}

fn target(agent: Agent) -> TmuxTarget {
    TmuxTarget {
        socket: TmuxSocket::Path("/nowhere/socket".into()),
        server: match agent {
            Agent::Runs => own(),
            Agent::Gone => gone(),
        },
        session_id: "$3".parse().unwrap(),
        pane: "%5".parse().unwrap(),
        host: gone(),
        harness: match agent {
            Agent::Runs => own(),
            Agent::Gone => gone(),
        },
        boot: boot_id(),
    }
}

fn sighting(text: &str) -> ItemSighting {
    ItemSighting {
        item: text.parse().unwrap(),
        repo_id: Some(7),
        kind: ItemKind::Issue,
        title: "A title".to_owned(),
        url: String::new(),
        author: Some(Login::new("ada")),
        open: true,
        closed_at: None,
        merged: false,
        updated_at: start(),
        arming: Arming::ByAct(Some(Login::new("ada"))),
        pull: None,
        seen_at: start(),
        baseline_at: start(),
        source: Source::Poll,
        track: Track::Always,
    }
}

fn comment(text: &str, id: u64) -> Event {
    let item: crate::model::WorkItemRef = text.parse().unwrap();
    Event {
        key: EventKey::new("github.com", EventKind::IssueComment, &id.to_string(), "v1"),
        kind: EventKind::IssueComment,
        repo: item.repo().clone(),
        repo_id: Some(7),
        number: item.number(),
        on: ItemKind::Issue,
        actor: Some(Login::new("ada")),
        edit: Edit::Never,
        title: "A title".to_owned(),
        body: format!("comment {id}"),
        url: String::new(),
        occurred_at: start(),
        detail: Detail::None,
    }
}

/// Answers a question for a delivery's token in the session.
fn token(session: &Session, value: &str) -> Result<Answer, Unanswered> {
    let target = session.target.as_ref().unwrap();
    said(format!(
        "loop-is|{}|{}|{}|{}|{value}\n",
        target.server.pid, target.session_id, target.pane, session.owner
    ))
}

/// Answers who has a session, whether a mode lies over it, and the delivery whose Enter is due.
fn outstanding(owner: &OwnerId, mode: u32, delivery: &str) -> Result<Answer, Unanswered> {
    let server = own().pid;
    said(format!(
        "loop-is|{server}|$3|%5|{owner}|{mode}|0|{delivery}||agent\n"
    ))
}

/// Answers for a session in which nothing waits for its Enter: a question for that, or for a token.
fn nothing_unsent(call: &Invocation, session: &Session, value: &str) -> Result<Answer, Unanswered> {
    if asks_for_enter(call) {
        return outstanding(&session.owner, 0, "");
    }
    token(session, value)
}

fn asks_for_enter(invocation: &Invocation) -> bool {
    let is_enter = |field: &Field| *field == Field::Option(OptionName::Enter);
    matches!(&invocation.commands[..], [TmuxCommand::DisplayMessage { fields, .. }]
        if fields.iter().any(is_enter))
}

/// Answers a look at a server whose one pane, this process, is the host of a spawn.
fn one_pane(socket: &str, owner: &OwnerId) -> Result<Answer, Unanswered> {
    let (pid, name) = (
        own().pid,
        ITEM.parse::<crate::model::WorkItemRef>().unwrap(),
    );
    let name = name.session_name().unwrap();
    said(format!(
        "loop-server|{pid}|s|{socket}\nloop-pane|$3|%5|{pid}|0|1|1|0|0|{owner}|agent|{name}\n"
    ))
}

fn is_paste(invocation: &Invocation) -> bool {
    matches!(invocation.commands[0], TmuxCommand::LoadBuffer(_))
}
