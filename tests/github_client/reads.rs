//! Lists read to their end, conditions, and what odd objects become.

use std::time::Duration;

use chrono::TimeDelta;
use the_loop::demo::github::{Check, Fault, LocalGitHub, PullOptions, Run};
use the_loop::github::payload::login;
use the_loop::github::{Cursor, GitHubError};
use the_loop::model::{Edit, Login};

use super::{REPO, client, client_with, item, items, limits, noon, repo, server, token};

#[tokio::test]
async fn a_conversation_of_130_comments_is_read_whole_and_in_order() {
    let server = server().await;
    for n in 0..130 {
        server
            .comment(REPO, 1, "ada", &format!("comment {n}"))
            .unwrap();
    }

    let read = client(&server).comments_of(&item(1)).await.unwrap();

    let bodies: Vec<_> = read
        .items
        .iter()
        .map(|one| one.body.clone().unwrap())
        .collect();
    assert_eq!(bodies.len(), 130);
    assert_eq!(bodies[129], "comment 129");
    assert!(read.items.iter().all(|one| one.number() == Some(1)));
    assert_eq!(server.count("GET", "/comments"), 2);
}

#[tokio::test]
async fn all_350_labelled_issues_are_found_whether_or_not_they_share_a_second() {
    for seconds in [0, 1] {
        let server = LocalGitHub::start().await.unwrap();
        server.set_clock(noon());
        server.seconds_per_write(seconds);
        for n in 1..=351 {
            server.open_issue(REPO, "ada", "title", "");
            if n != 7 {
                server.label(REPO, n, "ada", "the-loop: on").unwrap();
            }
        }

        let all = client(&server)
            .open_issues(&repo(), Some("the-loop: on"))
            .await
            .unwrap();

        let mut numbers: Vec<u64> = items(all).iter().map(|issue| issue.number).collect();
        numbers.sort_unstable();
        let expected: Vec<u64> = (1..=351).filter(|n| *n != 7).collect();
        assert_eq!(numbers, expected, "{seconds} s apart");
    }
}

#[tokio::test]
async fn an_issue_that_moves_while_the_list_is_read_hides_no_other() {
    let server = server().await;
    for _ in 2..=250 {
        server.open_issue(REPO, "ada", "title", "");
    }
    let github = client(&server);
    server.fail(
        "/issues?state=all",
        1,
        Fault::Slow(Duration::from_millis(300)),
    );
    let since = Cursor::since(noon());

    let (repo, mover) = (repo(), async {
        while server.count("GET", "/issues?state=all") == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        server.comment(REPO, 3, "ada", "moves to the end").unwrap();
    });
    let (read, ()) = tokio::join!(github.issues_since(&repo, &since), mover);

    let mut numbers: Vec<u64> = items(read.unwrap())
        .iter()
        .map(|issue| issue.number)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=250).collect::<Vec<u64>>());
}

#[tokio::test]
async fn an_idle_repository_costs_four_unchanged_answers_and_no_budget() {
    let server = server().await;
    server.open_pull(
        REPO,
        &PullOptions {
            author: "ada",
            head_sha: "abc",
            ..Default::default()
        },
    );
    server.comment(REPO, 1, "ada", "hello").unwrap();
    let github = client(&server);
    let mut cursors = [
        Cursor::since(noon()),
        Cursor::since(noon()),
        Cursor::since(noon()),
    ];
    let mut etag = None;
    let mut cycles = Vec::new();
    for _ in 0..4 {
        server.forget_requests();
        let issues = github.issues_since(&repo(), &cursors[0]).await.unwrap();
        let comments = github.issue_comments(&repo(), &cursors[1]).await.unwrap();
        let inline = github.review_comments(&repo(), &cursors[2]).await.unwrap();
        let pulls = github.open_pulls(&repo(), etag.as_deref()).await.unwrap();
        cursors = [issues.cursor, comments.cursor, inline.cursor];
        etag = pulls.cursor.etag;
        cycles.push((server.requests().len(), server.count_status(304)));
    }

    assert_eq!(cycles[2..], [(4, 4), (4, 4)]);
    let left = github.rate().unwrap().remaining;
    github.open_pulls(&repo(), etag.as_deref()).await.unwrap();
    assert_eq!(github.rate().unwrap().remaining, left);

    server.comment(REPO, 1, "bob", "news").unwrap();
    let news = github.issue_comments(&repo(), &cursors[1]).await.unwrap();
    assert!(
        items(news)
            .iter()
            .any(|one| one.body.as_deref() == Some("news"))
    );
}

#[tokio::test]
async fn server_time_is_what_the_date_header_says() {
    let server = server().await;
    server.skew_date(TimeDelta::hours(-5));
    let listing = client(&server).open_issues(&repo(), None).await.unwrap();
    assert_eq!(listing.date, Some(server.now() - TimeDelta::hours(5)));
}

