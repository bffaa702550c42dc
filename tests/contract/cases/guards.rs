//! What tmux checks in the moment in which it acts.

use chrono::Utc;
use the_loop::model::PaneId;
use the_loop::runner::{
    BufferName, Field, Guard, Marker, OptionName, Scope, Setting, Target, TmuxCommand, TmuxServer,
    Unanswered,
};

use crate::stage::{Made, Stage, ask, invocation, line, lines, make_some, name, names, shown};

fn print(marker: Marker) -> Vec<TmuxCommand> {
    vec![TmuxCommand::DisplayMessage {
        target: None,
        marker,
        fields: Vec::new(),
    }]
}

async fn holds(stage: &impl Stage, target: Target, guard: Guard) -> bool {
    let command = TmuxCommand::IfShell {
        target,
        guard,
        then: print(Marker::Done),
        otherwise: print(Marker::Refused),
    };
    let answer = ask(stage, vec![command]).await;
    assert_eq!(answer.status, 0, "{answer:?}");
    let (done, refused) = (line(&answer, Marker::Done), line(&answer, Marker::Refused));
    assert!(done.is_some() != refused.is_some(), "{answer:?}");
    done.is_some()
}

fn set(made: &Made, scope: Scope, setting: Setting) -> TmuxCommand {
    TmuxCommand::SetOption {
        target: made.at(),
        scope,
        setting,
    }
}

pub(crate) async fn a_guard_sees_one_session(stage: &impl Stage) {
    let one = make_some(stage, 1).await;
    let other = make_some(stage, 15).await;
    let pane = || one.at();
    let owner = |n: u64| Guard::Is(Field::Option(OptionName::Owner), format!("owner-{n}"));
    let pid = |pid: i32| Guard::Is(Field::PanePid, pid.to_string());

    let all = |guards: Vec<Guard>| Guard::All(guards);
    let right = vec![
        Guard::session(&one.session),
        Guard::pane(&one.pane),
        pid(one.pid),
        owner(1),
        Guard::Is(Field::PaneDead, "0".to_owned()),
        Guard::Is(Field::PaneInputOff, "0".to_owned()),
        Guard::Is(Field::PaneInMode, "0".to_owned()),
        Guard::Is(Field::HarnessEnded, "0".to_owned()),
        Guard::Unset(OptionName::Enter),
    ];
    assert!(holds(stage, pane(), all(right.clone())).await);
    for wrong in [
        Guard::session(&other.session),
        Guard::pane(&other.pane),
        pid(other.pid),
        owner(15),
        Guard::Unset(OptionName::Owner),
    ] {
        let mut guards = right.clone();
        guards.push(wrong.clone());
        assert!(!holds(stage, pane(), all(guards)).await, "{wrong:?}");
        assert!(
            !holds(
                stage,
                Target::Pane("$99".parse().unwrap(), "%99".parse().unwrap()),
                all(vec![wrong.clone()])
            )
            .await
                || wrong == Guard::Unset(OptionName::Owner)
        );
    }
}

/// The session is the one that is named, the pane is found wherever it is, and one that is nowhere is
/// the active one: a guard asks for both.
pub(crate) async fn a_pane_is_seen_in_the_session_that_is_named_with_it(stage: &impl Stage) {
    let one = make_some(stage, 1).await;
    let other = make_some(stage, 15).await;
    let split = stage.persons_pane(&one);
    let fields = [
        Field::SessionId,
        Field::Option(OptionName::Owner),
        Field::PaneId,
    ];
    let seen = |owner: &str, made: &Made, pane: &PaneId| {
        [made.session.to_string(), owner.to_owned(), pane.to_string()]
    };

    let own = seen("owner-1", &one, &one.pane);
    assert_eq!(shown(stage, one.at(), &fields).await, own);
    let strayed = Target::Pane(other.session.clone(), one.pane.clone());
    let found = seen("owner-15", &other, &one.pane);
    assert_eq!(shown(stage, strayed, &fields).await, found);
    let nowhere: PaneId = "%99".parse().unwrap();
    let absent = || Target::Pane(one.session.clone(), nowhere.clone());
    let active = seen("owner-1", &one, &split);
    assert_eq!(shown(stage, absent(), &fields).await, active);
    assert!(!holds(stage, absent(), Guard::pane(&nowhere)).await);
    let screen = ask(stage, vec![TmuxCommand::CapturePane(absent())]).await;
    assert_eq!(screen.status, 1, "{screen:?}");
    assert_eq!(screen.words, format!("can't find pane: {nowhere}"));
}

/// Of the pane that is named, though another is in front.
pub(crate) async fn an_option_is_set_to_what_its_target_shows(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    stage.persons_pane(&made);
    let target = || made.at();
    let setting = Setting::Shown(OptionName::EnterProgram, Field::PanePid);

    let answer = ask(stage, vec![set(&made, Scope::Session, setting)]).await;

    assert_eq!(answer.status, 0, "{answer:?}");
    let fields = [Field::Option(OptionName::EnterProgram)];
    assert_eq!(
        shown(stage, target(), &fields).await,
        [made.pid.to_string()]
    );
}

