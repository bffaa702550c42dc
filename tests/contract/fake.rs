//! The double, with programs that are values.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use the_loop::clock::SystemClock;
use the_loop::model::{OwnerId, PaneId, TmuxSocket};
use the_loop::runner::OptionName;

use crate::fake_tmux::{Client, FakeTmux, Program, Programs};
use crate::stage::{Made, Manners, Stage};
use crate::tmux::PATIENCE;

/// Recorders and sleepers, by their pids.
#[derive(Default)]
struct Recorders {
    last_pid: i32,
    labels: HashMap<i32, String>,
    recorded: Arc<Mutex<HashMap<String, Vec<u8>>>>,
}

impl Recorders {
    fn pid(&mut self) -> i32 {
        self.last_pid += 1;
        1_000 + self.last_pid
    }
}

impl Programs for Recorders {
    fn start(&mut self, argv: &[OsString]) -> Program {
        let argv: Vec<&str> = argv.iter().map(|word| word.to_str().unwrap()).collect();
        let pid = self.pid();
        let mut recorded = self.recorded.lock().unwrap();
        let bracketed = match argv[..] {
            ["recorder", label, manners] => {
                self.labels.insert(pid, label.to_owned());
                recorded.insert(label.to_owned(), Vec::new());
                manners == "Brackets"
            }
            ["arguments", label, ref further @ ..] => {
                let text: String = further.iter().map(|word| format!("{word}\n")).collect();
                recorded.insert(label.to_owned(), text.into_bytes());
                false
            }
            ["sleep", ..] => false,
            _ => panic!("{argv:?}"),
        };
        Program {
            pid,
            name: argv[0].to_owned(),
            bracketed,
        }
    }

    fn start_server(&mut self) -> i32 {
        self.pid()
    }

    fn typed(&mut self, pid: i32, bytes: &[u8]) {
        if let Some(label) = self.labels.get(&pid) {
            let mut recorded = self.recorded.lock().unwrap();
            recorded.get_mut(label).unwrap().extend(bytes);
        }
    }

    fn hung_up(&mut self, pid: i32) {
        self.labels.remove(&pid);
    }

    fn screen(&self, _: i32) -> String {
        String::new()
    }
}

pub(crate) struct FakeStage {
    tmux: FakeTmux,
    recorded: Arc<Mutex<HashMap<String, Vec<u8>>>>,
}

impl FakeStage {
    pub(crate) fn new() -> Self {
        let recorders = Recorders::default();
        let recorded = Arc::clone(&recorders.recorded);
        let tmux = FakeTmux::new(recorders, Arc::new(SystemClock));
        let stage = Self { tmux, recorded };
        let TmuxSocket::Path(path) = stage.socket() else {
            unreachable!("it is a path")
        };
        let mut world = stage.tmux.world();
        let place = world.start_server(path);
        world.servers[place].exit_empty = false;
        drop(world);
        stage
    }

    pub(crate) fn set_owner(&self, made: &Made, owner: &OwnerId) {
        let mut world = self.tmux.world();
        let session = world.listening(&self.socket()).session_mut(&made.session);
        let name = OptionName::Owner.render();
        session.options.insert(name, owner.to_string());
    }

    pub(crate) fn leave_mode(&self, made: &Made) {
        let mut world = self.tmux.world();
        let server = world.listening(&self.socket());
        server.pane_mut(&made.pane).unwrap().modes = 0;
    }

    pub(crate) fn detach(&self, made: &Made) {
        let mut world = self.tmux.world();
        let session = world.listening(&self.socket()).session_mut(&made.session);
        session.clients.clear();
    }

    fn sleeper(&self) -> Program {
        let argv = ["sleep".into(), "600".into()];
        self.tmux.world().programs.start(&argv)
    }
}

impl Stage for FakeStage {
    type Tmux = FakeTmux;

    fn tmux(&self) -> &FakeTmux {
        &self.tmux
    }

    fn socket(&self) -> TmuxSocket {
        TmuxSocket::Path("/fake/socket".into())
    }

    fn other_socket(&self) -> TmuxSocket {
        TmuxSocket::Path("/fake/other".into())
    }

    fn recorder(&self, label: &str, manners: Manners) -> Vec<OsString> {
        ["recorder", label, &format!("{manners:?}")]
            .map(OsString::from)
            .into()
    }

    fn argument_recorder(&self, label: &str, further: &[&str]) -> Vec<OsString> {
        let words = ["arguments", label].into_iter();
        words
            .chain(further.iter().copied())
            .map(OsString::from)
            .collect()
    }

    async fn ready(&self, label: &str) {
        assert!(self.recorded.lock().unwrap().contains_key(label));
    }

    async fn recorded(&self, label: &str, end: &str) -> String {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let text = self.so_far(label);
            if text.ends_with(end) {
                return text;
            }
            assert!(
                tokio::time::Instant::now() < give_up,
                "waited in vain for {end:?}: {text:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn so_far(&self, label: &str) -> String {
        let recorded = self.recorded.lock().unwrap();
        let bytes = recorded.get(label).cloned().unwrap_or_default();
        String::from_utf8(bytes).unwrap()
    }

    fn freeze(&self) {
        self.tmux.freeze(&self.socket());
    }

    fn thaw(&self) {
        self.tmux.thaw(&self.socket());
    }

    fn remove_socket(&self) {
        self.tmux.remove_socket(&self.socket());
    }

    async fn make_socket_again(&self) {
        let first = self.tmux.world().servers[0].pid;
        self.tmux.make_socket_again(first);
    }

    fn kill_server(&self) {
        self.tmux.kill_server(&self.socket());
    }

    async fn end(&self, made: &Made) {
        self.tmux.program_ended(made.pid);
    }

    fn note_end(&self, made: &Made) {
        self.tmux
            .note_exit(&self.socket(), &made.pane, made.pid, "code:3");
    }

    fn persons_pane(&self, made: &Made) -> PaneId {
        let sleeper = self.sleeper();
        let mut world = self.tmux.world();
        let server = world.listening(&self.socket());
        server.split(made.name.as_str(), sleeper)
    }

    fn copy_mode(&self, made: &Made) {
        let mut world = self.tmux.world();
        let server = world.listening(&self.socket());
        server.pane_mut(&made.pane).unwrap().modes = 1;
    }

    fn input_off(&self, made: &Made) {
        let mut world = self.tmux.world();
        let server = world.listening(&self.socket());
        server.pane_mut(&made.pane).unwrap().input_off = true;
    }

    async fn attach(&self, made: &Made, read_only: bool) {
        let mut world = self.tmux.world();
        let server = world.listening(&self.socket());
        let session = server.session_mut(&made.session);
        session.clients.push(Client { read_only });
    }
}