#[tokio::test]
async fn an_etag_names_content_and_not_the_moment() {
    let server = server().await;
    let github = client(&server);
    let start = Cursor::since(server.now());
    let first = github.issues_since(&repo(), &start).await.unwrap().cursor;
    server.open_issue("octo/other", "ada", "elsewhere", "");
    let second = github.issues_since(&repo(), &start).await.unwrap().cursor;
    assert!(first.etag.is_some());
    assert_eq!(first, second);
    let unchanged = github.issues_since(&repo(), &first).await.unwrap();
    assert!(unchanged.news.is_none());

    server.label(REPO, 1, "ada", "bug").unwrap();
    let changed = github.issues_since(&repo(), &first).await.unwrap();
    assert!(changed.news.is_some());
}

#[tokio::test]
async fn a_deleted_author_is_nobody_and_hides_nothing() {
    let server = server().await;
    let pull = server.open_pull(
        REPO,
        &PullOptions {
            author: "gone",
            ..Default::default()
        },
    );
    server.comment(REPO, 1, "gone", "mine").unwrap();
    server.comment(REPO, 1, "ada", "hers").unwrap();
    server
        .review(REPO, pull, "gone", "APPROVED", "fine")
        .unwrap();
    server.delete_account("Gone");
    let github = client(&server);

    let comments = github.comments_of(&item(1)).await.unwrap();
    let authors: Vec<_> = comments
        .items
        .iter()
        .map(|one| login(one.user.as_ref()))
        .collect();
    assert_eq!(authors, [None, Some(Login::new("ada"))]);
    assert_eq!(
        github.reviews(&item(pull)).await.unwrap().items[0].user,
        None
    );
    assert_eq!(github.issue(&item(pull)).await.unwrap().user, None);
    assert_eq!(
        github
            .open_pulls(&repo(), None)
            .await
            .unwrap()
            .news
            .unwrap()
            .items[0]
            .user,
        None
    );
}

#[tokio::test]
async fn ci_of_a_commit_is_listed_by_kind() {
    let server = server().await;
    let options = PullOptions {
        author: "ada",
        head_branch: "fix",
        head_sha: "abc",
        ..Default::default()
    };
    let pull = server.open_pull(REPO, &options);
    let run = server.workflow_run(REPO, Run::completed("fix", "abc", "failure"));
    server.workflow_run(REPO, Run::completed("fix", "old", "failure"));
    server.status(REPO, "abc", "jenkins", "pending", "");
    let red = server.status(REPO, "abc", "jenkins", "failure", "2 tests failed");
    server.check_run(
        REPO,
        Check {
            name: "lint".to_owned(),
            app: "some-app".to_owned(),
            head_sha: "abc".to_owned(),
            conclusion: Some("success".to_owned()),
            title: String::new(),
            summary: String::new(),
        },
    );
    let github = client(&server);

    let runs = github.workflow_runs(&repo(), "abc", None).await.unwrap();
    let etag = runs.cursor.etag.clone();
    let runs = items(runs);
    assert_eq!(
        (runs[0].id, runs[0].conclusion.as_deref()),
        (run, Some("failure"))
    );
    assert_eq!(runs[0].pull_requests.as_ref().unwrap()[0].number, pull);
    assert!(
        github
            .workflow_runs(&repo(), "abc", etag.as_deref())
            .await
            .unwrap()
            .news
            .is_none()
    );
    let statuses = items(github.combined_status(&repo(), "abc", None).await.unwrap());
    assert_eq!((statuses.len(), statuses[0].id), (1, red));
    let checks = items(github.check_runs(&repo(), "abc", None).await.unwrap());
    assert_eq!(
        checks[0].app.as_ref().unwrap().slug.as_deref(),
        Some("some-app")
    );
}

#[tokio::test]
async fn the_last_editor_is_asked_of_graphql() {
    let server = server().await;
    let github = client_with(&server.enterprise_url(), token("t"), limits());
    let comment = server.comment(REPO, 1, "ada", "first").unwrap();
    let id = format!("IC_{comment}");
    assert_eq!(github.last_edit(&id).await.unwrap(), Edit::Never);
    server.touch_text(REPO, comment).unwrap();
    assert_eq!(github.last_edit(&id).await.unwrap(), Edit::Never);
    server
        .edit(REPO, comment, "renovate[bot]", "second")
        .unwrap();
    assert_eq!(
        github.last_edit(&id).await.unwrap(),
        Edit::By(Login::new("renovate[bot]"))
    );
    server.edit(REPO, comment, "mallory", "third").unwrap();
    server.delete_account("mallory");
    assert_eq!(github.last_edit(&id).await.unwrap(), Edit::ByNobody);
    let error = github.last_edit("IC_1").await.unwrap_err();
    assert!(matches!(error, GitHubError::NotFound { .. }), "{error}");
    assert_eq!(server.count("POST", "/api/graphql"), 5);
}
