//! Starting agents over nobody.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use the_loop::clock::{ManualClock, SystemClock};
use the_loop::model::{DeliveryId, Ending, Phase, TmuxSocket};
use the_loop::process::ticket;
use the_loop::runner::{
    FenceLost, Limits, Probe, RunnerError, SpawnOutcome, Survival, TokenState, Unanswered,
};

use crate::rig::{Loss, Rig, closed, item, open, respawning, spawned};
use crate::tmux::{PATIENCE, wait_for};

#[tokio::test]
async fn a_spawn_is_one_session_with_our_options_and_size() {
    let rig = Rig::new();
    let mut plan = rig.plan(1, "exec sleep 600");
    plan.boot_delivery = Some(DeliveryId(7));

    let pane = spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    let shown = rig.tmux.ok(&[
        "display-message",
        "-p",
        "-t",
        &pane.pane.to_string(),
        "#{session_name} #{window_width}x#{window_height} #{@loop_item} #{@loop_owner} #{@loop_d_7}",
    ]);
    assert_eq!(
        shown,
        format!(
            "{} 200x50 github:o/r#1 {} boot",
            plan.address.name, plan.owner
        )
    );
    assert_eq!(pane.server, rig.tmux.server());
    assert_eq!(pane.socket, rig.tmux.socket());
}

#[tokio::test]
async fn an_agent_that_goes_on_survives_and_its_boot_token_is_set() {
    let rig = Rig::new();
    let mut plan = rig.plan(1, "exec sleep 600");
    plan.boot_delivery = Some(DeliveryId(7));
    let pane = spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    let survival = rig
        .runner
        .survives(&plan.owner, &pane, Duration::from_millis(50), &SystemClock)
        .await;

    let Survival::Survived(target) = survival else {
        panic!("{survival:?}");
    };
    let address = the_loop::runner::Address {
        name: plan.address.name.clone(),
        owner: Some(plan.owner.clone()),
        target: Some(target),
    };
    let token = rig.runner.read_token(&address, DeliveryId(7)).await;
    assert_eq!(token, Ok(TokenState::Pasted));
}

#[tokio::test]
async fn the_window_of_an_agent_that_nobody_watched_counts_from_its_start() {
    let rig = Rig::new();
    let plan = rig.plan(1, "exec sleep 600");
    let pane = spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());
    let window = Duration::from_secs(3600);
    let later = ManualClock::starting_at(Utc::now() + TimeDelta::hours(1));

    let watched = rig.runner.survives(&plan.owner, &pane, window, &later);
    let survival = tokio::time::timeout(PATIENCE, watched).await;

    assert!(
        matches!(survival, Ok(Survival::Survived(_))),
        "{survival:?}"
    );
}

#[tokio::test]
async fn an_agent_that_ends_with_an_error_is_a_failed_spawn_with_its_last_words() {
    let rig = Rig::new();
    let plan = rig.plan(1, "echo working; echo no such conversation; exit 4");
    let pane = spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    let survival = rig
        .runner
        .survives(&plan.owner, &pane, Duration::from_secs(10), &SystemClock)
        .await;

    let Survival::Failed { ending, screen } = survival else {
        panic!("{survival:?}");
    };
    assert_eq!(ending, Ending::Code(4));
    assert!(
        screen.iter().any(|line| line == "no such conversation"),
        "{screen:?}"
    );
}

#[tokio::test]
async fn an_agent_that_is_done_at_once_ended_clean() {
    let rig = Rig::new();
    let plan = rig.plan(1, "exit 0");
    let pane = spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    let survival = rig
        .runner
        .survives(&plan.owner, &pane, Duration::from_secs(10), &SystemClock)
        .await;

    assert!(matches!(survival, Survival::EndedClean(_)), "{survival:?}");
}

#[tokio::test]
async fn a_live_agent_is_never_spawned_over() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let plan = rig.plan(1, "exec sleep 600");

    let outcome = rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap();

    assert_eq!(outcome, SpawnOutcome::LiveOccupant);
    assert!(crate::rig::runs(&it));
    assert_eq!(rig.session_count(), 1);
    assert!(plan.ticket.exists(), "the ticket was not taken");
}

#[tokio::test]
async fn of_two_spawns_at_once_one_makes_the_session_and_the_other_finds_it() {
    let rig = Rig::new();
    let other = rig.another(Vec::new());
    for number in 1..=5 {
        let plans = [
            rig.plan(number, "exec sleep 600"),
            rig.plan(number, "exec sleep 600"),
        ];

        let (first, second) = tokio::join!(
            rig.runner.spawn(&plans[0], &open, &|_| {}),
            other.spawn(&plans[1], &open, &|_| {})
        );

        let outcomes = [first.unwrap(), second.unwrap()];
        let made = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, SpawnOutcome::Spawned(_)))
            .count();
        assert_eq!(made, 1, "{outcomes:?}");
        assert!(outcomes.contains(&SpawnOutcome::LiveOccupant));
    }
    assert_eq!(rig.session_count(), 5);
}

