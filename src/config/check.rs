//! What the sections need while they turn the file's values into valid ones.

use std::path::{Path, PathBuf};

use super::key_path::KeyPath;
use super::problem::Problem;
use super::tree::Node;

/// What the configuration is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To start agents: the folders and files that it names must be there.
    Work,
    /// To look at what is, or to end it: what it names may be missing.
    Look,
}

/// Collects what is wrong, and knows what relative paths are relative to.
pub(super) struct Checker<'a> {
    tree: &'a Node,
    folder: &'a Path,
    home: Option<&'a Path>,
    purpose: Purpose,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    secret_at: Option<KeyPath>,
}

impl<'a> Checker<'a> {
    /// Begins with the problems that were already found; they silence what would follow from them.
    pub(super) fn new(
        tree: &'a Node,
        folder: &'a Path,
        home: Option<&'a Path>,
        purpose: Purpose,
        problems: Vec<Problem>,
    ) -> Self {
        Self {
            tree,
            folder,
            home,
            purpose,
            problems,
            warnings: Vec::new(),
            secret_at: None,
        }
    }

    /// Returns problems and warnings.
    pub(super) fn finish(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.problems, self.warnings)
    }

    /// The config file's folder, absolute.
    pub(super) fn folder(&self) -> &Path {
        self.folder
    }

    /// Reports a value, unless it or what it is part of was reported already.
    pub(super) fn problem(&mut self, path: &KeyPath, message: &str) {
        self.several(path, [message.to_owned()]);
    }

    /// Reports several things about one value, under the same condition.
    pub(super) fn several(&mut self, path: &KeyPath, messages: impl IntoIterator<Item = String>) {
        if self.problems.iter().any(|known| known.covers(path)) {
            return;
        }
        let place = self.tree.place_of(path);
        for message in messages {
            self.problems
                .push(Problem::new(Some(place), path, &message));
        }
    }

    /// Reports something amiss with a folder or file that the configuration names. A poller must be
    /// found and stopped without it, so it is a warning to those who start no agent.
    pub(super) fn amiss(&mut self, path: &KeyPath, messages: impl IntoIterator<Item = String>) {
        match self.purpose {
            Purpose::Work => self.several(path, messages),
            Purpose::Look => {
                for message in messages {
                    self.warning(path, &message);
                }
            }
        }
    }

    /// Reports something that is allowed but hardly meant.
    pub(super) fn warning(&mut self, path: &KeyPath, message: &str) {
        let place = self.tree.place_of(path);
        self.warnings.push(Problem::new(Some(place), path, message));
    }

    /// Notes that the value of `path` is a secret, so that the file's permissions matter.
    pub(super) fn holds_secret(&mut self, path: &KeyPath) {
        self.secret_at.get_or_insert_with(|| path.clone());
    }

    /// Returns the first secret that was noted.
    pub(super) fn secret(&self) -> Option<KeyPath> {
        self.secret_at.clone()
    }

    /// Returns the line in which the value of `path` stands.
    pub(super) fn line(&self, path: &KeyPath) -> usize {
        self.tree.place_of(path).line
    }

    /// Reads a path: `~` expands, relative ones are relative to the config file's folder.
    pub(super) fn path(&mut self, key: &KeyPath, text: &str) -> PathBuf {
        match absolute(text, self.folder, self.home) {
            Ok(path) => path,
            Err(message) => {
                self.problem(key, message);
                self.folder.to_owned()
            }
        }
    }

    /// Reports a text that is empty, or all blanks.
    pub(super) fn not_blank(&mut self, key: &KeyPath, text: &str) {
        if text.trim().is_empty() {
            self.problem(key, "is empty; write a value or delete the line");
        }
    }
}

/// Makes a path absolute, without asking the file system.
pub(super) fn absolute(
    text: &str,
    folder: &Path,
    home: Option<&Path>,
) -> Result<PathBuf, &'static str> {
    if text.trim().is_empty() {
        return Err("is empty; write a path or delete the line");
    }
    let path = match text.strip_prefix('~') {
        None => folder.join(text),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => home
            .ok_or("~ cannot be expanded: HOME is not set")?
            .join(rest.trim_start_matches('/')),
        Some(_) => return Err("only ~ and ~/… expand; write the whole path"),
    };
    // This drops `.` and doubled slashes; `..` stays, because behind a symlink it means another folder.
    std::path::absolute(&path).map_err(|_| "is not a path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        let read = |text| absolute(text, Path::new("/etc/loop"), Some(Path::new("/home/u")));
        assert_eq!(read("."), Ok(PathBuf::from("/etc/loop")));
        assert_eq!(read("./a//b"), Ok(PathBuf::from("/etc/loop/a/b")));
        assert_eq!(read("~"), Ok(PathBuf::from("/home/u")));
        assert_eq!(read("~/x"), Ok(PathBuf::from("/home/u/x")));
        assert_eq!(read("~//etc"), Ok(PathBuf::from("/home/u/etc")));
        assert_eq!(read("/x"), Ok(PathBuf::from("/x")));
        assert!(read("~root/x").is_err());
        assert!(read(" ").is_err());
        assert!(absolute("~/x", Path::new("/"), None).is_err());
    }
}
