//! Conversations: one file per id, so that a later process can go on with one.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::Error;

/// The conversation of a running agent; kept only where it has a folder and an id.
#[derive(Debug)]
pub(super) struct Conversation {
    file: Option<(PathBuf, File)>,
}

impl Conversation {
    /// Starts a conversation; its id must be new.
    pub(super) fn start(folder: Option<&Path>, id: Option<&str>) -> Result<Self, Error> {
        let (Some(folder), Some(id)) = (folder, id) else {
            return Ok(Self { file: None });
        };
        let path = path(folder, id)?;
        let failed = |source| Error::Conversation {
            path: path.clone(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => Ok(Self {
                file: Some((path, file)),
            }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::InUse(id.to_owned()))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Goes on with a conversation and returns what was said in it.
    pub(super) fn resume(folder: Option<&Path>, id: &str) -> Result<(Self, Vec<String>), Error> {
        let Some(folder) = folder else {
            return Err(Error::NoConversation(id.to_owned()));
        };
        let path = path(folder, id)?;
        let failed = |source| Error::Conversation {
            path: path.clone(),
            source,
        };
        let file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoConversation(id.to_owned()));
            }
            Err(error) => return Err(failed(error)),
        };
        let mut said = Vec::new();
        for line in BufReader::new(&file).lines() {
            // A line that a kill cut short was never shown as kept.
            if let Ok(message) = serde_json::from_str(&line.map_err(failed)?) {
                said.push(message);
            }
        }
        let conversation = Self {
            file: Some((path, file)),
        };
        Ok((conversation, said))
    }

    /// Keeps a message.
    pub(super) fn say(&mut self, message: &str) -> Result<(), Error> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let line = serde_json::Value::from(message).to_string() + "\n";
        file.write_all(line.as_bytes())
            .map_err(|source| Error::Conversation {
                path: path.clone(),
                source,
            })
    }
}

fn path(folder: &Path, id: &str) -> Result<PathBuf, Error> {
    let plain = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if plain {
        Ok(folder.join(format!("{id}.jsonl")))
    } else {
        Err(Error::BadSession(id.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_goes_on_with_what_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = Some(folder.path());
        let mut first = Conversation::start(at, Some("a-1")).unwrap();
        first.say("one\ntwo").unwrap();
        drop(first);

        let (mut again, said) = Conversation::resume(at, "a-1").unwrap();
        assert_eq!(said, ["one\ntwo"]);
        again.say("three").unwrap();
        assert_eq!(
            Conversation::resume(at, "a-1").unwrap().1,
            ["one\ntwo", "three"]
        );
    }

    #[test]
    fn an_unknown_id_and_a_used_one_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = Some(folder.path());
        assert!(matches!(
            Conversation::resume(at, "none"),
            Err(Error::NoConversation(_))
        ));
        drop(Conversation::start(at, Some("one")).unwrap());
        assert!(matches!(
            Conversation::start(at, Some("one")),
            Err(Error::InUse(_))
        ));
        assert!(matches!(
            Conversation::start(at, Some("../one")),
            Err(Error::BadSession(_))
        ));
    }
}
