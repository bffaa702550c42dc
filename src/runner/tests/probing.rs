use super::*;
use crate::model::DeliveryId;
use tokio::time::Instant;

#[tokio::test]
async fn a_session_without_a_host_is_over_only_where_it_is_ours_and_its_agent_gone() {
    let retained = Probe::Dead(Remains::Retained);
    let nobody = Address {
        target: None,
        ..address()
    };
    let unowned = Address {
        owner: None,
        ..address()
    };
    let pane = Pane::of_person();
    let strangers = Pane {
        owner: STRANGER,
        ..pane.clone()
    };
    let without_owner = Pane {
        owner: "",
        ..pane.clone()
    };
    let its_own_harness = Pane {
        pid: HARNESS,
        ..pane.clone()
    };
    let cases = [
        ("ours, and gone", address(), &pane, Life::Gone, retained),
        ("it runs", address(), &pane, Life::Running, Probe::Live),
        ("nobody knows", address(), &pane, Life::Unknown, Probe::Live),
        (
            "a stranger's",
            address(),
            &strangers,
            Life::Gone,
            Probe::Live,
        ),
        ("nobody's", unowned, &without_owner, Life::Gone, Probe::Live),
        (
            "its own agent",
            address(),
            &its_own_harness,
            Life::Gone,
            Probe::Live,
        ),
        ("no agent known", nobody, &pane, Life::Gone, Probe::Live),
    ];
    for (what, address, pane, life, expected) in cases {
        let table = Table::default().with(HARNESS, life);
        let runner = runner([listed(std::slice::from_ref(pane))], table);
        assert_eq!(runner.probe(&address).await, expected, "{what}");
    }
}

#[tokio::test]
async fn a_persons_pane_is_never_taken_for_the_agent_whose_pane_has_left_the_session() {
    let nobody = Address {
        target: None,
        ..address()
    };
    let stranger = Address {
        owner: None,
        ..nobody.clone()
    };
    let retained = Probe::Dead(Remains::Retained);
    for address in [address(), nobody, stranger] {
        let moved = Unanswered::AgentOutlivesSession {
            harness: process(HARNESS),
        };
        for (phase, life, expected) in [
            (running(), Life::Running, Probe::Unknown(moved)),
            (running(), Life::Gone, retained.clone()),
            (ended(), Life::Gone, retained.clone()),
        ] {
            let table = Table::default().with(HARNESS, life).recording([phase]);
            let elsewhere = Pane {
                session: "other".to_owned(),
                ..Pane::of_person()
            };
            let runner = runner([listed(&[elsewhere, Pane::of_person()])], table);

            assert_eq!(runner.probe(&address).await, expected);
        }
    }
}

#[tokio::test]
async fn a_session_that_also_shows_anothers_window_is_judged_by_its_own() {
    let name = name();
    let shown = |pid: i32, owner: &str, session: &str| {
        format!("loop-pane|$1|%2|{pid}|0|0|1|0|0|{owner}|sh|{session}")
    };
    let server = "loop-server|41|ss|/tmp/tmux/s";
    let [made, view] = [
        shown(HOST, OWNER, "another"),
        shown(HOST, "", name.as_str()),
    ];
    let own = format!("loop-pane|$1|%3|50|0|0|0|0|0||sh|{name}");
    let address = Address {
        owner: None,
        target: None,
        ..address()
    };
    let session = "another".to_owned();
    let only_shows = Probe::Unknown(Unanswered::ViewOfAnother { session });
    for (panes, expected) in [
        (format!("{made}\n{view}"), only_shows),
        (format!("{made}\n{view}\n{own}"), Probe::Live),
    ] {
        let answer = said(&format!("{server}\n{panes}"));
        let probe = runner([answer], Table::default()).probe(&address).await;
        assert_eq!(probe, expected, "{panes}");
    }
}

#[tokio::test]
async fn the_recorded_pane_of_an_adopted_session_is_its_agent_whichever_is_in_front() {
    let its_own = Pane {
        pid: HOST,
        hosted: 0,
        ..Pane::of_host()
    };
    for panes in [
        [its_own.clone(), Pane::of_person()],
        [Pane::of_person(), its_own],
    ] {
        let table = Table::default().with(HOST, Life::Running);
        let runner = runner([listed(&panes)], table);

        let occupant = runner.occupant(&adopted()).await.unwrap().unwrap();

        assert_eq!(occupant.target.host, process(HOST));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_makes_no_socket_again_is_unknown_and_not_gone() {
    let runner = runner(
        [nobody_listens()],
        Table::default().with(SERVER, Life::Running),
    );
    let lost = Unanswered::SocketLost {
        server: process(SERVER),
        socket: PathBuf::from("/tmp/tmux/s"),
    };
    let began = Instant::now();

    assert_eq!(runner.probe(&address()).await, Probe::Unknown(lost.clone()));
    assert!(began.elapsed() >= LIMITS.socket);
    assert!(calls(&runner).len() > 3, "it was asked for a while");

    let token = runner.read_token(&address(), DeliveryId(4)).await;
    assert_eq!(token, Err(lost));
}

#[tokio::test]
async fn a_server_that_is_gone_has_no_session() {
    let runner = runner([nobody_listens()], Table::default());

    assert_eq!(
        runner.probe(&address()).await,
        Probe::Dead(Remains::NameFree)
    );
    let token = runner.read_token(&address(), DeliveryId(4)).await;
    assert_eq!(token, Ok(TokenState::NoSession));
}

#[tokio::test]
async fn nothing_of_before_a_restart_of_the_machine_is_on_a_screen() {
    let mut before = address();
    if let Some(target) = &mut before.target {
        target.boot = BootId("the boot before".to_owned());
    }
    let shows = || runner([said("loop-is|43\nhello")], Table::default());

    let (now, then) = (shows(), shows());
    assert_eq!(now.capture(&address()).await.unwrap().unwrap(), "hello\n");
    assert_eq!(then.capture(&before).await, Ok(None));
}
