//! The table of running processes, for finding what a harness left behind.

use crate::model::ProcessId;

/// One running process and its place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The process.
    pub id: ProcessId,
    /// Its parent's pid.
    pub parent: i32,
    /// Its terminal session: the pid of the session's leader.
    pub session: i32,
}

/// Lists the running processes, without zombies.
///
/// Empty where the system has no `/proc`.
#[must_use]
pub fn entries() -> Vec<Entry> {
    #[cfg(target_os = "linux")]
    return linux::entries();
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}

/// Tells whether a process was started with this `NAME=value` in its environment.
///
/// Where the system does not show it the answer is no.
#[must_use]
pub fn started_with(pid: i32, variable: &str) -> bool {
    #[cfg(target_os = "linux")]
    return linux::started_with(pid, variable);
    #[cfg(not(target_os = "linux"))]
    {
        let _unused = (pid, variable);
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use super::Entry;
    use crate::model::ProcessId;
    use crate::process::identity::State;
    use crate::process::identity_linux::parse_stat;

    pub(super) fn entries() -> Vec<Entry> {
        let Ok(proc) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        proc.flatten()
            .filter_map(|dir| entry(dir.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    pub(super) fn started_with(pid: i32, variable: &str) -> bool {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == variable.as_bytes())
        })
    }

    fn entry(pid: i32) -> Option<Entry> {
        let stat = parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)?;
        let running = pid > 1 && stat.look.state != State::Zombie;
        running.then_some(Entry {
            id: ProcessId {
                pid,
                start: stat.look.start,
            },
            parent: stat.parent,
            session: stat.session,
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::process::child::testing::Sleeper;
    use crate::process::identity::own;

    #[test]
    fn a_child_is_listed_under_its_parent() {
        let sleeper = Sleeper::start();
        let child = entries()
            .into_iter()
            .find(|entry| entry.id.pid == sleeper.pid())
            .unwrap();
        assert_eq!(child.parent, own().pid);
        assert!(!started_with(child.id.pid, "THE_LOOP_OWNER=nobody"));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(started_with(child.id.pid, &path));
    }
}
