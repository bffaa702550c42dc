//! One poller against a local GitHub, without tmux: what it accepts is claimed by hand.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use the_loop::clock::{Clock, ManualClock};
use the_loop::config::{Config, Environment};
use the_loop::demo::github::{LocalGitHub, Logged, PullOptions};
use the_loop::eventlog::{EventLog, Record};
use the_loop::github::{Endpoint, GitHub, Limits, TokenSource};
use the_loop::ingress::poll::{CycleReport, Parts, Poller};
use the_loop::model::{
    BootId, Class, EventKind, HarnessName, HarnessSessionId, OwnerId, ProcessId, Source,
    WorkItemRef,
};
use the_loop::store::{
    Acceptance, Claim, ClaimOwner, ItemRow, ItemSighting, NewSession, QueueFilter, QueueRow,
    Registered, SessionChange, Settlement, Store,
};

pub(crate) const REPO: &str = "demo/app";
pub(crate) const LABEL: &str = "the-loop: auto-execute";

/// A poller, its GitHub, its store; GitHub's clock and ours stand still until [`Rig::pass`].
pub(crate) struct Rig {
    pub(crate) github: LocalGitHub,
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
    pub(crate) poller: Poller,
    pub(crate) stop: CancellationToken,
    records: Arc<Mutex<Vec<Record>>>,
    breaks_at: Arc<Mutex<Option<&'static str>>>,
    config: watch::Sender<Arc<Config>>,
    host: String,
    file: Value,
    folder: TempDir,
}

/// What one claim would tell an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) item: String,
    pub(crate) class: Class,
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) texts: Vec<String>,
}

pub(crate) fn noon() -> DateTime<Utc> {
    "2026-01-05T12:00:00Z".parse().unwrap()
}

