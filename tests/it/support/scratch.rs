//! A world of its own for one test.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use the_loop::process::find_program;

use super::processes::{self, Found};
use super::wait::{poll, wait_until};

/// How long what belongs to a world may take to end once its tmux server is gone.
const ENDING: Duration = Duration::from_secs(5);

/// Folders, environment and tmux server of one test.
///
/// Dropping it ends the server and fails the test when anything that belongs to the world still
/// runs afterwards: a daemon, a host, an agent.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    root: PathBuf,
    socket: String,
    patience: Duration,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        // The path of a socket must stay below 104 bytes, so the names in it are short.
        let folder = tempfile::Builder::new().prefix("loop-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["bin", "home", "state", "tmux", "work"] {
            let mut builder = fs::DirBuilder::new();
            builder.mode(0o700).create(root.join(name)).unwrap();
        }
        if let Some(tmux) = std::env::var_os("TMUX_BIN") {
            symlink(tmux, root.join("bin/tmux")).unwrap();
        }
        let socket = format!("t{}", uuid::Uuid::new_v4().simple());
        Self {
            folder,
            root,
            socket,
            patience: ENDING,
        }
    }

    /// Returns a path in the world.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the folder that a config's `state.root` names.
    pub(crate) fn state_root(&self) -> PathBuf {
        self.path("state")
    }

    /// Returns the name of the world's tmux server, as `-L` takes it.
    pub(crate) fn tmux_socket(&self) -> &str {
        &self.socket
    }

    /// Returns the whole environment of a program in this world.
    pub(crate) fn environment(&self) -> BTreeMap<OsString, OsString> {
        let own = [
            ("HOME", self.path("home").into_os_string()),
            ("TMPDIR", self.root.clone().into_os_string()),
            ("TMUX_TMPDIR", self.path("tmux").into_os_string()),
            ("TERM", "xterm-256color".into()),
            ("LC_ALL", "C.UTF-8".into()),
        ];
        own.into_iter()
            .chain([("PATH", self.search_path())])
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    /// Returns where programs are looked for: the tmux of `TMUX_BIN` comes before the installed one.
    fn search_path(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.path("bin")).chain(std::env::split_paths(&path));
        std::env::join_paths(all).unwrap()
    }

    /// Returns the path of this world's tmux.
    pub(crate) fn tmux_program(&self) -> PathBuf {
        find_program("tmux", Some(&self.search_path())).expect("tmux is installed")
    }

    /// Prepares a program in this world: its environment, its working directory, no input.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test plays the person at the terminal"
    )]
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.environment())
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    /// Runs one tmux command on the world's server and returns what it said.
    pub(crate) fn tmux_output<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.command("tmux")
            .args(["-f", "/dev/null", "-L", &self.socket])
            .args(args)
            .output()
            .expect("tmux is installed: make prerequisites")
    }

    /// Runs one tmux command that must succeed and returns its output.
    pub(crate) fn tmux<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let output = self.tmux_output(args);
        let shown: Vec<_> = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        assert!(
            output.status.success(),
            "tmux {shown:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns what a pane shows, without empty rows at the end.
    pub(crate) fn screen(&self, target: &str) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-t", target]);
        shown.trim_end().to_owned()
    }

    /// Returns the processes of this world whose command line has the word.
    ///
    /// Without tmux itself: the server keeps the command line of the client that started it.
    pub(crate) fn processes(&self, word: &str) -> Vec<Found> {
        let mut found = processes::of(&self.root);
        found.retain(|process| process.command.contains(word) && !process.is_tmux());
        found
    }

    /// Tells whether a client of tmux that says this word waits for its answer.
    pub(crate) fn tmux_is_asked(&self, word: &str) -> bool {
        let all = processes::of(&self.root);
        all.iter()
            .any(|process| process.is_tmux() && process.command.contains(word))
    }

    /// Kills the processes of this world that are meant to outlive their terminal.
    pub(crate) fn kill(&self, word: &str) {
        for process in self.processes(word) {
            process.signal(Signal::KILL);
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Killed, not asked: a test may have stopped the server.
        for process in processes::of(&self.root) {
            if process.is_tmux() {
                process.signal(Signal::KILL);
            }
        }
        let gone = poll(self.patience, || {
            processes::of(&self.root).is_empty().then_some(())
        });
        if gone.is_some() {
            return;
        }
        let left = processes::of(&self.root);
        for process in &left {
            process.signal(Signal::KILL);
        }
        assert!(
            std::thread::panicking() || left.is_empty(),
            "{} left processes behind: {left:#?}",
            self.folder.path().display()
        );
    }
}

#[test]
fn a_world_ends_with_its_server_and_its_panes() {
    let scratch = Scratch::new();
    scratch.tmux(&["new-session", "-d", "-s", "one", "sleep 1000"]);
    // tmux answers before the pane's process has become the command.
    wait_until("the pane's command", ENDING, || {
        scratch.processes("sleep").len() == 1
    });
    let server: i32 = scratch
        .tmux(&["display-message", "-p", "#{pid}"])
        .trim()
        .parse()
        .unwrap();
    let root = Path::new(&scratch.root).to_owned();
    processes::of(&root)
        .iter()
        .filter(|process| process.pid == server)
        .for_each(|process| process.signal(Signal::STOP));

    drop(scratch);

    assert!(processes::of(&root).is_empty());
    assert!(!root.exists());
}

#[test]
fn a_process_that_is_left_behind_fails_its_test() {
    let outcome = std::panic::catch_unwind(|| {
        let mut scratch = Scratch::new();
        scratch.patience = Duration::from_millis(200);
        let mut left = scratch.command("sleep").arg("1000").spawn().unwrap();
        std::thread::spawn(move || left.wait());
        drop(scratch);
    });
    let message = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("left processes behind"), "{message}");
}
