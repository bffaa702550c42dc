//! One attempt to run a harness: ticket, tmux session, probe window.
//!
//! The ticket decides who wins. It is recorded before anything is made; the host takes it by a
//! rename, whoever gives up revokes it by another, and one rename wins. So a tmux that serves
//! `new-session` late, or a daemon that dies half-way, can never lead to two harnesses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::Shared;
use super::conclude::Conclusion;
use super::error::WorkError;
use super::fence::fence;
use super::records;
use crate::harness::Harness;
use crate::model::{
    AfterEnd, DeliveryId, Ending, HoldReason, HostPaths, OwnerId, Phase, ProcessId, PromptPassing,
    Record, SessionName, Ticket, TmuxSocket, TmuxTarget, WorkItemRef,
};
use crate::process::blocking;
use crate::process::identity::Life;
use crate::process::ticket::{self, Revoked, TicketError};
use crate::runner::{
    Address, Machine, RunnerError, SpawnOutcome, SpawnPlan, SpawnedPane, Survival, TmuxServer,
    Unanswered,
};
use crate::store::{Claim, Intent};

/// How long a ticket is good for: tmux may be slow, but a session that it makes later than this for
/// an attempt long given up helps nobody.
const TICKET_LIFE: TimeDelta = TimeDelta::minutes(2);

/// The terminal that an agent begins with.
const COLUMNS: u16 = 200;
const ROWS: u16 = 50;

/// What is to be run.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    /// The spawn.
    pub(super) owner: OwnerId,
    /// The session's name, and what is recorded of the agent that had it before.
    pub(super) address: Address,
    /// The work item whose ref the session's name is minted from.
    pub(super) minted: &'a WorkItemRef,
    /// The harness.
    pub(super) harness: &'a Harness,
    /// How it is started.
    pub(super) argv: Vec<String>,
    /// Where.
    pub(super) cwd: PathBuf,
    /// The boot prompt.
    pub(super) prompt: String,
    /// The delivery that the prompt carries; its token is set with the session's creation.
    pub(super) boot: DeliveryId,
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Ran {
    /// The harness ran for its whole probe window; whether it still does is for a probe to tell. None
    /// where it has ended since and no session shows it any more.
    Up(Option<TmuxTarget>),
    /// It started and ended with exit 0 inside the window.
    EndedClean(Option<TmuxTarget>),
    /// It was started, or should have been, and ended with an error.
    Failed {
        /// How it ended, with the last lines of its screen.
        error: String,
        /// How far it came.
        reached: Reached,
    },
    /// A live session of another origin holds the name.
    Occupied,
    /// The name is held by something that is neither live nor clearable.
    Unclearable(String),
    /// Nothing ran, and nothing of it will.
    NotRun(Refusal),
    /// It was started, or may have been, and what became of it cannot be told yet.
    Unresolved(Unresolved),
}

/// Why it cannot be told yet what became of an attempt.
#[derive(Debug)]
pub(super) enum Unresolved {
    /// tmux gave no answer.
    Unanswered(Unanswered),
    /// Everything answered, and it is not clear all the same, because of this.
    Unclear(String),
}

/// How far an agent that failed came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// It never ran, so it read no prompt.
    Nothing,
    /// It ran and was cut off from outside, or how it ended is not known.
    CutOff,
    /// It ran and ended by itself, with an error.
    ItsOwnEnd,
}

/// Why nothing ran.
#[derive(Debug)]
pub(super) enum Refusal {
    /// tmux gave no answer.
    Unanswered(Unanswered),
    /// Something answered, with this.
    Answered(String),
}

/// How long to wait before an unresolved attempt is looked at again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(5);

