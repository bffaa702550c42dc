//! What one server holds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use the_loop::model::{PaneId, TmuxSessionId};
use the_loop::runner::Target;

use super::{Program, Waiting};

/// Options of ours, by their whole names.
pub(crate) type Options = BTreeMap<String, String>;

/// One server.
pub(crate) struct Server {
    pub(crate) pid: i32,
    pub(crate) path: PathBuf,
    pub(crate) alive: bool,
    pub(crate) frozen: bool,
    pub(crate) exit_empty: bool,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) buffers: BTreeMap<String, String>,
    pub(crate) options: Options,
    next_session: u64,
    next_pane: u64,
}

/// One session, with a single window.
pub(crate) struct Session {
    pub(crate) id: TmuxSessionId,
    pub(crate) name: String,
    pub(crate) options: Options,
    /// Options of the window, tmux's own.
    pub(crate) window: BTreeMap<&'static str, &'static str>,
    pub(crate) panes: Vec<Pane>,
    pub(crate) clients: Vec<Client>,
}

/// One pane.
pub(crate) struct Pane {
    pub(crate) id: PaneId,
    pub(crate) program: Program,
    pub(crate) dead: bool,
    pub(crate) modes: u32,
    pub(crate) input_off: bool,
    pub(crate) in_front: bool,
    pub(crate) options: Options,
}

/// One who looks at a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) read_only: bool,
}

/// What a target is: a session, and the pane in it that it names or shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) session: usize,
    /// Where the pane is: mostly there, but one is found by its id wherever it is.
    pub(crate) home: usize,
    pub(crate) pane: usize,
}

impl Server {
    pub(crate) fn new(pid: i32, path: PathBuf) -> Self {
        Self {
            pid,
            path,
            alive: true,
            frozen: false,
            exit_empty: true,
            waiting: Vec::new(),
            sessions: Vec::new(),
            buffers: BTreeMap::new(),
            options: Options::new(),
            next_session: 0,
            next_pane: 0,
        }
    }

    /// Makes a session around a program and returns its place.
    pub(crate) fn add_session(&mut self, name: &str, program: Program) -> Found {
        let id = format!("${}", self.next_session);
        self.next_session += 1;
        let pane = self.new_pane(program);
        self.sessions.push(Session {
            id: id.parse().unwrap(),
            name: name.to_owned(),
            options: Options::new(),
            window: BTreeMap::new(),
            panes: vec![pane],
            clients: Vec::new(),
        });
        let session = self.sessions.len() - 1;
        Found {
            session,
            home: session,
            pane: 0,
        }
    }

    /// Splits a pane off, which comes to the front.
    pub(crate) fn split(&mut self, session: &str, program: Program) -> PaneId {
        let pane = self.new_pane(program);
        let id = pane.id.clone();
        let session = self.sessions.iter_mut().find(|s| s.name == session);
        let panes = &mut session.unwrap().panes;
        panes.iter_mut().for_each(|pane| pane.in_front = false);
        panes.push(pane);
        id
    }

    fn new_pane(&mut self, program: Program) -> Pane {
        let id = format!("%{}", self.next_pane);
        self.next_pane += 1;
        Pane {
            id: id.parse().unwrap(),
            program,
            dead: false,
            modes: 0,
            input_off: false,
            in_front: true,
            options: Options::new(),
        }
    }

    pub(crate) fn find(&self, target: &Target) -> Option<Found> {
        let by = |is: &dyn Fn(&Session) -> bool| {
            let session = self.sessions.iter().position(is)?;
            let front = |pane: &Pane| pane.in_front;
            let pane = self.sessions[session].panes.iter().position(front)?;
            Some(Found {
                session,
                home: session,
                pane,
            })
        };
        match target {
            Target::Name(name) => by(&|session| session.name == name.as_str()),
            Target::Session(id) => by(&|session| session.id == *id),
            Target::Pane(session, pane) => {
                let front = by(&|it| it.id == *session)?;
                Some(self.find_pane(pane).map_or(front, |named| Found {
                    session: front.session,
                    ..named
                }))
            }
        }
    }

    pub(crate) fn find_pane(&self, id: &PaneId) -> Option<Found> {
        self.sessions.iter().enumerate().find_map(|(session, it)| {
            let pane = it.panes.iter().position(|pane| pane.id == *id)?;
            Some(Found {
                session,
                home: session,
                pane,
            })
        })
    }

    pub(crate) fn pane(&self, found: Found) -> &Pane {
        &self.sessions[found.home].panes[found.pane]
    }

    pub(crate) fn found_mut(&mut self, found: Found) -> &mut Pane {
        &mut self.sessions[found.home].panes[found.pane]
    }

    pub(crate) fn session_mut(&mut self, id: &TmuxSessionId) -> &mut Session {
        let session = self.sessions.iter_mut().find(|s| s.id == *id);
        session.unwrap()
    }

    pub(crate) fn pane_mut(&mut self, id: &PaneId) -> Option<&mut Pane> {
        let mut panes = self.sessions.iter_mut().flat_map(|s| s.panes.iter_mut());
        panes.find(|pane| pane.id == *id)
    }

    /// Notes the end of a pane's process; tells whether it was one of this server's.
    pub(crate) fn program_ended(&mut self, pid: i32) -> bool {
        let mut ours = false;
        for session in &mut self.sessions {
            let keeps = session.window.get("remain-on-exit") == Some(&"on");
            for pane in &mut session.panes {
                if pane.program.pid == pid && !pane.dead {
                    pane.dead = true;
                    ours = true;
                }
            }
            if ours && !keeps {
                session.panes.retain(|pane| pane.program.pid != pid);
                if let Some(front) = session.panes.last_mut() {
                    front.in_front = true;
                }
            }
        }
        self.sessions.retain(|session| !session.panes.is_empty());
        ours
    }
}
