//! Agents that died: the next event starts them again, with their conversation.

use rustix::process::Signal;
use serde_json::json;
use the_loop::demo::agent::Entry;
use the_loop::model::{DeliveryState, OperatorCommand, SessionStatus, TmuxFate};

use super::stage::{Stage, hasty, name, quick, signal, wait_gone};
use super::touchy::{Fate, is_clearing, is_creation, no_server, refusal};
use crate::support::{SOON, Scratch};

/// Starts item 1 and returns its agent's conversation.
async fn started(stage: &Stage<'_>) -> String {
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let session = stage.session(1).await;
    assert_eq!(session.status, SessionStatus::Active);
    session.harness_session_id.to_string()
}

/// The conversation of the newest agent, and whether it was resumed.
fn newest(stage: &Stage<'_>) -> (Option<String>, bool) {
    match stage.agents.starts().pop().unwrap().entry {
        Entry::Start {
            session, resumed, ..
        } => (session, resumed),
        other => panic!("{other:?}"),
    }
}

async fn is_resumed(stage: &Stage<'_>, conversation: &str) {
    let delivery = stage.comment(1, "still there?").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Delivered, "{row:?}");
    stage.agents.wait_ready(2);
    assert_eq!(stage.times_heard("still there?"), 1);
    assert_eq!(newest(stage), (Some(conversation.to_owned()), true));
    let session = stage.session(1).await;
    assert_eq!(session.harness_session_id.as_str(), conversation);
    assert_eq!(stage.sessions(), [name(1)]);
    let respawned = stage.events("session.respawned");
    assert_eq!(respawned.len(), 1);
    assert_eq!(respawned[0].fields["resumed"], json!(true));
    assert!(stage.events("session.resume_failed").is_empty());
}

/// AC12, AC4: the retained session of a killed agent is cleared, and the conversation goes on under
/// the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_is_respawned_with_its_conversation() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let conversation = started(&stage).await;
    stage.kill_agent();
    is_resumed(&stage, &conversation).await;
    let respawned = stage.events("session.respawned");
    assert_eq!(respawned[0].text("ended"), Some("signal:9"));
}

/// SP-4: a person works beside an agent that has ended; the session gives up its name, and that is
/// written down.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_set_aside_is_written_down() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    started(&stage).await;
    let split = ["split-window", "-t", &format!("={}:", name(1)), "--"];
    scratch.tmux(&[&split[..], &["sleep", "600"]].concat());
    stage.kill_agent();

    stage.comment(1, "go on").await;
    stage.drain().await;

    let kept = format!("{}+kept1", name(1));
    let aside = stage.events("session.set_aside");
    assert_eq!(aside.len(), 1, "{:#?}", stage.events("*"));
    assert_eq!(aside[0].text("tmux_target"), Some(name(1).as_str()));
    assert_eq!(aside[0].text("renamed_to"), Some(kept.as_str()));
    let mut sessions = stage.sessions();
    sessions.sort();
    assert_eq!(sessions, [name(1), kept]);
}

/// SP-4: the same when the session is closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_set_aside_at_its_close_is_written_down() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    started(&stage).await;
    let split = ["split-window", "-t", &format!("={}:", name(1)), "--"];
    scratch.tmux(&[&split[..], &["sleep", "600"]].concat());
    let tmux = TmuxFate::Kill;

    stage.command(1, OperatorCommand::Close { tmux }).await;
    stage.drain().await;

    let kept = format!("{}+kept1", name(1));
    let aside = stage.events("session.set_aside");
    assert_eq!(aside.len(), 1, "{:#?}", stage.events("*"));
    assert_eq!(aside[0].text("renamed_to"), Some(kept.as_str()));
    assert_eq!(stage.sessions(), [kept]);
}

/// AC12: the session was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_session_is_respawned_with_its_conversation() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let conversation = started(&stage).await;
    let agent = stage.newest_agent();
    scratch.tmux(&["kill-session", "-t", &format!("={}", name(1))]);
    wait_gone(agent);
    is_resumed(&stage, &conversation).await;
}

/// AC12: the server was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_started_again_for_the_conversation() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let conversation = started(&stage).await;
    let (server, agent) = (stage.server(), stage.newest_agent());
    signal(server, Signal::KILL);
    wait_gone(server);
    wait_gone(agent);
    is_resumed(&stage, &conversation).await;
}

/// AC12: what cannot be resumed begins afresh, under a new id, and says so; the failed attempt's
/// session is cleared away.
#[tokio::test(flavor = "multi_thread")]
async fn an_unresumable_conversation_begins_afresh() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let conversation = started(&stage).await;
    std::fs::remove_dir_all(scratch.path("conversations")).unwrap();
    stage.kill_agent();

    let delivery = stage.comment(1, "who are you?").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Delivered, "{row:?}");
    stage.agents.wait_ready(2);
    let session = stage.session(1).await;
    assert_ne!(session.harness_session_id.as_str(), conversation);
    assert_eq!(
        newest(&stage),
        (Some(session.harness_session_id.to_string()), false)
    );
    assert_eq!(stage.times_heard("who are you?"), 1);
    let failed = stage.events("session.resume_failed");
    assert_eq!(failed.len(), 1);
    assert_eq!(
        failed[0].text("harness_session_id"),
        Some(conversation.as_str())
    );
    let respawned = stage.events("session.respawned");
    assert_eq!(respawned[0].fields["resumed"], json!(false));
    assert_eq!(stage.sessions(), [name(1)]);
}

