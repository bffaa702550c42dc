use super::*;

async fn clear(panes: &[Pane], then: [Said; 2]) -> (Cleared, Vec<Invocation>) {
    let answers = std::iter::once(listed(panes)).chain(then);
    let runner = runner(answers, Table::default().recording([ended()]));
    let cleared = runner.clear(&address(), &open).await.unwrap();
    let calls = calls(&runner);
    (cleared, calls)
}

fn ended_host() -> Pane {
    Pane {
        ended: 1,
        ..Pane::of_host()
    }
}

#[tokio::test]
async fn a_session_is_set_aside_only_where_tmux_says_so() {
    let panes = [ended_host(), Pane::of_person()];
    let aside = Cleared::SetAside(format!("{}+kept1", name()));
    for (answer, expected) in [("loop-done", aside), ("loop-refused", Cleared::Free)] {
        let (cleared, _) = clear(&panes, [said(answer), name_free()]).await;
        assert_eq!(cleared, expected, "{answer}");
    }
}

#[tokio::test]
async fn a_session_that_is_set_aside_gets_a_number_that_is_free() {
    let kept = |number: u32| Pane {
        session: format!("{}+kept{number}", name()),
        ..Pane::of_person()
    };
    let panes = [ended_host(), Pane::of_person(), kept(1), kept(2)];

    let (cleared, _) = clear(&panes, [said("loop-done"), name_free()]).await;

    assert_eq!(cleared, Cleared::SetAside(format!("{}+kept3", name())));
}

#[tokio::test]
async fn a_name_that_stays_taken_is_explained() {
    let cases = [
        (
            said("loop-done"),
            "the session was ended, but one came back under its name at once",
        ),
        (
            said("loop-refused"),
            "a pane of the session is neither ended nor a live agent to tmux",
        ),
        (complained("no space"), "tmux says: no space"),
    ];
    for (answer, why) in cases {
        let (cleared, _) = clear(&[ended_host()], [answer, listed(&[ended_host()])]).await;
        assert_eq!(cleared, Cleared::Unclearable(why.to_owned()));
    }
}

#[tokio::test]
async fn a_name_that_no_server_was_asked_to_free_is_not_unclearable() {
    for unserved in [
        complained("error connecting to /tmp/s (No such file or directory)"),
        nobody_listens(),
        // Another server listened there in that moment.
        said("loop-refused|77"),
    ] {
        let answers = [listed(&[ended_host()]), unserved, listed(&[ended_host()])];
        let runner = runner(answers, Table::default().recording([ended()]));

        let cleared = runner.clear(&address(), &open).await;

        let unanswered = matches!(
            cleared,
            Err(RunnerError::Unanswered(Unanswered::NoVerdict { .. }))
        );
        assert!(unanswered, "{cleared:?}");
    }
}

#[tokio::test]
async fn an_end_is_said_in_tmux_only_where_tmux_does_not_know_it() {
    let dead = Pane {
        dead: 1,
        ..Pane::of_host()
    };
    for (pane, commands) in [(Pane::of_host(), 2), (ended_host(), 1), (dead, 1)] {
        let (cleared, calls) = clear(&[pane], [said("loop-done"), name_free()]).await;
        assert_eq!(cleared, Cleared::Free);
        let sent = &calls[1].commands;
        assert_eq!(sent.len(), commands, "{sent:?}");
    }
}
