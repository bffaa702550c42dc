//! The processes of one scratch world, found by what they carry of its folder.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// One process that belongs to a scratch world.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) pid: i32,
    pub(crate) command: String,
}

impl Found {
    /// Tells whether it is a tmux client or server.
    pub(crate) fn is_tmux(&self) -> bool {
        let program = self.command.split(' ').next().unwrap_or_default();
        program == "tmux" || program.ends_with("/tmux")
    }

    /// Signals it; one that is gone already is fine.
    pub(crate) fn signal(&self, signal: Signal) {
        assert!(self.pid > 1, "{self:?}");
        if let Some(pid) = Pid::from_raw(self.pid) {
            kill_process(pid, signal).ok();
        }
    }
}

/// Finds the processes whose environment, arguments or directory name the folder.
///
/// A harness gets an environment of its own, so no single marker would find them all.
#[cfg(target_os = "linux")]
pub(crate) fn of(folder: &Path) -> Vec<Found> {
    use std::fs;

    let name = folder.to_string_lossy().into_owned();
    let own = std::process::id().cast_signed();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let at = entry.path();
        let read = |file: &str| {
            let bytes = fs::read(at.join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let command = read("cmdline");
        // A zombie has neither arguments nor environment: it has ended.
        let belongs = command.contains(&name)
            || read("environ").contains(&name)
            || fs::read_link(at.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        if belongs && pid != own {
            found.push(Found { pid, command });
        }
    }
    found
}

/// Finds the processes whose environment or arguments name the folder.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::disallowed_methods,
    reason = "asks the system which processes a test left behind"
)]
pub(crate) fn of(folder: &Path) -> Vec<Found> {
    let name = folder.to_string_lossy().into_owned();
    let output = std::process::Command::new("ps")
        .args(["-axwwE", "-o", "pid=,command="])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains(&name))
        .filter_map(|line| {
            let (pid, command) = line.trim().split_once(' ')?;
            Some(Found {
                pid: pid.parse().ok()?,
                command: command.to_owned(),
            })
        })
        .collect()
}