/// AC12: a harness that has no way to resume.
#[tokio::test(flavor = "multi_thread")]
async fn a_harness_that_cannot_resume_begins_afresh_and_says_so() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("harnesses.agent.resumeArgs", json!(null));
    let stage = Stage::open(&scratch, &the_loop).await;
    let conversation = started(&stage).await;
    stage.kill_agent();

    let delivery = stage.comment(1, "hello again").await;
    stage.drain().await;

    assert_eq!(stage.row(delivery).await.state, DeliveryState::Delivered);
    let session = stage.session(1).await;
    assert_ne!(session.harness_session_id.as_str(), conversation);
    let failed = stage.events("session.resume_failed");
    assert_eq!(failed.len(), 1, "{:#?}", stage.events("*"));
    assert_eq!(stage.times_heard("hello again"), 1);
}

/// AC9, AC12: a respawn that fails in any other way is an ordinary failure that loses neither the
/// event nor the conversation.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_respawn_is_retried_and_loses_nothing() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let conversation = started(&stage).await;
    let before = stage.session(1).await;
    stage.kill_agent();
    let mut first = true;
    stage.fate(move |call| {
        if is_creation(call) && std::mem::take(&mut first) {
            refusal("no space for a new pane")
        } else {
            Fate::Served
        }
    });

    let delivery = stage.comment(1, "try again").await;
    let work = stage.run();
    let failed = |row: &the_loop::store::QueueRow| row.error.is_some();
    let row = stage.wait_row("a failure", delivery, failed).await;
    assert!(row.error.unwrap().contains("no space"));
    let between = stage.session(1).await;
    assert_eq!(between.harness_session_id, before.harness_session_id);
    assert_eq!(between.owner, before.owner);
    stage
        .wait_row("delivered", delivery, |row| row.state.is_final())
        .await;
    work.end().await;

    assert_eq!(stage.row(delivery).await.state, DeliveryState::Delivered);
    assert_eq!(newest(&stage), (Some(conversation), true));
    assert_eq!(stage.times_heard("try again"), 1);
    let failures = stage.events("dispatch.failed");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].fields["will_retry"], json!(true));
}

/// AC9, AC11: a respawn that always fails spends its budget; the give-up names the version, shows
/// why, and another version tries again exactly once.
#[tokio::test(flavor = "multi_thread")]
async fn a_respawn_that_always_fails_is_given_up_and_rearmed_by_another_version_once() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    let conversation = started(&stage).await;
    stage.kill_agent();
    stage.fate(|call| match is_creation(call) {
        true => refusal("no space for a new pane"),
        false => Fate::Served,
    });

    let delivery = stage.comment(1, "in vain").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Abandoned, "{row:?}");
    assert_eq!(row.attempts, 3);
    assert_eq!(stage.events("dispatch.failed").len(), 3);
    assert_eq!(stage.events("poll.comment_failed").len(), 1);
    let session = stage.session(1).await;
    assert_eq!(session.harness_session_id.as_str(), conversation);

    stage.heal();
    let queue = stage.store.queue();
    let same = env!("CARGO_PKG_VERSION");
    assert!(queue.rearm_given_up(same, |_| {}).await.unwrap().is_empty());
    // Not before its last paste can no longer be served.
    let rearmed = async {
        while queue
            .rearm_given_up("next", |_| {})
            .await
            .unwrap()
            .is_empty()
        {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, rearmed).await.unwrap();
    stage.drain().await;
    assert_eq!(stage.row(delivery).await.state, DeliveryState::Delivered);
    assert_eq!(newest(&stage), (Some(conversation), true));
    assert_eq!(stage.times_heard("in vain"), 1);
    assert!(
        queue
            .rearm_given_up("next", |_| {})
            .await
            .unwrap()
            .is_empty()
    );
}

/// AC8, AC10: what is neither live nor clearable is skipped for good, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_occupant_that_cannot_be_cleared_is_skipped_and_never_retried() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    started(&stage).await;
    let before = stage.session(1).await;
    stage.kill_agent();
    let creations = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&creations);
    stage.fate(move |call| {
        if is_creation(call) {
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        match is_clearing(call) {
            true => refusal("permission denied"),
            false => Fate::Served,
        }
    });

    let delivery = stage.comment(1, "knock knock").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Skipped, "{row:?}");
    assert_eq!(row.reason.as_deref(), Some("session-occupied"));
    stage.heal();
    stage.drain().await;
    assert_eq!(stage.row(delivery).await.state, DeliveryState::Skipped);
    assert_eq!(creations.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(stage.session(1).await.owner, before.owner);
    let mut dropped = stage.events("dispatch.dropped");
    dropped.retain(|one| one.text("reason") == Some("session-occupied"));
    assert_eq!(dropped.len(), 1);
    assert!(stage.events("dispatch.failed").is_empty());
    assert!(stage.events("session.respawned").is_empty());
}

/// AC5: tmux says `duplicate session` to a name that a look shows free: decided again, tried once
/// more, and no further.
#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_name_is_tried_once_more_and_no_further() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("polling.maxRetries", json!(1));
    let stage = Stage::open_with(&scratch, &the_loop, hasty()).await;
    started(&stage).await;
    stage.kill_agent();
    let creations = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&creations);
    stage.fate(move |call| {
        if !is_creation(call) {
            return Fate::Served;
        }
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        refusal("duplicate session: x")
    });

    let delivery = stage.comment(1, "twice at most").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Abandoned, "{row:?}");
    assert_eq!(creations.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(stage.events("session.resume_failed").len(), 0);
}

/// Clearing the last session takes its server with it; the respawn goes on with a new one at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ended_with_the_cleared_session_is_started_again() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let conversation = started(&stage).await;
    stage.kill_agent();
    let mut first = true;
    stage.fate(move |call| {
        if is_creation(call) && std::mem::take(&mut first) {
            no_server()
        } else {
            Fate::Served
        }
    });
    is_resumed(&stage, &conversation).await;
    assert!(stage.events("dispatch.failed").is_empty());
}
