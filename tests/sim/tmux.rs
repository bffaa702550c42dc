//! tmux as one daemon reaches it: through clients that take their time and outlive their daemon.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use the_loop::model::TmuxSocket;
use the_loop::runner::{Answer, Invocation, TmuxServer, Unanswered};
use tokio::time::{sleep, timeout};

use crate::fake_tmux::FakeTmux;
use crate::numbers::Numbers;
use crate::pulse::{KilledAt, Pulse};

/// How long a client that nobody kills waits for a server.
const FOR_EVER: Duration = Duration::from_secs(86_400);

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

    /// Goes on only in a daemon that is not killed here.
    async fn pass(&self, point: KilledAt) {
        if self.killed_at == Some(point) {
            self.pulse.stop();
        }
        self.pulse.live().await;
    }
}

impl TmuxServer for StoryTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.pass(KilledAt::Before(call)).await;
        sleep(self.takes()).await;
        self.pulse.live().await;
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
        self.pass(KilledAt::Under(call)).await;
        let answer = timeout(invocation.deadline, &mut client).await;
        self.pass(KilledAt::After(call)).await;
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
