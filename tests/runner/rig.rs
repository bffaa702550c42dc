//! A runner with a tmux of its own, and agents that write down what is typed into them.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use the_loop::clock::SystemClock;
use the_loop::model::{
    AfterEnd, DeliveryId, HostPaths, OwnerId, PromptPassing, Ticket, TmuxSocket, WorkItemRef,
};
use the_loop::process::identity::{Life, life};
use the_loop::process::signal::{Signal, signal};
use the_loop::process::ticket;
use the_loop::runner::{
    Address, Answer, BoxFuture, FenceLost, Invocation, Limits, Listener, LocalMachine, Message,
    Probe, RealTmux, SpawnOutcome, SpawnPlan, SpawnedPane, Survival, TmuxRunner, TmuxServer,
    Unanswered,
};

use crate::tmux::{PATIENCE, PrivateTmux, wait_for};

pub(crate) type Runner = TmuxRunner<FlakyTmux, LocalMachine>;

/// Writes all that is typed to `$DIR/got`, brackets included.
pub(crate) const RECORDER: &str =
    "stty raw -echo; printf '\\033[?2004h'; : > $DIR/ready; exec cat > $DIR/got";

/// Real tmux, with answers that get lost before or after tmux did what it was asked.
pub(crate) struct FlakyTmux {
    real: RealTmux,
    losses: Mutex<Vec<Loss>>,
}

/// How a call goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loss {
    /// It goes well.
    None,
    /// tmux never sees it.
    Unasked,
    /// The client reaches nobody, and when it has ended somebody listens.
    TooEarly,
}

impl TmuxServer for FlakyTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let loss = self.losses.lock().unwrap().pop();
        match loss {
            Some(Loss::Unasked) => Err(Unanswered::NoVerdict {
                detail: "lost by the test".to_owned(),
            }),
            Some(Loss::TooEarly) => Ok(Answer {
                status: 1,
                output: String::new(),
                words: "error connecting to the socket (No such file or directory)".to_owned(),
                listener: Listener::Present,
            }),
            Some(Loss::None) | None => self.real.call(invocation).await,
        }
    }

    async fn version(&self) -> Result<String, Unanswered> {
        self.real.version().await
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        self.real.path_of(socket)
    }
}

