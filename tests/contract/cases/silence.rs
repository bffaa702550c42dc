//! A server that does not answer, and what it does later.

use the_loop::model::DeliveryId;
use the_loop::runner::{
    BufferName, Field, OptionName, Scope, Setting, Target, TmuxCommand, TmuxServer, Unanswered,
};

use crate::stage::{
    Manners, Stage, ask, ask_in_vain, hand, hand_in_vain, invocation, make_recorder, make_some,
    name, names, new_session, show, shown, wait_for_name,
};

pub(crate) async fn a_stopped_server_gives_no_answer(stage: &impl Stage) {
    make_some(stage, 1).await;
    stage.freeze();

    let question = show(Target::Name(name(1)), &[Field::SessionId]);
    let silence = ask_in_vain(stage, vec![question]).await;

    assert!(
        matches!(silence, Unanswered::TimedOut { .. }),
        "{silence:?}"
    );
    stage.thaw();
    assert_eq!(names(stage).await, [name(1).as_str()]);
}

pub(crate) async fn a_killed_client_is_served_later(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let victim = make_some(stage, 2).await;
    stage.freeze();
    let set = TmuxCommand::SetOption {
        target: Target::Session(made.session.clone()),
        scope: Scope::Session,
        setting: Setting::Ours(OptionName::WorkItem, "late".to_owned()),
    };
    ask_in_vain(stage, vec![set]).await;
    ask_in_vain(stage, vec![TmuxCommand::KillSession(victim.session)]).await;

    stage.thaw();

    wait_for_name(stage, &victim.name, false).await;
    let item = [Field::Option(OptionName::WorkItem)];
    assert_eq!(shown(stage, Target::Name(name(1)), &item).await, ["late"]);
}

/// So a spawn has a ticket, which can be revoked.
pub(crate) async fn a_session_of_a_killed_client_is_made_later(stage: &impl Stage) {
    make_some(stage, 1).await;
    stage.freeze();
    let late = new_session(2, stage.recorder("late", Manners::Plain));
    ask_in_vain(stage, vec![late]).await;

    stage.thaw();

    wait_for_name(stage, &name(2), true).await;
}

/// The client serves the text, so a dead one ends its sequence: nothing of it is done.
pub(crate) async fn a_text_of_a_killed_client_is_never_pasted(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;
    let sequence = |delivery: i64| {
        let buffer = BufferName {
            delivery: DeliveryId(delivery),
            attempt: 1,
        };
        vec![
            TmuxCommand::LoadBuffer(buffer.clone()),
            TmuxCommand::PasteBuffer {
                buffer,
                pane: made.pane.clone(),
            },
        ]
    };
    stage.freeze();
    hand_in_vain(stage, Some("late"), sequence(1)).await;

    stage.thaw();

    assert_eq!(hand(stage, "next", sequence(2)).await.status, 0);
    assert_eq!(stage.recorded("r1", "next").await, "next");
}

pub(crate) async fn an_answer_comes_when_the_server_goes_on(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    stage.freeze();
    let question = show(Target::Session(made.session.clone()), &[Field::SessionName]);
    let asked = invocation(stage.socket(), vec![question.clone()]);
    let pending = stage.tmux().call(&asked);
    tokio::pin!(pending);
    let soon = tokio::time::timeout(std::time::Duration::from_millis(100), &mut pending).await;
    assert!(soon.is_err(), "{soon:?}");

    stage.thaw();

    let answer = pending.await.unwrap();
    assert_eq!(answer, ask(stage, vec![question]).await);
}
