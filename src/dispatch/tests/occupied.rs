//! First spawns where an agent, or what is left of a spawn, is in the way.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::model::{AfterEnd, HostPaths, PromptPassing, Ticket};
use crate::process::ticket;

#[tokio::test]
async fn no_second_agent_is_started_while_that_of_a_closed_session_runs() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let change = SessionChange::Close(session.id);
    world.change(change).await;
    let delivery = world.comment(ITEM, 1).await;

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.state, DeliveryState::Pending, "tried again later");
    let error = row.error.unwrap();
    for part in [
        &format!("process {}", own()),
        "tmux -S '/nowhere/socket' kill-session -t '=loop-",
        "the-loop sessions reset o/r#1",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(world.session().await, None);
    assert!(!world.folder.path().join("run").exists(), "nothing began");
}

#[tokio::test]
async fn an_agent_whose_closed_session_ended_with_it_is_in_nobodys_way() {
    let world = World::new().await;
    let session = world.active_session(Agent::Gone).await;
    let change = SessionChange::Close(session.id);
    world.change(change).await;
    world.comment(ITEM, 1).await;

    world.work().await;

    assert!(world.folder.path().join("run").exists(), "a spawn began");
}

#[tokio::test]
async fn a_name_that_somebody_elses_agent_holds_is_left_to_a_person() {
    let world = World::new().await;
    let stranger = OwnerId::mint();
    world.tmux(move |_| one_pane("/nowhere/socket", &stranger));
    let delivery = world.comment(ITEM, 1).await;

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    let error = row.error.unwrap();
    for part in [
        "tmux kill-session -t '=loop-",
        "the-loop sessions reset o/r#1",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(world.session().await, None);
}

/// tmux named it so for a person who looks on at another item's agent.
#[tokio::test]
async fn a_session_that_only_shows_anothers_windows_is_waited_for() {
    for was_there in [false, true] {
        let world = World::new().await;
        if was_there {
            world.active_session(Agent::Gone).await;
        }
        let (pid, shows) = (own().pid, OwnerId::mint());
        let name = ITEM.parse::<crate::model::WorkItemRef>().unwrap();
        let name = name.session_name().unwrap();
        world.tmux(move |_| {
            said(format!(
                "loop-server|{pid}|s|/nowhere/socket\n\
                 loop-pane|$3|%5|{pid}|0|1|1|0|0|{shows}|agent|loop-github-o--other-7\n\
                 loop-pane|$4|%5|{pid}|0|1|1|0|0||agent|{name}\n"
            ))
        });
        let delivery = world.comment(ITEM, 1).await;

        world.work().await;

        let row = world.store.queue().get(delivery).await.unwrap().unwrap();
        assert_eq!(row.state, DeliveryState::Held, "{was_there}: {row:?}");
        assert_eq!(row.reason.as_deref(), Some("no-agent"));
        assert_eq!(row.attempts, 0, "waiting costs none");
    }
}

/// A spawn that was given up before anybody took its ticket.
fn given_up(world: &World) -> OwnerId {
    let owner = OwnerId::mint();
    let ticket = Ticket {
        v: Ticket::VERSION,
        owner: owner.clone(),
        work_item: ITEM.parse().unwrap(),
        socket: TmuxSocket::Default,
        tmux: "/usr/bin/tmux".into(),
        cwd: "/".into(),
        argv: vec!["/bin/true".to_owned()],
        env: std::collections::BTreeMap::new(),
        prompt: PromptPassing::None,
        not_after_ms: 0,
        grace_ms: 1,
        after_end: AfterEnd::KeepScreen,
    };
    let paths = HostPaths::new(world.folder.path(), &owner);
    ticket::issue(&paths, &ticket, "").unwrap();
    ticket::revoke(&paths).unwrap();
    owner
}

#[tokio::test]
async fn a_late_session_of_a_spawn_that_was_given_up_is_waited_out() {
    let world = World::new().await;
    let owner = given_up(&world);
    let (looks, creations) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, made) = (Arc::clone(&looks), Arc::clone(&creations));
    world.tmux(move |call| match call.commands[0] {
        TmuxCommand::NewSession { .. } => {
            made.fetch_add(1, Ordering::SeqCst);
            timed_out(call)
        }
        TmuxCommand::ShowWindowSize => no_server(call),
        _ if seen.fetch_add(1, Ordering::SeqCst) < 2 => one_pane("/nowhere/socket", &owner),
        _ => no_server(call),
    });
    world.comment(ITEM, 1).await;

    world.work().await;

    assert_eq!(looks.load(Ordering::SeqCst), 3);
    assert_eq!(creations.load(Ordering::SeqCst), 1, "the spawn went on");
}

