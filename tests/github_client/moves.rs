//! Things that are not where they were, and other hosts.

use the_loop::demo::github::Fault;
use the_loop::github::{Cursor, Endpoint, GitHub, GitHubError};
use the_loop::model::RepoRef;

use super::{REPO, client_with, item, limits, repo, server, token};

fn client(url: &str) -> GitHub {
    client_with(url, token("s3cret"), limits())
}

#[tokio::test]
async fn a_redirect_to_another_host_gets_neither_request_nor_token() {
    let (server, other) = (server().await, server().await);
    let github = client(&server.url());
    for code in [301, 302, 307, 308] {
        server.fail(
            "/user",
            1,
            Fault::Redirect(code, format!("{}/user", other.url())),
        );
        let error = github.whoami().await.unwrap_err();
        assert!(
            matches!(&error, GitHubError::Moved { to, .. } if *to == format!("{}/user", other.url())),
            "{error}"
        );
    }
    server.fail_method("POST", "/comments", 1, Fault::Redirect(307, other.url()));
    let error = github.create_comment(&item(1), "x").await.unwrap_err();
    assert!(matches!(error, GitHubError::Moved { .. }), "{error}");

    assert!(other.requests().is_empty());
    assert!(server.requests().iter().all(|row| row.authorized));
}

#[tokio::test]
async fn a_next_page_on_another_host_is_not_asked() {
    let (server, other) = (server().await, server().await);
    let github = client(&server.url());
    let elsewhere = format!("{}/repos/{REPO}/issues?page=2", other.url());
    server.fail(
        "/issues/1/comments",
        1,
        Fault::NextPageAt(elsewhere.clone()),
    );
    let error = github.comments_of(&item(1)).await.unwrap_err();
    assert!(matches!(error, GitHubError::Moved { .. }), "{error}");

    let error = github.get(&elsewhere, None).await.unwrap_err();
    assert!(matches!(error, GitHubError::Moved { .. }), "{error}");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_renamed_repository_is_read_under_its_old_name_and_not_written() {
    let server = server().await;
    let github = client(&server.url());
    server.rename_repo(REPO, "octo/new").unwrap();

    let found = github.repository(&repo()).await.unwrap();
    assert_eq!(found.full_name.as_deref(), Some("octo/new"));
    let since = Cursor::since(server.now() - chrono::TimeDelta::hours(1));
    let issues = github.issues_since(&repo(), &since).await.unwrap();
    assert_eq!(issues.news.unwrap().items.len(), 1);
    let error = github.create_comment(&item(1), "x").await.unwrap_err();
    assert!(
        matches!(error, GitHubError::Moved { .. }) && !error.may_have_happened(),
        "{error}"
    );
    assert!(server.comments_on("octo/new", 1).is_empty());
}

#[tokio::test]
async fn a_transferred_issue_says_where_it_went() {
    let server = server().await;
    let github = client(&server.url());
    server.open_issue("octo/other", "ada", "already there", "");
    let arrived = server.transfer_issue(REPO, 1, "octo/other").unwrap();

    let Err(GitHubError::Moved { to, .. }) = github.issue(&item(1)).await else {
        panic!("the move was not reported");
    };
    let issue = github.issue_at(&to).await.unwrap();
    assert_eq!(issue.number, arrived);
    assert!(issue.repository_url.unwrap().ends_with("/octo/other"));
}

#[tokio::test]
async fn deleted_and_hidden_issues_are_told_apart() {
    let server = server().await;
    let github = client(&server.url());
    server.open_issue(REPO, "ada", "Second", "");
    server.delete_issue(REPO, 1).unwrap();
    server.hide_issue(REPO, 2).unwrap();
    assert!(matches!(
        github.issue(&item(1)).await,
        Err(GitHubError::Gone { .. })
    ));
    assert!(matches!(
        github.issue(&item(2)).await,
        Err(GitHubError::NotFound { .. })
    ));
}

#[tokio::test]
async fn a_ghes_is_asked_below_its_own_path() {
    let server = server().await;
    let endpoint = Endpoint::new(&server.enterprise_url(), "ghe.example").unwrap();
    let github = GitHub::new(endpoint, token("s3cret"), limits());
    let repo: RepoRef = "ghe.example/octo/my.repo".parse().unwrap();
    for n in 0..120 {
        server.comment(REPO, 1, "ada", &format!("{n}")).unwrap();
    }

    assert_eq!(
        github.comments_of(&repo.item(1)).await.unwrap().items.len(),
        120
    );
    github.create_comment(&repo.item(1), "x").await.unwrap();
    assert!(
        server
            .requests()
            .iter()
            .all(|row| row.path.starts_with("/api/v3/") && row.authorized)
    );
    let error = github
        .issue(&"octo/app#1".parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, GitHubError::OtherHost { .. }), "{error}");
}