/// A tmux, a state root and a runner.
pub(crate) struct Rig {
    pub(crate) runner: Runner,
    pub(crate) tmux: PrivateTmux,
    pub(crate) dir: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::losing(Vec::new())
    }

    /// A rig that gives an answer up early, for servers that are frozen.
    pub(crate) fn hasty() -> Self {
        let limits = Limits {
            answer: Duration::from_millis(500),
            between_questions: Duration::from_millis(100),
            ..Limits::default()
        };
        Self::with(limits, Vec::new())
    }

    /// A rig whose first calls go as told.
    pub(crate) fn losing(mut losses: Vec<Loss>) -> Self {
        losses.reverse();
        let limits = Limits {
            // A host has its time to record an end on a machine with more to do too.
            record: PATIENCE,
            ..Limits::default()
        };
        Self::with(limits, losses)
    }

    fn with(limits: Limits, losses: Vec<Loss>) -> Self {
        let tmux = PrivateTmux::new();
        let dir = tempfile::tempdir().unwrap();
        let runner = Self::runner_on(&TmuxSocket::Path(tmux.socket()), &dir, limits, losses);
        Self { runner, tmux, dir }
    }

    pub(crate) fn runner_on(
        socket: &TmuxSocket,
        dir: &tempfile::TempDir,
        limits: Limits,
        losses: Vec<Loss>,
    ) -> Runner {
        let real = RealTmux::new(PrivateTmux::program());
        let flaky = FlakyTmux {
            real,
            losses: Mutex::new(losses),
        };
        let machine = LocalMachine::new(dir.path().join("state"));
        TmuxRunner::new(flaky, machine, socket.clone(), limits)
    }

    /// Another runner on the same state, as another process would have it.
    pub(crate) fn another(&self, losses: Vec<Loss>) -> Runner {
        let mut losses = losses;
        losses.reverse();
        let socket = TmuxSocket::Path(self.tmux.socket());
        Self::runner_on(&socket, &self.dir, Limits::default(), losses)
    }

    pub(crate) fn paths(&self, owner: &OwnerId) -> HostPaths {
        HostPaths::new(&self.dir.path().join("state"), owner)
    }

    /// The folder of an item's agent.
    pub(crate) fn folder(&self, number: u64) -> PathBuf {
        let folder = self.dir.path().join(format!("agent-{number}"));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Issues a ticket for a script and returns the plan to spawn it.
    pub(crate) fn plan(&self, number: u64, script: &str) -> SpawnPlan {
        let owner = OwnerId::mint();
        let folder = self.folder(number);
        let paths = self.paths(&owner);
        let ticket = Ticket {
            v: Ticket::VERSION,
            owner: owner.clone(),
            work_item: item(number),
            socket: TmuxSocket::Path(self.tmux.socket()),
            tmux: PrivateTmux::program(),
            cwd: folder.clone(),
            argv: ["/bin/sh", "-c", script].map(str::to_owned).into(),
            env: [
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("DIR", folder.to_str().unwrap()),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            prompt: PromptPassing::None,
            not_after_ms: (Utc::now() + TimeDelta::minutes(5)).timestamp_millis(),
            grace_ms: 200,
            after_end: AfterEnd::KeepScreen,
        };
        ticket::issue(&paths, &ticket, "").unwrap();
        SpawnPlan {
            address: address(number),
            owner,
            work_item: item(number),
            boot_delivery: None,
            host_binary: env!("CARGO_BIN_EXE_the-loop").into(),
            ticket: paths.ticket(),
            cwd: folder,
            columns: 200,
            rows: 50,
            recorded_servers: Vec::new(),
        }
    }

    /// Spawns a script and returns its registered address.
    pub(crate) async fn start(&self, number: u64, script: &str) -> Address {
        let plan = self.plan(number, script);
        let pane = spawned(self.runner.spawn(&plan, &open, &|_| {}).await.unwrap());
        let window = Duration::ZERO;
        match self
            .runner
            .survives(&plan.owner, &pane, window, &SystemClock)
            .await
        {
            Survival::Survived(target) | Survival::EndedClean(target) => Address {
                name: plan.address.name,
                owner: Some(plan.owner),
                target: Some(target),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Starts a recorder and waits until it reads.
    pub(crate) async fn start_recorder(&self, number: u64) -> Address {
        let address = self.start(number, RECORDER).await;
        let got = self.folder(number).join("got");
        wait_for("a recorder that reads", || got.exists());
        address
    }

    /// Spawns a script that ends at once and waits until tmux knows.
    pub(crate) async fn start_and_end(&self, number: u64) -> Address {
        let plan = self.plan(number, "exit 3");
        let pane = spawned(self.runner.spawn(&plan, &open, &|_| {}).await.unwrap());
        let survival = self
            .runner
            .survives(&plan.owner, &pane, Duration::from_secs(10), &SystemClock)
            .await;
        assert!(matches!(survival, Survival::Failed { .. }), "{survival:?}");
        let pane_id = pane.pane.to_string();
        self.tmux.wait_for("the noted end", |tmux| {
            tmux.ok(&["display-message", "-p", "-t", &pane_id, "#{@loop_exit}"])
                .ends_with("code:3")
        });
        let record = ticket::record(&self.paths(&plan.owner)).unwrap().unwrap();
        Address {
            name: plan.address.name,
            owner: Some(plan.owner),
            target: pane.target(&record),
        }
    }

    /// What was typed into a recorder, once it ends as told.
    pub(crate) fn typed(&self, number: u64, end: &str) -> String {
        let got = self.folder(number).join("got");
        let mut text = String::new();
        wait_for(&format!("{end:?} typed"), || {
            text = String::from_utf8_lossy(&fs::read(&got).unwrap()).into_owned();
            text.ends_with(end)
        });
        text
    }

    /// Makes a session as a person would, with a program of theirs.
    pub(crate) fn persons_session(&self, name: &str) {
        self.tmux
            .ok(&["new-session", "-d", "-s", name, "--", "sleep", "600"]);
    }

    /// Splits a pane off a session as a person would, with a program of theirs.
    pub(crate) fn persons_pane(&self, session: &str) {
        self.tmux
            .ok(&["split-window", "-t", session, "--", "sleep", "600"]);
    }

    pub(crate) fn session_count(&self) -> usize {
        self.tmux.sessions().len()
    }

    pub(crate) fn freeze(&self) {
        signal(&self.tmux.server(), Signal::Stop).unwrap();
    }

    pub(crate) fn thaw(&self) {
        signal(&self.tmux.server(), Signal::Continue).unwrap();
    }

    /// Lets the server go on and asks until it has answered: on a busy machine it needs a while.
    pub(crate) async fn thaw_and_see_live(&self, it: &Address) {
        self.thaw();
        let answered = tokio::time::timeout(PATIENCE, async {
            while self.runner.probe(it).await != Probe::Live {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(answered.await.is_ok(), "waited in vain for {it:?}");
    }
}

pub(crate) fn item(number: u64) -> WorkItemRef {
    format!("github:o/r#{number}").parse().unwrap()
}

/// An address of which nothing is recorded.
pub(crate) fn address(number: u64) -> Address {
    Address {
        name: item(number).session_name().unwrap(),
        owner: None,
        target: None,
    }
}

pub(crate) fn spawned(outcome: SpawnOutcome) -> SpawnedPane {
    match outcome {
        SpawnOutcome::Spawned(pane) => pane,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn message(delivery: i64, text: &str) -> Message {
    Message {
        delivery: DeliveryId(delivery),
        attempt: 1,
        text: text.to_owned(),
        submit_gap: Duration::from_millis(60),
        expires_at: Utc::now() + TimeDelta::minutes(5),
    }
}

/// What a recorder gets for one text.
pub(crate) fn pasted(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~\r")
}

/// A fence that lets everything through.
pub(crate) fn open() -> BoxFuture<Result<(), FenceLost>> {
    Box::pin(std::future::ready(Ok(())))
}

/// A fence of work that somebody took over.
pub(crate) fn closed() -> BoxFuture<Result<(), FenceLost>> {
    Box::pin(std::future::ready(Err(FenceLost::Taken)))
}

/// What a format shows of the session and its active pane.
pub(crate) fn option(rig: &Rig, address: &Address, name: &str) -> String {
    let session = format!("={}:", address.name);
    rig.tmux.ok(&[
        "display-message",
        "-p",
        "-t",
        &session,
        &format!("#{{{name}}}"),
    ])
}

pub(crate) fn pane(address: &Address) -> String {
    address.target.as_ref().unwrap().pane.to_string()
}

pub(crate) fn runs(address: &Address) -> bool {
    let target = address.target.as_ref().unwrap();
    life(&target.harness) == Life::Running
}

/// A fence in whose first passage somebody starts a program of his own in the agent's pane.
pub(crate) fn respawning(
    rig: &Rig,
    address: &Address,
) -> impl Fn() -> BoxFuture<Result<(), FenceLost>> + Send + Sync {
    let pane = address.target.as_ref().unwrap().pane.to_string();
    let first = std::sync::atomic::AtomicBool::new(true);
    move || {
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            rig.tmux
                .ok(&["respawn-pane", "-k", "-t", &pane, "--", "sleep", "600"]);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A client on a session, as a person's terminal would be.
pub(crate) struct Client(std::process::Child);

impl Client {
    /// Attaches a control client, with these further flags, and waits until the server knows it.
    pub(crate) fn attach(rig: &Rig, address: &Address, flags: &[&str]) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a client that stays is started as a person would"
        )]
        let mut command = std::process::Command::new(PrivateTmux::program());
        let child = command
            .arg("-S")
            .arg(rig.tmux.socket())
            .args(["-C", "attach-session"])
            .args(flags)
            .args(["-t", &format!("={}:", address.name)])
            .env_remove("TMUX")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let client = Self(child);
        rig.tmux
            .wait_for("the client", |tmux| !tmux.ok(&["list-clients"]).is_empty());
        client
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
