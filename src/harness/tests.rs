//! How configured harnesses are started, resumed and surrounded.

use super::*;
use crate::config::{self, Loaded};

fn name(text: &str) -> HarnessName {
    HarnessName(text.to_owned())
}

/// The defaults with one harness, `mine`, that is a program of every machine.
fn config(change: impl FnOnce(&mut HarnessConfig)) -> Config {
    let env = config::Environment {
        home: Some("/nowhere".into()),
        ..config::Environment::default()
    };
    let mut config = Loaded::defaults(&env).unwrap().config;
    let mut mine = config.harnesses[&HarnessName(config::CLAUDE.to_owned())].clone();
    mine.command = "/bin/sh".to_owned();
    change(&mut mine);
    config.harnesses.insert(name("mine"), mine);
    config
}

fn resolved(config: &Config, around: &Surroundings) -> Result<Harness, HarnessError> {
    Harness::resolve(&name("mine"), config, around)
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_conversation_stands_where_the_configuration_says() {
    let config = config(|mine| {
        mine.args = texts(&["--quiet"]);
        mine.session_args = texts(&["--new={sessionId}"]);
        mine.resume_args = Some(texts(&["--go-on", "{sessionId}"]));
    });
    let harness = resolved(&config, &Surroundings::default()).unwrap();
    let id = HarnessSessionId::mint();
    assert_eq!(
        harness.fresh(&id),
        ["/bin/sh", "--quiet", &format!("--new={id}")]
    );
    assert_eq!(
        harness.resume(&id).unwrap(),
        ["/bin/sh", "--quiet", "--go-on", id.as_str()]
    );
}

#[test]
fn a_harness_without_resume_arguments_cannot_resume() {
    let config = config(|mine| mine.resume_args = None);
    let harness = resolved(&config, &Surroundings::default()).unwrap();
    assert_eq!(harness.resume(&HarnessSessionId::mint()), None);
}

#[test]
fn an_agent_gets_what_is_named_what_a_terminal_needs_and_nothing_else() {
    let config = config(|mine| {
        mine.env = [
            ("COLOUR".to_owned(), EnvValue::Value("blue".to_owned())),
            ("API_KEY".to_owned(), EnvValue::FromEnvironment),
            ("NOT_SET".to_owned(), EnvValue::FromEnvironment),
        ]
        .into();
    });
    let around = Surroundings::of(&[
        ("PATH", "/bin"),
        ("HOME", "/home/ada"),
        ("API_KEY", "k"),
        ("GH_TOKEN", "secret"),
        ("TMUX", "/tmp/socket,1,0"),
        ("SSH_AUTH_SOCK", "/tmp/agent"),
    ]);
    let harness = resolved(&config, &around).unwrap();
    let item: WorkItemRef = "octo/app#15".parse().unwrap();
    let session = item.session_name().unwrap();
    let env = harness.environment(&around, &item, &session);
    let expected = [
        ("API_KEY", "k"),
        ("COLOUR", "blue"),
        ("HOME", "/home/ada"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/bin"),
        ("THE_LOOP_SESSION", "loop-github-octo--app-15"),
        ("THE_LOOP_WORK_ITEM", "github:octo/app#15"),
    ];
    let found: Vec<(&str, &str)> = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_harness_that_cannot_run_says_what_to_set() {
    let missing = config(|mine| mine.command = "no-such-agent".to_owned());
    let error = resolved(&missing, &Surroundings::of(&[("PATH", "/bin")])).unwrap_err();
    assert!(
        error.to_string().contains("harnesses.mine.command"),
        "{error}"
    );
    let unknown = Harness::resolve(&name("other"), &missing, &Surroundings::default()).unwrap_err();
    assert!(unknown.to_string().contains("harnesses.other"), "{unknown}");
}
