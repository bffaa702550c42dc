//! Names and texts that somebody else chose, in real tmux.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use the_loop::demo::agent::{Entry, read};
use the_loop::model::text::clean;
use the_loop::model::{DeliveryId, WorkItemRef};
use the_loop::runner::{Address, DeliverOutcome, EnterState};

use crate::rig::{Rig, message, open, pasted};
use crate::tmux::{PrivateTmux, wait_for};

/// How many names and texts are tried; each costs a process or a paste.
const NAMES: usize = 40;
const TEXTS: usize = 12;

/// Draws this many values.
fn some<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::default();
    let draw = |_| strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(draw).collect()
}

/// Refs that differ in a character or two, and some that are long.
fn any_ref() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "github:(g\\.h/|g-h:8443/)?[aA.-]{1,2}[a-]/[aA._-]{1,3}[a_]#1?[1-3]",
        1 => "github:[A-Za-z0-9-]{30}[a-z]/[A-Za-z0-9._-]{60}#[1-9][0-9]{0,18}",
    ]
}

#[test]
fn tmux_keeps_every_minted_name_as_it_is_and_finds_each_by_it_alone() {
    let tmux = PrivateTmux::new();
    let refs = some(&any_ref(), NAMES);
    let items = refs
        .iter()
        .filter_map(|text| text.parse::<WorkItemRef>().ok());
    let names = items.filter_map(|item| item.session_name().ok());
    let names: BTreeSet<String> = names.map(|name| name.to_string()).collect();
    assert!(names.len() > NAMES / 3, "{refs:?}");

    for name in &names {
        tmux.ok(&["new-session", "-d", "-s", name, "--", "sleep", "600"]);
    }

    assert_eq!(tmux.sessions().into_iter().collect::<BTreeSet<_>>(), names);
    for name in &names {
        let exact = format!("={name}:");
        let found = tmux.ok(&["display-message", "-p", "-t", &exact, "#{session_name}"]);
        assert_eq!(&found, name);
        assert!(WorkItemRef::of_session(&found).is_some(), "{found}");
    }
}

/// What could end a bracket or press Enter, among words.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\u{1b}[201~\r".to_owned()),
        Just("\u{9b}201~".to_owned()),
        Just("\u{1b}[200~".to_owned()),
        Just("\u{1b}]52;c;aGk=\u{7}".to_owned()),
        Just("\u{90}tmux;\u{1b}\u{1b}[201~\u{1b}\\".to_owned()),
        Just("\r".to_owned()),
        Just("\0".to_owned()),
        Just("; kill-server\n".to_owned()),
        Just("#{pane_id} $(id) `id` %1 \\\"'".to_owned()),
        "[\\x00-\\x1f\\x7f-\\u{9f}]{1,3}",
        prop::collection::vec(any::<u8>(), 1..12)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "\\PC{1,8}",
    ];
    prop::collection::vec(piece, 1..10).prop_map(|pieces| format!("[the-loop] {}", pieces.concat()))
}

/// Generated ones, and one line of a megabyte with an end of the bracket in its middle.
fn texts() -> Vec<String> {
    let mut texts = some(&any_text(), TEXTS);
    let half = "0123456789abcdef".repeat(32 * 1024);
    texts.push(format!("{half}\u{1b}[201~\r{half}"));
    texts
}

/// What an agent may read of a text.
fn readable(text: &str) -> String {
    clean(text).trim_end_matches('\n').to_owned()
}

async fn deliver(rig: &Rig, it: &Address, delivery: i64, text: &str) {
    let outcome = rig
        .runner
        .deliver(it, &message(delivery, text), &open)
        .await;
    assert_eq!(outcome, Ok(DeliverOutcome::Delivered), "{text:?}");
    let pressed = async {
        let enter = || rig.runner.settle_enter(it, DeliveryId(delivery), &open);
        while enter().await != Ok(EnterState::Pressed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let pressed = tokio::time::timeout(crate::tmux::PATIENCE, pressed).await;
    assert!(pressed.is_ok(), "Enter is never pressed after {text:?}");
}

#[tokio::test]
async fn no_text_leaves_the_bracket_that_tmux_pastes_it_in() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut expected = String::new();

    for (delivery, text) in (1..).zip(texts()) {
        deliver(&rig, &it, delivery, &text).await;
        let typed = pasted(&readable(&text));
        expected.push_str(&typed);
    }

    let got = rig.folder(1).join("got");
    let typed = || String::from_utf8_lossy(&std::fs::read(&got).unwrap()).into_owned();
    wait_for("all that was typed", || typed().len() >= expected.len());
    assert!(
        typed() == expected,
        "{:?}",
        first_difference(&typed(), &expected)
    );
}

#[tokio::test]
async fn an_agent_reads_every_hostile_text_as_one_message() {
    let rig = Rig::new();
    let agent = env!("CARGO_BIN_EXE_the-loop");
    let script = format!("exec '{agent}' demo-agent --log $DIR/log --conversations $DIR/talks");
    let it = rig.start(1, &script).await;
    let log = rig.folder(1).join("log");
    let entries = || -> Vec<Entry> {
        let records = read(&log).unwrap_or_default();
        records.into_iter().map(|record| record.entry).collect()
    };
    wait_for("a ready agent", || entries().contains(&Entry::Ready {}));
    let texts = texts();

    for (delivery, text) in (1..).zip(&texts) {
        deliver(&rig, &it, delivery, text).await;
    }

    let messages = || -> Vec<(String, bool)> {
        let message = |entry| match entry {
            Entry::Message {
                text, bracketed, ..
            } => Some((text, bracketed)),
            _ => None,
        };
        entries().into_iter().filter_map(message).collect()
    };
    wait_for("every message", || messages().len() >= texts.len());
    for ((read, bracketed), text) in messages().into_iter().zip(&texts) {
        assert!(bracketed, "{text:?}");
        assert!(
            read == readable(text),
            "{:?}",
            first_difference(&read, &readable(text))
        );
    }
    assert_eq!(messages().len(), texts.len());
    assert!(
        !entries()
            .iter()
            .any(|entry| matches!(entry, Entry::End { .. }))
    );
}

/// Where two long texts part, with what each goes on with.
fn first_difference(one: &str, other: &str) -> Option<(usize, String, String)> {
    let at = one
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = |text: &str| text.chars().skip(at).take(40).collect::<String>();
    (one != other).then(|| (at, rest(one), rest(other)))
}
