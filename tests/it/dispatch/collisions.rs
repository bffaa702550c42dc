//! A live session where none was expected: never killed, never spawned over.

use serde_json::json;
use the_loop::model::{DeliveryState, OperatorCommand, TmuxFate};

use super::stage::{Stage, name, quick, wait_gone};
use super::touchy::{Fate, is_creation, is_look};
use crate::support::{Scratch, eventually};

const BINARY: &str = env!("CARGO_BIN_EXE_the-loop");

/// The command with which a person starts an agent under an item's name.
fn by_hand(scratch: &Scratch, number: u64) -> Vec<String> {
    let log = scratch.path("agent.jsonl").display().to_string();
    let session = name(number);
    [
        "new-session",
        "-d",
        "-s",
        &session,
        "-x",
        "200",
        "-y",
        "50",
        "--",
        BINARY,
        "demo-agent",
        "--log",
        &log,
    ]
    .map(str::to_owned)
    .into()
}

fn pane(scratch: &Scratch, number: u64) -> String {
    let target = format!("={}:", name(number));
    scratch.tmux(&[
        "display-message",
        "-p",
        "-t",
        &target,
        "#{session_id} #{pane_pid}",
    ])
}

/// AC3, SP-5: a first spawn over a live session of unknown origin fails loudly; the session is not
/// touched, and the error names the remedies, which help.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_spawn_never_touches_a_live_session_of_unknown_origin() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("polling.maxRetries", json!(2));
    let stage = Stage::open(&scratch, &the_loop).await;
    scratch.tmux(&by_hand(&scratch, 1));
    stage.agents.wait_ready(1);
    let before = pane(&scratch, 1);

    stage.start(1).await;

    assert_eq!(pane(&scratch, 1), before);
    assert_eq!(stage.agents.starts().len(), 1);
    assert!(stage.agents.messages().is_empty());
    let failures = stage.events("session.spawn_failed");
    assert_eq!(failures.len(), 2, "{failures:#?}");
    assert_eq!(failures[0].text("reason"), Some("name-taken-live"));
    let error = failures[0].text("error").unwrap();
    let kill = format!(
        "tmux -L {} kill-session -t '={}:'",
        scratch.tmux_socket(),
        name(1)
    );
    assert!(error.contains(&kill), "{error}");
    assert!(
        error.contains("the-loop sessions start demo/app#1"),
        "{error}"
    );
    let rename = format!("rename-session -t '={}:' NAME", name(1));
    assert!(error.contains(&rename), "{error}");
    assert_eq!(stage.events("poll.spawn_failed").len(), 1);
    let given_up = stage.queue(1).await.pop().unwrap();
    assert_eq!(given_up.state, DeliveryState::Abandoned);
    let queue = stage.store.queue();
    assert!(
        queue
            .rearm_given_up("another", |_| {})
            .await
            .unwrap()
            .is_empty()
    );

    let target = format!("={}:", name(1));
    scratch.tmux(&["rename-session", "-t", &target, "mine"]);
    let again = stage.command(1, OperatorCommand::Start).await;
    stage.drain().await;
    assert_eq!(stage.row(again).await.state, DeliveryState::Delivered);
    stage.agents.wait_ready(2);
    assert!(stage.sessions().contains(&"mine".to_owned()));
}

