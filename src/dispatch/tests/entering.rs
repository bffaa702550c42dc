//! Who presses an Enter that tmux did not get to.

use super::orphaned::occupied;
use super::*;
use crate::model::HoldReason;
use crate::store::Release;

/// The answer to a paste that the Enter of this delivery keeps out.
fn kept_out(owner: &OwnerId, by: &str) -> Result<Answer, Unanswered> {
    let host = own().pid;
    said(format!("loop-refused|$3|{owner}|{host}|0|0|0|0|{by}|\n"))
}

/// A person scrolls in the pane: the text is typed, and its Enter waits.
#[tokio::test]
async fn a_text_counts_as_delivered_when_it_was_sent_and_not_before() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let (heard, shown) = (Arc::clone(&typed), session.clone());
    let waits = delivery.to_string();
    world.tmux(move |call| {
        let is_typed = !heard.lock().unwrap().is_empty();
        match &call.commands[..] {
            [TmuxCommand::ListClients { .. }] => said("loop-client|0\n".to_owned()),
            [TmuxCommand::DisplayMessage { .. }] if is_typed && asks_for_enter(call) => {
                outstanding(&shown.owner, 1, &waits)
            }
            [TmuxCommand::DisplayMessage { .. }] if is_typed => token(&shown, "2"),
            _ => occupied(call, &shown.owner, &heard),
        }
    });

    world.work().await;

    assert_eq!(typed.lock().unwrap().len(), 1);
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    for _ in 0..3 {
        world.pass(21);
        world.work().await;
        assert_eq!(world.state(delivery).await, DeliveryState::Held);
        assert_eq!(world.attempts(delivery).await, 0, "waiting costs none");
    }

    world.tmux(move |call| nothing_unsent(call, &session, "2"));
    world.pass(21);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    assert_eq!(typed.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_enter_that_a_process_left_outstanding_is_pressed_by_the_next_and_no_text_is_typed() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let claim = world.claim_and_die().await;
    let intent = crate::store::Intent {
        owner: session.owner.clone(),
        expires_at: start(),
    };
    let deduper = world.store.deduper();
    deduper.store_intent(&claim, &intent).await.unwrap();
    let pressed = Arc::new(AtomicU32::new(0));
    let (presses, due) = (Arc::clone(&pressed), delivery.to_string());
    world.tmux(move |call| match &call.commands[..] {
        [TmuxCommand::DisplayMessage { .. }] if asks_for_enter(call) => {
            outstanding(&session.owner, 0, &due)
        }
        [TmuxCommand::DisplayMessage { .. }] => token(&session, "1"),
        [TmuxCommand::IfShell { .. }] => {
            presses.fetch_add(1, Ordering::SeqCst);
            said("loop-done\n".to_owned())
        }
        other => panic!("only the Enter is seen to: {other:?}"),
    });

    world.work().await;

    assert_eq!(pressed.load(Ordering::SeqCst), 1);
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
}

/// That of a delivery which was dropped, or which an earlier version settled, is nobody's any more.
#[tokio::test]
async fn an_enter_that_no_delivery_waits_for_is_pressed_before_the_next_text() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let (scrolls, pressed) = (Arc::new(AtomicU32::new(1)), Arc::new(AtomicU32::new(0)));
    let typed = Arc::new(Mutex::new(Vec::new()));
    let (mode, presses, heard) = (scrolls.clone(), pressed.clone(), Arc::clone(&typed));
    world.tmux(move |call| {
        let left = if presses.load(Ordering::SeqCst) == 0 {
            "7"
        } else {
            ""
        };
        match &call.commands[..] {
            [TmuxCommand::LoadBuffer(_), ..] if !left.is_empty() => kept_out(&session.owner, left),
            [_, TmuxCommand::ListClients { .. }] => said("loop-is|1\nloop-client|0\n".to_owned()),
            [TmuxCommand::DisplayMessage { .. }] if asks_for_enter(call) => {
                outstanding(&session.owner, mode.load(Ordering::SeqCst), left)
            }
            [TmuxCommand::IfShell { .. }] => {
                presses.fetch_add(1, Ordering::SeqCst);
                said("loop-done\n".to_owned())
            }
            [TmuxCommand::DisplayMessage { .. }] => token(&session, ""),
            _ => occupied(call, &session.owner, &heard),
        }
    });

    world.work().await;
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.reason.as_deref(), Some("enter-pending"));
    assert_eq!(pressed.load(Ordering::SeqCst), 0);
    scrolls.store(0, Ordering::SeqCst);
    world.pass(21);
    world.work().await;
    assert_eq!(pressed.load(Ordering::SeqCst), 1);
    assert!(typed.lock().unwrap().is_empty(), "the Enter first");
    world.pass(21);
    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    assert_eq!(pressed.load(Ordering::SeqCst), 1);
    assert_eq!(typed.lock().unwrap().len(), 1);
}

