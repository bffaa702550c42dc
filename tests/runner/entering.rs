//! The Enter after a text that tmux did not press by itself.

use std::time::Duration;

use the_loop::model::{DeliveryId, OwnerId};
use the_loop::runner::{Address, DeliverOutcome, EnterState};

use crate::rig::{Rig, address, item, message, open, option, pane, pasted};
use crate::tmux::wait_for;

#[tokio::test]
async fn an_enter_that_met_copy_mode_is_pressed_later() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut slow = message(1, "text");
    slow.submit_gap = Duration::from_millis(200);
    rig.runner.deliver(&it, &slow, &open).await.unwrap();
    rig.tmux.ok(&["copy-mode", "-t", &pane(&it)]);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(option(&rig, &it, "@loop_enter"), "1", "withheld");

    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;

    assert_eq!(state, Ok(EnterState::Settled));
    assert_eq!(rig.typed(1, "\r"), pasted("text"));
}

#[tokio::test]
async fn only_the_enter_that_is_due_is_pressed() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut slow = message(1, "text");
    slow.submit_gap = Duration::from_secs(600);
    rig.runner.deliver(&it, &slow, &open).await.unwrap();

    let state = rig.runner.settle_enter(&it, DeliveryId(2), &open).await;

    assert_eq!(state, Ok(EnterState::Settled));
    assert_eq!(option(&rig, &it, "@loop_enter"), "1");
}

/// An adopted shell in which its person started `cat`, and a text whose Enter is not pressed yet.
async fn text_without_enter_in_a_persons_shell(rig: &Rig) -> Address {
    let it = address(1);
    let got = rig.folder(1).join("got");
    let session = ["new-session", "-d", "-s", it.name.as_str()];
    rig.tmux
        .ok(&[&session[..], &["--", "/bin/sh", "-i"]].concat());
    let target = format!("={}:", it.name);
    let command = format!("cat > {}", got.display());
    rig.tmux
        .ok(&["send-keys", "-t", &target, &command, "Enter"]);
    rig.tmux
        .wait_for("cat", |_| option(rig, &it, "pane_current_command") == "cat");
    let found = rig.runner.occupant(&it).await.unwrap().unwrap();
    let adopted = Address {
        owner: Some(OwnerId::mint()),
        target: Some(found.target.clone()),
        ..it
    };
    let owner = adopted.owner.as_ref().unwrap();
    rig.runner
        .adopt_options(&found, owner, &item(1), &open)
        .await
        .unwrap();
    let mut slow = message(1, "text");
    slow.submit_gap = Duration::from_secs(600);
    let outcome = rig.runner.deliver(&adopted, &slow, &open).await;
    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    adopted
}

#[tokio::test]
async fn an_enter_for_a_persons_program_is_never_pressed_into_what_follows_it() {
    let rig = Rig::new();
    let it = text_without_enter_in_a_persons_shell(&rig).await;
    rig.tmux.ok(&["send-keys", "-t", &pane(&it), "C-c"]);
    rig.tmux.wait_for("the shell", |_| {
        option(&rig, &it, "pane_current_command") == "sh"
    });
    let half = format!("touch {}/half", rig.folder(1).display());
    rig.tmux.ok(&["send-keys", "-t", &pane(&it), "-l", &half]);

    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;

    assert_eq!(state, Ok(EnterState::Settled));
    assert_eq!(option(&rig, &it, "@loop_enter"), "", "nothing waits for it");
    rig.tmux
        .ok(&["send-keys", "-t", &pane(&it), "way", "Enter"]);
    wait_for("the whole command", || {
        rig.folder(1).join("halfway").exists()
    });
    assert!(!rig.folder(1).join("half").exists());
}

#[tokio::test]
async fn an_enter_for_a_persons_program_is_pressed_while_it_is_there() {
    let rig = Rig::new();
    let it = text_without_enter_in_a_persons_shell(&rig).await;
    rig.persons_pane(it.name.as_str());

    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;

    assert_eq!(state, Ok(EnterState::Settled));
    assert_eq!(rig.typed(1, "\n"), "text\n");
}