impl<T: TmuxServer + 'static, M: Machine + 'static> Shared<T, M> {
    /// Runs an attempt to its end.
    pub(super) async fn run_attempt(
        &self,
        claim: &Arc<Claim>,
        attempt: Attempt<'_>,
    ) -> Result<Ran, WorkError> {
        let paths = HostPaths::new(&self.config().state.root, &attempt.owner);
        let socket = TmuxSocket::Path(self.tmux.socket.clone());
        let recorded_servers = self.registry.servers_on(&socket).await?;
        let ticket = self.ticket(&attempt);
        let plan = SpawnPlan {
            address: attempt.address.clone(),
            owner: attempt.owner.clone(),
            work_item: attempt.minted.clone(),
            boot_delivery: Some(attempt.boot),
            host_binary: self.program.clone(),
            ticket: paths.ticket(),
            cwd: attempt.cwd.clone(),
            columns: COLUMNS,
            rows: ROWS,
            recorded_servers,
        };
        self.deduper.hold_fence(claim).await?;
        let (new, prompt) = (paths.clone(), attempt.prompt);
        if let Err(error) = blocking(move || ticket::issue(&new, &ticket, &prompt)).await {
            return Ok(Ran::NotRun(Refusal::Answered(error.to_string())));
        }
        let name = &attempt.address.name;
        let renamed = |to: &str| self.log.emit(&records::set_aside(claim, name, to));
        let fence = fence(&self.deduper, claim);
        let outcome = self.runner.spawn(&plan, &fence, &renamed).await;
        let given_up = match outcome {
            Ok(SpawnOutcome::Spawned(pane)) => match self.watch(&attempt.owner, &pane).await {
                Some(ran) => return Ok(ran),
                None => never_started(),
            },
            Ok(SpawnOutcome::LiveOccupant) => Ran::Occupied,
            Ok(SpawnOutcome::Unclearable(detail)) => Ran::Unclearable(detail),
            // Whoever goes on with the claim finds the ticket and settles it.
            Err(RunnerError::FenceLost(lost)) => return Err(lost.into()),
            Err(RunnerError::Unanswered(why)) => Ran::NotRun(Refusal::Unanswered(why)),
            Err(error) => Ran::NotRun(Refusal::Answered(error.to_string())),
        };
        match blocking(move || ticket::revoke(&paths)).await {
            Ok(Revoked::Won | Revoked::Absent) => Ok(given_up),
            // A host was faster: whatever tmux answered, what it made of the ticket is ours.
            Ok(Revoked::AlreadyTaken) => Ok(self
                .see_through(&attempt.address.name, &attempt.owner)
                .await),
            Err(error) => Ok(unclear(error.to_string())),
        }
    }

    fn ticket(&self, attempt: &Attempt<'_>) -> Ticket {
        let tmux = &self.config().routing.tmux;
        Ticket {
            v: Ticket::VERSION,
            owner: attempt.owner.clone(),
            work_item: attempt.minted.clone(),
            socket: TmuxSocket::Path(self.tmux.socket.clone()),
            tmux: self.tmux.binary.clone(),
            cwd: attempt.cwd.clone(),
            argv: attempt.argv.clone(),
            env: attempt
                .harness
                .environment(&self.around, attempt.minted, &attempt.address.name),
            prompt: PromptPassing::LastArgument,
            not_after_ms: (self.clock.now() + TICKET_LIFE).timestamp_millis(),
            grace_ms: u64::try_from(tmux.harness_kill_grace.as_millis()).unwrap_or(u64::MAX),
            after_end: if tmux.remain_on_exit {
                AfterEnd::KeepScreen
            } else {
                AfterEnd::CloseSession
            },
        }
    }

    /// Watches a started harness through its probe window; none where its host is gone and only the
    /// ticket tells what that had done.
    async fn watch(&self, owner: &OwnerId, pane: &SpawnedPane) -> Option<Ran> {
        let window = self.config().routing.tmux.resume_probe;
        let survival = self.runner.survives(owner, pane, window, &*self.clock);
        Some(match survival.await {
            Survival::Survived(target) => Ran::Up(Some(target)),
            Survival::EndedClean(target) => Ran::EndedClean(Some(target)),
            Survival::Failed { ending, screen } => failed(&ending, &screen),
            Survival::HostGone => return None,
            Survival::Unknown(why) => unclear(why),
        })
    }

    /// Finds a harness that took its ticket, on the server that the ticket names, and watches it
    /// through its window.
    async fn see_through(&self, name: &SessionName, owner: &OwnerId) -> Ran {
        let address = Address {
            name: name.clone(),
            owner: Some(owner.clone()),
            target: None,
        };
        let paths = HostPaths::new(&self.config().state.root, owner);
        let found = match blocking(move || ticket::taken(&paths)).await {
            Ok(Some(ticket)) => self.runner.occupant_on(&ticket.socket, &address).await,
            // Without the ticket only the configured server can be asked.
            Ok(None) | Err(_) => self.runner.occupant(&address).await,
        };
        match found {
            Ok(Some(occupant)) if occupant.owner.as_ref() == Some(owner) => {
                match self.watch(owner, &SpawnedPane::from(&occupant)).await {
                    Some(ran) => ran,
                    None => self.read_record(owner).await,
                }
            }
            Ok(_) => self.read_record(owner).await,
            Err(why) => Ran::Unresolved(Unresolved::Unanswered(why)),
        }
    }

