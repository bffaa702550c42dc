//! Telling the tmux server that the harness has ended, through an option of the pane.
//!
//! The option is the guard inside tmux against pasting into a pane without a harness; the record is
//! the truth. So it is asked for without waiting, and repeated until the server took it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::WaitStatus;

use super::retry::Retry;
use crate::model::{Ending, PaneId, Ticket, TmuxSocket};
use crate::process::child::{self, Child, Environment, Streams};
use crate::process::identity;
use crate::process::signal::{Signal, signal_group};

/// How long tmux may take before its client is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The wish to have the option set.
pub(super) struct Report {
    tmux: PathBuf,
    args: Vec<OsString>,
    stage: Stage,
    retry: Retry,
}

enum Stage {
    /// To be asked at this time.
    Due(Instant),
    /// A client asks; it is killed at this time.
    Asking { client: i32, until: Instant },
    /// A killed client was not reaped yet.
    Killed { client: i32 },
    /// tmux has it.
    Done,
}

impl Report {
    pub(super) fn new(ticket: &Ticket, pane: &PaneId, ending: &Ending) -> Self {
        Self {
            tmux: ticket.tmux.clone(),
            args: arguments(&ticket.socket, pane, identity::own_pid(), ending),
            stage: Stage::Due(Instant::now()),
            retry: Retry::new(),
        }
    }

    /// When [`Self::act`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Due(at) | Stage::Asking { until: at, .. } => Some(at),
            Stage::Killed { .. } | Stage::Done => None,
        }
    }

    /// Starts or kills a client, if its time has come.
    pub(super) fn act(&mut self) {
        let now = Instant::now();
        match self.stage {
            Stage::Due(at) if at <= now => self.ask(now),
            Stage::Asking { client, until } if until <= now => {
                // An unreaped child that leads its own group.
                signal_group(client, Signal::Kill).ok();
                self.stage = Stage::Killed { client };
            }
            _ => {}
        }
    }

    /// Takes the news of a child; it may be another's.
    pub(super) fn ended(&mut self, pid: i32, status: WaitStatus) {
        match self.stage {
            Stage::Asking { client, .. } | Stage::Killed { client } if client == pid => {
                if status.exit_status() == Some(0) {
                    self.stage = Stage::Done;
                } else if status.exited() || status.signaled() {
                    self.stage = Stage::Due(self.retry.next(Instant::now()));
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, now: Instant) {
        let started = child::start(Child {
            program: &self.tmux,
            args: self.args.clone(),
            env: Environment::Without(&["TMUX", "TMUX_PANE"]),
            streams: Streams::Null,
        });
        self.stage = match started {
            Ok(client) => Stage::Asking {
                client,
                until: now + PATIENCE,
            },
            Err(_) => Stage::Due(self.retry.next(now)),
        };
    }
}

/// Sets the option only if the pane is still this process's: pane ids begin again with every server.
fn arguments(socket: &TmuxSocket, pane: &PaneId, me: i32, ending: &Ending) -> Vec<OsString> {
    let mut args: Vec<OsString> = match socket {
        TmuxSocket::Default => vec!["-L".into(), "default".into()],
        TmuxSocket::Name(name) => vec!["-L".into(), name.into()],
        TmuxSocket::Path(path) => vec!["-S".into(), path.into()],
    };
    let guard = format!("#{{==:#{{pane_pid}},{me}}}");
    let set = format!("set-option -p -t {pane} @loop_exit \"{me} {ending}\"");
    args.extend(["if-shell", "-F", "-t"].map(OsString::from));
    args.extend([pane.to_string(), guard, set].map(OsString::from));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_set_only_on_the_pane_of_this_process_and_carries_no_text_of_others() {
        let args = arguments(
            &TmuxSocket::Name("x".to_owned()),
            &"%4".parse().unwrap(),
            77,
            &Ending::Failed("\" ; kill-server".to_owned()),
        );
        let expected = [
            "-L",
            "x",
            "if-shell",
            "-F",
            "-t",
            "%4",
            "#{==:#{pane_pid},77}",
            "set-option -p -t %4 @loop_exit \"77 failed\"",
        ];
        assert_eq!(args, expected);
    }
}
