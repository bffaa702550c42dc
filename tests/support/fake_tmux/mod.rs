//! A tmux that is a value: servers with sessions, panes, buffers and options, which do what the real
//! one was measured to do. It can be stopped, lose its socket and serve commands late.
//!
//! It answers only what `tests/contract` checks against the real tmux; anything else panics, so that
//! no test rests on a guess.

mod format;
mod people;
mod run;
mod server;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use the_loop::clock::Clock;
use the_loop::model::{PaneId, TmuxSocket};
use the_loop::runner::{
    Answer, Invocation, Listener, Start, TmuxCommand, TmuxServer, Unanswered, arguments,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

pub(crate) use server::Client;
use server::{Pane, Server};

/// How many clients wait for a stopped server; what later ones ask is lost with them.
const BACKLOG: usize = 129;

/// What runs in panes.
pub(crate) trait Programs: Send {
    /// Starts a program and tells how it behaves on a terminal.
    fn start(&mut self, argv: &[OsString]) -> Program;
    /// Starts a server.
    fn start_server(&mut self) -> i32;
    /// Learns that a server has ended.
    fn server_ended(&mut self, _pid: i32) {}
    /// Takes what is typed.
    fn typed(&mut self, pid: i32, bytes: &[u8]);
    /// Learns that its terminal is gone.
    fn hung_up(&mut self, pid: i32);
    /// Returns what it shows.
    fn screen(&self, pid: i32) -> String;
}

/// A program in a pane.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) pid: i32,
    /// Its name, as the terminal's foreground program.
    pub(crate) name: String,
    /// Whether it asked for brackets around what is pasted.
    pub(crate) bracketed: bool,
}

/// All servers of a machine, and who listens where.
pub(crate) struct World {
    pub(crate) servers: Vec<Server>,
    sockets: BTreeMap<PathBuf, File>,
    pub(crate) programs: Box<dyn Programs>,
    clock: Arc<dyn Clock>,
}

/// What lies at a socket's path.
#[derive(Debug, Clone, Copy)]
enum File {
    /// A server listens, the one with this place in the list.
    Listens(usize),
    /// The server that made it has ended: the file stays.
    Left,
}

/// One invocation that a stopped server has not read yet.
pub(crate) struct Waiting {
    invocation: Invocation,
    /// Gone once the client was killed.
    client: Option<oneshot::Sender<Answer>>,
}

/// The tmux of a test.
#[derive(Clone)]
pub(crate) struct FakeTmux(Arc<Mutex<World>>);

/// Who listens at the socket of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtSocket {
    Own,
    Another,
    Nobody,
}