    /// Reads from its record how a harness ended that no session shows any more.
    async fn read_record(&self, owner: &OwnerId) -> Ran {
        let paths = HostPaths::new(&self.config().state.root, owner);
        let window = self.config().routing.tmux.resume_probe;
        let runner = Arc::clone(&self.runner);
        let read = blocking(move || {
            Ok(match ticket::record(&paths) {
                Ok(Some(record)) => {
                    let life = |process: &ProcessId| runner.life(&record.boot, process);
                    recorded_end(&record, window, life)
                }
                // A host whose disk takes no record starts its agent all the same.
                Ok(None) => Ran::Failed {
                    error: "its host left no record, and may have started the agent".to_owned(),
                    reached: Reached::CutOff,
                },
                Err(error) => unread_end(&paths, &error),
            })
        });
        read.await
            .unwrap_or_else(|error: TicketError| unclear(error.to_string()))
    }

    /// Returns how a former agent ended, where its host recorded that.
    pub(super) async fn ending_of(&self, owner: &OwnerId) -> Option<Ending> {
        let paths = HostPaths::new(&self.config().state.root, owner);
        let record = blocking(move || ticket::record(&paths)).await;
        match record.ok()??.phase {
            Phase::Ended { ending, .. } => Some(ending),
            Phase::Starting | Phase::Running { .. } => None,
        }
    }

    /// Remembers that an agent may have read the claimed message before it failed, so that the next
    /// one is told that it may be a repeat.
    pub(super) async fn note_reading(
        &self,
        claim: &Claim,
        owner: &OwnerId,
        reached: Reached,
    ) -> Result<(), WorkError> {
        if reached != Reached::Nothing {
            let read = Intent {
                owner: owner.clone(),
                expires_at: self.clock.now(),
            };
            self.deduper.store_intent(claim, &read).await?;
        }
        Ok(())
    }

    /// Waits for what became of an attempt: nothing new begins before that is known.
    pub(super) fn unresolved(claim: &Claim, why: Unresolved) -> Conclusion {
        let conclusion = match why {
            Unresolved::Unanswered(why) => Self::waits_for(&why),
            Unresolved::Unclear(why) => Conclusion::Held {
                reason: HoldReason::StartUnresolved,
                again: RESOLVE_AGAIN,
                detail: Some(why),
            },
        };
        tracing::warn!(item = %claim.item.item, "an attempt is not resolved yet: {conclusion:?}");
        conclusion
    }

    /// Finds out what became of an attempt that another process, or an earlier claim, left behind.
    pub(super) async fn resolve_attempt(&self, name: &SessionName, owner: &OwnerId) -> Ran {
        let paths = HostPaths::new(&self.config().state.root, owner);
        match blocking(move || ticket::revoke(&paths)).await {
            Ok(Revoked::Won | Revoked::Absent) => {
                Ran::NotRun(Refusal::Answered("its ticket was never taken".to_owned()))
            }
            Ok(Revoked::AlreadyTaken) => self.see_through(name, owner).await,
            Err(error) => unclear(error.to_string()),
        }
    }
}

/// What a record says about a harness without a session.
///
/// A host that was killed, or went down with its machine, never records an end: then the process
/// table tells.
fn recorded_end(record: &Record, window: Duration, life: impl Fn(&ProcessId) -> Life) -> Ran {
    if record.ended_after(window) {
        return Ran::Up(None);
    }
    let host = life(&record.host);
    match &record.phase {
        Phase::Ended {
            ending: Ending::Code(0),
            ..
        } => Ran::EndedClean(None),
        Phase::Ended { ending, .. } => failed(ending, &[]),
        // A harness is let go only after it is recorded.
        Phase::Starting if host == Life::Gone => never_started(),
        Phase::Running { harness } if host == Life::Gone && life(harness) == Life::Gone => {
            Ran::Failed {
                error: "it ended together with its host, and how was not recorded".to_owned(),
                reached: Reached::CutOff,
            }
        }
        Phase::Starting => unclear(format!(
            "its host (process {}) runs and has not started it, and its session is not found",
            record.host
        )),
        Phase::Running { harness } => unclear(format!(
            "the agent (process {harness}) was started, but its session is not found"
        )),
    }
}

