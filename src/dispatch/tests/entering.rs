//! How an outstanding Enter is watched.

use std::sync::atomic::AtomicU32;

use super::orphaned::occupied;
use super::*;
use crate::dispatch::enter::{Watched, watch};

const GAP: Duration = Duration::from_millis(150);

/// Watches the Enter of a session whose tmux answers so, until the watch is over.
async fn watch_enter(
    owner: &OwnerId,
    target: TmuxTarget,
    due: Option<DeliveryId>,
    script: impl FnMut(&Invocation) -> Result<Answer, Unanswered> + Send + 'static,
) {
    let name = ITEM.parse::<crate::model::WorkItemRef>().unwrap();
    let address = Address {
        name: name.session_name().unwrap(),
        owner: Some(owner.clone()),
        target: Some(target),
    };
    let script: Script = Box::new(script);
    let runner = TmuxRunner::new(
        ScriptedTmux(Arc::new(Mutex::new(script))),
        LocalMachine::new("/nowhere".into()),
        TmuxSocket::Default,
        Limits::default(),
    );
    let watched = Arc::new(Watched::default());
    assert!(watched.begin(owner));
    assert!(!watched.begin(owner), "one watch per session");

    watch(
        Arc::new(runner),
        address,
        owner.clone(),
        (due, GAP),
        Arc::clone(&watched),
        CancellationToken::new(),
    )
    .await;

    assert!(watched.begin(owner), "the watch is over");
}

#[tokio::test(start_paused = true)]
async fn an_enter_is_pressed_however_long_somebody_scrolls() {
    let owner = OwnerId::mint();
    let asked = Arc::new(AtomicU32::new(0));
    let (count, shown) = (Arc::clone(&asked), owner.clone());

    watch_enter(&owner, target(Agent::Runs), None, move |call| {
        if call.commands.len() == 2 {
            return said("loop-is|1\nloop-client|0\n".to_owned());
        }
        match count.fetch_add(1, Ordering::SeqCst) {
            ..40 => outstanding(&shown, 1, "7"),
            _ => outstanding(&shown, 0, ""),
        }
    })
    .await;

    assert_eq!(asked.load(Ordering::SeqCst), 41);
}

#[tokio::test(start_paused = true)]
async fn an_enter_gets_its_time_though_another_was_waited_for() {
    for (due, earliest) in [
        (Some(DeliveryId(8)), GAP * 2),
        (Some(DeliveryId(7)), GAP * 4),
    ] {
        let owner = OwnerId::mint();
        let began = Instant::now();
        let pressed = Arc::new(Mutex::new(Vec::new()));
        let (presses, shown) = (Arc::clone(&pressed), owner.clone());

        watch_enter(&owner, target(Agent::Runs), due, move |call| {
            if asks_for_enter(call) {
                return outstanding(&shown, 0, "8");
            }
            presses.lock().unwrap().push(began.elapsed());
            said("loop-done\n".to_owned())
        })
        .await;

        assert_eq!(pressed.lock().unwrap()[..], [earliest], "{due:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_watches_the_enter_of_a_server_that_is_gone() {
    let owner = OwnerId::mint();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let mut gone_for_sure = target(Agent::Runs);
    gone_for_sure.server = gone();

    watch_enter(&owner, gone_for_sure, None, move |call| {
        count.fetch_add(1, Ordering::SeqCst);
        no_server(call)
    })
    .await;

    assert_eq!(asked.load(Ordering::SeqCst), 1);
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
    world.pass(21);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Held);
    assert_eq!(world.attempts(delivery).await, 0, "waiting costs none");

    world.tmux(move |call| nothing_unsent(call, &session, "2"));
    world.pass(21);
    world.work().await;
    assert_eq!(world.state(delivery).await, DeliveryState::Delivered);
    assert_eq!(typed.lock().unwrap().len(), 1);
}
