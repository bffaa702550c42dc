//! A tmux that can be held just before or after one call, so that a test can do harm right there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{SOON, Scratch, eventually, wait_until};

/// What tmux is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Which panes there are.
    Look,
    /// A new session.
    Spawn,
    /// A text into a pane.
    Paste,
    /// The end of a session.
    Clear,
}

/// On which side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// tmux has not heard of it.
    Before,
    /// tmux has done it; nobody has read its answer.
    After,
}

impl Call {
    fn word(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Spawn => "spawn",
            Self::Paste => "paste",
            Self::Clear => "clear",
        }
    }
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// The kind of a call is told by its arguments; no text of a message is among them. What is held
/// keeps its input, which its caller may not live to write.
const SCRIPT: &str = r#"#!/bin/sh
here='@FOLDER@'
case "$*" in
-V) exec '@TMUX@' -V ;;
*new-session*) kind=spawn ;;
*kill-session*) kind=clear ;;
*load-buffer*) kind=paste ;;
*list-panes*) kind=look ;;
*) kind=other ;;
esac
hold() {
    mv "$here/hold-$kind-$1" "$here/passed-$kind-$1" 2>/dev/null || return 1
    [ "$kind-$1" != paste-before ] || cat > "$here/input"
    echo $$ > "$here/held.partial"
    mv "$here/held.partial" "$here/held"
    while [ ! -e "$here/open" ]; do sleep 0.01; done
}
echo "$kind" >> "$here/calls"
if [ -e "$here/hold-$kind-before" ] && hold before && [ "$kind" = paste ]; then
    exec '@TMUX@' "$@" < "$here/input"
fi
if [ -e "$here/hold-$kind-after" ]; then
    '@TMUX@' "$@"
    status=$?
    hold after
    exit $status
fi
exec '@TMUX@' "$@"
"#;

/// The stand-in for tmux, and what holds a call of it.
pub(crate) struct Gate {
    folder: PathBuf,
}

/// A call that is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pid: i32,
}

impl Gate {
    pub(crate) fn new(scratch: &Scratch) -> Self {
        let folder = scratch.path("gate");
        fs::create_dir(&folder).unwrap();
        let tmux = scratch.tmux_program();
        let script = SCRIPT
            .replace("@FOLDER@", &folder.display().to_string())
            .replace("@TMUX@", &tmux.display().to_string());
        let gate = Self { folder };
        fs::write(gate.program(), script).unwrap();
        fs::set_permissions(gate.program(), fs::Permissions::from_mode(0o755)).unwrap();
        gate
    }

    /// What to configure as tmux.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("tmux")
    }

    /// Holds the next call of this kind.
    pub(crate) fn hold(&self, call: Call, side: Side) {
        let name = format!("hold-{}-{}", call.word(), side.word());
        fs::write(self.folder.join(name), "").unwrap();
    }

    /// Waits until a call is held.
    pub(crate) fn wait(&self) -> Held {
        let held = self.folder.join("held");
        let pid = eventually("a call of tmux is held", || fs::read_to_string(&held).ok());
        Held {
            pid: pid.trim().parse().unwrap(),
        }
    }

    /// Lets the held call go on.
    pub(crate) fn open(&self) {
        fs::write(self.folder.join("open"), "").unwrap();
    }

    /// How often a server was asked for anything.
    pub(crate) fn calls(&self) -> usize {
        lines(&self.folder.join("calls"))
    }

    /// Waits until tmux is asked for something more.
    pub(crate) fn wait_for_call_after(&self, calls: usize) {
        wait_until("tmux is asked for something", SOON, || self.calls() > calls);
    }
}

impl Held {
    /// Kills the call, so that tmux never hears of it, or nobody reads what it said.
    pub(crate) fn kill(&self) {
        crate::checks::signal(self.pid, Signal::KILL);
    }

    /// Tells whether the call has ended.
    pub(crate) fn is_gone(&self) -> bool {
        crate::checks::is_gone(self.pid)
    }

    /// Waits until the call has ended.
    pub(crate) fn wait_gone(&self) {
        crate::checks::wait_gone(self.pid);
    }
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}
