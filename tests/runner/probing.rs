//! What a probe says of every kind of session.

use the_loop::model::TmuxTarget;
use the_loop::process::signal::{Signal, signal};
use the_loop::runner::{Address, OccupantKind, Probe, Remains, Unanswered};

use crate::rig::{Rig, address, open};
use crate::tmux::wait_for;

#[tokio::test]
async fn a_session_whose_agent_runs_is_live() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;

    assert_eq!(rig.runner.probe(&it).await, Probe::Live);
    assert_eq!(rig.runner.probe(&address(1)).await, Probe::Live);
}

#[tokio::test]
async fn item_1_is_not_item_15() {
    let rig = Rig::new();
    rig.start(15, "exec sleep 600").await;

    let probe = rig.runner.probe(&address(1)).await;

    assert_eq!(probe, Probe::Dead(Remains::NameFree));
    assert_eq!(rig.runner.occupant(&address(1)).await, Ok(None));
}

#[tokio::test]
async fn a_session_whose_agent_ended_is_retained() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;

    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::Retained));
}

#[tokio::test]
async fn a_dead_pane_hides_no_living_one_beside_it_or_elsewhere() {
    let rig = Rig::new();
    let it = rig.start(2, "exec sleep 600").await;
    let persons = address(1);
    rig.persons_session(persons.name.as_str());
    rig.tmux.ok(&["set-option", "-g", "remain-on-exit", "on"]);
    let target = format!("={}:", persons.name);
    rig.tmux.ok(&["split-window", "-t", &target, "--", "true"]);
    rig.tmux.wait_for("a dead pane", |tmux| {
        tmux.ok(&["list-panes", "-a", "-F", "#{pane_dead}"])
            .contains('1')
    });

    assert_eq!(rig.runner.probe(&persons).await, Probe::Live);
    assert_eq!(rig.runner.probe(&it).await, Probe::Live);
}

#[tokio::test]
async fn a_killed_session_leaves_a_free_name() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    rig.tmux
        .ok(&["kill-session", "-t", &format!("={}:", it.name)]);
    wait_for("the end of the agent", || !crate::rig::runs(&it));

    assert_eq!(rig.runner.probe(&it).await, Probe::Dead(Remains::NameFree));
}

#[tokio::test]
async fn an_agent_that_outlives_its_session_keeps_the_name_from_being_free() {
    let rig = Rig::new();
    let it = rig
        .start(
            1,
            "trap '' HUP TERM; : > $DIR/ready; while :; do sleep 0.05; done",
        )
        .await;
    let target = it.target.clone().unwrap();
    let ready = rig.folder(1).join("ready");
    wait_for("an agent that is deaf to hangups", || ready.exists());
    // A host that is stopped cannot pass the hangup on.
    signal(&target.host, Signal::Stop).unwrap();
    rig.tmux
        .ok(&["kill-session", "-t", &format!("={}:", it.name)]);

    let probe = rig.runner.probe(&it).await;

    let harness = target.harness;
    assert_eq!(
        probe,
        Probe::Unknown(Unanswered::AgentOutlivesSession { harness })
    );
    signal(&target.host, Signal::Continue).unwrap();
    wait_for("the end of the agent", || !crate::rig::runs(&it));
}

#[tokio::test]
async fn an_empty_server_says_that_the_name_is_free() {
    let rig = Rig::new();

    let probe = rig.runner.probe(&address(1)).await;

    assert_eq!(probe, Probe::Dead(Remains::NameFree));
    assert_eq!(rig.runner.list(&socket(&rig)).await.unwrap(), []);
}

#[tokio::test]
async fn a_persons_session_is_a_live_foreign_occupant() {
    let rig = Rig::new();
    let name = address(1).name;
    rig.persons_session(name.as_str());

    let found = rig.runner.occupant(&address(1)).await.unwrap().unwrap();

    assert_eq!(rig.runner.probe(&address(1)).await, Probe::Live);
    assert_eq!(found.kind, OccupantKind::Foreign);
    assert_eq!(found.owner, None);
    wait_for("its program", || {
        rig.tmux
            .ok(&["list-panes", "-a", "-F", "#{pane_current_command}"])
            == "sleep"
    });
}

#[tokio::test]
async fn an_option_that_a_person_set_on_the_session_does_not_end_an_agent() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let target = it.target.clone().unwrap();
    let name = format!("={}:", it.name);
    let value = format!("{} code:0", target.host.pid + 1);
    rig.tmux
        .ok(&["set-option", "-t", &name, "@loop_exit", &value]);
    rig.persons_pane(&name);

    assert_eq!(rig.runner.probe(&it).await, Probe::Live);
}

#[tokio::test]
async fn a_pane_base_index_and_a_split_in_front_do_not_confuse() {
    let rig = Rig::new();
    rig.tmux.ok(&[
        "set-option",
        "-g",
        "base-index",
        "1",
        ";",
        "set-option",
        "-gw",
        "pane-base-index",
        "1",
    ]);
    let it = rig.start_recorder(1).await;
    rig.persons_pane(&format!("={}:", it.name));

    let found = rig.runner.occupant(&it).await.unwrap().unwrap();

    assert_eq!(Some(&found.target), it.target.as_ref());
    rig.runner
        .deliver(&it, &crate::rig::message(1, "hello"), &open)
        .await
        .unwrap();
    rig.typed(1, &crate::rig::pasted("hello"));
}

#[tokio::test]
async fn a_target_of_another_server_with_the_same_ids_is_not_taken_for_ours() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let other = Rig::new();
    other.start(1, "exec sleep 600").await;
    let strayed = Address {
        target: Some(TmuxTarget {
            socket: the_loop::model::TmuxSocket::Path(other.tmux.socket()),
            ..it.target.clone().unwrap()
        }),
        ..it.clone()
    };

    let probe = rig.runner.probe(&strayed).await;

    assert!(
        matches!(probe, Probe::Unknown(Unanswered::AnotherServer { .. })),
        "{probe:?}"
    );
}

#[tokio::test]
async fn sessions_are_listed_by_work_item() {
    let rig = Rig::new();
    rig.start(1, "exec sleep 600").await;
    rig.start(15, "exec sleep 600").await;
    rig.persons_session("mine");

    let mut items: Vec<String> = rig
        .runner
        .list(&socket(&rig))
        .await
        .unwrap()
        .into_iter()
        .filter_map(|listed| Some(listed.work_item?.short()))
        .collect();

    items.sort();
    assert_eq!(items, ["o/r#1", "o/r#15"]);
}

fn socket(rig: &Rig) -> the_loop::model::TmuxSocket {
    the_loop::model::TmuxSocket::Path(rig.tmux.socket())
}
