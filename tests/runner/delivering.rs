//! Typing into agents exactly once.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use the_loop::model::{DeliveryId, HoldReason, OwnerId};
use the_loop::process::signal::{Signal, signal};
use the_loop::runner::{
    Address, DeliverOutcome, EnterState, FenceLost, Remains, RunnerError, TokenState,
};

use crate::rig::{Client, Rig, address, closed, item, message, open, option, pane, pasted};
use crate::tmux::wait_for;

async fn settled(rig: &Rig, address: &Address) {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while !option(rig, address, "@loop_enter").is_empty() {
        assert!(
            std::time::Instant::now() < deadline,
            "Enter is never pressed"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_text_arrives_whole_and_enter_follows() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;

    let outcome = rig
        .runner
        .deliver(
            &it,
            &message(1, "[the-loop] a\nb; $HOME #{pid} 'q' é"),
            &open,
        )
        .await;

    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    let typed = rig.typed(1, "\r");
    assert_eq!(typed, pasted("[the-loop] a\nb; $HOME #{pid} 'q' é"));
    settled(&rig, &it).await;
    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::Pasted));
    let token = rig.runner.read_token(&it, DeliveryId(2)).await;
    assert_eq!(token, Ok(TokenState::NotPasted));
}

#[tokio::test]
async fn the_same_delivery_is_typed_once_however_often_it_is_sent() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    rig.runner
        .deliver(&it, &message(1, "once"), &open)
        .await
        .unwrap();

    for attempt in 2..5 {
        let mut again = message(1, "once");
        again.attempt = attempt;
        let outcome = rig.runner.deliver(&it, &again, &open).await;
        assert_eq!(outcome, Ok(DeliverOutcome::AlreadyDelivered));
    }

    settled(&rig, &it).await;
    rig.runner
        .deliver(&it, &message(2, "twice"), &open)
        .await
        .unwrap();
    let typed = rig.typed(1, &pasted("twice"));
    assert_eq!(typed, pasted("once") + &pasted("twice"));
    assert_eq!(rig.tmux.ok(&["list-buffers"]), "");
}

#[tokio::test]
async fn the_next_text_waits_for_the_enter_of_the_one_before() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut slow = message(1, "first");
    slow.submit_gap = Duration::from_secs(600);
    rig.runner.deliver(&it, &slow, &open).await.unwrap();

    let outcome = rig.runner.deliver(&it, &message(2, "second"), &open).await;

    assert_eq!(outcome, Ok(DeliverOutcome::EnterPending(DeliveryId(1))));
    // What a person's copy mode, or a crash of tmux's timer, would leave is pressed again.
    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;
    assert_eq!(state, Ok(EnterState::Pressed));
    rig.typed(1, &pasted("first"));
    let state = rig.runner.settle_enter(&it, DeliveryId(1), &open).await;
    assert_eq!(state, Ok(EnterState::Pressed));
    let outcome = rig.runner.deliver(&it, &message(2, "second"), &open).await;
    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    assert_eq!(
        rig.typed(1, &pasted("second")),
        pasted("first") + &pasted("second")
    );
}

#[tokio::test]
async fn an_expired_text_is_never_typed() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let mut late = message(1, "late");
    late.expires_at = Utc::now() - TimeDelta::seconds(2);

    let error = rig.runner.deliver(&it, &late, &open).await.unwrap_err();

    assert_eq!(error, RunnerError::Expired);
    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::NotPasted));
    assert_eq!(rig.tmux.ok(&["list-buffers"]), "");
}

#[tokio::test]
async fn two_hundred_kilobytes_arrive_whole() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let text = "0123456789abcde\n".repeat(12_800) + "end";

    rig.runner
        .deliver(&it, &message(1, &text), &open)
        .await
        .unwrap();

    assert_eq!(rig.typed(1, "\r"), pasted(&text));
}