impl FakeTmux {
    pub(crate) fn new(programs: impl Programs + 'static, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Mutex::new(World {
            servers: Vec::new(),
            sockets: BTreeMap::new(),
            programs: Box::new(programs),
            clock,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn path(socket: &TmuxSocket) -> PathBuf {
        match socket {
            TmuxSocket::Path(path) => path.clone(),
            TmuxSocket::Name(name) => format!("/tmp/tmux-0/{name}").into(),
            TmuxSocket::Default => "/tmp/tmux-0/default".into(),
        }
    }

    /// Stops the server that listens at the socket.
    pub(crate) fn freeze(&self, socket: &TmuxSocket) {
        self.world().listening(socket).frozen = true;
    }

    /// Lets it go on: what waited is done now, in order.
    pub(crate) fn thaw(&self, socket: &TmuxSocket) {
        let mut world = self.world();
        let place = world.place(&Self::path(socket)).unwrap();
        self.thaw_one(&mut world, place);
    }

    /// Lets every server go on, whether or not anybody can reach it.
    pub(crate) fn thaw_all(&self) {
        let mut world = self.world();
        for place in 0..world.servers.len() {
            if world.servers[place].alive {
                self.thaw_one(&mut world, place);
            }
        }
    }

    fn thaw_one(&self, world: &mut World, place: usize) {
        world.servers[place].frozen = false;
        for waiting in std::mem::take(&mut world.servers[place].waiting) {
            let alive = waiting.client.as_ref().is_some_and(|c| !c.is_closed());
            let reads = if alive { Reads::Input } else { Reads::Nothing };
            let answer = world.serve(self, place, &waiting.invocation, reads);
            if let Some(client) = waiting.client {
                client.send(answer).ok();
            }
        }
    }

    /// Removes the socket's file; the server lives on, unreachable.
    pub(crate) fn remove_socket(&self, socket: &TmuxSocket) {
        self.world().sockets.remove(&Self::path(socket));
    }

    /// Has the server with this pid make its socket again, as SIGUSR1 does; tells whether the signal
    /// is out of the world, which it is not while the server is stopped.
    pub(crate) fn make_socket_again(&self, pid: i32) -> bool {
        let mut world = self.world();
        let place = world.servers.iter().position(|s| s.pid == pid && s.alive);
        let Some(place) = place else { return true };
        if world.servers[place].frozen {
            return false;
        }
        let path = world.servers[place].path.clone();
        world.sockets.insert(path, File::Listens(place));
        true
    }

    /// Ends the server at once, with all that runs in it.
    pub(crate) fn kill_server(&self, socket: &TmuxSocket) {
        let mut world = self.world();
        let place = world.place(&Self::path(socket)).unwrap();
        world.end_server(place);
    }

    /// A person starts a server where no one listens, and keeps it.
    pub(crate) fn start_another(&self, socket: &TmuxSocket) {
        let mut world = self.world();
        let place = world.start_server(Self::path(socket));
        world.servers[place].exit_empty = false;
    }

    /// People end the servers that they have nothing in.
    pub(crate) fn end_unused(&self) {
        let mut world = self.world();
        for place in 0..world.servers.len() {
            world.servers[place].exit_empty = true;
            world.end_if_empty(place);
        }
    }

    /// Ends every server, as a machine does that goes down.
    pub(crate) fn kill_all(&self) {
        let mut world = self.world();
        for place in 0..world.servers.len() {
            if world.servers[place].alive {
                world.end_server(place);
            }
        }
    }

    /// Returns where a program's pane is.
    pub(crate) fn pane_of(&self, pid: i32) -> Option<(TmuxSocket, PaneId)> {
        let world = self.world();
        let living = world.servers.iter().filter(|server| server.alive);
        let mut panes = living.flat_map(|server| {
            let panes = server.sessions.iter().flat_map(|session| &session.panes);
            panes.map(|pane| (&server.path, pane))
        });
        let (path, pane) = panes.find(|(_, pane)| pane.program.pid == pid && !pane.dead)?;
        Some((TmuxSocket::Path(path.clone()), pane.id.clone()))
    }

    /// Tells who listens where the server of a program's pane should; nothing where it has no pane.
    pub(crate) fn at_socket_of(&self, pid: i32) -> Option<AtSocket> {
        let world = self.world();
        let holds = |server: &Server| {
            let mut panes = server.sessions.iter().flat_map(|session| &session.panes);
            server.alive && panes.any(|pane| pane.program.pid == pid && !pane.dead)
        };
        let own = world.servers.iter().position(holds)?;
        Some(match world.place(&world.servers[own].path) {
            Some(place) if place == own => AtSocket::Own,
            Some(_) => AtSocket::Another,
            None => AtSocket::Nobody,
        })
    }

    /// Tells whether somebody listens there and is not stopped.
    pub(crate) fn answers(&self, socket: &TmuxSocket) -> bool {
        let world = self.world();
        let place = world.place(&Self::path(socket));
        place.is_some_and(|place| !world.servers[place].frozen)
    }

    /// Tells whether somebody listens there.
    pub(crate) fn listens(&self, socket: &TmuxSocket) -> bool {
        self.world().place(&Self::path(socket)).is_some()
    }

    /// Tells whether this server lives, and another one listens at the socket.
    pub(crate) fn is_displaced(&self, socket: &TmuxSocket, pid: i32) -> bool {
        let world = self.world();
        let lives = world.servers.iter().any(|it| it.alive && it.pid == pid);
        let listening = world.place(&Self::path(socket));
        lives && listening.is_some_and(|place| world.servers[place].pid != pid)
    }

    /// Notes that the process of a pane has ended.
    pub(crate) fn program_ended(&self, pid: i32) {
        let mut world = self.world();
        for place in 0..world.servers.len() {
            if world.servers[place].program_ended(pid) {
                world.end_if_empty(place);
            }
        }
    }

    /// Sets an option of a pane, as a host does.
    pub(crate) fn set_pane_option(&self, socket: &TmuxSocket, pane: &PaneId, name: &str, to: &str) {
        let mut world = self.world();
        // Another server may listen by now, which has no such pane.
        if let Some(pane) = world.listening(socket).pane_mut(pane) {
            pane.options.insert(name.to_owned(), to.to_owned());
        }
    }

    fn submit(&self, invocation: &Invocation) -> Result<Answer, oneshot::Receiver<Answer>> {
        let mut world = self.world();
        let path = Self::path(&invocation.socket);
        let place = match world.place(&path) {
            Some(place) => place,
            None if invocation.start == Start::Allowed && makes_a_session(invocation) => {
                world.start_server(path)
            }
            None => return Ok(world.nobody(&path)),
        };
        if !world.servers[place].frozen {
            return Ok(world.serve(self, place, invocation, Reads::Input));
        }
        let (client, answer) = oneshot::channel();
        let waiting = &mut world.servers[place].waiting;
        if waiting.len() < BACKLOG {
            waiting.push(Waiting {
                invocation: invocation.clone(),
                client: Some(client),
            });
        }
        Err(answer)
    }

    fn do_later(&self, place: usize, delay: std::time::Duration, commands: Vec<TmuxCommand>) {
        let tmux = self.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            let mut world = tmux.world();
            let server = &mut world.servers[place];
            let invocation = Invocation {
                socket: TmuxSocket::Path(server.path.clone()),
                start: Start::Never,
                commands,
                input: None,
                folder: None,
                deadline: delay,
            };
            if server.alive && server.frozen {
                server.waiting.push(Waiting {
                    invocation,
                    client: None,
                });
            } else if server.alive {
                world.serve(&tmux, place, &invocation, Reads::Nothing);
            }
        });
    }
}