#[tokio::test]
async fn a_duplicate_session_is_tmux_own_word_for_a_live_occupant() {
    let rig = Rig::losing(vec![]);
    let it = rig.start_recorder(1).await;
    // The probe before the spawn gets lost, as with a server that is too busy to answer.
    let runner = rig.another(vec![Loss::Unasked]);
    let plan = rig.plan(1, "exec sleep 600");

    let outcome = runner.spawn(&plan, &open, &|_| {}).await.unwrap();

    assert_eq!(outcome, SpawnOutcome::LiveOccupant);
    assert!(crate::rig::runs(&it));
}

#[tokio::test]
async fn a_duplicate_session_that_nobody_can_explain_counts_as_live() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let runner = rig.another(vec![Loss::Unasked, Loss::None, Loss::None, Loss::Unasked]);
    let plan = rig.plan(1, "exec sleep 600");

    let outcome = runner.spawn(&plan, &open, &|_| {}).await.unwrap();

    assert_eq!(outcome, SpawnOutcome::LiveOccupant);
    assert!(crate::rig::runs(&it));
}

#[tokio::test]
async fn a_duplicate_session_that_has_ended_is_cleared_and_spawned_once_more() {
    let rig = Rig::new();
    rig.start_and_end(1).await;
    let runner = rig.another(vec![Loss::Unasked]);
    let plan = rig.plan(1, "exec sleep 600");

    let pane = spawned(runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    let survival = runner
        .survives(&plan.owner, &pane, Duration::ZERO, &SystemClock)
        .await;
    assert!(matches!(survival, Survival::Survived(_)), "{survival:?}");
    assert_eq!(rig.session_count(), 1);
}

#[tokio::test]
async fn a_retained_session_makes_way_for_its_successor() {
    let rig = Rig::new();
    let before = rig.start_and_end(1).await;
    let mut plan = rig.plan(1, "exec sleep 600");
    plan.address = before;

    let pane = spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    let survival = rig
        .runner
        .survives(&plan.owner, &pane, Duration::ZERO, &SystemClock)
        .await;
    assert!(matches!(survival, Survival::Survived(_)), "{survival:?}");
    assert_eq!(rig.session_count(), 1);
}

#[tokio::test]
async fn what_tmux_refuses_to_clear_is_unclearable_and_not_spawned_over() {
    let rig = Rig::new();
    let before = rig.start_and_end(1).await;
    let mut plan = rig.plan(1, "exec sleep 600");
    plan.address = before.clone();
    // Somebody starts a program in the pane between our look and our kill.
    let fence = respawning(&rig, &before);

    let outcome = rig.runner.spawn(&plan, &fence, &|_| {}).await.unwrap();

    assert!(
        matches!(outcome, SpawnOutcome::Unclearable(_)),
        "{outcome:?}"
    );
    assert!(plan.ticket.exists(), "the ticket was not taken");
    assert_eq!(rig.session_count(), 1);
}

#[tokio::test]
async fn a_spawn_that_is_served_after_its_ticket_was_revoked_is_harmless() {
    let rig = Rig::hasty();
    rig.persons_session("other");
    let plan = rig.plan(1, ": > $DIR/started; exec sleep 600");
    rig.freeze();

    let error = rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap_err();

    assert!(
        matches!(
            error,
            RunnerError::Unanswered(Unanswered::TimedOut { .. } | Unanswered::Silent { .. })
        ),
        "{error}"
    );
    ticket::revoke(&rig.paths(&plan.owner)).unwrap();
    rig.thaw();
    rig.tmux.wait_for("only the other session", |tmux| {
        tmux.sessions() == ["other"]
    });
    assert!(!rig.folder(1).join("started").exists());
    assert_eq!(ticket::record(&rig.paths(&plan.owner)).unwrap(), None);
}

#[tokio::test]
async fn a_host_without_a_ticket_is_a_spawn_that_failed() {
    let rig = Rig::new();
    let plan = rig.plan(1, "exec sleep 600");
    ticket::revoke(&rig.paths(&plan.owner)).unwrap();

    let outcome = rig.runner.spawn(&plan, &open, &|_| {}).await;

    if let Ok(SpawnOutcome::Spawned(pane)) = outcome {
        let survival = rig
            .runner
            .survives(&plan.owner, &pane, Duration::from_secs(10), &SystemClock)
            .await;
        assert_eq!(survival, Survival::HostGone);
    }
    wait_for("no session", || rig.session_count() == 0);
}

#[tokio::test]
async fn work_that_was_taken_over_makes_no_session() {
    let rig = Rig::new();
    let plan = rig.plan(1, "exec sleep 600");

    let error = rig.runner.spawn(&plan, &closed, &|_| {}).await.unwrap_err();

    assert_eq!(error, RunnerError::FenceLost(FenceLost::Taken));
    assert_eq!(rig.session_count(), 0);
}

/// tmux before 3.7 would crash, with every agent and every person's work on the server.
#[tokio::test]
async fn a_server_that_a_new_session_would_end_is_left_alone() {
    let rig = Rig::new();
    rig.persons_session("mine");
    let server = rig.tmux.server();
    rig.tmux.ok(&["set-option", "-gw", "window-size", "manual"]);

    let plan = rig.plan(1, "exec sleep 600");
    let made = rig.runner.spawn(&plan, &open, &|_| {}).await;

    if let Err(error) = made {
        assert!(error.to_string().contains("window-size latest"), "{error}");
        assert_eq!(rig.session_count(), 1);
    }
    assert_eq!(rig.tmux.server(), server);
}

#[tokio::test]
async fn a_configuration_that_ends_and_keeps_sessions_does_not_touch_ours() {
    let rig = Rig::new();
    rig.tmux.ok(&[
        "set-option",
        "-g",
        "destroy-unattached",
        "on",
        ";",
        "set-option",
        "-gw",
        "remain-on-exit",
        "on",
        ";",
        "set-option",
        "-g",
        "default-shell",
        "/bin/sh",
    ]);
    let it = rig.start(1, "exec sleep 600").await;

    assert_eq!(rig.runner.probe(&it).await, Probe::Live);
    let target = it.target.unwrap();
    the_loop::process::signal::signal(&target.host, the_loop::process::signal::Signal::Kill)
        .unwrap();
    rig.tmux
        .wait_for("no pane that stays dead", |tmux| tmux.sessions().is_empty());
}

#[tokio::test]
async fn a_server_is_started_where_none_runs_and_keeps_none_of_our_secrets() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let socket = TmuxSocket::Path(folder.path().join("cold"));
    let runner = Rig::runner_on(&socket, &rig.dir, Limits::default(), Vec::new());
    let plan = rig.plan(1, "exec sleep 600");

    let pane = spawned(runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    assert_eq!(pane.socket, folder.path().join("cold"));
    let environment = std::fs::read(format!("/proc/{}/environ", pane.server.pid));
    if let Ok(environment) = environment {
        let text = String::from_utf8_lossy(&environment);
        assert!(!text.contains("CARGO"), "{text}");
    }
    the_loop::process::signal::signal(&pane.server, the_loop::process::signal::Signal::Terminate)
        .unwrap();
    let host = pane.host.unwrap();
    wait_for("the end of server and host", || {
        [&pane.server, &host].iter().all(|process| {
            the_loop::process::identity::life(process) == the_loop::process::identity::Life::Gone
        })
    });
}

#[tokio::test]
async fn no_server_is_started_while_a_recorded_one_runs_without_its_socket() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let target = it.target.clone().unwrap();
    std::fs::remove_file(rig.tmux.socket()).unwrap();
    let mut plan = rig.plan(2, "exec sleep 600");
    plan.recorded_servers = vec![(target.boot.clone(), target.server)];

    let error = rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap_err();

    assert!(matches!(error, RunnerError::Refused { .. }), "{error}");
    assert!(!rig.tmux.socket().exists());
    // Asked for by name, the recorded one makes its socket again.
    assert_eq!(rig.runner.probe(&it).await, Probe::Live);
}

