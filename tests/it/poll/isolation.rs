//! What fails fails alone, is said, and is not said for ever.

use the_loop::demo::github::Fault;

use super::rig::{LABEL, REPO, Rig};

async fn two_repos() -> Rig {
    let rig = Rig::watching(&["demo/bad", REPO]).await;
    for repo in ["demo/bad", REPO] {
        let issue = rig.github.open_issue(repo, "ada", "A title", "");
        rig.github.label(repo, issue, "ada", LABEL).unwrap();
    }
    rig.look().await;
    rig.hear().await;
    rig
}

#[tokio::test]
async fn one_repository_that_fails_stops_no_other() {
    for status in [404, 502] {
        let rig = two_repos().await;
        rig.github.comment(REPO, 1, "ada", "hello").unwrap();
        rig.github.comment("demo/bad", 1, "ada", "later").unwrap();
        rig.github.fail("demo/bad", 1000, Fault::Status(status));
        rig.pass(60);
        let report = rig.cycle().await;
        assert!(!report.errors.is_empty());
        assert_eq!(rig.hear_texts().await, ["hello"]);
        rig.github.heal();
        rig.look().await;
        assert_eq!(rig.hear_texts().await, ["later"]);
    }
}

#[tokio::test]
async fn a_repository_that_is_not_there_says_so_a_few_times_and_not_for_ever() {
    let rig = two_repos().await;
    rig.forget_said();
    rig.github.fail("demo/bad", 10_000, Fault::Status(404));
    for _ in 0..100 {
        rig.pass(60);
        rig.cycle().await;
    }
    let lines = rig.said(&["poll.provider_error", "poll.cycle"]).len();
    assert!((1..=60).contains(&lines), "{lines}");
}

#[tokio::test]
async fn an_item_that_cannot_be_read_stops_no_other_and_is_asked_less_and_less() {
    let rig = Rig::new().await;
    let (bad, good) = (rig.labelled_issue(), rig.labelled_issue());
    rig.comment(good, "ada", "the-loop start");
    rig.github.fail(
        &format!("/issues/{bad}/comments"),
        10_000,
        Fault::Status(404),
    );
    for _ in 0..100 {
        rig.pass(60);
        rig.cycle().await;
    }
    assert_eq!(rig.hear_texts().await, ["the-loop start"]);
    let asked = rig.github.count("GET", &format!("/issues/{bad}/comments"));
    assert!((4..=20).contains(&asked), "{asked}");
    let lines = rig.said(&["poll.item_error", "poll.cycle"]).len();
    assert!((1..=40).contains(&lines), "{lines}");
    rig.github.heal();
    rig.comment(bad, "ada", "now");
    rig.pass(3600);
    rig.cycle().await;
    assert_eq!(rig.hear_texts().await, ["now"]);
    assert!(rig.row(bad).await.dirty.is_none());
}

#[tokio::test]
async fn a_bad_element_hides_no_other() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    rig.hear().await;
    for text in ["one", "two", "three"] {
        rig.comment(issue, "ada", text);
    }
    rig.github.fail("/issues/comments", 1, Fault::BadElement(1));
    rig.pass(60);
    let report = rig.cycle().await;
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    assert_eq!(rig.hear_texts().await, ["one", "three"]);
}

/// Opens the database beside the store, as another version of the program might.
async fn database(rig: &Rig) -> sqlx::SqlitePool {
    let file = sqlx::sqlite::SqliteConnectOptions::new().filename(rig.store.path());
    sqlx::SqlitePool::connect_with(file).await.unwrap()
}

/// Writes a word into an item's row.
async fn write_control(rig: &Rig, number: u64, word: Option<&str>) {
    let database = database(rig).await;
    sqlx::query("UPDATE work_items SET control = $2, control_at = 0 WHERE number = $1")
        .bind(i64::try_from(number).unwrap())
        .bind(word)
        .execute(&database)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_no_other_item_of_its_repository() {
    let (rig, bad) = Rig::with_issue().await;
    let good = rig.labelled_issue();
    rig.look().await;
    rig.hear().await;
    let seen = rig.row(good).await.updated_at;
    write_control(&rig, bad, Some("hibernate")).await;
    rig.comment(bad, "ada", "later");
    rig.comment(good, "ada", "now");
    let another = rig.labelled_issue();
    rig.pass(60);

    let report = rig.cycle().await;

    assert!(!report.errors.is_empty());
    assert_eq!(rig.hear_texts().await, ["now"]);
    assert!(rig.row(good).await.updated_at > seen);
    assert!(rig.row(another).await.armed);
    let pull = rig.pull("anything", &format!("Fixes #{good}"));
    rig.pass(3600);
    rig.cycle().await;
    assert!(rig.row(pull).await.bound_to.is_some());

    write_control(&rig, bad, None).await;
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["later"]);
}

#[tokio::test]
async fn a_comment_on_a_row_that_cannot_be_read_is_told_later_and_its_list_goes_on() {
    let (rig, bad) = Rig::with_issue().await;
    let good = rig.labelled_issue();
    rig.look().await;
    rig.comment(bad, "ada", "before");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["before"]);
    write_control(&rig, bad, Some("hibernate")).await;
    rig.comment(bad, "ada", "later");
    rig.pass(60);
    rig.comment(good, "ada", "now");
    for _ in 0..3 {
        rig.pass(60);
        rig.github.forget_requests();
        rig.cycle().await;
    }
    assert_eq!(rig.hear_texts().await, ["now"]);
    let mut asked = rig.github.requests();
    asked.retain(|request| request.path.contains("/issues/comments"));
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].status, 304, "nothing of it is read again");
    write_control(&rig, bad, None).await;
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["later"]);
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_known_comment_that_cannot_be_read_holds_up_no_other_of_its_list() {
    let (rig, bad) = Rig::with_issue().await;
    let good = rig.labelled_issue();
    rig.look().await;
    rig.comment(bad, "ada", "first");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["first"]);
    let database = database(&rig).await;
    let states = [
        ("delivered", "asleep", "now"),
        ("asleep", "delivered", "later"),
    ];
    for (state, other, said) in states {
        sqlx::query("UPDATE deliveries SET state = $2 WHERE state = $1")
            .bind(state)
            .bind(other)
            .execute(&database)
            .await
            .unwrap();
        // The list begins with what it ended with, and that is the first comment again.
        rig.comment(good, "ada", said);
        rig.pass(60);

        let report = rig.cycle().await;

        assert_eq!(
            report.errors.is_empty(),
            other == "delivered",
            "{:?}",
            report.errors
        );
        assert_eq!(rig.hear_texts().await, [said]);
        // It was accepted long ago, so that the list goes on and is soon unchanged again.
        let mut report = rig.cycle().await;
        for _ in 0..2 {
            rig.pass(60);
            report = rig.cycle().await;
        }
        assert_eq!(report.errors, Vec::<String>::new());
        assert_eq!(report.requests, report.unchanged);
    }
}