/// What a record that cannot be read says all the same: a newer version writes phases that this one
/// does not know, and names the processes where this one finds them.
fn unread_end(paths: &HostPaths, error: &TicketError) -> Ran {
    match ticket::recorded_processes(paths).map(|named| named.map(|named| named.left())) {
        Ok(Some(None)) => Ran::Failed {
            error: format!(
                "it ended together with its host, and its record is not understood: {error}"
            ),
            reached: Reached::CutOff,
        },
        Ok(Some(Some(process))) => unclear(format!(
            "process {process} of it runs, its session is not found, and its record is not understood: {error}"
        )),
        Ok(None) | Err(_) => unclear(error.to_string()),
    }
}

fn unclear(why: String) -> Ran {
    Ran::Unresolved(Unresolved::Unclear(why))
}

fn never_started() -> Ran {
    Ran::Failed {
        error: "its host ended before it started the agent".to_owned(),
        reached: Reached::Nothing,
    }
}

fn failed(ending: &Ending, screen: &[String]) -> Ran {
    Ran::Failed {
        error: explain(ending, screen),
        reached: match ending {
            Ending::Failed(_) => Reached::Nothing,
            Ending::Signal(signal) if is_sent_from_outside(*signal) => Reached::CutOff,
            Ending::Code(_) | Ending::Signal(_) => Reached::ItsOwnEnd,
        },
    }
}

/// Tells the signals of people, shutdowns and a machine without memory from those of a crash.
fn is_sent_from_outside(signal: i32) -> bool {
    use rustix::process::Signal;

    [Signal::HUP, Signal::INT, Signal::KILL, Signal::TERM]
        .iter()
        .any(|sent| sent.as_raw() == signal)
}

fn explain(ending: &Ending, screen: &[String]) -> String {
    let how = match ending {
        Ending::Code(code) => format!("it ended at once with exit code {code}"),
        Ending::Signal(signal) => format!("it was ended at once by signal {signal}"),
        Ending::Failed(why) => format!("it could not be started: {why}"),
    };
    // What the host wrote below says the same end, and speaks of a next event that may never start it.
    let is_the_agents =
        |line: &&String| !(line.starts_with("[the-loop] ") && line.contains(" ended ("));
    let screen: Vec<&str> = screen
        .iter()
        .filter(is_the_agents)
        .map(String::as_str)
        .collect();
    if screen.is_empty() {
        how
    } else {
        format!("{how}; its screen: {}", screen.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "a test fails by panicking")]

    use super::*;
    use crate::model::BootId;

    #[test]
    fn a_failed_agent_is_explained_by_its_end_and_its_screen() {
        let screen = [
            "no such model".to_owned(),
            "bye".to_owned(),
            "[the-loop] claude ended (exit 3) at 2026-11-30 14:05:41; the next event starts it again"
                .to_owned(),
            "[the-loop] is not what I am".to_owned(),
            "the last turn ended (max)".to_owned(),
        ];
        for (ending, screen, expected) in [
            (
                Ending::Code(3),
                &screen[2..3],
                "it ended at once with exit code 3",
            ),
            (
                Ending::Signal(6),
                &screen[..],
                "it was ended at once by signal 6; its screen: no such model | bye | \
                 [the-loop] is not what I am | the last turn ended (max)",
            ),
            (
                Ending::Failed("no such program".to_owned()),
                &screen[..0],
                "it could not be started: no such program",
            ),
        ] {
            assert_eq!(explain(&ending, screen), expected);
        }
    }

    #[test]
    fn what_still_runs_without_its_session_is_no_end() {
        let (host, harness) = (
            ProcessId { pid: 43, start: 7 },
            ProcessId { pid: 44, start: 7 },
        );
        let (runs, gone) = (Life::Running, Life::Gone);
        for (phase, of_host, of_harness, expected) in [
            (Phase::Starting, gone, gone, Some(Reached::Nothing)),
            (Phase::Starting, runs, gone, None),
            (Phase::Starting, Life::Unknown, gone, None),
            (
                Phase::Running { harness },
                gone,
                gone,
                Some(Reached::CutOff),
            ),
            (Phase::Running { harness }, gone, runs, None),
            (Phase::Running { harness }, runs, gone, None),
        ] {
            let record = Record {
                v: Record::VERSION,
                owner: OwnerId::mint(),
                host,
                boot: BootId("b".to_owned()),
                pane: "%1".parse().unwrap(),
                started_ms: None,
                phase: phase.clone(),
            };
            let life = |process: &ProcessId| {
                if *process == host {
                    of_host
                } else {
                    of_harness
                }
            };
            let reached = match recorded_end(&record, Duration::ZERO, life) {
                Ran::Failed { reached, .. } => Some(reached),
                Ran::Unresolved(_) => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(reached, expected, "{phase:?} {of_host:?} {of_harness:?}");
        }
    }
}