#[tokio::test]
async fn arguments_that_end_in_a_semicolon_reach_the_host_whole() {
    let rig = Rig::new();
    let mut plan = rig.plan(1, "exec sleep 600");
    let odd = rig.dir.path().join("odd;");
    std::os::unix::fs::symlink(&plan.host_binary, &odd).unwrap();
    plan.host_binary = odd;

    spawned(rig.runner.spawn(&plan, &open, &|_| {}).await.unwrap());

    wait_for("a running agent", || {
        ticket::record(&rig.paths(&plan.owner))
            .unwrap()
            .is_some_and(|record| matches!(record.phase, Phase::Running { .. }))
    });
    assert_eq!(plan.work_item, item(1));
}

#[tokio::test]
async fn a_server_may_be_named_instead_of_found_at_a_path() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let socket = rig.tmux.socket();
    let sockets = socket.parent().unwrap().parent().unwrap();
    let named = the_loop::runner::TmuxRunner::new(
        the_loop::runner::RealTmux::new(crate::tmux::PrivateTmux::program())
            .with_sockets_in(sockets.to_owned()),
        the_loop::runner::LocalMachine::new(rig.dir.path().join("state")),
        TmuxSocket::Name(rig.tmux.name().to_owned()),
        Limits::default(),
    );
    let unrecorded = crate::rig::address(1);

    let found = named.occupant(&unrecorded).await.unwrap().unwrap();

    assert_eq!(Some(found.target), it.target);
}