#[tokio::test]
async fn a_late_session_that_does_not_end_is_not_called_a_taken_name() {
    let world = World::new().await;
    let owner = given_up(&world);
    world.tmux(move |_| one_pane("/nowhere/socket", &owner));
    let delivery = world.comment(ITEM, 1).await;

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.state, DeliveryState::Pending, "tried again later");
    let error = row.error.unwrap();
    assert!(error.contains("has not ended yet"), "{error}");
}

/// The name seemed free, and the recorded session is there after all, where the text has to wait.
#[tokio::test]
async fn a_respawn_that_was_averted_is_said_though_the_text_has_to_wait() {
    let world = World::new().await;
    let back = TmuxTarget {
        host: own(),
        harness: gone(),
        ..target(Agent::Runs)
    };
    let session = world.session_in(back).await;
    let delivery = world.comment(ITEM, 1).await;
    let mut looks = 0;
    world.tmux(move |call| {
        if is_paste(call) {
            let (owner, host) = (&session.owner, own().pid);
            return said(format!("loop-refused|$3|{owner}|{host}|0|0|1|0||\n"));
        }
        looks += 1;
        if looks == 1 {
            return said(format!("loop-server|{}||/nowhere/socket\n", own().pid));
        }
        one_pane("/nowhere/socket", &session.owner)
    });

    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    let averted = world.records(&["session.respawn_averted"]);
    assert_eq!(averted.len(), 1);
    assert_eq!(averted[0].fields.get("adopted"), Some(&json!(false)));
}

/// The respawn was averted, and then the text cannot go in: it fails, and is tried again later.
#[tokio::test]
async fn a_text_that_fails_after_an_averted_respawn_goes_in_no_circles() {
    for session_stays in [true, false] {
        let world = World::new().await;
        let back = TmuxTarget {
            host: own(),
            harness: gone(),
            ..target(Agent::Runs)
        };
        let session = world.session_in(back).await;
        let delivery = world.comment(ITEM, 1).await;
        let (pastes, creations) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (tried, made) = (Arc::clone(&pastes), Arc::clone(&creations));
        let mut looks = 0;
        world.tmux(move |call| {
            if is_paste(call) {
                tried.fetch_add(1, Ordering::SeqCst);
                let (owner, host) = (&session.owner, own().pid);
                return said(format!("loop-refused|$9|{owner}|{host}|0|0|0|0||\n"));
            }
            if matches!(call.commands[0], TmuxCommand::NewSession { .. }) {
                made.fetch_add(1, Ordering::SeqCst);
            }
            looks += 1;
            let is_there = match tried.load(Ordering::SeqCst) {
                0 => looks > 1,
                _ => session_stays,
            };
            if is_there {
                return one_pane("/nowhere/socket", &session.owner);
            }
            said(format!("loop-server|{}||/nowhere/socket\n", own().pid))
        });

        tokio::time::timeout(Duration::from_secs(20), world.work())
            .await
            .expect("it comes to an end");

        assert_eq!(world.records(&["session.respawn_averted"]).len(), 1);
        assert_eq!(pastes.load(Ordering::SeqCst), 1);
        assert_eq!(creations.load(Ordering::SeqCst), 0, "no other agent");
        assert_eq!(world.state(delivery).await, DeliveryState::Pending);
    }
}