fn config_of(folder: &TempDir, file: &Value) -> Arc<Config> {
    let path = folder.path().join("cli-config.yaml");
    fs::write(&path, format!("{file:#}\n")).unwrap();
    let loaded = Config::load(Some(&path), &Environment::of_this_process());
    Arc::new(loaded.unwrap().config)
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::watching(&[REPO]).await
    }

    /// A rig with a labelled issue that is known; what that meant was heard.
    pub(crate) async fn with_issue() -> (Self, u64) {
        let rig = Self::new().await;
        let issue = rig.labelled_issue();
        rig.look().await;
        rig.hear().await;
        (rig, issue)
    }

    /// The same with a labelled pull request.
    pub(crate) async fn with_pull() -> (Self, u64) {
        let rig = Self::new().await;
        let pull = rig.pull("feature", "");
        rig.label(pull, "ada");
        rig.look().await;
        rig.hear().await;
        (rig, pull)
    }

    pub(crate) async fn watching(repos: &[&str]) -> Self {
        let github = LocalGitHub::start().await.unwrap();
        github.set_clock(noon());
        for repo in repos {
            github.repo(repo);
        }
        let folder = tempfile::Builder::new().prefix("loop-").tempdir().unwrap();
        let file = json!({
            "state": { "root": folder.path().join("state") },
            "polling": { "sources": [{ "provider": "github", "repos": repos }] },
            "integrations": { "github": { "apiUrl": github.url() } },
            "routing": {
                "authorizedUsers": ["ada", "grace"],
                "spawnOnUnmatched": "labeled",
                "spawnWorkdir": folder.path(),
            },
        });
        let (config, reader) = watch::channel(config_of(&folder, &file));
        let clock = ManualClock::starting_at(noon());
        let database = folder.path().join("state/loop.db");
        fs::create_dir(folder.path().join("state")).unwrap();
        let shared = Arc::new(clock.clone());
        let store = Store::open(&database, "here", shared.clone())
            .await
            .unwrap();
        let records = Arc::new(Mutex::new(Vec::new()));
        let breaks_at: Arc<Mutex<Option<&'static str>>> = Arc::default();
        let log = EventLog::disabled(Source::Poll).observed_by({
            let (records, breaks_at) = (Arc::clone(&records), Arc::clone(&breaks_at));
            move |record| {
                records.lock().unwrap().push(record.clone());
                let breaks = breaks_at.lock().unwrap().take_if(|at| *at == record.event);
                assert!(breaks.is_none(), "a defect");
            }
        });
        let limits = Limits {
            backoff: Duration::from_millis(1),
            ..Limits::default()
        };
        let host = config.borrow().integrations.github.host.clone();
        let endpoint = Endpoint::new(&github.url(), &host).unwrap();
        let poller = Poller::new(Parts {
            github: GitHub::new(endpoint, TokenSource::none(), limits),
            store: store.clone(),
            config: reader,
            log,
            clock: shared,
            wake: Arc::new(Notify::new()),
        });
        Self {
            github,
            store,
            clock,
            poller,
            stop: CancellationToken::new(),
            records,
            breaks_at,
            config,
            host,
            file,
            folder,
        }
    }

    /// Changes one key of the configuration, written with dots.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        let target = key
            .split('.')
            .fold(&mut self.file, |at, part| &mut at[part]);
        *target = value;
        let config = config_of(&self.folder, &self.file);
        self.config.send_replace(config);
    }

    /// Lets the poller panic when it next decides this.
    pub(crate) fn break_at(&self, event: &'static str) {
        *self.breaks_at.lock().unwrap() = Some(event);
    }

    /// Lets time pass, on GitHub and here.
    pub(crate) fn pass(&self, seconds: i64) {
        self.github.advance(TimeDelta::seconds(seconds));
        self.clock.advance(TimeDelta::seconds(seconds));
    }

    pub(crate) async fn cycle(&self) -> CycleReport {
        self.poller.cycle(&self.stop).await
    }

    /// One cycle that must go well, a minute after what happened.
    pub(crate) async fn look(&self) -> CycleReport {
        self.pass(60);
        let report = self.cycle().await;
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        report
    }

    /// Opens an issue of ada's, with the label.
    pub(crate) fn labelled_issue(&self) -> u64 {
        let number = self.github.open_issue(REPO, "ada", "A title", "A body");
        self.label(number, "ada");
        number
    }

    pub(crate) fn label(&self, number: u64, login: &str) {
        self.github.label(REPO, number, login, LABEL).unwrap();
    }

    pub(crate) fn comment(&self, number: u64, login: &str, body: &str) -> u64 {
        self.github.comment(REPO, number, login, body).unwrap()
    }

    /// Opens a pull request of ada's from a branch of the repository.
    pub(crate) fn pull(&self, branch: &str, body: &str) -> u64 {
        self.github.open_pull(
            REPO,
            &PullOptions {
                author: "ada",
                title: "A change",
                body,
                head_branch: branch,
                head_sha: "1111111111111111111111111111111111111111",
                ..PullOptions::default()
            },
        )
    }

    /// Makes an item known as `sessions start` does, by our clock.
    pub(crate) async fn introduce(&self, number: u64) {
        let introduced = ItemSighting::introduced(&self.item(number), self.clock.now());
        let acceptance = Acceptance {
            items: vec![introduced],
            ..Acceptance::default()
        };
        self.store.inbox().accept(&acceptance).await.unwrap();
    }

    /// Returns the ref of an item of [`REPO`].
    pub(crate) fn item(&self, number: u64) -> WorkItemRef {
        format!("{}/{REPO}#{number}", self.host).parse().unwrap()
    }

    pub(crate) async fn known(&self, number: u64) -> Option<ItemRow> {
        let item = self.item(number);
        self.store.ledger().item(&item).await.unwrap()
    }

    pub(crate) async fn row(&self, number: u64) -> ItemRow {
        let row = self.known(number).await;
        row.unwrap_or_else(|| panic!("#{number} has no row"))
    }

    /// Returns what became of an item's deliveries, oldest first.
    pub(crate) async fn queue(&self, number: u64) -> Vec<QueueRow> {
        let item = self.item(number);
        let mut rows = self
            .store
            .queue()
            .list(QueueFilter::Of(&item), 10_000)
            .await
            .unwrap();
        rows.sort_by_key(|row| row.delivery);
        rows
    }

    /// Returns why an item's texts were dropped.
    pub(crate) async fn dropped(&self, number: u64) -> Vec<String> {
        let rows = self.queue(number).await;
        rows.into_iter()
            .filter(|row| row.state.as_str() == "dropped")
            .filter_map(|row| row.reason)
            .collect()
    }

    pub(crate) async fn claim(&self) -> Option<Claim> {
        let owner = ClaimOwner {
            process: ProcessId { pid: 10, start: 7 },
            boot: BootId("boot".to_owned()),
        };
        let alive = |_: &ProcessId, _: &BootId| false;
        self.store
            .deduper()
            .claim_next(&owner, &alive)
            .await
            .unwrap()
    }

    /// Gives the item of what is due next a session, begun by that.
    pub(crate) async fn open_session(&self) {
        let claim = self.claim().await.expect("something is due");
        let new = NewSession {
            item: claim.item.id,
            owner: OwnerId::mint(),
            harness: HarnessName("agent".to_owned()),
            harness_session_id: HarnessSessionId::mint(),
            cwd: self.folder.path().to_owned(),
            boot_delivery: claim.first().id,
        };
        let registry = self.store.registry();
        let session = registry.begin_spawn(&claim, &new).await.unwrap();
        let registered = Registered {
            session: session.id,
            owner: session.owner,
            target: None,
            harness_session_id: session.harness_session_id,
        };
        let settlement = Settlement::Delivered {
            possible_repeat: false,
        };
        let change = SessionChange::Register(registered);
        let deduper = self.store.deduper();
        deduper
            .settle(&claim, settlement, Some(change))
            .await
            .unwrap();
    }

    /// Claims all that is due within a quarter of a minute and settles it as delivered.
    pub(crate) async fn hear(&self) -> Vec<Heard> {
        self.clock.advance(TimeDelta::seconds(15));
        self.github.advance(TimeDelta::seconds(15));
        let mut heard = Vec::new();
        while let Some(claim) = self.claim().await {
            heard.push(Heard {
                item: claim
                    .item
                    .item
                    .short()
                    .replace(&format!("{}/", self.host), ""),
                class: claim.class,
                kinds: claim.rows.iter().map(|row| row.event.kind).collect(),
                texts: claim
                    .rows
                    .iter()
                    .map(|row| row.event.body.clone())
                    .collect(),
            });
            let settlement = Settlement::Delivered {
                possible_repeat: false,
            };
            let change: Option<SessionChange> = None;
            self.store
                .deduper()
                .settle(&claim, settlement, change)
                .await
                .unwrap();
        }
        heard
    }

    /// The same, without closures and arming: what people wrote.
    pub(crate) async fn hear_texts(&self) -> Vec<String> {
        let heard = self.hear().await;
        heard
            .into_iter()
            .filter(|one| one.kinds.iter().all(|kind| kind.is_text()))
            .flat_map(|one| one.texts)
            .collect()
    }

    /// Returns the records of these types.
    pub(crate) fn said(&self, types: &[&str]) -> Vec<Record> {
        let records = self.records.lock().unwrap();
        let wanted = |record: &&Record| types.contains(&record.event.as_str());
        records.iter().filter(wanted).cloned().collect()
    }

    pub(crate) fn forget_said(&self) {
        self.records.lock().unwrap().clear();
    }

    /// Returns what the next cycle asks GitHub.
    pub(crate) async fn asked_by_next_cycle(&self) -> Vec<Logged> {
        self.github.forget_requests();
        self.look().await;
        self.github.requests()
    }
}
