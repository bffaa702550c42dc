//! The real tmux, with programs that write files.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Mutex;

use the_loop::model::{PaneId, TmuxSocket};
use the_loop::process::signal::{Signal, signal};
use the_loop::runner::RealTmux;

use crate::stage::{Made, Manners, Stage};
use crate::tmux::{PrivateTmux, wait_for};

pub(crate) struct RealStage {
    tmux: RealTmux,
    server: PrivateTmux,
    dir: tempfile::TempDir,
    clients: Mutex<Vec<Child>>,
}

impl RealStage {
    pub(crate) fn new() -> Self {
        Self {
            tmux: RealTmux::new(PrivateTmux::program()),
            server: PrivateTmux::new(),
            dir: tempfile::tempdir().unwrap(),
            clients: Mutex::default(),
        }
    }

    fn file(&self, label: &str) -> PathBuf {
        self.dir.path().join(label)
    }

    fn script(&self, label: &str, script: &str) -> Vec<OsString> {
        let file = self.file(label);
        let shell = ["/bin/sh", "-c", script, "recorder"].map(OsString::from);
        shell.into_iter().chain([file.into_os_string()]).collect()
    }

    fn pane_command(&self, made: &Made, command: &[&str]) {
        let pane = made.pane.to_string();
        let mut args = vec![command[0], "-t", &pane];
        args.extend(&command[1..]);
        self.server.ok(&args);
    }
}

impl Stage for RealStage {
    type Tmux = RealTmux;

    fn tmux(&self) -> &RealTmux {
        &self.tmux
    }

    fn socket(&self) -> TmuxSocket {
        TmuxSocket::Path(self.server.socket())
    }

    fn other_socket(&self) -> TmuxSocket {
        TmuxSocket::Path(self.dir.path().join("other"))
    }

    fn recorder(&self, label: &str, manners: Manners) -> Vec<OsString> {
        let brackets = match manners {
            Manners::Brackets => "printf '\\033[?2004h';",
            Manners::Plain => "",
        };
        let script = format!("stty raw -echo; {brackets} exec cat > \"$1\"");
        self.script(label, &script)
    }

    fn argument_recorder(&self, label: &str, further: &[&str]) -> Vec<OsString> {
        let script =
            "f=$1; shift; printf '%s\\n' \"$@\" > \"$f.new\"; mv \"$f.new\" \"$f\"; exec sleep 600";
        let mut program = self.script(label, script);
        program.extend(further.iter().map(OsString::from));
        program
    }

    async fn ready(&self, label: &str) {
        let file = self.file(label);
        wait_for("a recorder that reads", || file.exists());
    }

    async fn recorded(&self, label: &str, end: &str) -> String {
        let mut text = String::new();
        wait_for(&format!("{end:?} recorded"), || {
            text = self.so_far(label);
            text.ends_with(end)
        });
        text
    }

    fn so_far(&self, label: &str) -> String {
        let bytes = fs::read(self.file(label)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn freeze(&self) {
        let server = self.server.server();
        signal(&server, Signal::Stop).unwrap();
        let stat = format!("/proc/{}/stat", server.pid);
        wait_for("a stopped server", || {
            fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") T "))
        });
    }

    fn thaw(&self) {
        signal(&self.server.server(), Signal::Continue).unwrap();
    }

    fn remove_socket(&self) {
        fs::remove_file(self.server.socket()).unwrap();
    }

    async fn make_socket_again(&self) {
        let first = self.server.server();
        signal(&first, Signal::User1).unwrap();
        self.server.wait_for("the first server", |tmux| {
            let who = tmux.run(&["display-message", "-p", "#{pid}"]).stdout;
            String::from_utf8_lossy(&who).trim() == first.pid.to_string()
        });
    }

    fn kill_server(&self) {
        signal(&self.server.server(), Signal::Kill).unwrap();
        let server = self.server.server();
        wait_for("the server's end", || {
            the_loop::process::identity::life(&server) == the_loop::process::identity::Life::Gone
        });
    }

    async fn end(&self, made: &Made) {
        let process = the_loop::process::identity::identify(made.pid).unwrap();
        signal(&process, Signal::Kill).unwrap();
    }

    fn note_end(&self, made: &Made) {
        let pane = made.pane.to_string();
        let how = format!("{} code:3", made.pid);
        self.server
            .ok(&["set-option", "-p", "-t", &pane, "@loop_exit", &how]);
    }

    fn persons_pane(&self, made: &Made) -> PaneId {
        let pane = made.pane.to_string();
        let id = self.server.ok(&[
            "split-window",
            "-P",
            "-F",
            "#{pane_id}",
            "-t",
            &pane,
            "--",
            "sleep",
            "600",
        ]);
        id.parse().unwrap()
    }

    fn copy_mode(&self, made: &Made) {
        self.pane_command(made, &["copy-mode"]);
    }

    fn input_off(&self, made: &Made) {
        self.pane_command(made, &["select-pane", "-d"]);
    }

    async fn attach(&self, made: &Made, read_only: bool) {
        let flags: &[&str] = if read_only { &["-r"] } else { &[] };
        #[expect(
            clippy::disallowed_methods,
            reason = "a client that stays is started as a person would"
        )]
        let mut command = std::process::Command::new(PrivateTmux::program());
        let client = command
            .arg("-S")
            .arg(self.server.socket())
            .args(["-C", "attach-session"])
            .args(flags)
            .args(["-t", &format!("{}:", made.session)])
            .env_remove("TMUX")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut clients = self.clients.lock().unwrap();
        clients.push(client);
        let count = clients.len();
        self.server.wait_for("the client", |tmux| {
            tmux.ok(&["list-clients"]).lines().count() == count
        });
    }
}

impl Drop for RealStage {
    fn drop(&mut self) {
        for client in self.clients.get_mut().unwrap() {
            client.kill().ok();
            client.wait().ok();
        }
        // A server on the other socket ends with its sessions, whose programs end with the folder's
        // readers; it is asked to, so that none outlives a test that failed.
        let other = self.dir.path().join("other");
        if other.exists() {
            #[expect(clippy::disallowed_methods, reason = "a server of this test's own")]
            let mut command = std::process::Command::new(PrivateTmux::program());
            command.arg("-S").arg(other).arg("kill-server");
            command.stderr(std::process::Stdio::null()).status().ok();
        }
    }
}
