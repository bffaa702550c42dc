//! A real tmux whose calls go as told, and what tells one call from another.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use the_loop::model::TmuxSocket;
use the_loop::runner::{
    Answer, Invocation, Listener, RealTmux, TmuxCommand, TmuxServer, Unanswered,
};

/// What becomes of one call of tmux.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// It goes well.
    Served,
    /// tmux never sees it, and nobody answers.
    Lost,
    /// tmux does it, but its answer never arrives.
    AnswerLost,
    /// tmux sees it once it is healed, and answers then.
    Hangs,
    /// Nobody answers, and tmux does it so much later.
    Late(Duration),
    /// tmux answers this, whatever it would have said.
    Said(Answer),
}

pub(super) type Fates = Arc<Mutex<Box<dyn FnMut(&Invocation) -> Fate + Send>>>;

/// Real tmux whose calls go as told.
#[derive(Clone)]
pub(crate) struct TouchyTmux {
    pub(super) real: RealTmux,
    pub(super) fates: Fates,
}

fn timed_out() -> Unanswered {
    Unanswered::TimedOut {
        after: Duration::from_millis(1),
    }
}

impl TmuxServer for TouchyTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let mut fate = (self.fates.lock().unwrap())(invocation);
        while matches!(fate, Fate::Hangs) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            fate = (self.fates.lock().unwrap())(invocation);
        }
        match fate {
            Fate::Served | Fate::Hangs => self.real.call(invocation).await,
            Fate::Lost => Err(timed_out()),
            Fate::AnswerLost => {
                self.real.call(invocation).await?;
                Err(timed_out())
            }
            Fate::Late(pause) => {
                let (real, invocation) = (self.real.clone(), invocation.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    real.call(&invocation).await.ok();
                });
                Err(timed_out())
            }
            Fate::Said(answer) => Ok(answer),
        }
    }

    async fn version(&self) -> Result<String, Unanswered> {
        self.real.version().await
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        self.real.path_of(socket)
    }
}

/// tmux's refusal, in these words.
pub(crate) fn refusal(words: &str) -> Fate {
    Fate::Said(Answer {
        status: 1,
        output: String::new(),
        words: words.to_owned(),
        listener: Listener::Present,
    })
}

/// What tmux's client says where no server is.
pub(crate) fn no_server() -> Fate {
    Fate::Said(Answer {
        status: 1,
        output: String::new(),
        words: "no server running on /somewhere".to_owned(),
        listener: Listener::Absent,
    })
}

/// Whether a call makes a session.
pub(crate) fn is_creation(call: &Invocation) -> bool {
    let creates = |command: &TmuxCommand| matches!(command, TmuxCommand::NewSession { .. });
    call.commands.iter().any(creates)
}

/// Whether a call pastes a text.
pub(crate) fn is_paste(call: &Invocation) -> bool {
    let loads = |command: &TmuxCommand| matches!(command, TmuxCommand::LoadBuffer(_));
    call.commands.iter().any(loads)
}

/// Whether a call ends a session.
pub(crate) fn is_clearing(call: &Invocation) -> bool {
    fn kills(command: &TmuxCommand) -> bool {
        match command {
            TmuxCommand::KillSession(_) => true,
            TmuxCommand::IfShell { then, .. } => then.iter().any(kills),
            _ => false,
        }
    }
    call.commands.iter().any(kills)
}

/// Whether a call looks at all panes.
pub(crate) fn is_look(call: &Invocation) -> bool {
    let lists = |command: &TmuxCommand| matches!(command, TmuxCommand::ListPanes(_));
    call.commands.iter().any(lists)
}
