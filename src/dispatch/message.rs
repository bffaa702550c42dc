//! The text of a message: what the agent reads, inline or by file.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::model::DeliveryId;
use crate::model::text::clean;
use crate::process::blocking;
use crate::routing::prompt::INLINE_LIMIT;

/// The folder in a checkout that over-long messages are spilled to.
const SPILL_FOLDER: &str = ".the-loop";

/// Why a message could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the message file {}: {source}", path.display())]
pub(super) struct SpillError {
    path: PathBuf,
    source: std::io::Error,
}

/// Returns the text as it goes to the agent: itself, or, where it is over 32 KB, its first line and
/// a pointer to a file in the checkout that has it all.
///
/// # Errors
/// When the file cannot be written.
pub(super) async fn fit(
    text: &str,
    cwd: &Path,
    delivery: DeliveryId,
) -> Result<String, SpillError> {
    let text = clean(text);
    if text.len() <= INLINE_LIMIT {
        return Ok(text);
    }
    let folder = cwd.join(SPILL_FOLDER);
    let path = folder.join(format!("message-{delivery}.md"));
    let failed = |source| SpillError {
        path: path.clone(),
        source,
    };
    // Beside the runtime: a checkout may lie on a disk that takes its time.
    let written = blocking({
        let (text, cwd, path) = (text.clone(), cwd.to_owned(), path.clone());
        move || spill(&text, &cwd, &folder, &path)
    });
    written.await.map_err(failed)?;
    let header = text.lines().next().unwrap_or("[the-loop] message");
    let count = text.chars().count();
    Ok(format!(
        "{header}\n\nThe message is too long for the terminal ({count} characters). All of it is in this file; \
         read the whole file first, then act on it:\n\n{}",
        path.display()
    ))
}

fn spill(text: &str, cwd: &Path, folder: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    // A checkout is not trusted: a link planted there must not choose the file that is written.
    if std::fs::symlink_metadata(folder)?.file_type().is_symlink() {
        return Err(std::io::Error::other("the folder is a symbolic link"));
    }
    if let Err(error) = exclude_from_git(cwd) {
        // Git then shows one more untracked folder; the message matters more.
        tracing::warn!("cannot keep {} out of git: {error}", folder.display());
    }
    let partial = path.with_extension("partial");
    remove_if_there(&partial)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, path)
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Keeps the spill folder out of `git status` without touching a tracked file.
fn exclude_from_git(cwd: &Path) -> std::io::Result<()> {
    let Some(git) = git_dir(cwd) else {
        return Ok(());
    };
    let exclude = git.join("info").join("exclude");
    let line = format!("/{SPILL_FOLDER}/");
    let present = match std::fs::read_to_string(&exclude) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if present.lines().any(|known| known == line) {
        return Ok(());
    }
    std::fs::create_dir_all(git.join("info"))?;
    let start = if present.is_empty() || present.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&exclude)?
        .write_all(format!("{start}{line}\n").as_bytes())
}

/// Returns the git folder whose `info/exclude` rules this checkout: its own, or for a worktree the
/// common one.
fn git_dir(cwd: &Path) -> Option<PathBuf> {
    let dot_git = cwd.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = std::fs::read_to_string(&dot_git).ok()?;
    let own = cwd.join(text.strip_prefix("gitdir:")?.trim());
    match std::fs::read_to_string(own.join("commondir")) {
        Ok(common) => Some(own.join(common.trim())),
        Err(_) => Some(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_short_text_goes_as_it_is_and_clean() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            fit("[the-loop] a\u{1b}[201~b", dir.path(), DeliveryId(1))
                .await
                .unwrap(),
            "[the-loop] a[201~b"
        );
        assert!(!dir.path().join(SPILL_FOLDER).exists());
    }

    #[tokio::test]
    async fn a_long_text_is_in_a_file_that_git_does_not_see() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let long = format!("[the-loop] header\n{}", "x".repeat(200_000));

        let said = fit(&long, dir.path(), DeliveryId(7)).await.unwrap();

        assert!(said.starts_with("[the-loop] header\n"), "{said}");
        let path = said.lines().last().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), long);
        fit(&long, dir.path(), DeliveryId(7)).await.unwrap();
        let exclude = std::fs::read_to_string(dir.path().join(".git/info/exclude")).unwrap();
        assert_eq!(exclude, "/.the-loop/\n");
    }

    #[test]
    fn a_file_that_was_left_half_written_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(SPILL_FOLDER);
        let path = folder.join("message-7.md");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("message-7.partial"), "hal").unwrap();

        spill("half", dir.path(), &folder, &path).unwrap();

        assert_eq!(std::fs::read_to_string(&path).unwrap(), "half");
    }

    #[test]
    fn what_cannot_be_removed_is_said() {
        let dir = tempfile::tempdir().unwrap();

        remove_if_there(&dir.path().join("gone")).unwrap();
        remove_if_there(dir.path()).unwrap_err();
    }

    #[test]
    fn a_list_of_gits_that_cannot_be_read_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let exclude = dir.path().join(".git/info/exclude");
        std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
        std::fs::write(&exclude, b"\xff\n").unwrap();

        exclude_from_git(dir.path()).unwrap_err();

        assert_eq!(std::fs::read(&exclude).unwrap(), b"\xff\n");
    }

    #[tokio::test]
    async fn a_planted_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join(SPILL_FOLDER)).unwrap();

        fit(&"x".repeat(INLINE_LIMIT + 1), dir.path(), DeliveryId(7))
            .await
            .unwrap_err();
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    /// A pipe in the place of a file that is read stands for a disk that does not answer.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_disk_that_takes_its_time_holds_up_nothing_else() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let dir = tempfile::tempdir().unwrap();
        let exclude = dir.path().join(".git/info/exclude");
        std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
        mknodat(CWD, &exclude, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (others, heard) = std::sync::mpsc::channel();
        let disk = std::thread::spawn(move || {
            let in_time = heard.recv_timeout(std::time::Duration::from_secs(20));
            std::fs::write(&exclude, "/.the-loop/\n").unwrap();
            in_time
        });

        let long = "x".repeat(INLINE_LIMIT + 1);
        let (said, ()) = tokio::join!(fit(&long, dir.path(), DeliveryId(7)), async {
            others.send(()).unwrap();
        });

        said.unwrap();
        assert_eq!(disk.join().unwrap(), Ok(()));
    }
}
