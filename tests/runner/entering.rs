//! The Enter after a text that tmux did not press by itself.

use std::time::Duration;

use the_loop::model::{DeliveryId, HoldReason, OwnerId};
use the_loop::runner::{Address, DeliverOutcome, EnterState, TokenState};

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

    assert_eq!(state, Ok(EnterState::Pressed));
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

    assert_eq!(state, Ok(EnterState::Pressed));
    assert_eq!(option(&rig, &it, "@loop_enter"), "1");
}

#[tokio::test]
async fn an_enter_for_a_pane_whose_input_is_off_says_what_it_waits_for() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut slow = message(1, "text");
    slow.submit_gap = Duration::from_secs(600);
    rig.runner.deliver(&it, &slow, &open).await.unwrap();
    rig.tmux.ok(&["select-pane", "-d", "-t", &pane(&it)]);

    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;

    assert_eq!(state, Ok(EnterState::Pending(Some(HoldReason::InputOff))));
    rig.tmux.ok(&["select-pane", "-e", "-t", &pane(&it)]);
    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;
    assert_eq!(state, Ok(EnterState::Pressed));
    assert_eq!(rig.typed(1, "\r"), pasted("text"));
}

/// What the end of a session tells an agent comes after a moment: until then it runs, and reads nothing.
#[tokio::test]
async fn an_enter_of_a_session_that_has_gone_does_not_count_as_pressed() {
    for a_server_stays in [true, false] {
        let rig = Rig::new();
        let it = rig
            .start(1, "trap '' HUP; : > $DIR/ready; while :; do sleep 1; done")
            .await;
        let ready = rig.folder(1).join("ready");
        wait_for("an agent that ignores its end", || ready.exists());
        if a_server_stays {
            rig.persons_session("other");
        }
        let mut slow = message(1, "text");
        slow.submit_gap = Duration::from_secs(600);
        rig.runner.deliver(&it, &slow, &open).await.unwrap();
        rig.tmux
            .ok(&["kill-session", "-t", &format!("={}", it.name)]);

        let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;

        assert_eq!(state, Ok(EnterState::Gone), "{a_server_stays}");
    }
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

    assert_eq!(state, Ok(EnterState::Left));
    let given_up = rig.runner.give_up_enter(&it, DeliveryId(1), &open).await;
    assert_eq!(given_up, Ok(()));
    assert_eq!(option(&rig, &it, "@loop_enter"), "", "nothing waits for it");
    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::NotPasted), "it can be typed again");
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

    assert_eq!(state, Ok(EnterState::Pressed));
    assert_eq!(rig.typed(1, "\n"), "text\n");
}

/// The host of another installation, whose record is not ours to read, is its own agent to us.
#[tokio::test]
async fn an_enter_for_a_host_without_a_record_is_pressed() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut slow = message(1, "text");
    slow.submit_gap = Duration::from_secs(600);
    rig.runner.deliver(&it, &slow, &open).await.unwrap();
    let mut unread = it.clone();
    let target = unread.target.as_mut().unwrap();
    target.harness = target.host;

    let state = rig.runner.settle_enter(&unread, DeliveryId(1), &open).await;

    assert_eq!(state, Ok(EnterState::Pressed));
    assert_eq!(rig.typed(1, "\r"), pasted("text"));
}
