//! Agents in tmux: telling whether one lives, starting one, typing into it exactly once, ending it.
//!
//! It never kills or spawns over a session whose harness may still run, and never takes silence for
//! absence: everything that tmux did not positively say is [`Unanswered`]. It knows neither GitHub
//! nor the store; `dispatch` calls it. Start reading at [`TmuxRunner`], then `probe.rs`.

mod clear;
mod command;
mod deliver;
mod end;
mod enter;
mod error;
mod field;
mod guard;
mod machine;
mod occupant;
mod parse;
mod paste;
mod probe;
mod real;
mod render;
mod screen;
mod server;
mod silence;
mod spawn;
mod survive;
#[cfg(test)]
mod tests;
mod token;
mod version;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::model::{BootId, OwnerId, ProcessId, SessionName, TmuxSocket, TmuxTarget};
use crate::process::identity::Life;

pub use clear::Cleared;
pub use command::{BufferName, KeptName, Scope, Setting, Target, TmuxCommand};
pub use deliver::{DeliverOutcome, Message};
pub use end::EndOutcome;
pub use enter::EnterState;
pub use error::{FenceLost, RunnerError};
pub use field::{Field, Marker, OptionName};
pub use guard::Guard;
pub use machine::{LocalMachine, Machine};
pub use occupant::{Listed, Occupant, OccupantKind};
pub use probe::{Probe, Remains};
pub use real::{Access, RealTmux};
pub use render::{TooLong, arguments};
pub use screen::last_lines;
pub use server::{Answer, Invocation, Listener, Start, TmuxServer, Unanswered};
pub use spawn::{SpawnOutcome, SpawnPlan, SpawnedPane};
pub use survive::Survival;
pub use token::TokenState;
pub use version::{OLDEST, Version};

use silence::Silence;

/// A boxed future, as the fence returns it.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Asked before each change in tmux: whether the work is still ours.
pub type Fence<'a> = &'a (dyn Fn() -> BoxFuture<Result<(), FenceLost>> + Send + Sync);

/// Told the new name of a session that was renamed, with a person's live pane in it.
pub type Renamed<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How long the runner waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For any answer of tmux.
    pub answer: Duration,
    /// Between two questions to a silent server.
    pub between_questions: Duration,
    /// For a host to record an end that the process table already shows.
    pub record: Duration,
    /// For a server to make its socket again.
    pub socket: Duration,
    /// For a host to take its ticket, once its session was made.
    pub start: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            between_questions: Duration::from_secs(10),
            record: Duration::from_secs(1),
            socket: Duration::from_secs(1),
            start: Duration::from_secs(10),
        }
    }
}

/// What is known of a session before tmux is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its name.
    pub name: SessionName,
    /// The spawn under way, or the one that made the registered agent.
    pub owner: Option<OwnerId>,
    /// Where the registered agent runs.
    pub target: Option<TmuxTarget>,
}

/// The one who talks to tmux about agents.
///
/// Every method is right when several processes do it at once, and when an earlier call of anybody
/// takes effect late: tmux itself checks what must hold, in the moment in which it acts.
pub struct TmuxRunner<T, M> {
    tmux: T,
    machine: M,
    socket: TmuxSocket,
    limits: Limits,
    silence: Silence,
}

impl<T, M> fmt::Debug for TmuxRunner<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TmuxRunner")
            .field("socket", &self.socket)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Makes a runner whose new sessions live on `socket`; recorded ones stay on theirs.
    #[must_use]
    pub fn new(tmux: T, machine: M, socket: TmuxSocket, limits: Limits) -> Self {
        Self {
            tmux,
            machine,
            socket,
            limits,
            silence: Silence::new(limits.between_questions),
        }
    }

    /// Tells whether a process recorded during `boot` still runs.
    pub fn life(&self, boot: &BootId, process: &ProcessId) -> Life {
        self.machine.life(boot, process)
    }

    /// Returns how long the runner waits for what.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Tells whether the server that would be asked for this address counts as silent.
    pub fn is_silent(&self, address: &Address) -> bool {
        let path = self.tmux.path_of(self.socket_of(address));
        self.silence.is_silent(&path)
    }

    fn socket_of<'a>(&'a self, address: &'a Address) -> &'a TmuxSocket {
        match &address.target {
            Some(target) => &target.socket,
            None => &self.socket,
        }
    }

    /// Asks a question, and once more where it came a moment too early: processes that start their
    /// first agents at once find a server that one of them is starting.
    async fn ask(
        &self,
        socket: &TmuxSocket,
        commands: Vec<TmuxCommand>,
    ) -> Result<Answer, Unanswered> {
        let question = self.invocation(socket, commands);
        let answer = self.call(&question).await?;
        if answer.came_too_early() {
            return self.call(&question).await;
        }
        Ok(answer)
    }

    /// Changes something, if the work is still ours.
    async fn change(
        &self,
        invocation: &Invocation,
        fence: Fence<'_>,
    ) -> Result<Answer, RunnerError> {
        fence().await?;
        Ok(self.call(invocation).await?)
    }

    /// An invocation of a running server, without input.
    fn invocation(&self, socket: &TmuxSocket, commands: Vec<TmuxCommand>) -> Invocation {
        Invocation {
            socket: socket.clone(),
            start: Start::Never,
            commands,
            input: None,
            folder: None,
            deadline: self.limits.answer,
        }
    }

    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let path = self.tmux.path_of(&invocation.socket);
        self.silence.admit(&path, invocation)?;
        let was_silent = self.silence.is_silent(&path);
        let answer = self.tmux.call(invocation).await;
        self.silence.note(&path, &answer);
        match answer {
            // The question that is asked now and then is nobody's attempt.
            Err(Unanswered::TimedOut { .. }) if was_silent => Err(Unanswered::Silent {
                next: self.limits.between_questions,
            }),
            answer => answer,
        }
    }

    /// Every process that is recorded as the address's harness, with what became of it.
    fn harnesses(&self, address: &Address) -> Vec<(ProcessId, Life)> {
        let mut all = Vec::new();
        if let Some(target) = &address.target {
            let life = self.machine.life(&target.boot, &target.harness);
            all.push((target.harness, life));
        }
        let record = address
            .owner
            .as_ref()
            .and_then(|owner| self.machine.record(owner));
        if let Some(record) = record {
            // A host that has not forked yet is about to.
            let process = match record.phase {
                crate::model::Phase::Starting => Some(record.host),
                ref later => later.harness(),
            };
            all.extend(process.map(|process| (process, self.machine.life(&record.boot, &process))));
        }
        all
    }
}