#[tokio::test]
async fn a_text_cannot_end_its_bracket_and_an_empty_one_is_refused() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;

    rig.runner
        .deliver(&it, &message(1, "a\u{1b}[201~b\r\nc\u{3}\n\n"), &open)
        .await
        .unwrap();

    assert_eq!(rig.typed(1, "\r"), pasted("a[201~b\nc"));
    let error = rig
        .runner
        .deliver(&it, &message(2, "\u{1b}\n"), &open)
        .await
        .unwrap_err();
    assert!(matches!(error, RunnerError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn an_abandoned_copy_mode_is_left_before_the_text() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    rig.tmux.ok(&["copy-mode", "-t", &pane(&it)]);

    let outcome = rig.runner.deliver(&it, &message(1, "text"), &open).await;

    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    assert_eq!(rig.typed(1, "\r"), pasted("text"));
}

#[tokio::test]
async fn a_person_who_scrolls_is_not_disturbed_but_a_spectator_does_not_count() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    rig.tmux.ok(&["copy-mode", "-t", &pane(&it)]);
    let person = Client::attach(&rig, &it, &[]);

    let outcome = rig.runner.deliver(&it, &message(1, "text"), &open).await;

    assert_eq!(outcome, Ok(DeliverOutcome::Held(HoldReason::PaneInMode)));
    drop(person);
    rig.tmux
        .wait_for("no client", |tmux| tmux.ok(&["list-clients"]).is_empty());
    let _spectator = Client::attach(&rig, &it, &["-r"]);
    let outcome = rig.runner.deliver(&it, &message(1, "text"), &open).await;
    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    assert_eq!(rig.typed(1, "\r"), pasted("text"));
}

#[tokio::test]
async fn a_pane_whose_input_is_off_holds_the_text() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    rig.tmux.ok(&["select-pane", "-d", "-t", &pane(&it)]);

    let outcome = rig.runner.deliver(&it, &message(1, "text"), &open).await;

    assert_eq!(outcome, Ok(DeliverOutcome::Held(HoldReason::InputOff)));
}

#[tokio::test]
async fn nothing_is_typed_into_an_agent_that_has_ended() {
    let rig = Rig::new();
    let it = rig.start_and_end(1).await;

    let outcome = rig.runner.deliver(&it, &message(1, "text"), &open).await;

    assert_eq!(outcome, Ok(DeliverOutcome::SessionDead(Remains::Retained)));
}

#[tokio::test]
async fn a_pane_that_somebody_respawned_is_not_typed_into() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    rig.tmux
        .ok(&["respawn-pane", "-k", "-t", &pane(&it), "--", "sleep", "600"]);
    wait_for("the end of the agent", || !crate::rig::runs(&it));

    let outcome = rig.runner.deliver(&it, &message(1, "text"), &open).await;

    // Its own agent is proved gone, so what a person runs there is company, not an agent.
    assert_eq!(outcome, Ok(DeliverOutcome::SessionDead(Remains::Retained)));
}

#[tokio::test]
async fn a_session_of_another_spawn_is_registered_before_it_is_typed_into() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;
    let stale = Address {
        owner: Some(OwnerId::mint()),
        ..it.clone()
    };

    let error = rig
        .runner
        .deliver(&stale, &message(1, "text"), &open)
        .await
        .unwrap_err();

    assert!(matches!(error, RunnerError::Changed { .. }), "{error}");
    let found = rig.runner.occupant(&stale).await.unwrap().unwrap();
    let fresh = Address {
        name: it.name.clone(),
        owner: found.owner,
        target: Some(found.target),
    };
    assert_eq!(fresh, it);
    let outcome = rig.runner.deliver(&fresh, &message(1, "text"), &open).await;
    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
}

