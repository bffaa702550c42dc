//! A double of the worst kind: every name exists and lives, and everything succeeds.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;

use the_loop::model::{PaneId, TmuxSocket};
use the_loop::runner::{
    Answer, Field, Invocation, Listener, Marker, TmuxCommand, TmuxServer, Unanswered,
};

use crate::stage::{Made, Manners, Stage};

#[derive(Default)]
pub(crate) struct Liar {
    typed: Mutex<String>,
}

/// Tells whether a case sees nothing wrong.
pub(crate) fn passes(
    case: impl for<'s> FnOnce(&'s Liar) -> std::pin::Pin<Box<dyn Future<Output = ()> + 's>>,
) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let liar = Liar::default();
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(case(&liar)))).is_ok()
}

fn lie(field: Field) -> &'static str {
    match field {
        Field::SessionId => "$1",
        Field::SessionName => "loop-github-o--r-1",
        Field::PaneId => "%1",
        Field::PanePid => "1001",
        Field::PaneInFront | Field::Hosted => "1",
        _ => "0",
    }
}

impl Liar {
    fn print(&self, command: &TmuxCommand, input: &str, output: &mut String) {
        let (marker, fields) = match command {
            TmuxCommand::NewSession { print, .. } => (Marker::Made, print),
            TmuxCommand::DisplayMessage { marker, fields, .. } => (*marker, fields),
            TmuxCommand::ListPanes(fields) => (Marker::Pane, fields),
            TmuxCommand::ListClients { fields, .. } => (Marker::Client, fields),
            TmuxCommand::IfShell { then, .. } => {
                return then
                    .iter()
                    .for_each(|command| self.print(command, input, output));
            }
            TmuxCommand::PasteBuffer { .. } => {
                return self.typed.lock().unwrap().push_str(input);
            }
            TmuxCommand::SendEnter(_) => return self.typed.lock().unwrap().push('\r'),
            _ => return,
        };
        output.push_str(marker.as_str());
        for field in fields {
            output.push('|');
            output.push_str(lie(*field));
        }
        output.push('\n');
    }
}

impl TmuxServer for Liar {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        let mut output = String::new();
        let input = invocation.input.as_deref().unwrap_or_default();
        for command in &invocation.commands {
            self.print(command, input, &mut output);
        }
        Ok(Answer {
            status: 0,
            output,
            words: String::new(),
            listener: Listener::Present,
        })
    }

    async fn version(&self) -> Result<String, Unanswered> {
        Ok("tmux 3.3a".to_owned())
    }

    fn path_of(&self, _: &TmuxSocket) -> PathBuf {
        "/nowhere".into()
    }
}

impl Stage for Liar {
    type Tmux = Self;

    fn tmux(&self) -> &Self {
        self
    }

    fn socket(&self) -> TmuxSocket {
        TmuxSocket::Default
    }

    fn other_socket(&self) -> TmuxSocket {
        TmuxSocket::Default
    }

    fn recorder(&self, _: &str, _: Manners) -> Vec<OsString> {
        Vec::new()
    }

    fn argument_recorder(&self, _: &str, _: &[&str]) -> Vec<OsString> {
        Vec::new()
    }

    async fn ready(&self, _: &str) {}

    async fn recorded(&self, _: &str, end: &str) -> String {
        let typed = self.typed.lock().unwrap().clone();
        assert!(typed.ends_with(end), "{end:?} never comes");
        typed
    }

    fn so_far(&self, _: &str) -> String {
        self.typed.lock().unwrap().clone()
    }

    fn freeze(&self) {}

    fn thaw(&self) {}

    fn remove_socket(&self) {}

    async fn make_socket_again(&self) {}

    fn kill_server(&self) {}

    async fn end(&self, _: &Made) {}

    fn note_end(&self, _: &Made) {}

    fn persons_pane(&self, made: &Made) -> PaneId {
        made.pane.clone()
    }

    fn copy_mode(&self, _: &Made) {}

    fn input_off(&self, _: &Made) {}

    async fn attach(&self, _: &Made, _: bool) {}
}