/// A person starts an agent under the name at the chosen call of a respawn.
async fn meets_an_occupant(at: fn(usize, bool) -> bool, adopted: bool) {
    let scratch = Scratch::new();
    let stage = Stage::open(&scratch, &quick(&scratch)).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let agent = stage.newest_agent();
    scratch.tmux(&["set-option", "-s", "exit-empty", "off"]);
    scratch.tmux(&["kill-session", "-t", &format!("={}", name(1))]);
    wait_gone(agent);
    let environment = scratch.environment();
    let (socket, person) = (scratch.tmux_socket().to_owned(), by_hand(&scratch, 1));
    let agents = stage.agents.clone();
    let (mut looks, mut there) = (0, false);
    stage.fate(move |call| {
        if is_look(call) {
            looks += 1;
        }
        if !there && at(looks, is_creation(call)) {
            there = true;
            #[expect(
                clippy::disallowed_methods,
                reason = "a test plays the person at the terminal"
            )]
            let status = std::process::Command::new("tmux")
                .env_clear()
                .envs(&environment)
                .args(["-f", "/dev/null", "-L", &socket])
                .args(&person)
                .status()
                .unwrap();
            assert!(status.success());
            agents.wait_ready(2);
        }
        Fate::Served
    });

    let delivery = stage.comment(1, "come in").await;
    stage.drain().await;

    let row = stage.row(delivery).await;
    assert_eq!(
        row.state,
        DeliveryState::Delivered,
        "{row:?} {:#?}",
        stage.events("*")
    );
    stage.agents.wait_for_message("come in");
    assert_eq!(stage.times_heard("come in"), 1);
    assert_eq!(stage.agents.starts().len(), 2);
    let averted = stage.events("session.respawn_averted");
    assert_eq!(averted.len(), 1);
    assert_eq!(averted[0].fields["adopted"], json!(adopted));
    assert!(stage.events("session.respawned").is_empty());
    assert!(stage.events("dispatch.failed").is_empty());
    // The occupant is the item's session from now on.
    stage.heal();
    stage.comment(1, "and again").await;
    stage.drain().await;
    stage.agents.wait_for_message("and again");
    assert_eq!(stage.agents.starts().len(), 2);
    let registered = stage.session(1).await.target.unwrap();
    let now = pane(&scratch, 1);
    assert_eq!(
        now.trim(),
        format!("{} {}", registered.session_id, registered.host.pid)
    );
}

/// AC6, AC10: the second look shows the session live.
#[tokio::test(flavor = "multi_thread")]
async fn a_respawn_is_averted_when_the_session_turns_out_live() {
    meets_an_occupant(|looks, _| looks == 2, true).await;
}

/// AC7, AC5, AC10: tmux itself says that the name is taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_respawn_that_meets_a_live_occupant_delivers_into_it() {
    meets_an_occupant(|_, creation| creation, true).await;
}

/// AC6, AC7: an occupant that has run for hours is not told to wait until it has started.
#[tokio::test(flavor = "multi_thread")]
async fn an_occupant_is_no_starting_agent() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("harnesses.agent.readyDelaySeconds", json!(120));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let agent = stage.newest_agent();
    scratch.tmux(&["set-option", "-s", "exit-empty", "off"]);
    scratch.tmux(&["kill-session", "-t", &format!("={}", name(1))]);
    wait_gone(agent);
    scratch.tmux(&by_hand(&scratch, 1));
    stage.agents.wait_ready(2);

    let delivery = stage.comment(1, "at once").await;
    let work = stage.run();
    let done = |row: &the_loop::store::QueueRow| row.state.is_final();
    let row = stage.wait_row("delivered", delivery, done).await;
    work.end().await;

    assert_eq!(row.state, DeliveryState::Delivered);
    eventually("the averted respawn", || {
        stage.events("session.respawn_averted").pop()
    });
}

/// SP-5: a person's program that was adopted is not ended with its session, and nobody says so; while
/// it runs, no second agent is started, wherever its session is.
#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_program_outlives_its_session_and_no_agent_is_started_beside_it() {
    let scratch = Scratch::new();
    let the_loop = quick(&scratch).set("polling.maxRetries", json!(1));
    let stage = Stage::open(&scratch, &the_loop).await;
    stage.start(1).await;
    stage.agents.wait_ready(1);
    let agent = stage.newest_agent();
    scratch.tmux(&["set-option", "-s", "exit-empty", "off"]);
    scratch.tmux(&["kill-session", "-t", &format!("={}", name(1))]);
    wait_gone(agent);
    scratch.tmux(&by_hand(&scratch, 1));
    stage.agents.wait_ready(2);
    stage.comment(1, "come in").await;
    stage.drain().await;

    stage
        .command(
            1,
            OperatorCommand::Close {
                tmux: TmuxFate::Kill,
            },
        )
        .await;
    stage.drain().await;

    let ended = stage.events("session.harness_terminated");
    assert_eq!(ended[0].fields["ok"], json!(false), "{ended:#?}");
    scratch.tmux(&["rename-session", "-t", &format!("={}", name(1)), "mine"]);
    stage.command(1, OperatorCommand::Start).await;
    stage.drain().await;
    let failures = stage.events("session.spawn_failed");
    assert_eq!(failures.len(), 1, "{:#?}", stage.events("*"));
    assert_eq!(failures[0].text("reason"), Some("former-agent-live"));
    assert_eq!(stage.agents.starts().len(), 2);
}
