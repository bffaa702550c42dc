use super::*;

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_silent_costs_nobody_an_attempt() {
    let runner = runner([timed_out()], Table::default());
    assert!(!runner.is_silent(&address()));
    runner.probe(&address()).await;
    runner.probe(&address()).await;
    assert!(runner.is_silent(&address()));

    tokio::time::advance(LIMITS.between_questions).await;
    let asked_again = runner.probe(&address()).await;

    let next = LIMITS.between_questions;
    assert_eq!(asked_again, Probe::Unknown(Unanswered::Silent { next }));
    assert_eq!(calls(&runner).len(), 3);
    assert_eq!(runner.limits(), LIMITS);
}

#[tokio::test]
async fn a_session_of_ours_is_listed_once_and_nobody_elses() {
    let person = Pane {
        session: "work".to_owned(),
        ..Pane::of_person()
    };
    let panes = [Pane::of_host(), Pane::of_person(), person];
    let runner = runner([listed(&panes)], Table::default());

    let all = runner.list(&TmuxSocket::Default).await.unwrap();

    let names: Vec<_> = all.into_iter().map(|listed| listed.name).collect();
    assert_eq!(names, [name().to_string()]);
}
