//! What every command owes to people and scripts, without a daemon and without GitHub.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Scratch, TheLoop};

#[test]
fn the_version_is_told_whatever_the_configuration_holds() {
    let scratch = Scratch::new();
    let the_loop = TheLoop::new(&scratch).set("nonsense", json!(true));

    let told = the_loop.run(&["--version"]).ok();

    assert_eq!(told, concat!("the-loop ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn exit_codes_tell_a_no_from_a_mistake() {
    let scratch = Scratch::new();
    let the_loop = TheLoop::new(&scratch);
    let cases: [(&[&str], i32); 8] = [
        (&["status"], 0),
        (&["config", "check"], 0),
        (&["poll", "status"], 1),
        (&["poll", "stop"], 1),
        (&["sessions", "show", "demo/app#1"], 1),
        (&["sessions", "show", "no item"], 2),
        (&["events", "--level", "loud"], 2),
        (&["no-such-command"], 2),
    ];
    for (args, code) in cases {
        let ended = the_loop.run(args);
        assert_eq!(ended.code(), code, "{args:?}: {ended:#?}");
        assert_eq!(
            ended.stderr.is_empty(),
            code == 0 || args == ["poll", "status"]
        );
    }

    let broken = TheLoop::new(&scratch).set("polling.intervalSeconds", json!("1m"));
    for args in [&["config", "check"][..], &["poll", "--once"], &["status"]] {
        let ended = broken.run(args);
        assert_eq!(ended.code(), 2, "{args:?}: {ended:#?}");
        assert!(ended.stderr.contains("polling.intervalSeconds"));
    }
}

#[test]
fn a_template_that_cannot_be_used_is_a_wrong_configuration() {
    let scratch = Scratch::new();
    let template = scratch.path("event.md");
    std::fs::write(&template, "For $actor:\n$texts").unwrap();
    let wrong = TheLoop::new(&scratch)
        .set("routing.promptTemplate", json!(template))
        .set("polling.intervalSeconds", json!("1m"));
    for args in [
        &["config", "check"][..],
        &["poll", "--once"],
        &["sessions", "start", "demo/app#1"],
    ] {
        let ended = wrong.run(args);
        assert_eq!(ended.code(), 2, "{args:?}: {ended:#?}");
        let place = format!("{}:2:1: $texts is no placeholder", template.display());
        for part in [place.as_str(), "polling.intervalSeconds"] {
            assert!(ended.stderr.contains(part), "{args:?}: {ended:#?}");
        }
    }
}

#[test]
fn json_is_all_that_is_printed_where_it_is_asked_for() {
    let scratch = Scratch::new();
    let the_loop = TheLoop::new(&scratch);
    for args in [
        &["status", "--json"][..],
        &["poll", "status", "--json"],
        &["sessions", "list", "--json"],
        &["config", "show", "--json"],
        &["config", "schema"],
        &["events", "--types", "--json"],
    ] {
        let printed = the_loop.run(args).stdout;
        assert!(
            serde_json::from_str::<Value>(&printed).is_ok(),
            "{args:?}: {printed}"
        );
    }
}

#[test]
fn a_checked_configuration_is_told_as_json_good_or_bad() {
    let scratch = Scratch::new();
    let good = TheLoop::new(&scratch);
    let told: Value = serde_json::from_str(&good.run(&["config", "check", "--json"]).ok()).unwrap();
    assert_eq!(
        (&told["valid"], &told["problems"]),
        (&json!(true), &json!([]))
    );

    let bad = TheLoop::new(&scratch).set("polling.intervalSeconds", json!("1m"));
    let ended = bad.run(&["config", "check", "--json"]);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code(), ended.stderr.as_str()), (2, ""));
    assert_eq!(told["valid"], json!(false));
    assert_eq!(told["problems"][0]["key"], json!("polling.intervalSeconds"));
    let shown = bad.run(&["config", "show", "--json"]);
    assert_eq!((shown.code(), shown.stdout), (2, ended.stdout));
}

#[test]
fn a_configuration_that_is_not_there_is_told_as_json_too() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.yaml");
    let ended = scratch
        .command(env!("CARGO_BIN_EXE_the-loop"))
        .args(["config", "check", "--json", "--config"])
        .arg(&missing)
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(2), Vec::new()));
    assert_eq!(
        (&told["valid"], &told["file"]),
        (&json!(false), &json!(missing))
    );
    let message = told["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("named by --config"), "{told}");
}

#[test]
fn output_that_no_terminal_shows_is_plain() {
    let scratch = Scratch::new();
    let the_loop = TheLoop::new(&scratch).env("CLICOLOR", "1");
    for args in [
        &["status"][..],
        &["sessions", "list"],
        &["sessions", "show", "demo/app#1"],
        &["events", "--types"],
        &["config", "show"],
    ] {
        let ended = the_loop.run(args);
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!printed.contains('\u{1b}'), "{args:?}: {printed:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new();
    let mut child = scratch
        .command(env!("CARGO_BIN_EXE_the-loop"))
        .args(["config", "schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());

    let ended = child.wait_with_output().unwrap();

    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_quiet_run_that_fails_says_why_and_nothing_else() {
    let scratch = Scratch::new();
    // Nobody gives it a token for github.com, so nothing is asked.
    let the_loop = TheLoop::new(&scratch);

    let ended = the_loop.run(&["poll", "--once", "-q"]);

    assert_eq!(ended.code(), 1, "{ended:#?}");
    assert_eq!(ended.stdout, "");
    assert!(
        ended.stderr.contains("no token for github.com"),
        "{ended:#?}"
    );
}
