//! Commands on work items, beside everything else that happens.

use std::time::Duration;

use rustix::process::Signal;
use the_loop::model::{DeliveryState, OperatorCommand, SessionStatus, TmuxFate};

use super::stage::{Stage, hasty, name, quick, signal, wait_gone};
use super::touchy::{Fate, is_clearing, refusal};
use crate::support::{SOON, Scratch, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_session_drops_what_is_new_and_keeps_what_came_before() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);

    let earlier = stage.comment(1, "before the pause").await;
    stage.command(1, OperatorCommand::Pause).await;
    let began = std::time::Instant::now();
    stage.drain().await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "a pause is not waited for"
    );
    assert_eq!(stage.session(1).await.status, SessionStatus::Paused);
    assert_eq!(stage.row(earlier).await.state, DeliveryState::Held);
    let later = stage.comment(1, "during the pause").await;
    let work = stage.run();
    stage.command(1, OperatorCommand::Resume).await;
    let done = |row: &the_loop::store::QueueRow| row.state.is_final();
    let began = std::time::Instant::now();
    let earlier = stage.wait_row("the earlier one", earlier, done).await;
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "a resume is not slept through"
    );
    let later = stage.wait_row("the later one", later, done).await;
    work.end().await;

    assert_eq!(earlier.state, DeliveryState::Delivered);
    assert_eq!(later.state, DeliveryState::Dropped, "{later:?}");
    assert_eq!(later.reason.as_deref(), Some("session-paused"));
    stage.wait_heard("before the pause");
    assert_eq!(stage.times_heard("during the pause"), 0);
}

/// What waits when a session is stopped is dropped, each with a line of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_agent_and_says_of_each_waiting_text_that_it_is_dropped() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let agent = stage.newest_agent();
    let waiting = [stage.comment(1, "one").await, stage.comment(1, "two").await];

    stage.command(1, OperatorCommand::Stop).await;
    stage.drain().await;

    wait_gone(agent);
    assert_eq!(stage.session(1).await.status, SessionStatus::Closed);
    for delivery in waiting {
        let row = stage.row(delivery).await;
        assert_eq!(row.state, DeliveryState::Dropped, "{row:?}");
        assert_eq!(row.reason.as_deref(), Some("session-stopped"));
    }
    let mut dropped = stage.events("dispatch.dropped");
    dropped.retain(|one| one.text("reason") == Some("session-stopped"));
    assert_eq!(dropped.len(), 2, "{dropped:#?}");
    // The screen stays readable.
    assert_eq!(stage.sessions(), [name(1)]);
    let next = stage.comment(1, "three").await;
    stage.drain().await;
    assert_eq!(
        stage.row(next).await.reason.as_deref(),
        Some("awaiting-start")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_gets_nothing_of_what_waited_for_it() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let waiting = stage.comment(1, "too late").await;

    let close = OperatorCommand::Close {
        tmux: TmuxFate::Kill,
    };
    stage.command(1, close).await;
    stage.drain().await;

    assert_eq!(stage.session(1).await.status, SessionStatus::Closed);
    assert_eq!(stage.row(waiting).await.state, DeliveryState::Dropped);
    assert_eq!(stage.agents.starts().len(), 1);
    assert!(stage.sessions().is_empty());
}

/// Ending an agent needs no tmux: its own host does it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_agent_while_tmux_is_frozen() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let (agent, server) = (stage.newest_agent(), stage.server());

    signal(server, Signal::STOP);
    let stop = stage.command(1, OperatorCommand::Stop).await;
    stage.drain().await;
    let row = stage.row(stop).await;
    signal(server, Signal::CONT);

    assert_eq!(row.state, DeliveryState::Delivered, "{row:?}");
    wait_gone(agent);
    assert_eq!(stage.session(1).await.status, SessionStatus::Closed);
}

/// A session that is to go waits for a frozen tmux, and goes when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_close_waits_for_a_frozen_tmux_and_then_ends_the_session() {
    let scratch = Scratch::new();
    let stage = Stage::open_with(&scratch, &quick(&scratch), hasty()).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let server = stage.server();

    signal(server, Signal::STOP);
    let close = OperatorCommand::Close {
        tmux: TmuxFate::Kill,
    };
    let close = stage.command(1, close).await;
    let work = stage.run();
    let held = |row: &the_loop::store::QueueRow| row.state == DeliveryState::Held;
    stage.wait_row("held", close, held).await;
    assert_eq!(stage.session(1).await.status, SessionStatus::Active);
    signal(server, Signal::CONT);
    let done = |row: &the_loop::store::QueueRow| row.state.is_final();
    let row = stage.wait_row("closed", close, done).await;
    work.end().await;

    assert_eq!(row.state, DeliveryState::Delivered);
    wait_until("the session is gone", SOON, || stage.sessions().is_empty());
}

/// A command that fails spends a budget like everything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_always_fails_is_given_up() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    stage.fate(|call| match is_clearing(call) {
        true => refusal("permission denied"),
        false => Fate::Served,
    });
    let close = OperatorCommand::Close {
        tmux: TmuxFate::Kill,
    };
    let close = stage.command(1, close).await;
    stage.drain().await;

    // What cannot be cleared is left readable, and the session is closed all the same.
    let row = stage.row(close).await;
    assert!(row.state.is_final(), "{row:?}");
    assert_eq!(stage.events("session.retained").len(), 1);
}
