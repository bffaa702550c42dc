//! What an idle cycle costs; the figures are printed, the bounds are generous.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use the_loop::demo::github::LocalGitHub;
use the_loop::github::Cursor;
use the_loop::model::RepoRef;

use super::{client, noon};

#[tokio::test]
async fn an_idle_cycle_over_1000_issues_in_5_repositories_is_20_cheap_requests() {
    let server = LocalGitHub::start().await.unwrap();
    server.set_clock(noon());
    let repos: Vec<RepoRef> = (0..5)
        .map(|n| format!("octo/app{n}").parse().unwrap())
        .collect();
    for repo in &repos {
        for _ in 0..200 {
            let number = server.open_issue(&repo.to_string(), "ada", "title", "text");
            server
                .label(&repo.to_string(), number, "ada", "loop")
                .unwrap();
        }
    }
    server.advance(TimeDelta::hours(1));
    let github = client(&server);
    let mut lists = Vec::new();
    let began = Instant::now();
    for repo in &repos {
        let open = github.open_issues(repo, Some("loop")).await.unwrap();
        let start = Cursor::since(open.date.unwrap());
        assert_eq!(open.news.unwrap().items.len(), 200);
        lists.push((start.clone(), start.clone(), start, None));
    }
    println!("first sight of 1000 issues: {:?}", began.elapsed());

    let mut last = Duration::ZERO;
    for _ in 0..4 {
        server.forget_requests();
        let began = Instant::now();
        for (repo, (issues, comments, inline, pulls)) in repos.iter().zip(&mut lists) {
            *issues = github.issues_since(repo, issues).await.unwrap().cursor;
            *comments = github.issue_comments(repo, comments).await.unwrap().cursor;
            *inline = github.review_comments(repo, inline).await.unwrap().cursor;
            *pulls = github
                .open_pulls(repo, pulls.as_deref())
                .await
                .unwrap()
                .cursor
                .etag;
        }
        last = began.elapsed();
    }
    println!("an idle cycle of 20 requests: {last:?}");
    assert_eq!(
        (server.requests().len(), server.count_status(304)),
        (20, 20)
    );
    assert!(last < Duration::from_secs(5));
}
