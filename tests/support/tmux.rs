//! A tmux server of one test's own.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use the_loop::model::ProcessId;
use the_loop::process::identity::{Life, identify, life};
use the_loop::process::signal::{Signal, signal};

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A tmux server on a private socket, without anybody's configuration; gone when dropped.
pub(crate) struct PrivateTmux {
    dir: tempfile::TempDir,
    name: String,
    server: ProcessId,
}

impl PrivateTmux {
    /// Starts a server that stays without sessions.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("tmux").tempdir().unwrap();
        let name = format!("test-{}", uuid::Uuid::new_v4().simple());
        let nobody = ProcessId { pid: 0, start: 0 };
        let mut tmux = Self {
            dir,
            name,
            server: nobody,
        };
        let pid = tmux.ok(&[
            "start-server",
            ";",
            "set-option",
            "-s",
            "exit-empty",
            "off",
            ";",
            "display-message",
            "-p",
            "#{pid}",
        ]);
        tmux.server = identify(pid.parse().unwrap()).unwrap();
        tmux
    }

    /// The name for `tmux -L`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The server's process.
    pub(crate) fn server(&self) -> ProcessId {
        self.server
    }

    /// The socket's path.
    pub(crate) fn socket(&self) -> PathBuf {
        let uid = rustix::process::getuid().as_raw();
        self.dir.path().join(format!("tmux-{uid}")).join(&self.name)
    }

    /// The absolute path of tmux: `TMUX_BIN`, or the first in the path.
    pub(crate) fn program() -> PathBuf {
        if let Some(binary) = std::env::var_os("TMUX_BIN") {
            return binary.into();
        }
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path)
            .map(|dir| dir.join("tmux"))
            .find(|file| file.is_file())
            .expect("tmux is installed")
    }

    /// Runs one invocation and returns what it answered.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests drive tmux as a person would"
        )]
        let mut command = Command::new(Self::program());
        command
            .args(["-f", "/dev/null", "-L", &self.name])
            .args(args)
            .env("TMUX_TMPDIR", self.dir.path())
            .env("TERM", "xterm-256color")
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs one invocation that must succeed and returns its output without the last newline.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {args:?}: {error}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// The names of all sessions.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let list = self.ok(&["list-sessions", "-F", "#{session_name}"]);
        list.lines().map(str::to_owned).collect()
    }

    /// The text of a pane with its history, wrapped lines joined.
    pub(crate) fn screen(&self, target: &str) -> String {
        self.ok(&["capture-pane", "-p", "-J", "-S", "-", "-t", target])
    }

    /// Waits until the screen of a pane holds this text and returns it.
    pub(crate) fn wait_for_text(&self, target: &str, text: &str) -> String {
        let mut screen = String::new();
        wait_for(&format!("{text:?} on the screen"), || {
            screen = self.screen(target);
            screen.contains(text)
        });
        screen
    }

    /// Waits until this server's answers satisfy a condition.
    pub(crate) fn wait_for(&self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        wait_for(what, || condition(self));
    }
}

impl Drop for PrivateTmux {
    fn drop(&mut self) {
        // A test may have frozen it.
        signal(&self.server, Signal::Continue).ok();
        self.run(&["kill-server"]);
        let deadline = Instant::now() + PATIENCE;
        while life(&self.server) == Life::Running && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if life(&self.server) == Life::Running {
            signal(&self.server, Signal::Kill).ok();
        }
    }
}

/// Waits for a condition, or fails the test after [`PATIENCE`].
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