/// The recorded session is not there any more, and its agent is still told so.
#[tokio::test]
async fn a_text_whose_session_went_before_its_enter_is_not_delivered() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&typed);
    world.tmux(move |call| {
        let is_typed = !heard.lock().unwrap().is_empty();
        match &call.commands[..] {
            [TmuxCommand::DisplayMessage { .. }, ..] if is_typed => said(format!(
                "loop-is|{0}||||||||\nloop-server|{0}||/s\n",
                own().pid
            )),
            _ => occupied(call, &session.owner, &heard),
        }
    });

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.state, DeliveryState::Held);
    assert_eq!(row.reason.as_deref(), Some("agent-outlives-session"));
    assert_eq!(typed.lock().unwrap().len(), 1);
}

/// Such as where a person changed the session's options.
#[tokio::test]
async fn a_session_that_lives_and_is_told_gone_is_tried_in_no_circles() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&typed);
    world.tmux(move |call| match &call.commands[..] {
        [TmuxCommand::DisplayMessage { .. }] => said(format!("loop-is|{}||||||||\n", own().pid)),
        _ => occupied(call, &session.owner, &heard),
    });

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts), (DeliveryState::Pending, 1));
    assert_eq!(
        row.error.as_deref(),
        Some("the session ended before the message was in")
    );
}

/// A person's program that was typed into has left before the Enter.
#[tokio::test]
async fn a_text_whose_enter_is_given_up_is_typed_again_and_marked() {
    let world = World::new().await;
    let adopted = TmuxTarget {
        host: own(),
        ..target(Agent::Runs)
    };
    let session = world.session_in(adopted).await;
    let delivery = world.comment(ITEM, 1).await;
    let (typed, given_up) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(AtomicU32::new(0)),
    );
    let (heard, forgotten) = (Arc::clone(&typed), Arc::clone(&given_up));
    let due = delivery.to_string();
    world.tmux(move |call| {
        let gave_up = forgotten.load(Ordering::SeqCst) > 0;
        let texts = heard.lock().unwrap().len();
        let owner = &session.owner;
        match &call.commands[..] {
            [TmuxCommand::IfShell { .. }] => {
                forgotten.fetch_add(1, Ordering::SeqCst);
                said("loop-done\n".to_owned())
            }
            [TmuxCommand::DisplayMessage { .. }]
                if asks_for_enter(call) && texts == 1 && !gave_up =>
            {
                let server = own().pid;
                said(format!(
                    "loop-is|{server}|$3|%5|{owner}|0|0|{due}|claude|sh\n"
                ))
            }
            [TmuxCommand::DisplayMessage { .. }] if !asks_for_enter(call) => token(&session, ""),
            [_, TmuxCommand::ListPanes(_)] => {
                let hosted = one_pane("/nowhere/socket", owner)?.output;
                said(hosted.replace("|0|1|1|0|0|", "|0|1|0|0|0|"))
            }
            _ => occupied(call, owner, &heard),
        }
    });

    world.work().await;

    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.state, DeliveryState::Pending);
    assert_eq!(
        row.error.as_deref(),
        Some("another program came in front before the text was sent")
    );
    assert_eq!(row.attempts, 1, "whatever takes turns in front, it ends");
    assert_eq!(given_up.load(Ordering::SeqCst), 1);
    world.pass(60);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    let typed = typed.lock().unwrap();
    assert_eq!(typed.len(), 2);
    assert!(!typed[0].contains("This may be a repeat"));
    assert!(typed[1].contains("This may be a repeat"), "{typed:?}");
}

#[tokio::test]
async fn a_typed_text_is_told_also_when_its_author_may_not_speak_any_more() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let (heard, shown, due) = (Arc::clone(&typed), session.clone(), delivery.to_string());
    world.tmux(move |call| {
        let is_typed = !heard.lock().unwrap().is_empty();
        match &call.commands[..] {
            [_, TmuxCommand::ListClients { .. }] => said("loop-is|1\nloop-client|0\n".to_owned()),
            [TmuxCommand::DisplayMessage { .. }] if is_typed && asks_for_enter(call) => {
                outstanding(&shown.owner, 1, &due)
            }
            _ => occupied(call, &shown.owner, &heard),
        }
    });
    world.work().await;
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.reason.as_deref(), Some("unsent"));
    world.configure(&json!({ "routing.authorizedUsers": ["eve"] }));

    world.tmux(move |call| nothing_unsent(call, &session, "1"));
    world.pass(21);
    world.work().await;

    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    assert!(world.records(&["dispatch.dropped"]).is_empty());
}

