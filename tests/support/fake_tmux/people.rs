//! What people do in their tmux.

use super::server::Session;
use super::{Client, FakeTmux, Program};

impl FakeTmux {
    /// Somebody scrolls in the pane of a program, or all go back to its end.
    pub(crate) fn scroll(&self, pid: Option<i32>) {
        let mut world = self.world();
        let sessions = world.servers.iter_mut().flat_map(|it| &mut it.sessions);
        for pane in sessions.flat_map(|session| &mut session.panes) {
            pane.modes = u32::from(Some(pane.program.pid) == pid);
        }
    }

    /// Somebody looks at the session that a program runs in.
    pub(crate) fn look_on(&self, pid: i32, client: Client) {
        self.in_session_of(pid, |session| session.clients.push(client));
    }

    /// Nobody looks at any session.
    pub(crate) fn look_away(&self) {
        let mut world = self.world();
        let sessions = world.servers.iter_mut().flat_map(|it| &mut it.sessions);
        sessions.for_each(|session| session.clients.clear());
    }

    /// Somebody splits a pane off, beside that of a program.
    pub(crate) fn split_beside(&self, pid: i32, program: Program) {
        let mut name = None;
        self.in_session_of(pid, |session| name = Some(session.name.clone()));
        let mut world = self.world();
        let holds = |session: &Session| session.panes.iter().any(|pane| pane.program.pid == pid);
        let mut servers = world.servers.iter_mut();
        let server = servers.find(|server| server.sessions.iter().any(holds));
        if let (Some(server), Some(name)) = (server, name) {
            server.split(&name, program);
        }
    }

    fn in_session_of(&self, pid: i32, act: impl FnOnce(&mut Session)) {
        let mut world = self.world();
        let mut sessions = world.servers.iter_mut().flat_map(|it| &mut it.sessions);
        let holds = |session: &&mut Session| session.panes.iter().any(|p| p.program.pid == pid);
        if let Some(session) = sessions.find(holds) {
            act(session);
        }
    }
}
