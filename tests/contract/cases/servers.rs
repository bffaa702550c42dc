//! Servers that come and go, and what goes with them.

use the_loop::model::TmuxSocket;
use the_loop::runner::{
    Answer, Field, Invocation, Listener, Marker, Scope, Setting, Start, Target, TmuxCommand,
    TmuxServer,
};

use crate::stage::{
    Made, Manners, Stage, ask, invocation, line, lines, make, make_at, make_some, name, names,
    new_session, show, shown, wait_for_name,
};

fn who() -> TmuxCommand {
    TmuxCommand::DisplayMessage {
        target: None,
        marker: Marker::Server,
        fields: vec![Field::ServerPid, Field::AnySession, Field::SocketPath],
    }
}

async fn ask_at(stage: &impl Stage, socket: TmuxSocket, commands: Vec<TmuxCommand>) -> Answer {
    let asked = invocation(socket, commands);
    stage.tmux().call(&asked).await.unwrap()
}

fn nobody(answer: &Answer) -> bool {
    (answer.status, answer.output.as_str(), answer.listener) == (1, "", Listener::Absent)
}

pub(crate) async fn nobody_listens_where_no_server_runs(stage: &impl Stage) {
    for commands in [
        vec![who()],
        vec![TmuxCommand::ListPanes(vec![Field::PaneId])],
        vec![new_session(1, stage.recorder("x", Manners::Plain))],
    ] {
        let answer = ask_at(stage, stage.other_socket(), commands).await;
        assert!(nobody(&answer), "{answer:?}");
    }
}

pub(crate) async fn only_a_new_session_starts_a_server(stage: &impl Stage) {
    let asked = Invocation {
        start: Start::Allowed,
        ..invocation(stage.other_socket(), vec![who()])
    };
    let answer = stage.tmux().call(&asked).await.unwrap();
    assert!(nobody(&answer), "{answer:?}");

    let program = stage.recorder("x", Manners::Plain);
    make_at(stage, stage.other_socket(), 1, program).await;

    let answer = ask_at(stage, stage.other_socket(), vec![who()]).await;
    assert_eq!(line(&answer, Marker::Server).unwrap()[1], "s");
    assert_eq!(names(stage).await, [""; 0], "the first one is another");
}

