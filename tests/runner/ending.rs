//! Ending agents on purpose, and looking at them.

use std::time::Duration;

use the_loop::model::{Ending, Phase};
use the_loop::process::identity::{Life, life};
use the_loop::runner::{
    Address, Cleared, EndOutcome, FenceLost, LocalMachine, Machine, Probe, Remains, RunnerError,
    TmuxRunner, last_lines,
};

use crate::rig::{Rig, address, closed, open};
use crate::tmux::{PrivateTmux, wait_for};

const GRACE: Duration = Duration::from_millis(200);

/// How the agent ended, as its host recorded it.
fn ending(rig: &Rig, it: &Address) -> Option<Ending> {
    let machine = LocalMachine::new(rig.dir.path().join("state"));
    match machine.record(it.owner.as_ref()?)?.phase {
        Phase::Ended { ending, .. } => Some(ending),
        Phase::Starting | Phase::Running { .. } => None,
    }
}

#[tokio::test]
async fn an_agent_is_ended_by_its_host_and_its_screen_stays() {
    let rig = Rig::new();
    let it = rig.start(1, "echo at work; exec sleep 600").await;

    rig.tmux.wait_for_text(&format!("={}:", it.name), "at work");

    let outcome = rig.runner.end(&it, GRACE, &open).await;

    assert_eq!(outcome, Ok(EndOutcome::Ended));
    assert_eq!(ending(&rig, &it), Some(Ending::Signal(15)));
    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::Retained));
    let screen = rig.runner.capture(&it).await.unwrap().unwrap();
    assert!(screen.contains("at work"), "{screen}");
    assert!(!last_lines(&screen, 5).is_empty());
    assert_eq!(rig.runner.clear(&it, &open).await, Ok(Cleared::Free));
    assert_eq!(rig.runner.capture(&it).await, Ok(None));
    let again = rig.runner.end(&it, GRACE, &open).await;
    assert_eq!(again, Ok(EndOutcome::Ended));
}

#[tokio::test]
async fn an_agent_that_ignores_the_request_is_killed_by_its_host() {
    let rig = Rig::new();
    let it = rig
        .start(
            1,
            "trap '' TERM HUP; : > $DIR/deaf; while :; do sleep 0.05; done",
        )
        .await;
    let deaf = rig.folder(1).join("deaf");
    wait_for("a deaf agent", || deaf.exists());

    let outcome = rig.runner.end(&it, GRACE, &open).await;

    assert_eq!(outcome, Ok(EndOutcome::Ended));
    assert_eq!(ending(&rig, &it), Some(Ending::Signal(9)));
    let harness = it.target.unwrap().harness;
    assert_eq!(life(&harness), Life::Gone);
}

#[tokio::test]
async fn a_persons_program_is_not_ours_to_end() {
    let rig = Rig::new();
    let name = address(1).name;
    rig.persons_session(name.as_str());
    let found = rig.runner.occupant(&address(1)).await.unwrap().unwrap();
    let it = Address {
        name,
        owner: Some(the_loop::model::OwnerId::mint()),
        target: Some(found.target),
    };

    let outcome = rig.runner.end(&it, GRACE, &open).await;

    assert_eq!(outcome, Ok(EndOutcome::NotOurs));
    assert!(crate::rig::runs(&it));
}

#[tokio::test]
async fn work_that_was_taken_over_ends_nobody() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;

    let error = rig.runner.end(&it, GRACE, &closed).await.unwrap_err();

    assert_eq!(error, RunnerError::FenceLost(FenceLost::Taken));
    assert!(crate::rig::runs(&it));
}

#[tokio::test]
async fn a_person_attaches_to_the_recorded_session_on_its_server() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let runner = TmuxRunner::new(
        the_loop::runner::RealTmux::new(PrivateTmux::program()),
        LocalMachine::new(rig.dir.path().join("state")),
        the_loop::model::TmuxSocket::Default,
        the_loop::runner::Limits::default(),
    );

    let command = runner.attach_command(&it, the_loop::runner::Access::ReadOnly);

    let line = command.to_string();
    let socket = rig.tmux.socket();
    assert!(line.contains(&format!("-S {}", socket.display())), "{line}");
    let words = format!("attach-session -r -t '={}:'", it.name);
    assert!(line.ends_with(&words), "{line}");
}
