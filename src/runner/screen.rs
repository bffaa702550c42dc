//! Reading what is on an agent's screen.

use crate::model::TmuxSocket;

use super::command::{Target, TmuxCommand, pane_of};
use super::field::{Field, Marker};
use super::parse::fields_of;
use super::real::{Access, RealTmux};
use super::server::{Answer, Listener, TmuxServer, Unanswered};
use super::spawn::SpawnedPane;
use super::{Address, Machine, TmuxRunner};
use crate::process::Command;

impl<T: TmuxServer, M: Machine> TmuxRunner<T, M> {
    /// Returns the screen and the history of the agent's pane; none when it is gone.
    ///
    /// # Errors
    /// When tmux does not answer.
    pub async fn capture(&self, address: &Address) -> Result<Option<String>, Unanswered> {
        let (pane, pid) = match &address.target {
            // After a restart of the machine both its pane's id and its pid may be another one's.
            Some(target) if target.boot != self.machine.boot() => return Ok(None),
            Some(target) => (pane_of(target), Some(target.host.pid)),
            None => (Target::Name(address.name.clone()), None),
        };
        self.capture_pane(self.socket_of(address), pane, pid).await
    }

    pub(super) async fn screen_of(&self, pane: &SpawnedPane, host: i32) -> Option<String> {
        let socket = TmuxSocket::Path(pane.socket.clone());
        let target = Target::Pane(pane.session_id.clone(), pane.pane.clone());
        let screen = self.capture_pane(&socket, target, Some(host)).await;
        screen.ok().flatten()
    }

    /// Pane ids begin anew with every server, so the pane's process is compared.
    async fn capture_pane(
        &self,
        socket: &TmuxSocket,
        pane: Target,
        pid: Option<i32>,
    ) -> Result<Option<String>, Unanswered> {
        let question = vec![
            TmuxCommand::DisplayMessage {
                target: Some(pane.clone()),
                marker: Marker::Is,
                fields: vec![Field::PanePid],
            },
            TmuxCommand::CapturePane(pane),
        ];
        let answer = self.ask(socket, question).await?;
        if answer.listener == Listener::Absent {
            return Ok(None);
        }
        Ok(captured(&answer, pid))
    }
}

fn captured(answer: &Answer, pid: Option<i32>) -> Option<String> {
    let shown: i32 = fields_of(answer, Marker::Is, 1)
        .next()?
        .first()?
        .parse()
        .ok()?;
    if answer.status != 0 || pid.is_some_and(|pid| pid != shown) {
        return None;
    }
    let (_, screen) = answer.output.split_once('\n')?;
    Some(screen.to_owned())
}

/// Returns the last lines that are not blank, as plain text.
#[must_use]
pub fn last_lines(screen: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = screen
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let skipped = lines.len().saturating_sub(count);
    lines[skipped..]
        .iter()
        .map(|line| crate::model::text::clean(line))
        .collect()
}

impl<M: Machine> TmuxRunner<RealTmux, M> {
    /// Returns the command with which a person attaches to the session.
    ///
    /// By its name, which is its work item's alone: ids begin anew with every server, so a recorded one
    /// may be another item's session by now.
    #[must_use]
    pub fn attach_command(&self, address: &Address, access: Access) -> Command {
        let socket = self.socket_of(address);
        self.tmux.attach(socket, &address.name, access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_shown_only_of_the_process_that_was_meant() {
        let answer = |status| Answer {
            status,
            output: "loop-is|43\nhello\n".to_owned(),
            words: String::new(),
            listener: Listener::Present,
        };

        assert_eq!(captured(&answer(0), Some(43)).unwrap(), "hello\n");
        assert_eq!(captured(&answer(0), None).unwrap(), "hello\n");
        assert_eq!(captured(&answer(0), Some(44)), None);
        assert_eq!(captured(&answer(1), Some(43)), None);
    }

    #[test]
    fn blank_lines_below_the_text_explain_nothing() {
        let screen = "one\n\ntwo  \nthree\n\n\n";

        assert_eq!(last_lines(screen, 2), ["two", "three"]);
        assert_eq!(last_lines("", 2), Vec::<String>::new());
    }
}