pub(crate) async fn a_server_ends_with_its_last_session(stage: &impl Stage) {
    let program = stage.recorder("x", Manners::Plain);
    let made = make_at(stage, stage.other_socket(), 1, program).await;

    let kill = TmuxCommand::KillSession(made.session);
    ask_at(stage, stage.other_socket(), vec![kill]).await;

    let give_up = tokio::time::Instant::now() + crate::tmux::PATIENCE;
    loop {
        let answer = ask_at(stage, stage.other_socket(), vec![who()]).await;
        if nobody(&answer) {
            break;
        }
        assert!(tokio::time::Instant::now() < give_up, "{answer:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

pub(crate) async fn a_server_without_its_socket_is_not_found(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let question = || {
        vec![show(
            Target::Session(made.session.clone()),
            &[Field::PanePid],
        )]
    };
    let socket = stage.socket();

    stage.remove_socket();

    let answer = ask_at(stage, socket.clone(), question()).await;
    assert!(nobody(&answer), "{answer:?}");
    // A second server under the same path: the name is free there.
    let second = make(stage, 1, stage.recorder("second", Manners::Plain)).await;
    let seen = shown(stage, Target::Name(name(1)), &[Field::PanePid]).await;
    assert_eq!(seen, [second.pid.to_string()]);
    assert_ne!(second.pid, made.pid);
    ask(stage, vec![TmuxCommand::KillSession(second.session)]).await;

    stage.make_socket_again().await;

    let answer = ask(stage, question()).await;
    assert_eq!(line(&answer, Marker::Is).unwrap(), [made.pid.to_string()]);
}

pub(crate) async fn an_empty_server_lists_no_panes(stage: &impl Stage) {
    let list = TmuxCommand::ListPanes(vec![Field::PaneId]);

    let answer = ask(stage, vec![who(), list]).await;

    let server = line(&answer, Marker::Server).unwrap();
    assert_eq!(server[1], "", "{answer:?}");
    let TmuxSocket::Path(path) = stage.socket() else {
        panic!("a path")
    };
    assert_eq!(server[2], path.display().to_string());
    assert!(lines(&answer, Marker::Pane).is_empty(), "{answer:?}");
}

pub(crate) async fn a_killed_server_takes_its_sessions_along(stage: &impl Stage) {
    make_some(stage, 1).await;

    stage.kill_server();

    let answer = ask(stage, vec![who()]).await;
    assert!(nobody(&answer), "{answer:?}");
}

pub(crate) async fn a_session_ends_with_its_program(stage: &impl Stage) {
    let other = make_some(stage, 2).await;
    let made = make_some(stage, 1).await;

    stage.end(&made).await;

    wait_for_name(stage, &made.name, false).await;
    assert_eq!(names(stage).await, [other.name.as_str()]);
}

pub(crate) async fn a_dead_pane_was_a_hosts_only_if_it_says_so(stage: &impl Stage) {
    let host = make_some(stage, 1).await;
    let made = new_session(2, stage.recorder("r2", Manners::Plain));
    let answer = ask(stage, vec![made]).await;
    let line = line(&answer, Marker::Made).unwrap();
    let persons = Made {
        name: name(2),
        session: line[0].parse().unwrap(),
        pane: line[1].parse().unwrap(),
        pid: line[2].parse().unwrap(),
    };
    stage.ready("r2").await;
    for made in [&host, &persons] {
        keep(stage, made).await;
        stage.end(made).await;
        wait_until_dead(stage, made).await;
    }

    let seen = |made: &Made| made.at();
    let fields = [Field::Hosted, Field::PanePid];
    let wanted = ["1".to_owned(), host.pid.to_string()];
    assert_eq!(shown(stage, seen(&host), &fields).await, wanted);
    assert_eq!(shown(stage, seen(&persons), &[Field::Hosted]).await, ["0"]);
}

async fn keep(stage: &impl Stage, made: &Made) {
    let keep = TmuxCommand::SetOption {
        target: made.at(),
        scope: Scope::Window,
        setting: Setting::Native("remain-on-exit", "on"),
    };
    assert_eq!(ask(stage, vec![keep]).await.status, 0);
}

async fn wait_until_dead(stage: &impl Stage, made: &Made) {
    let give_up = tokio::time::Instant::now() + crate::tmux::PATIENCE;
    while shown(stage, made.at(), &[Field::PaneDead]).await != ["1"] {
        assert!(tokio::time::Instant::now() < give_up, "it does not die");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

pub(crate) async fn a_kept_pane_is_dead(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    keep(stage, &made).await;

    stage.end(&made).await;

    wait_until_dead(stage, &made).await;
    let again = new_session(1, stage.recorder("again", Manners::Plain));
    let answer = ask(stage, vec![again]).await;
    assert!(answer.words.starts_with("duplicate session"), "{answer:?}");
    let enter = TmuxCommand::SendEnter(made.pane);
    assert_eq!(ask(stage, vec![enter]).await.status, 0, "it is dropped");
}

pub(crate) async fn a_server_says_how_it_sizes_windows(stage: &impl Stage) {
    make_some(stage, 1).await;
    let answer = ask(stage, vec![TmuxCommand::ShowWindowSize]).await;
    assert_eq!((answer.status, answer.output.as_str()), (0, "latest\n"));
}

pub(crate) async fn clients_are_counted_and_may_be_read_only(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let clients = || TmuxCommand::ListClients {
        session: Target::Session(made.session.clone()),
        fields: vec![Field::ClientReadOnly],
    };
    let attached = [Field::SessionAttached];
    let session = || Target::Session(made.session.clone());
    let answer = ask(stage, vec![clients()]).await;
    assert_eq!(
        (answer.status, lines(&answer, Marker::Client).len()),
        (0, 0)
    );
    assert_eq!(shown(stage, session(), &attached).await, ["0"]);

    stage.attach(&made, true).await;
    stage.attach(&made, false).await;

    let answer = ask(stage, vec![clients()]).await;
    let mut seen = lines(&answer, Marker::Client).concat();
    seen.sort();
    assert_eq!(seen, ["0", "1"]);
    assert_eq!(shown(stage, session(), &attached).await, ["2"]);
    // What is absent is no answer of none.
    let absent = TmuxCommand::ListClients {
        session: Target::Name(name(9)),
        fields: vec![Field::ClientReadOnly],
    };
    assert_eq!(ask(stage, vec![absent]).await.status, 1);
}
