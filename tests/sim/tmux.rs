//! tmux as one daemon reaches it: through clients that take their time and outlive their daemon.

use std::future::pending;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use the_loop::model::{ProcessId, TmuxSocket};
use the_loop::runner::{Answer, Invocation, TmuxServer, Unanswered};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::fake_tmux::FakeTmux;
use crate::machine::StoryMachine;
use crate::numbers::Numbers;

/// How long a client that nobody kills waits for a server.
const FOR_EVER: Duration = Duration::from_secs(86_400);

/// When a daemon is killed, counted in its calls of tmux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KilledAt {
    /// Before tmux is asked.
    Before(u64),
    /// When tmux was asked and has not answered.
    Under(u64),
    /// When tmux has done it, before anybody knows.
    After(u64),
}

/// Whether a daemon lives; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Pulse(Arc<Life>);

#[derive(Debug)]
struct Life {
    process: ProcessId,
    machine: StoryMachine,
    work: OnceLock<AbortHandle>,
    ended: AtomicBool,
}

impl Pulse {
    pub(crate) fn new(process: ProcessId, machine: StoryMachine) -> Self {
        Self(Arc::new(Life {
            process,
            machine,
            work: OnceLock::new(),
            ended: AtomicBool::new(false),
        }))
    }

    /// What stops when the daemon is killed.
    pub(crate) fn drives(&self, work: AbortHandle) {
        self.0.work.set(work).unwrap();
    }

    pub(crate) fn beats(&self) -> bool {
        !self.0.ended.load(Ordering::Relaxed)
    }

    /// Kills the daemon at this instant: nothing that it does comes after.
    pub(crate) fn stop(&self) {
        if self.0.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let pid = self.0.process.pid;
        self.0.machine.note(format!("daemon {pid} is killed"));
        self.0.machine.kill_daemon(self.0.process);
        if let Some(work) = self.0.work.get() {
            work.abort();
        }
    }
}

/// The tmux of one daemon.
pub(crate) struct StoryTmux {
    tmux: FakeTmux,
    pulse: Pulse,
    calls: AtomicU64,
    killed_at: Option<KilledAt>,
    numbers: Mutex<Numbers>,
}

impl StoryTmux {
    pub(crate) fn new(
        tmux: FakeTmux,
        pulse: Pulse,
        killed_at: Option<KilledAt>,
        numbers: Numbers,
    ) -> Self {
        Self {
            tmux,
            pulse,
            calls: AtomicU64::new(0),
            killed_at,
            numbers: Mutex::new(numbers),
        }
    }

    fn takes(&self) -> Duration {
        Duration::from_millis(self.numbers.lock().unwrap().between(1, 15))
    }

    /// Goes on only in a daemon that lives.
    async fn live(&self, point: Option<KilledAt>) {
        if point.is_some() && point == self.killed_at {
            self.pulse.stop();
        }
        if !self.pulse.beats() {
            pending::<()>().await;
        }
    }
}

impl TmuxServer for StoryTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.live(Some(KilledAt::Before(call))).await;
        sleep(self.takes()).await;
        self.live(None).await;
        let patient = Invocation {
            deadline: FOR_EVER,
            ..invocation.clone()
        };
        let tmux = self.tmux.clone();
        let way = self.takes();
        let mut client = tokio::spawn(async move {
            let answer = tmux.call(&patient).await;
            sleep(way).await;
            answer
        });
        self.live(Some(KilledAt::Under(call))).await;
        let answer = timeout(invocation.deadline, &mut client).await;
        self.live(Some(KilledAt::After(call))).await;
        match answer {
            Ok(answer) => answer.unwrap(),
            Err(_) => {
                client.abort();
                Err(Unanswered::TimedOut {
                    after: invocation.deadline,
                })
            }
        }
    }

    async fn version(&self) -> Result<String, Unanswered> {
        self.tmux.version().await
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        self.tmux.path_of(socket)
    }
}