/// Others wait for the slot meanwhile.
#[tokio::test]
async fn a_text_that_was_typed_long_ago_is_looked_at_without_a_pause() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let (heard, due) = (Arc::clone(&typed), delivery.to_string());
    world.tmux(move |call| {
        let is_typed = !heard.lock().unwrap().is_empty();
        match &call.commands[..] {
            [_, TmuxCommand::ListClients { .. }] => said("loop-is|1\nloop-client|0\n".to_owned()),
            [TmuxCommand::DisplayMessage { .. }] if is_typed && asks_for_enter(call) => {
                outstanding(&session.owner, 1, &due)
            }
            [TmuxCommand::DisplayMessage { .. }] if is_typed => token(&session, "1"),
            _ => occupied(call, &session.owner, &heard),
        }
    });
    world.work().await;
    world.configure(&json!({ "harnesses.agent.submitGapMilliseconds": 10000 }));
    world.pass(21);

    let looked = tokio::time::timeout(Duration::from_secs(10), world.work()).await;

    assert!(looked.is_ok());
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
}

fn edited() -> Event {
    Event {
        key: EventKey::new("github.com", EventKind::IssueComment, "1", "v2"),
        occurred_at: start() + TimeDelta::seconds(1),
        ..comment(ITEM, 1)
    }
}

#[tokio::test]
async fn an_edit_leaves_a_typed_text_alone_whatever_it_waits_for_by_then() {
    for reason in [
        HoldReason::Unsent,
        HoldReason::TmuxSilent,
        HoldReason::SessionPaused,
        HoldReason::MakingWay,
    ] {
        let world = World::new().await;
        let session = world.active_session(Agent::Runs).await;
        let delivery = world.comment(ITEM, 1).await;
        let typed = Arc::new(Mutex::new(Vec::new()));
        let (heard, due) = (Arc::clone(&typed), delivery.to_string());
        world.tmux(move |call| {
            let is_typed = !heard.lock().unwrap().is_empty();
            match &call.commands[..] {
                [_, TmuxCommand::ListClients { .. }] => {
                    said("loop-is|1\nloop-client|0\n".to_owned())
                }
                [TmuxCommand::DisplayMessage { .. }] if is_typed && asks_for_enter(call) => {
                    outstanding(&session.owner, 1, &due)
                }
                _ => occupied(call, &session.owner, &heard),
            }
        });
        world.work().await;
        world.pass(21);
        let claim = world.claim_and_die().await;
        let held = Release::Held {
            reason,
            look_again_at: start(),
        };
        world.store.deduper().release(&claim, held).await.unwrap();

        world.arrive(edited(), Class::Event).await;

        assert_eq!(world.state(delivery).await, DeliveryState::Held, "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_makes_way_before_its_enter_counts_as_typed() {
    let world = World::new().await;
    let session = world.active_session(Agent::Runs).await;
    let delivery = world.comment(ITEM, 1).await;
    let typed = Arc::new(Mutex::new(Vec::new()));
    let (heard, due) = (Arc::clone(&typed), delivery.to_string());
    let (asked, is_asked) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let mut asked = Some(asked);
    world.tmux(move |call| {
        let is_typed = !heard.lock().unwrap().is_empty();
        if is_typed && asks_for_enter(call) {
            if let Some(asked) = asked.take() {
                asked.send(()).unwrap();
                goes_on.recv_timeout(Duration::from_secs(60)).unwrap();
            }
            return outstanding(&session.owner, 0, &due);
        }
        occupied(call, &session.owner, &heard)
    });
    let claim = world.claim_and_die().await;
    let shared = Arc::clone(&world.dispatcher.shared);
    let work = tokio::spawn(async move { shared.work(Arc::new(claim)).await });
    is_asked.await.unwrap();
    let pause = Event {
        body: "the-loop pause".to_owned(),
        ..comment(ITEM, 2)
    };
    world.command(pause).await;
    go_on.send(()).unwrap();
    work.await.unwrap();
    let row = world.store.queue().get(delivery).await.unwrap().unwrap();
    assert_eq!(row.reason.as_deref(), Some("making-way"));

    world.arrive(edited(), Class::Event).await;

    assert_eq!(world.state(delivery).await, DeliveryState::Held);
}
