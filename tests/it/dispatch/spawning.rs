//! First spawns: what the agent gets, and what becomes of one that does not come up.

use std::collections::BTreeSet;

use serde_json::json;
use the_loop::demo::agent::Entry;
use the_loop::model::{DeliveryState, SessionStatus};
use the_loop::process::identity::{boot_id, identify};
use the_loop::runner::Limits;
use the_loop::store::ClaimOwner;

use super::stage::{Stage, item, name, quick, wait_gone};
use super::touchy::{Fate, is_creation};
use crate::support::Scratch;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_gets_exactly_the_environment_that_is_named() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch)
        .set("harnesses.agent.env", json!({ "COLOUR": "blue" }))
        .set("harnesses.agent.passEnv", json!(["LANG"]));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);

    let Entry::Start { env, cwd, .. } = stage.agents.starts().pop().unwrap().entry else {
        panic!("a start");
    };
    let names: BTreeSet<&str> = env.keys().map(String::as_str).collect();
    let expected = [
        "COLOUR",
        "HOME",
        "LANG",
        "PATH",
        "TERM",
        "THE_LOOP_OWNER",
        "THE_LOOP_SESSION",
        "THE_LOOP_WORK_ITEM",
    ];
    assert_eq!(names, BTreeSet::from(expected));
    assert_eq!(env["THE_LOOP_WORK_ITEM"], item(1).to_string());
    assert_eq!(env["THE_LOOP_SESSION"], name(1));
    assert_eq!(cwd, scratch.path("work").display().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_begins_with_200_columns_and_50_rows() {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);

    let target = format!("={}:", name(1));
    let size = [
        "display-message",
        "-p",
        "-t",
        &target,
        "#{pane_width}x#{pane_height}",
    ];
    assert_eq!(scratch.tmux(&size).trim(), "200x50");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ends_at_once_with_an_error_is_a_failed_spawn_with_its_last_words() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch)
        .set("polling.maxRetries", json!(2))
        .set("harnesses.agent.command", json!("/bin/sh"))
        .set(
            "harnesses.agent.args",
            json!(["-c", "echo the licence has expired; exit 3"]),
        )
        .set("harnesses.agent.sessionArgs", json!([]));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;

    let failures = stage.events("session.spawn_failed");
    assert_eq!(failures.len(), 2, "{failures:#?}");
    assert_eq!(failures[0].text("reason"), Some("harness-ended"));
    let error = failures[0].text("error").unwrap();
    assert!(error.contains("exit code 3"), "{error}");
    assert!(error.contains("the licence has expired"), "{error}");
    assert_eq!(failures[1].fields["will_retry"], json!(false));
    let row = stage.queue(1).await.pop().unwrap();
    assert_eq!(row.state, DeliveryState::Abandoned);
    assert!(row.error.unwrap().contains("the licence has expired"));
    assert!(
        stage
            .store
            .registry()
            .latest(&item(1))
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(stage.events("poll.spawn_failed").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ends_at_once_without_an_error_was_started() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch)
        .set("harnesses.agent.command", json!("/bin/sh"))
        .set("harnesses.agent.args", json!(["-c", "echo done; exit 0"]))
        .set("harnesses.agent.sessionArgs", json!([]));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;

    let row = stage.queue(1).await.pop().unwrap();
    assert_eq!(row.state, DeliveryState::Delivered, "{row:?}");
    assert_eq!(stage.session(1).await.status, SessionStatus::Active);
    assert_eq!(stage.events("session.spawned").len(), 1);
    assert!(stage.events("session.spawn_failed").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_named_with_the_key_to_set() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch)
        .set("polling.maxRetries", json!(2))
        .set("harnesses.agent.command", json!("no-such-agent"));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;

    let failures = stage.events("session.spawn_failed");
    assert_eq!(failures.len(), 2, "{failures:#?}");
    assert_eq!(failures[0].text("reason"), Some("not-prepared"));
    let error = failures[0].text("error").unwrap();
    assert!(error.contains("harnesses.agent.command"), "{error}");
    assert!(stage.sessions().is_empty());
    let row = stage.queue(1).await.pop().unwrap();
    assert_eq!(row.state, DeliveryState::Abandoned);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_work_folder_is_named() {
    let scratch = Scratch::new();
    let folder = scratch.path("checkout");
    std::fs::create_dir(&folder).unwrap();
    let the_loop = quick(&scratch)
        .set("polling.maxRetries", json!(2))
        .set("routing.spawnWorkdir", json!(folder));
    let stage = Stage::open(&scratch, &the_loop).await;
    std::fs::remove_dir(&folder).unwrap();
    stage.start(1).await;

    let failures = stage.events("session.spawn_failed");
    assert_eq!(failures.len(), 2, "{failures:#?}");
    assert_eq!(failures[0].text("reason"), Some("not-prepared"));
    let error = failures[0].text("error").unwrap();
    assert!(error.contains(folder.to_str().unwrap()), "{error}");
    assert!(stage.sessions().is_empty());
}

/// A program that vanishes between two events fails its deliveries and spends their budget: it is
/// not tried for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_vanishes_later_spends_the_budget_too() {
    let scratch = Scratch::new();
    let program = scratch.path("agent-link");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_the-loop"), &program).unwrap();
    let the_loop = quick(&scratch)
        .set("polling.maxRetries", json!(2))
        .set("harnesses.agent.command", json!(program));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    std::fs::remove_file(&program).unwrap();
    stage.kill_agent();

    let delivery = stage.comment(1, "anybody home?").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(row.state, DeliveryState::Abandoned, "{row:?}");
    assert_eq!(row.attempts, 2);
    assert_eq!(stage.events("dispatch.failed").len(), 2);
}

