//! Who is meant by a name.

use the_loop::runner::{
    Field, Invocation, KeptName, Marker, OptionName, Scope, Setting, Start, Target, TmuxCommand,
    TmuxServer,
};

use crate::stage::{
    Stage, ask, invocation, line, make_some, name, names, new_session, show, shown,
};

pub(crate) async fn a_name_is_kept_as_it_was_given(stage: &impl Stage) {
    for text in [
        "github:o/my.repo#7",
        "github:O-x/a_b#8",
        "github:ghe.io/o/r#9",
    ] {
        let item: the_loop::model::WorkItemRef = text.parse().unwrap();
        let name = item.session_name().unwrap();
        let made = TmuxCommand::NewSession {
            name: name.clone(),
            columns: 80,
            rows: 24,
            print: vec![Field::SessionName],
            program: ["sleep", "600"].map(Into::into).into(),
        };
        let answer = ask(stage, vec![made]).await;
        assert_eq!(line(&answer, Marker::Made).unwrap(), [name.as_str()]);
        let seen = shown(stage, Target::Name(name.clone()), &[Field::SessionName]).await;
        assert_eq!(seen, [name.as_str()]);
    }
}

pub(crate) async fn a_target_hits_no_longer_name(stage: &impl Stage) {
    make_some(stage, 15).await;
    let short = || Target::Name(name(1));

    let seen = shown(stage, short(), &[Field::SessionName, Field::PaneId]).await;
    assert_eq!(seen, ["", ""]);
    let set = TmuxCommand::SetOption {
        target: short(),
        scope: Scope::Session,
        setting: Setting::Ours(OptionName::WorkItem, "x".to_owned()),
    };
    assert_eq!(ask(stage, vec![set]).await.status, 1);
    let capture = TmuxCommand::CapturePane(short());
    assert_eq!(ask(stage, vec![capture]).await.status, 1);
    let clients = TmuxCommand::ListClients {
        session: short(),
        fields: vec![Field::ClientReadOnly],
    };
    assert_eq!(ask(stage, vec![clients]).await.status, 1);
    let item = [Field::Option(OptionName::WorkItem)];
    assert_eq!(shown(stage, Target::Name(name(15)), &item).await, [""]);
}

pub(crate) async fn a_name_is_held_by_one_session(stage: &impl Stage) {
    let made = make_some(stage, 1).await;

    let again = new_session(1, stage.recorder("second", crate::stage::Manners::Plain));
    let answer = ask(stage, vec![again]).await;

    assert_eq!(answer.status, 1);
    assert!(answer.words.starts_with("duplicate session"), "{answer:?}");
    assert_eq!(answer.output, "");
    let seen = shown(
        stage,
        Target::Name(name(1)),
        &[Field::SessionId, Field::PanePid],
    )
    .await;
    assert_eq!(seen, [made.session.to_string(), made.pid.to_string()]);
}

pub(crate) async fn what_is_absent_cannot_be_killed(stage: &impl Stage) {
    let made = make_some(stage, 15).await;
    let kill = |id: &str| TmuxCommand::KillSession(id.parse().unwrap());

    let answer = ask(stage, vec![kill("$99")]).await;

    assert_eq!((answer.status, answer.output.as_str()), (1, ""));
    assert_eq!(names(stage).await, [made.name.as_str()]);
    assert_eq!(
        ask(stage, vec![kill(&made.session.to_string())])
            .await
            .status,
        0
    );
    assert_eq!(
        ask(stage, vec![kill(&made.session.to_string())])
            .await
            .status,
        1
    );
}

/// The exit status lies here, so every guard asks for something that is never empty.
pub(crate) async fn an_absent_target_shows_nothing_and_is_no_error(stage: &impl Stage) {
    make_some(stage, 1).await;
    let absent = [
        Target::Name(name(2)),
        Target::Session("$99".parse().unwrap()),
        Target::Pane("$99".parse().unwrap(), "%99".parse().unwrap()),
    ];
    let fields = [
        Field::SessionId,
        Field::PanePid,
        Field::PaneDead,
        Field::PaneInMode,
        Field::Foreground,
        Field::Option(OptionName::Owner),
    ];
    for target in absent {
        let answer = ask(stage, vec![show(target.clone(), &fields)]).await;
        assert_eq!(answer.status, 0, "{target:?}: {answer:?}");
        assert_eq!(line(&answer, Marker::Is).unwrap(), ["", "", "", "", "", ""]);
        let hosted = shown(stage, target, &[Field::Hosted, Field::HarnessEnded]).await;
        assert_eq!(hosted, ["0", "0"]);
    }
}

pub(crate) async fn ids_are_never_used_again(stage: &impl Stage) {
    let first = make_some(stage, 1).await;
    ask(stage, vec![TmuxCommand::KillSession(first.session.clone())]).await;

    let second = make_some(stage, 1).await;

    assert_ne!(first.session, second.session);
    assert_ne!(first.pane, second.pane);
    let old = shown(stage, first.at(), &[Field::SessionId]).await;
    assert_eq!(old, [""]);
}

pub(crate) async fn a_renamed_session_frees_its_name(stage: &impl Stage) {
    let made = make_some(stage, 1).await;
    let kept = KeptName {
        name: made.name.clone(),
        number: 1,
    };
    let rename = TmuxCommand::RenameSession {
        session: made.session.clone(),
        to: kept.clone(),
    };

    assert_eq!(ask(stage, vec![rename.clone()]).await.status, 0);

    let seen = shown(stage, Target::Session(made.session), &[Field::SessionName]).await;
    assert_eq!(seen, [kept.to_string()]);
    assert_eq!(
        shown(stage, Target::Name(name(1)), &[Field::SessionId]).await,
        [""]
    );
    let second = make_some(stage, 1).await;
    let taken = TmuxCommand::RenameSession {
        session: second.session,
        to: kept,
    };
    assert_eq!(ask(stage, vec![taken]).await.status, 1);
}

pub(crate) async fn an_argument_that_ends_in_a_semicolon_ends_no_command(stage: &impl Stage) {
    let words = ["innocent;", "kill-session", "-t", "=x:", "end;"];
    let program = stage.argument_recorder("words", &words);
    let asked = Invocation {
        start: Start::Never,
        ..invocation(stage.socket(), vec![new_session(1, program)])
    };

    let answer = stage.tmux().call(&asked).await.unwrap();

    assert_eq!(answer.status, 0, "{answer:?}");
    let text = stage.recorded("words", "end;\n").await;
    assert_eq!(text, "innocent;\nkill-session\n-t\n=x:\nend;\n");
}