pub(crate) async fn a_later_time_than_the_limit_is_refused(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let target = || Target::Session(made.session.clone());
    let now = Utc::now().timestamp();

    assert!(holds(stage, target(), Guard::Before(now + 60)).await);
    assert!(!holds(stage, target(), Guard::Before(now)).await);
    assert!(!holds(stage, target(), Guard::Before(now - 60)).await);
}

pub(crate) async fn a_time_limit_needs_the_clock_option(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let later = Utc::now().timestamp() + 60;
    let unset = set(&made, Scope::Session, Setting::Unset(OptionName::Epoch));
    assert_eq!(ask(stage, vec![unset]).await.status, 0);

    assert!(!holds(stage, Target::Session(made.session), Guard::Before(later)).await);
    let absent = Target::Session("$99".parse().unwrap());
    assert!(!holds(stage, absent, Guard::Before(later)).await);
}

/// So the guard of a clearing must name its session too.
pub(crate) async fn an_absent_session_has_no_live_pane(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let absent = || Target::Session("$99".parse().unwrap());

    assert!(holds(stage, absent(), Guard::EveryPaneEnded).await);
    let named = Guard::All(vec![Guard::session(&made.session), Guard::EveryPaneEnded]);
    assert!(!holds(stage, absent(), named).await);
}

fn kill_if_ended(made: &Made) -> TmuxCommand {
    TmuxCommand::IfShell {
        target: Target::Session(made.session.clone()),
        guard: Guard::All(vec![Guard::session(&made.session), Guard::EveryPaneEnded]),
        then: vec![TmuxCommand::KillSession(made.session.clone())]
            .into_iter()
            .chain(print(Marker::Done))
            .collect(),
        otherwise: print(Marker::Refused),
    }
}

pub(crate) async fn a_session_with_a_live_pane_is_not_killed(stage: &impl Stage) {
    let made = make_some(stage, 1).await;

    let answer = ask(stage, vec![kill_if_ended(&made)]).await;
    assert!(line(&answer, Marker::Refused).is_some(), "{answer:?}");

    stage.note_end(&made);
    stage.persons_pane(&made);
    let answer = ask(stage, vec![kill_if_ended(&made)]).await;
    assert!(line(&answer, Marker::Refused).is_some(), "{answer:?}");
    assert_eq!(names(stage).await, [made.name.as_str()]);

    let ended = make_some(stage, 2).await;
    stage.note_end(&ended);
    let answer = ask(stage, vec![kill_if_ended(&ended)]).await;
    assert!(line(&answer, Marker::Done).is_some(), "{answer:?}");
    assert_eq!(names(stage).await, [made.name.as_str()]);
}

pub(crate) async fn a_recorded_end_counts_for_its_own_pane_only(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let split = stage.persons_pane(&made);
    // On the session, so that every pane shows it.
    let how = format!("{} code:3", made.pid);
    let noted = set(&made, Scope::Session, Setting::Ours(OptionName::Exit, how));
    assert_eq!(ask(stage, vec![noted]).await.status, 0);

    let ended = [Field::Hosted, Field::HarnessEnded];
    let pane = made.at();
    assert_eq!(shown(stage, pane, &ended).await, ["1", "1"]);
    assert_eq!(
        shown(stage, Target::Pane(made.session.clone(), split), &ended).await,
        ["0", "0"]
    );
    let session = || Target::Session(made.session.clone());
    assert!(!holds(stage, session(), Guard::EveryPaneEnded).await);
    assert!(holds(stage, session(), Guard::EveryHostEnded).await);
}

pub(crate) async fn a_sequence_stops_at_its_first_failure(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let mark = |text: &str| {
        let setting = Setting::Ours(OptionName::WorkItem, text.to_owned());
        set(&made, Scope::Session, setting)
    };
    let fails = TmuxCommand::PasteBuffer {
        buffer: BufferName {
            delivery: the_loop::model::DeliveryId(404),
            attempt: 1,
        },
        pane: made.pane.clone(),
    };
    let mut commands = vec![mark("before")];
    commands.extend(print(Marker::Is));
    commands.extend([fails, mark("after")]);
    commands.extend(print(Marker::Done));

    let answer = ask(stage, commands).await;

    assert_eq!(answer.status, 1);
    assert_eq!(lines(&answer, Marker::Is).len(), 1, "{answer:?}");
    assert_eq!(line(&answer, Marker::Done), None);
    let item = [Field::Option(OptionName::WorkItem)];
    assert_eq!(shown(stage, Target::Name(name(1)), &item).await, ["before"]);
}

pub(crate) async fn a_sequence_that_is_too_long_is_not_sent(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let long = Setting::Ours(OptionName::WorkItem, "x".repeat(16_000));
    let asked = invocation(stage.socket(), vec![set(&made, Scope::Session, long)]);

    let answer = stage.tmux().call(&asked).await;

    assert!(
        matches!(answer, Err(Unanswered::NotRun { .. })),
        "{answer:?}"
    );
}