/// SP-8: the daemon dies between the ticket and the registration; whoever comes next takes the
/// running agent up, and no second one is started.
#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_whose_daemon_died_is_taken_up() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("routing.tmux.resumeProbeSeconds", json!(3));
    let mut mortal = scratch.command("sleep").arg("1000").spawn().unwrap();
    let process = identify(i32::try_from(mortal.id()).unwrap()).unwrap();
    let owner = ClaimOwner {
        process,
        boot: boot_id(),
    };
    let first = Stage::open_as(&scratch, &the_loop, Limits::default(), owner).await;
    let (said, mut created) = tokio::sync::mpsc::unbounded_channel();
    first.fate(move |call| {
        if is_creation(call) {
            said.send(()).unwrap();
        }
        Fate::Served
    });
    first.know(1).await;
    let work = first.run_start(1).await;
    created.recv().await.unwrap();
    first.agents.wait_ready(1);
    work.abort();
    mortal.kill().unwrap();
    mortal.wait().unwrap();
    wait_gone(process.pid);
    assert_eq!(first.session(1).await.status, SessionStatus::Spawning);

    let second = Stage::open(&scratch, &the_loop).await;
    second.drain().await;

    assert_eq!(second.session(1).await.status, SessionStatus::Active);
    assert_eq!(second.agents.starts().len(), 1);
    assert_eq!(second.events("session.spawned").len(), 1);
    let row = second.queue(1).await.pop().unwrap();
    assert_eq!((row.state, row.attempts), (DeliveryState::Delivered, 1));
}

/// Host and agent are killed inside the probe window, with nobody left to record how: the spawn has
/// failed, and is not waited for in vain.
#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_whose_host_was_killed_too_is_tried_again() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("routing.tmux.resumeProbeSeconds", json!(2));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.know(1).await;
    stage.drain().await;
    let work = stage.run_start(1).await;
    stage.agents.wait_ready(1);
    for process in scratch.processes(" host ") {
        process.signal(rustix::process::Signal::KILL);
    }
    stage.kill_agent();
    work.await.unwrap();

    stage.agents.wait_ready(2);
    assert_eq!(stage.session(1).await.status, SessionStatus::Active);
    assert_eq!(stage.events("session.spawn_failed").len(), 1);
    assert_eq!(stage.agents.starts().len(), 2);
}
