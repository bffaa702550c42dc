use super::*;
use tokio::time::Instant;

fn plan(recorded_servers: Vec<(BootId, ProcessId)>) -> SpawnPlan {
    SpawnPlan {
        address: Address {
            owner: None,
            target: None,
            ..address()
        },
        owner: owner(),
        work_item: "github:o/r#15".parse().unwrap(),
        boot_delivery: None,
        host_binary: "/bin/the-loop".into(),
        ticket: "/state/run/o/ticket".into(),
        cwd: "/work".into(),
        columns: 200,
        rows: 50,
        recorded_servers,
    }
}

fn sizes_windows() -> Said {
    said("latest\nloop-is|3.3")
}

fn made() -> Said {
    let name = name();
    said(&format!(
        "loop-made|41|$1|%2|43|/tmp/tmux/s\nloop-ready|{OWNER}|{name}"
    ))
}

/// The first `new-session` is answered like this, and a second one makes the session.
async fn spawn(
    first: Said,
    runner_of: impl FnOnce(Vec<Said>) -> Runner,
    plan: &SpawnPlan,
) -> (Result<SpawnOutcome, RunnerError>, Vec<Start>) {
    let runner = runner_of(vec![
        name_free(),
        sizes_windows(),
        first,
        name_free(),
        sizes_windows(),
        made(),
    ]);
    let outcome = runner.spawn(plan, &open, &|_| {}).await;
    let makes = |call: &Invocation| matches!(call.commands[0], TmuxCommand::NewSession { .. });
    let calls = calls(&runner);
    let making: Vec<_> = calls.iter().filter(|call| makes(call)).collect();
    assert!(
        making
            .iter()
            .all(|call| call.folder.as_ref() == Some(&plan.cwd))
    );
    (outcome, making.iter().map(|call| call.start).collect())
}

#[tokio::test]
async fn only_a_server_that_was_not_there_is_asked_again() {
    let ended = [
        nobody_listens(),
        complained("no server running on /tmp/tmux/s"),
        complained("error connecting to /tmp/tmux/s (No such file or directory)"),
        complained("server exited unexpectedly"),
    ];
    for first in ended {
        let (outcome, starts) = spawn(
            first,
            |said| runner(said, Table::default()),
            &plan(Vec::new()),
        )
        .await;
        assert!(
            matches!(outcome, Ok(SpawnOutcome::Spawned(_))),
            "{outcome:?}"
        );
        assert_eq!(starts, [Start::Allowed, Start::Allowed]);
    }
    let (refused, starts) = spawn(
        complained("no space"),
        |said| runner(said, Table::default()),
        &plan(Vec::new()),
    )
    .await;
    let doing = "make the session";
    let words = "no space".to_owned();
    assert_eq!(refused, Err(RunnerError::Refused { doing, words }));
    assert_eq!(starts.len(), 1);
}

#[tokio::test]
async fn a_server_that_a_new_session_would_crash_gets_none() {
    for (size, version, survives) in [
        ("manual", "2.9", false),
        ("manual", "3.6b", false),
        ("manual", "master", false),
        ("manual", "3.7", true),
        ("manual", "3.10", true),
        ("latest", "3.6", true),
    ] {
        let answer = said(&format!("{size}\nloop-is|{version}"));
        let runner = runner([answer], Table::default());
        let seen = runner.see_that_it_survives().await;
        assert_eq!(seen.is_ok(), survives, "{size} {version}: {seen:?}");
    }
}

#[test]
fn the_persons_configuration_is_blamed_only_where_it_was_read() {
    for (start, socket, blamed) in [
        (Start::Allowed, TmuxSocket::Default, true),
        (Start::Never, TmuxSocket::Default, false),
        (Start::Allowed, TmuxSocket::Name("own".to_owned()), false),
    ] {
        let script = runner([], Table::default()).tmux;
        let runner = TmuxRunner::new(script, Table::default(), socket, LIMITS);
        let words = runner.server_ended(start, "gone").to_string();
        assert_eq!(words.contains("window-size"), blamed, "{words}");
    }
}

#[tokio::test]
async fn a_success_that_prints_no_session_is_no_answer() {
    let (outcome, _) = spawn(
        said("hello"),
        |said| runner(said, Table::default()),
        &plan(Vec::new()),
    )
    .await;

    let silent = RunnerError::Unanswered(Unanswered::NoVerdict {
        detail: "no session was printed: \"\"".to_owned(),
    });
    assert_eq!(outcome, Err(silent));
}

#[tokio::test(start_paused = true)]
async fn a_recorded_server_that_nobody_reaches_is_given_a_moment_to_end() {
    let recorded = plan(vec![(boot(), process(SERVER))]);
    let moment = LIMITS.socket;
    for (life, waits, start) in [
        (Life::Running, true, Start::Never),
        (Life::Gone, false, Start::Allowed),
    ] {
        let began = Instant::now();
        let of = |said| runner(said, Table::default().with(SERVER, life));

        let (outcome, starts) = spawn(nobody_listens(), of, &recorded).await;

        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(starts, [start, start]);
        let took = began.elapsed();
        assert_eq!(took >= moment, waits, "{took:?}");
        assert!(took < moment * 2, "{took:?}");
    }
}

#[tokio::test]
async fn an_agent_on_another_server_is_looked_for_there_first() {
    let elsewhere = TmuxSocket::Path("/elsewhere/s".into());
    let plan_with = |socket: &TmuxSocket| {
        let mut plan = plan(Vec::new());
        plan.address = address();
        if let Some(target) = &mut plan.address.target {
            target.socket = socket.clone();
        }
        plan
    };
    let lives = Table::default().with(HARNESS, Life::Running);
    let runner_of_live = runner([listed(&[Pane::of_host()])], lives);

    let plan = plan_with(&elsewhere);
    let outcome = runner_of_live.spawn(&plan, &open, &|_| {}).await;

    assert_eq!(outcome, Ok(SpawnOutcome::LiveOccupant));
    let asked: Vec<_> = calls(&runner_of_live);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].socket, elsewhere);

    for (socket, looks) in [(elsewhere, 2), (TmuxSocket::Default, 1)] {
        let mut answers = vec![name_free(); looks];
        answers.extend([sizes_windows(), made()]);
        let runner = runner(answers, Table::default());
        let outcome = runner.spawn(&plan_with(&socket), &open, &|_| {}).await;
        assert!(
            matches!(outcome, Ok(SpawnOutcome::Spawned(_))),
            "{outcome:?}"
        );
        assert_eq!(calls(&runner).len(), looks + 2, "{socket:?}");
    }
}
