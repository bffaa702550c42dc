mod problems;
mod values;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::model::Login;

/// A home directory and a working directory of a test's own.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home/.the-loop", "home/src/app", "work/.the-loop"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn env(&self) -> Environment {
        Environment {
            home: Some(self.path("home")),
            variable: None,
            working_dir: self.path("work"),
        }
    }

    fn load(&self, text: impl AsRef<[u8]>) -> Result<Loaded, ConfigError> {
        self.write("home/.the-loop/cli-config.yaml", text);
        Config::load(None, &self.env())
    }

    fn problems(&self, text: impl AsRef<[u8]>) -> Vec<String> {
        match self.load(text) {
            Err(ConfigError::Invalid(problems)) => {
                problems.list.iter().map(ToString::to_string).collect()
            }
            Err(error) => vec![error.to_string()],
            Ok(_) => Vec::new(),
        }
    }
}

fn warnings(loaded: &Loaded) -> Vec<String> {
    loaded.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_flag_goes_before_the_variable_and_that_before_home() {
    let place = Place::new();
    let write =
        |name, seconds: u32| place.write(name, format!("polling: {{intervalSeconds: {seconds}}}"));
    let flag = write("flag.yaml", 1);
    let variable = write("variable.yaml", 2);
    write("home/.the-loop/cli-config.yaml", 3);
    let with_variable = Environment {
        variable: Some(variable.into()),
        ..place.env()
    };
    let seconds = |loaded: Loaded| (loaded.config.polling.interval.as_secs(), loaded.found_by);

    assert_eq!(
        seconds(Config::load(Some(&flag), &with_variable).unwrap()),
        (1, FoundBy::Flag)
    );
    assert_eq!(
        seconds(Config::load(None, &with_variable).unwrap()),
        (2, FoundBy::Variable)
    );
    assert_eq!(
        seconds(Config::load(None, &place.env()).unwrap()),
        (3, FoundBy::Default)
    );
    let relative = Config::load(Some(Path::new("../flag.yaml")), &place.env()).unwrap();
    assert_eq!(seconds(relative), (1, FoundBy::Flag));
    let tilde = Config::load(Some(Path::new("~/.the-loop/cli-config.yaml")), &place.env()).unwrap();
    assert_eq!(seconds(tilde), (3, FoundBy::Flag));
}

#[test]
fn a_file_in_the_working_directory_is_not_read_and_a_note_says_so() {
    let place = Place::new();
    place.write(
        "work/.the-loop/cli-config.yaml",
        "routing: {authorizedUsers: [mallory]}",
    );

    let loaded = place.load("routing: {authorizedUsers: [octocat]}").unwrap();

    assert_eq!(
        loaded.config.routing.authorized_users,
        [Login::new("octocat")]
    );
    assert_eq!(loaded.notes.len(), 1);
    assert!(
        loaded.notes[0].contains("work/.the-loop/cli-config.yaml is not read"),
        "{:?}",
        loaded.notes
    );
}

#[test]
fn the_file_in_the_working_directory_is_read_when_it_is_the_one_meant() {
    let place = Place::new();
    let path = place.write("work/.the-loop/cli-config.yaml", "polling: {maxRetries: 9}");

    let named = Config::load(Some(&path), &place.env()).unwrap();
    let at_home = Environment {
        home: Some(place.path("work")),
        ..place.env()
    };
    let in_home = Config::load(None, &at_home).unwrap();

    assert_eq!(
        (named.config.polling.max_retries, named.notes.len()),
        (9, 0)
    );
    assert_eq!(
        (in_home.config.polling.max_retries, in_home.notes.len()),
        (9, 0)
    );
}

#[test]
fn a_missing_file_is_an_error_that_says_what_to_write() {
    let place = Place::new();

    let default = Config::load(None, &place.env()).unwrap_err().to_string();
    let named = Config::load(Some(Path::new("nowhere.yaml")), &place.env())
        .unwrap_err()
        .to_string();
    let homeless = Environment {
        home: None,
        ..place.env()
    };

    assert!(
        default.starts_with("no configuration: ~/.the-loop/cli-config.yaml does not exist"),
        "{default}"
    );
    assert!(default.contains("    - repos: [octo/app]"), "{default}");
    assert!(
        named.contains("nowhere.yaml, named by --config: No such file"),
        "{named}"
    );
    assert!(matches!(
        Config::load(None, &homeless),
        Err(ConfigError::NoHome)
    ));
    assert!(
        Config::load(Some(&place.path("home")), &place.env())
            .unwrap_err()
            .to_string()
            .contains("is a folder")
    );
}

proptest! {
    #[test]
    fn arbitrary_files_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "(polling|routing|harnesses|state|x): ?(?s).{0,40}") {
        let place = Place::new();
        let _unused = place.load(&bytes);
        let _unused = place.load(&text);
    }
}
