//! Texts on their way into a program.

use std::time::Duration;

use the_loop::model::DeliveryId;
use the_loop::runner::{
    BufferName, Field, Guard, Marker, OptionName, Scope, Setting, Target, TmuxCommand,
};

use crate::stage::{Made, Manners, Stage, ask, hand, line, make_recorder, shown};

fn buffer(delivery: i64) -> BufferName {
    BufferName {
        delivery: DeliveryId(delivery),
        attempt: 1,
    }
}

fn load_and_paste(made: &Made, delivery: i64) -> Vec<TmuxCommand> {
    vec![
        TmuxCommand::LoadBuffer(buffer(delivery)),
        paste(made, delivery),
    ]
}

fn paste(made: &Made, delivery: i64) -> TmuxCommand {
    TmuxCommand::PasteBuffer {
        buffer: buffer(delivery),
        pane: made.pane.clone(),
    }
}

fn set_token(made: &Made, delivery: i64) -> TmuxCommand {
    TmuxCommand::SetOption {
        target: Target::Session(made.session.clone()),
        scope: Scope::Session,
        setting: Setting::Ours(OptionName::Token(DeliveryId(delivery)), "1".to_owned()),
    }
}

/// Pastes only if it was not done yet.
fn once(made: &Made, delivery: i64) -> Vec<TmuxCommand> {
    let token = OptionName::Token(DeliveryId(delivery));
    let shown = |marker| TmuxCommand::DisplayMessage {
        target: Some(Target::Session(made.session.clone())),
        marker,
        fields: vec![Field::Option(token)],
    };
    vec![
        TmuxCommand::LoadBuffer(buffer(delivery)),
        TmuxCommand::IfShell {
            target: made.at(),
            guard: Guard::All(vec![Guard::pane(&made.pane), Guard::Unset(token)]),
            then: vec![
                paste(made, delivery),
                set_token(made, delivery),
                shown(Marker::Done),
            ],
            otherwise: vec![
                shown(Marker::Refused),
                TmuxCommand::DeleteBuffer(buffer(delivery)),
            ],
        },
    ]
}

pub(crate) fn bracketed(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

pub(crate) async fn a_text_arrives_once_in_brackets(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Brackets).await;
    let text = "first line\n\tsecond; 'quoted' #{pane_id} $HOME \u{e9}";

    let first = hand(stage, text, once(&made, 7)).await;
    let second = hand(stage, text, once(&made, 7)).await;
    let third = hand(stage, "other", once(&made, 8)).await;

    assert_eq!(line(&first, Marker::Done).unwrap(), ["1"]);
    assert_eq!(line(&second, Marker::Refused).unwrap(), ["1"]);
    assert_eq!(line(&third, Marker::Done).unwrap(), ["1"]);
    let wanted = bracketed(text) + &bracketed("other");
    assert_eq!(stage.recorded("r1", &bracketed("other")).await, wanted);
}

pub(crate) async fn a_text_of_one_megabyte_arrives_whole(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Brackets).await;
    let text: String = (0..128 * 1024).map(|n| format!("{n:07}\n")).collect();

    let answer = hand(stage, &text, load_and_paste(&made, 1)).await;

    assert_eq!(answer.status, 0, "{answer:?}");
    let end = format!("{:07}\n\u{1b}[201~", 128 * 1024 - 1);
    assert!(stage.recorded("r1", &end).await == bracketed(&text));
}

pub(crate) async fn a_program_without_brackets_gets_the_bare_text(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;

    hand(stage, "a\nb", load_and_paste(&made, 1)).await;

    assert_eq!(stage.recorded("r1", "b").await, "a\nb");
}

pub(crate) async fn buffers_never_mix(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;
    for (delivery, text) in [(1, "one."), (2, "two."), (3, "three.")] {
        let load = TmuxCommand::LoadBuffer(buffer(delivery));
        assert_eq!(hand(stage, text, vec![load]).await.status, 0);
    }

    for delivery in [2, 1] {
        assert_eq!(ask(stage, vec![paste(&made, delivery)]).await.status, 0);
    }

    assert_eq!(stage.recorded("r1", "one.").await, "two.one.");
    assert_eq!(
        ask(stage, vec![paste(&made, 1)]).await.status,
        1,
        "it is used up"
    );
    let delete = || TmuxCommand::DeleteBuffer(buffer(3));
    assert_eq!(ask(stage, vec![delete()]).await.status, 0);
    assert_eq!(ask(stage, vec![delete()]).await.status, 1);
}

pub(crate) async fn an_empty_text_makes_no_buffer(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;

    let load = TmuxCommand::LoadBuffer(buffer(1));
    assert_eq!(hand(stage, "", vec![load]).await.status, 0);

    assert_eq!(ask(stage, vec![paste(&made, 1)]).await.status, 1);
}

pub(crate) async fn a_paste_that_fails_leaves_no_token(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;

    let answer = hand(stage, "", once(&made, 7)).await;

    assert_eq!(line(&answer, Marker::Done), None, "{answer:?}");
    let token = Field::Option(OptionName::Token(DeliveryId(7)));
    let seen = shown(stage, made.at(), &[token]).await;
    assert_eq!(seen, [""]);
}

