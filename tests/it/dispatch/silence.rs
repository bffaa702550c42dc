//! A tmux that does not answer: nothing is lost, nothing is said twice, nothing is started.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use the_loop::model::DeliveryState;

use super::stage::{Stage, hasty, quick, signal};
use super::touchy::{Fate, is_creation, is_paste};
use crate::support::Scratch;

/// AC1, AC2: a server that is too busy to answer is no reason to start anything; the message fails
/// as an ordinary fault, and is in the same session, once, as soon as the server is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_delays_a_message_and_starts_nothing() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let before = stage.session(1).await;
    let server = stage.server();

    signal(server, Signal::STOP);
    let delivery = stage.comment(1, "are you there?").await;
    let work = stage.run();
    let failed = |row: &the_loop::store::QueueRow| row.error.is_some();
    let row = stage.wait_row("a failure", delivery, failed).await;
    assert!(!row.state.is_final(), "{row:?}");
    assert_eq!(stage.times_heard("are you there?"), 0);
    signal(server, Signal::CONT);
    stage
        .wait_row("delivered", delivery, |row| row.state.is_final())
        .await;
    work.end().await;

    stage.wait_heard("are you there?");
    assert_eq!(stage.row(delivery).await.state, DeliveryState::Delivered);
    assert_eq!(stage.times_heard("are you there?"), 1);
    assert_eq!(stage.agents.starts().len(), 1);
    assert_eq!(stage.session(1).await.target, before.target);
    assert!(!stage.events("dispatch.failed").is_empty());
    assert!(stage.events("session.respawn*").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paste_whose_answer_was_lost_is_not_repeated() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    stage.fate(|call| match is_paste(call) {
        true => Fate::AnswerLost,
        false => Fate::Served,
    });

    let delivery = stage.comment(1, "only once").await;
    stage.drain().await;

    assert_eq!(stage.row(delivery).await.state, DeliveryState::Delivered);
    stage.wait_heard("only once");
    assert_eq!(stage.times_heard("only once"), 1);
}

/// The last attempt's paste is served after everybody has given up waiting for it: the delivery must
/// not be given up in between.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_attempt_is_not_given_up_while_it_may_still_be_served() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let pastes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pastes);
    stage.fate(move |call| {
        if !is_paste(call) {
            return Fate::Served;
        }
        match counted.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Fate::Lost,
            _ => Fate::Late(Duration::from_millis(600)),
        }
    });

    let delivery = stage.comment(1, "late, but once").await;
    stage.drain().await;

    stage.wait_heard("late, but once");
    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Delivered, "{row:?}");
    assert_eq!(pastes.load(Ordering::SeqCst), 3);
    assert_eq!(stage.times_heard("late, but once"), 1);
    assert!(stage.events("poll.comment_failed").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_never_gets_in_is_given_up_once_and_never_said() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    stage.fate(|call| match is_paste(call) {
        true => Fate::Lost,
        false => Fate::Served,
    });

    let delivery = stage.comment(1, "unheard-of").await;
    stage.drain().await;
    stage.heal();
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Abandoned, "{row:?}");
    assert_eq!(row.attempts, 3);
    let failures = stage.events("dispatch.failed");
    let retries: Vec<_> = failures
        .iter()
        .map(|one| one.fields["will_retry"].clone())
        .collect();
    assert_eq!(retries.last(), Some(&json!(false)), "{failures:#?}");
    let given_up = stage.events("poll.comment_failed");
    assert_eq!(given_up.len(), 1);
    assert_eq!(given_up[0].text("version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(stage.times_heard("unheard-of"), 0);
}

/// Without tmux there is no telling whether an earlier paste is in: the delivery waits, visibly, and
/// goes on when tmux is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_tmux_that_is_away_for_long_costs_one_attempt() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    stage.fate(|_| Fate::Lost);

    let delivery = stage.comment(1, "after a while").await;
    let work = stage.run();
    let held = |row: &the_loop::store::QueueRow| row.reason.as_deref() == Some("tmux-silent");
    stage.wait_row("held", delivery, held).await;
    stage.heal();
    let done = |row: &the_loop::store::QueueRow| row.state.is_final();
    let row = stage.wait_row("delivered", delivery, done).await;
    work.end().await;

    assert_eq!(row.state, DeliveryState::Delivered, "{row:?}");
    assert_eq!(stage.events("dispatch.failed").len(), 1);
    stage.wait_heard("after a while");
    assert_eq!(stage.times_heard("after a while"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_is_served_after_it_was_given_up_starts_nothing() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    let creations = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&creations);
    stage.fate(move |call| {
        if is_creation(call) && counted.fetch_add(1, Ordering::SeqCst) == 0 {
            Fate::Late(Duration::from_millis(300))
        } else {
            Fate::Served
        }
    });

    stage.start(1).await;
    stage.agents.wait_ready(1);

    assert_eq!(stage.agents.starts().len(), 1);
    assert_eq!(creations.load(Ordering::SeqCst), 2);
    assert_eq!(stage.sessions().len(), 1);
}
