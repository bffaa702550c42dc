//! Which servers are silent, so that one that hangs starves nobody.
//!
//! After two unanswered calls in a row a server is silent: it gets one question now and then, and
//! everything else is answered for it at once. Its first answer ends the silence.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::server::{Answer, Invocation, Unanswered};

/// How many unanswered calls make a server silent.
const PATIENCE: u32 = 2;

/// The bookkeeping of one runner, by the path of the socket.
#[derive(Debug)]
pub(super) struct Silence {
    between_questions: Duration,
    servers: Mutex<HashMap<PathBuf, Quiet>>,
}

#[derive(Debug, Clone, Copy)]
struct Quiet {
    unanswered: u32,
    next: Instant,
}

impl Silence {
    pub(super) fn new(between_questions: Duration) -> Self {
        Self {
            between_questions,
            servers: Mutex::default(),
        }
    }

    /// Tells whether the server counts as silent.
    pub(super) fn is_silent(&self, socket: &PathBuf) -> bool {
        self.with(|servers| {
            servers
                .get(socket)
                .is_some_and(|quiet| quiet.unanswered >= PATIENCE)
        })
    }

    /// Lets a call through, or answers it: a silent server is asked one question per period.
    pub(super) fn admit(&self, socket: &PathBuf, call: &Invocation) -> Result<(), Unanswered> {
        let now = Instant::now();
        self.with(|servers| match servers.get_mut(socket) {
            Some(quiet) if quiet.unanswered >= PATIENCE => {
                if call.is_question() && now >= quiet.next {
                    quiet.next = now + self.between_questions;
                    return Ok(());
                }
                Err(Unanswered::Silent {
                    next: quiet.next.saturating_duration_since(now),
                })
            }
            _ => Ok(()),
        })
    }

    /// Notes how a call went; only a time-out is silence, a missing program is not.
    pub(super) fn note(&self, socket: &PathBuf, answer: &Result<Answer, Unanswered>) {
        let next = Instant::now() + self.between_questions;
        self.with(|servers| match answer {
            Ok(_) => {
                servers.remove(socket);
            }
            Err(Unanswered::TimedOut { .. }) => {
                let quiet = servers.entry(socket.clone()).or_insert(Quiet {
                    unanswered: 0,
                    next,
                });
                quiet.unanswered = quiet.unanswered.saturating_add(1);
                quiet.next = next;
            }
            Err(_) => {}
        });
    }

    fn with<R>(&self, work: impl FnOnce(&mut HashMap<PathBuf, Quiet>) -> R) -> R {
        // Nothing panics while the lock is held; were it poisoned, the map would still be whole.
        let mut servers = self
            .servers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&mut servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TmuxSocket;
    use crate::runner::command::TmuxCommand;
    use crate::runner::server::{Listener, Start};

    const PERIOD: Duration = Duration::from_secs(10);

    fn call(commands: Vec<TmuxCommand>) -> Invocation {
        Invocation {
            socket: TmuxSocket::Default,
            start: Start::Never,
            commands,
            input: None,
            folder: None,
            deadline: PERIOD,
        }
    }

    fn question() -> Invocation {
        call(vec![TmuxCommand::ListPanes(Vec::new())])
    }

    fn mutation() -> Invocation {
        call(vec![TmuxCommand::SendEnter("%1".parse().unwrap())])
    }

    fn timed_out() -> Result<Answer, Unanswered> {
        Err(Unanswered::TimedOut { after: PERIOD })
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_gets_one_question_per_period_and_nothing_else() {
        let silence = Silence::new(PERIOD);
        let socket = PathBuf::from("/s");
        silence.note(&socket, &timed_out());
        assert!(silence.admit(&socket, &mutation()).is_ok());
        silence.note(&socket, &timed_out());

        assert!(silence.is_silent(&socket));
        assert!(silence.admit(&socket, &question()).is_err());
        tokio::time::advance(PERIOD).await;
        assert!(silence.admit(&socket, &mutation()).is_err());
        assert!(silence.admit(&socket, &question()).is_ok());
        assert!(silence.admit(&socket, &question()).is_err());
        assert!(silence.admit(&PathBuf::from("/other"), &mutation()).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_answer_ends_the_silence() {
        let silence = Silence::new(PERIOD);
        let socket = PathBuf::from("/s");
        silence.note(&socket, &timed_out());
        silence.note(&socket, &timed_out());
        let answer = Answer {
            status: 1,
            output: String::new(),
            words: "no".to_owned(),
            listener: Listener::Present,
        };

        silence.note(&socket, &Ok(answer));

        assert!(!silence.is_silent(&socket));
        assert!(silence.admit(&socket, &mutation()).is_ok());
    }
}