#[tokio::test]
async fn a_persons_program_is_adopted_first_and_a_shell_never_typed_into() {
    let rig = Rig::new();
    let it = address(1);
    let folder = rig.folder(1);
    let script = format!("stty raw -echo; exec cat > {}/got", folder.display());
    rig.tmux.ok(&[
        "new-session",
        "-d",
        "-s",
        it.name.as_str(),
        "--",
        "/bin/sh",
        "-c",
        &script,
    ]);
    wait_for("its program", || folder.join("got").exists());
    let error = rig
        .runner
        .deliver(&it, &message(1, "text"), &open)
        .await
        .unwrap_err();
    assert!(matches!(error, RunnerError::NotAdopted { .. }), "{error}");

    let found = rig.runner.occupant(&it).await.unwrap().unwrap();
    let owner = OwnerId::mint();
    rig.runner
        .adopt_options(&found, &owner, &item(1), &open)
        .await
        .unwrap();
    let second = rig
        .runner
        .adopt_options(&found, &OwnerId::mint(), &item(1), &open)
        .await;
    assert!(matches!(second, Err(RunnerError::Changed { .. })));
    let adopted = Address {
        name: it.name.clone(),
        owner: Some(owner),
        target: Some(found.target),
    };
    let outcome = rig
        .runner
        .deliver(&adopted, &message(1, "text"), &open)
        .await;
    assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
    assert_eq!(rig.typed(1, "\r"), "text\r");

    let shell = address(2);
    rig.tmux.ok(&[
        "new-session",
        "-d",
        "-s",
        shell.name.as_str(),
        "--",
        "/bin/sh",
        "-i",
    ]);
    let outcome = rig.runner.deliver(&shell, &message(2, "rm x"), &open).await;
    assert_eq!(outcome, Ok(DeliverOutcome::Held(HoldReason::NoAgent)));
    assert!(
        !rig.tmux
            .screen(&format!("={}:", shell.name))
            .contains("rm x")
    );
}

#[tokio::test]
async fn texts_for_four_sessions_at_once_never_cross() {
    let rig = Rig::new();
    let mut all = Vec::new();
    for number in 1..=4 {
        all.push(rig.start_recorder(number).await);
    }

    for round in 0..5 {
        let sent: Vec<_> = all
            .iter()
            .zip(1..)
            .map(|(it, number): (_, i64)| {
                let mut message = message(round * 10 + number, &format!("for {number}: {round}"));
                message.submit_gap = Duration::from_millis(20);
                (it, message)
            })
            .collect();
        let [a, b, c, d] = &sent[..] else {
            panic!("four");
        };
        let (a, b, c, d) = tokio::join!(
            rig.runner.deliver(a.0, &a.1, &open),
            rig.runner.deliver(b.0, &b.1, &open),
            rig.runner.deliver(c.0, &c.1, &open),
            rig.runner.deliver(d.0, &d.1, &open),
        );
        for outcome in [a, b, c, d] {
            assert_eq!(outcome, Ok(DeliverOutcome::Delivered));
        }
        for it in &all {
            settled(&rig, it).await;
        }
    }

    for number in 1..=4_u64 {
        let expected: String = (0..5)
            .map(|round| pasted(&format!("for {number}: {round}")))
            .collect();
        let last = pasted(&format!("for {number}: 4"));
        assert_eq!(rig.typed(number, &last), expected);
    }
}

#[tokio::test]
async fn work_that_was_taken_over_types_nothing() {
    let rig = Rig::new();
    let it = rig.start_recorder(1).await;

    let error = rig
        .runner
        .deliver(&it, &message(1, "text"), &closed)
        .await
        .unwrap_err();

    assert_eq!(error, RunnerError::FenceLost(FenceLost::Taken));
    let token = rig.runner.read_token(&it, DeliveryId(1)).await;
    assert_eq!(token, Ok(TokenState::NotPasted));
}

#[tokio::test]
async fn a_token_dies_with_its_session() {
    let rig = Rig::new();
    let it = rig.start(1, "exec sleep 600").await;
    let target = it.target.clone().unwrap();
    signal(&target.host, Signal::Kill).unwrap();
    wait_for("no session", || rig.session_count() == 0);

    let token = rig.runner.read_token(&it, DeliveryId(1)).await;

    assert_eq!(token, Ok(TokenState::NoSession));
}