fn makes_a_session(invocation: &Invocation) -> bool {
    let made = |command: &TmuxCommand| matches!(command, TmuxCommand::NewSession { .. });
    invocation.commands.iter().any(made)
}

/// Whether the client still lives to hand over its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Input,
    Nothing,
}

impl World {
    fn place(&self, path: &PathBuf) -> Option<usize> {
        match self.sockets.get(path) {
            Some(File::Listens(place)) => Some(*place),
            Some(File::Left) | None => None,
        }
    }

    /// The server that listens at a socket.
    pub(crate) fn listening(&mut self, socket: &TmuxSocket) -> &mut Server {
        let place = self.place(&FakeTmux::path(socket)).unwrap();
        &mut self.servers[place]
    }

    pub(crate) fn start_server(&mut self, path: PathBuf) -> usize {
        let pid = self.programs.start_server();
        self.servers.push(Server::new(pid, path.clone()));
        let place = self.servers.len() - 1;
        self.sockets.insert(path, File::Listens(place));
        place
    }

    fn nobody(&self, path: &PathBuf) -> Answer {
        let shown = path.display();
        let words = match self.sockets.get(path) {
            Some(_) => format!("no server running on {shown}"),
            None => format!("error connecting to {shown} (No such file or directory)"),
        };
        Answer {
            status: 1,
            output: String::new(),
            words,
            listener: Listener::Absent,
        }
    }

    fn end_server(&mut self, place: usize) {
        let server = &mut self.servers[place];
        server.alive = false;
        server.waiting.clear();
        let panes: Vec<Pane> = std::mem::take(&mut server.sessions)
            .into_iter()
            .flat_map(|session| session.panes)
            .collect();
        if let Some(File::Listens(at)) = self.sockets.get(&self.servers[place].path)
            && *at == place
        {
            let path = self.servers[place].path.clone();
            self.sockets.insert(path, File::Left);
        }
        let pid = self.servers[place].pid;
        for pane in panes.iter().filter(|pane| !pane.dead) {
            self.programs.hung_up(pane.program.pid);
        }
        self.programs.server_ended(pid);
    }

    /// A server ends with its last session.
    fn end_if_empty(&mut self, place: usize) {
        let server = &self.servers[place];
        if server.alive && server.exit_empty && server.sessions.is_empty() {
            self.end_server(place);
        }
    }

    fn serve(
        &mut self,
        tmux: &FakeTmux,
        place: usize,
        invocation: &Invocation,
        reads: Reads,
    ) -> Answer {
        let input = match reads {
            Reads::Input => Some(invocation.input.clone().unwrap_or_default()),
            Reads::Nothing => None,
        };
        let mut run = run::Run {
            server: &mut self.servers[place],
            programs: &mut *self.programs,
            now: self.clock.now(),
            input,
            output: String::new(),
            words: String::new(),
            later: Vec::new(),
        };
        let failed = run.all(&invocation.commands).is_err();
        let (output, words, later) = (run.output, run.words, run.later);
        for (delay, commands) in later {
            tmux.do_later(place, delay, commands);
        }
        if !self.servers[place].alive {
            self.end_server(place);
            return Answer {
                status: 1,
                output,
                words: "server exited unexpectedly".to_owned(),
                listener: Listener::Absent,
            };
        }
        self.end_if_empty(place);
        let silent = failed && output.is_empty();
        let gone = self.place(&FakeTmux::path(&invocation.socket)).is_none();
        Answer {
            status: i32::from(failed),
            output,
            words,
            listener: if silent && gone {
                Listener::Absent
            } else {
                Listener::Present
            },
        }
    }
}

impl TmuxServer for FakeTmux {
    async fn call(&self, invocation: &Invocation) -> Result<Answer, Unanswered> {
        if let Err(error) = arguments(&invocation.commands) {
            return Err(Unanswered::NotRun {
                reason: error.to_string(),
            });
        }
        let answer = match self.submit(invocation) {
            Ok(answer) => return Ok(answer),
            Err(answer) => answer,
        };
        match timeout(invocation.deadline, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Ok(Answer {
                status: 1,
                output: String::new(),
                words: "server exited unexpectedly".to_owned(),
                listener: Listener::Absent,
            }),
            Err(_) => Err(Unanswered::TimedOut {
                after: invocation.deadline,
            }),
        }
    }

    async fn version(&self) -> Result<String, Unanswered> {
        Ok("tmux 3.3a".to_owned())
    }

    fn path_of(&self, socket: &TmuxSocket) -> PathBuf {
        Self::path(socket)
    }
}
