//! Broken answers, rate limits, and writes that must not happen twice.

use std::time::{Duration, Instant};

use the_loop::demo::github::{Fault, PullOptions};
use the_loop::github::auth::TokenSource;
use the_loop::github::{Cursor, GitHubError, Limits, Reaction, Sent};

use super::{REPO, client, client_with, item, limits, noon, repo, server};

#[tokio::test]
async fn a_read_survives_two_bad_gateways_and_gives_up_after_four() {
    let server = server().await;
    let github = client(&server);
    server.fail("/issues/1", 2, Fault::Status(502));
    assert_eq!(
        github.issue(&item(1)).await.unwrap().title.as_deref(),
        Some("First")
    );
    assert_eq!(server.count("GET", "/issues/1"), 3);

    server.forget_requests();
    server.fail("/issues/1", 99, Fault::Status(503));
    let error = github.issue(&item(1)).await.unwrap_err();
    assert!(
        matches!(error, GitHubError::Server { status: 503, .. }),
        "{error}"
    );
    assert_eq!(server.count("GET", "/issues/1"), 4);
}

#[tokio::test]
async fn a_refusal_is_not_asked_again() {
    let server = server().await;
    let github = client(&server);
    for (fault, matches) in [
        (
            Fault::Status(404),
            (|error| matches!(error, GitHubError::NotFound { .. })) as fn(&_) -> _,
        ),
        (Fault::Status(410), |error| {
            matches!(error, GitHubError::Gone { .. })
        }),
        (Fault::Status(403), |error| {
            matches!(error, GitHubError::Forbidden { .. })
        }),
        (Fault::Status(422), |error| {
            matches!(error, GitHubError::Refused { status: 422, .. })
        }),
        (Fault::Truncated, |error| {
            matches!(error, GitHubError::BadPayload { .. })
        }),
    ] {
        server.forget_requests();
        server.fail("/issues/1", 1, fault.clone());
        let error = github.issue(&item(1)).await.unwrap_err();
        assert!(matches(&error), "{fault:?}: {error}");
        assert!(error.to_string().contains("/issues/1"), "{error}");
        assert_eq!(server.requests().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_comment_is_posted_once_whatever_the_answer() {
    let server = server().await;
    let github = client(&server);
    for (fault, written) in [(Fault::StatusAfterwards(502), 1), (Fault::Status(502), 1)] {
        server.fail_method("POST", "/comments", 1, fault);
        let error = github.create_comment(&item(1), "done").await.unwrap_err();
        assert!(error.may_have_happened(), "{error}");
        assert_eq!(server.comments_on(REPO, 1).len(), written);
    }
    assert_eq!(server.count("POST", "/comments"), 2);

    let posted = github.create_comment(&item(1), "done").await.unwrap();
    assert!(posted.html_url.unwrap().ends_with(&posted.id.to_string()));
    assert_eq!(
        server.comments_on(REPO, 1)[1],
        ("operator".to_owned(), "done".to_owned())
    );
}

#[tokio::test]
async fn a_write_that_reached_nobody_is_known_not_to_have_happened() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let error = client_with(&url, TokenSource::none(), limits())
        .create_comment(&item(1), "x")
        .await
        .unwrap_err();
    assert!(
        matches!(&error, GitHubError::Transport { sent: Sent::No, .. }),
        "{error}"
    );
    assert!(!error.may_have_happened());
}

#[tokio::test]
async fn reactions_reach_comments_review_comments_and_items() {
    let server = server().await;
    let github = client(&server);
    let comment = server.comment(REPO, 1, "ada", "hello").unwrap();
    let pull = server.open_pull(
        REPO,
        &PullOptions {
            author: "ada",
            ..Default::default()
        },
    );
    let inline = server
        .review_comment(REPO, pull, "ada", None, ("a.rs", 3), "why?")
        .unwrap();

    github
        .add_comment_reaction(&item(1), comment, Reaction::Eyes)
        .await
        .unwrap();
    github
        .add_comment_reaction(&item(1), comment, Reaction::Eyes)
        .await
        .unwrap();
    github
        .add_review_comment_reaction(&item(pull), inline, Reaction::Rocket)
        .await
        .unwrap();
    github
        .add_reaction(&item(1), Reaction::PlusOne)
        .await
        .unwrap();

    let by = |content: &str| vec![("operator".to_owned(), content.to_owned())];
    assert_eq!(server.reactions_to(REPO, comment), by("eyes"));
    assert_eq!(server.reactions_to(REPO, inline), by("rocket"));
    assert_eq!(server.reactions_to(REPO, 1), by("+1"));
    let agents: Vec<_> = server
        .requests()
        .iter()
        .map(|row| row.user_agent.clone())
        .collect();
    let ours = format!("the-loop/{}", env!("CARGO_PKG_VERSION"));
    assert!(agents.iter().all(|agent| *agent == ours), "{agents:?}");
}

#[tokio::test]
async fn every_form_of_a_rate_limit_stops_asking_until_it_ends() {
    let seconds = Duration::from_secs;
    for (fault, wait) in [
        (Fault::HourlyLimit(seconds(90)), 85..=91),
        (Fault::SecondaryLimit(Some(seconds(7))), 2..=7),
        (Fault::SecondaryLimit(None), 50..=60),
        (Fault::TooManyRequests(Some(seconds(5))), 1..=5),
        (Fault::TooManyRequests(None), 50..=60),
    ] {
        let server = server().await;
        let github = client(&server);
        github.issue(&item(1)).await.unwrap();
        server.fail("/issues/1", 1, fault.clone());
        server.forget_requests();

        for _ in 0..3 {
            match github.issue(&item(1)).await.unwrap_err() {
                GitHubError::RateLimited {
                    wait: got, until, ..
                } => {
                    assert!(wait.contains(&got.as_secs()), "{fault:?}: {got:?}");
                    assert!(until > server.now());
                }
                other => panic!("{fault:?}: {other}"),
            }
        }
        assert!(github.create_comment(&item(1), "x").await.is_err());
        assert!(!github.optional_calls_allowed());
        assert_eq!(server.requests().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn decoration_stops_when_a_tenth_of_the_budget_is_left() {
    let server = server().await;
    let github = client(&server);
    assert!(github.optional_calls_allowed());
    server.set_budget(100, 10);
    github.whoami().await.unwrap();
    assert_eq!(github.rate().unwrap().remaining, 9);
    assert!(!github.optional_calls_allowed());
    assert_eq!(github.rate_limit().await.unwrap().unwrap().remaining, 9);

    server.without_budget();
    assert_eq!(github.rate_limit().await.unwrap(), None);
    let ghes = client(&server);
    ghes.whoami().await.unwrap();
    assert_eq!(ghes.rate(), None);
    assert!(ghes.optional_calls_allowed());
}

#[tokio::test]
async fn an_odd_element_is_reported_and_the_rest_is_used() {
    let server = server().await;
    for body in ["a", "b", "c"] {
        server.comment(REPO, 1, "ada", body).unwrap();
    }
    server.fail("/issues/comments", 1, Fault::BadElement(1));
    let read = client(&server)
        .issue_comments(&repo(), &Cursor::since(noon()))
        .await
        .unwrap();

    let news = read.news.unwrap();
    let bodies: Vec<_> = news
        .items
        .iter()
        .filter_map(|one| one.body.as_deref())
        .collect();
    assert_eq!(bodies, ["a", "c"]);
    let problem = news.bad[0].to_string();
    assert!(
        problem.contains("/issues/comments") && problem.contains("element 1"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_in_time() {
    let server = server().await;
    let short = Limits {
        whole: Duration::from_millis(300),
        ..limits()
    };
    let github = client_with(&server.url(), TokenSource::none(), short);
    server.fail("/user", 99, Fault::Hang);
    let began = Instant::now();
    let error = github.whoami().await.unwrap_err();
    assert!(
        matches!(&error, GitHubError::Transport { problem, .. } if problem == "timed out"),
        "{error}"
    );
    assert_eq!(server.count("GET", "/user"), 2);
    assert!(began.elapsed() < Duration::from_secs(5));

    server.heal();
    server.fail("/user", 1, Fault::Slow(Duration::from_millis(20)));
    github.whoami().await.unwrap();
}

#[tokio::test]
async fn an_answer_beyond_the_cap_is_not_held() {
    let server = server().await;
    server.comment(REPO, 1, "ada", &"x".repeat(20_000)).unwrap();
    let small = Limits {
        body: 10_000,
        ..limits()
    };
    let github = client_with(&server.url(), TokenSource::none(), small);
    let error = github.comments_of(&item(1)).await.unwrap_err();
    assert!(
        matches!(error, GitHubError::TooLarge { limit: 10_000, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_page_that_is_too_large_is_read_in_smaller_ones() {
    let server = server().await;
    let text = "x".repeat(2_000);
    for _ in 0..30 {
        server.comment(REPO, 1, "mallory", &text).unwrap();
    }
    let github = client_with(
        &server.url(),
        TokenSource::none(),
        Limits {
            body: 40_000,
            ..limits()
        },
    );
    let listing = github
        .issue_comments(&repo(), &Cursor::since(noon()))
        .await
        .unwrap();
    // What was asked for a tenth is no condition for the whole.
    assert_eq!(listing.cursor.etag, None);
    assert_eq!(listing.news.unwrap().items.len(), 30);
    let whole = github.comments_of(&item(1)).await.unwrap();
    assert_eq!((whole.items.len(), whole.next), (30, None));
}