/// So nothing is pasted into a mode: the exit status says nothing of it.
pub(crate) async fn a_mode_takes_the_brackets_and_the_enter(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Brackets).await;
    stage.copy_mode(&made);
    let mode = shown(stage, made.at(), &[Field::PaneInMode]).await;
    assert_eq!(mode, ["1"]);

    let mut commands = load_and_paste(&made, 1);
    commands.push(TmuxCommand::SendEnter(made.pane.clone()));
    assert_eq!(hand(stage, "a", commands).await.status, 0);
    assert_eq!(stage.recorded("r1", "a").await, "a");

    let mut commands = vec![TmuxCommand::LeaveModes(made.pane.clone())];
    commands.extend(load_and_paste(&made, 2));
    assert_eq!(hand(stage, "b", commands).await.status, 0);
    let wanted = format!("a{}", bracketed("b"));
    assert_eq!(stage.recorded("r1", &bracketed("b")).await, wanted);
    let leave = TmuxCommand::LeaveModes(made.pane);
    assert_eq!(
        ask(stage, vec![leave]).await.status,
        0,
        "there is none to leave"
    );
}

pub(crate) async fn input_that_is_switched_off_is_dropped_without_a_word(stage: &impl Stage) {
    let off = make_recorder(stage, 1, Manners::Plain).await;
    let on = make_recorder(stage, 2, Manners::Plain).await;
    stage.input_off(&off);
    let seen = shown(stage, off.at(), &[Field::PaneInputOff]).await;
    assert_eq!(seen, ["1"]);

    assert_eq!(hand(stage, "lost", load_and_paste(&off, 1)).await.status, 0);
    let enter = TmuxCommand::SendEnter(off.pane.clone());
    assert_eq!(ask(stage, vec![enter]).await.status, 0);
    hand(stage, "seen", load_and_paste(&on, 2)).await;

    stage.recorded("r2", "seen").await;
    assert_eq!(stage.so_far("r1"), "");
    assert_eq!(
        ask(stage, vec![paste(&off, 1)]).await.status,
        1,
        "the buffer is gone"
    );
}

/// Of another session too: tmux takes its newest client for the one that types.
pub(crate) async fn a_spectator_keeps_no_enter_away(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;
    let other = make_recorder(stage, 2, Manners::Plain).await;
    stage.attach(&other, true).await;

    hand(stage, "a", load_and_paste(&made, 7)).await;
    let enter = TmuxCommand::SendEnter(made.pane.clone());
    assert_eq!(ask(stage, vec![enter]).await.status, 0);
    assert_eq!(stage.recorded("r1", "\r").await, "a\r");
    stage.attach(&made, true).await;
    hand(stage, "b", load_and_paste(&made, 8)).await;
    let later = vec![set_enter(&made, Some("7")), enter_later(&made, 80)];
    assert_eq!(ask(stage, later).await.status, 0);

    assert_eq!(stage.recorded("r1", "b\r").await, "a\rb\r");
}

pub(crate) async fn an_enter_for_an_absent_pane_is_dropped(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;

    let enter = TmuxCommand::SendEnter("%99".parse().unwrap());
    assert_eq!(ask(stage, vec![enter]).await.status, 0);
    hand(stage, "a", load_and_paste(&made, 7)).await;

    assert_eq!(stage.recorded("r1", "a").await, "a");
}

fn enter_later(made: &Made, delay: u64) -> TmuxCommand {
    let outstanding = Guard::All(vec![
        Guard::pane(&made.pane),
        Guard::Is(Field::Option(OptionName::Enter), "7".to_owned()),
    ]);
    let press = TmuxCommand::IfShell {
        target: made.at(),
        guard: outstanding,
        then: vec![
            TmuxCommand::SendEnter(made.pane.clone()),
            set_enter(made, None),
        ],
        otherwise: Vec::new(),
    };
    TmuxCommand::RunShellDelayed {
        delay: Duration::from_millis(delay),
        commands: vec![press],
    }
}

fn set_enter(made: &Made, to: Option<&str>) -> TmuxCommand {
    TmuxCommand::SetOption {
        target: Target::Session(made.session.clone()),
        scope: Scope::Session,
        setting: match to {
            Some(to) => Setting::Ours(OptionName::Enter, to.to_owned()),
            None => Setting::Unset(OptionName::Enter),
        },
    }
}

pub(crate) async fn an_enter_comes_later_by_itself(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Brackets).await;
    let mut commands = load_and_paste(&made, 7);
    commands.extend([set_enter(&made, Some("7")), enter_later(&made, 80)]);

    let answer = hand(stage, "a", commands).await;

    assert_eq!(answer.status, 0, "{answer:?}");
    let wanted = format!("{}\r", bracketed("a"));
    assert_eq!(stage.recorded("r1", "\r").await, wanted);
    let enter = [Field::Option(OptionName::Enter)];
    assert_eq!(shown(stage, made.at(), &enter).await, [""]);
}

pub(crate) async fn a_later_enter_is_judged_when_it_comes(stage: &impl Stage) {
    let made = make_recorder(stage, 1, Manners::Plain).await;
    let mut commands = load_and_paste(&made, 7);
    commands.extend([set_enter(&made, Some("7")), enter_later(&made, 120)]);
    hand(stage, "a", commands).await;

    ask(stage, vec![set_enter(&made, Some("8"))]).await;
    // One that comes after it shows that the first had its time.
    let last = make_recorder(stage, 2, Manners::Plain).await;
    ask(
        stage,
        vec![set_enter(&last, Some("7")), enter_later(&last, 200)],
    )
    .await;
    stage.recorded("r2", "\r").await;

    assert_eq!(stage.so_far("r1"), "a");
    let enter = [Field::Option(OptionName::Enter)];
    assert_eq!(shown(stage, made.at(), &enter).await, ["8"]);
}
