//! The local server itself: it answers as GitHub does, or the other tests prove nothing.

use chrono::TimeDelta;
use the_loop::demo::github::{LocalGitHub, PullOptions};
use the_loop::github::{Answer, Reply};

use super::{REPO, client, item, noon, server};

async fn get(server: &LocalGitHub, path: &str) -> Answer {
    match client(server).get(path, None).await.unwrap() {
        Reply::Fresh(answer) => answer,
        Reply::Unchanged { .. } => unreachable!("there was no condition"),
    }
}

async fn numbers(server: &LocalGitHub, query: &str) -> Vec<u64> {
    let answer = get(server, &format!("/repos/{REPO}/{query}")).await;
    let list: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).unwrap();
    list.iter()
        .map(|one| one["number"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn issues_are_filtered_and_sorted_as_asked() {
    let server = server().await;
    for _ in 2..=4 {
        server.open_issue(REPO, "ada", "title", "");
    }
    server.label(REPO, 2, "ada", "a").unwrap();
    server.label(REPO, 2, "ada", "b").unwrap();
    server.label(REPO, 3, "ada", "A").unwrap();
    let before_close = server.now();
    server.close(REPO, 4, "ada").unwrap();
    let since = before_close.format("%Y-%m-%dT%H:%M:%SZ");

    for (query, expected) in [
        ("issues", vec![3, 2, 1]),
        ("issues?state=all", vec![4, 3, 2, 1]),
        ("issues?state=closed", vec![4]),
        ("issues?labels=a", vec![3, 2]),
        ("issues?labels=a,b", vec![2]),
        (
            "issues?state=all&sort=updated&direction=asc",
            vec![1, 2, 3, 4],
        ),
        (
            "issues?sort=created&direction=asc&per_page=2&page=2",
            vec![3],
        ),
        (&format!("issues?state=all&since={since}"), vec![4]),
        ("pulls", vec![]),
    ] {
        assert_eq!(numbers(&server, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn what_happens_on_a_pull_request_moves_its_own_time_only() {
    let server = server().await;
    let options = PullOptions {
        author: "ada",
        head_sha: "one",
        ..Default::default()
    };
    let pull = server.open_pull(REPO, &options);
    server.advance(TimeDelta::minutes(5));
    server.open_issue(REPO, "ada", "younger", "");
    let order = "issues?state=all&sort=updated";
    assert_eq!(numbers(&server, order).await, [3, 2, 1]);

    server.push(REPO, pull, "two").unwrap();
    server
        .review_comment(REPO, pull, "bob", None, ("a.rs", 1), "hm")
        .unwrap();
    assert_eq!(numbers(&server, order).await, [3, 2, 1]);
    let answer = get(&server, &format!("/repos/{REPO}/pulls/{pull}")).await;
    let shown: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(shown["head"]["sha"], "two");
    assert!(shown["updated_at"].as_str() > shown["created_at"].as_str());
    let reviews = get(&server, &format!("/repos/{REPO}/pulls/{pull}/reviews")).await;
    let reviews: serde_json::Value = serde_json::from_slice(&reviews.body).unwrap();
    assert_eq!(
        (&reviews[0]["state"], &reviews[0]["body"]),
        (&"COMMENTED".into(), &"".into())
    );

    let root = server
        .review_comment(REPO, pull, "bob", None, ("a.rs", 1), "why?")
        .unwrap();
    server.reply(REPO, root, "ada", "because").unwrap();
    let inline = client(&server)
        .review_comments_of(&item(pull))
        .await
        .unwrap();
    let answer = inline.items.last().unwrap();
    assert_eq!(answer.in_reply_to_id, Some(root));
    let review = answer.pull_request_review_id.unwrap();
    server.set_review_state(REPO, review, "DISMISSED").unwrap();
    let reviews = client(&server).reviews(&item(pull)).await.unwrap();
    assert_eq!(
        reviews.items.last().unwrap().state.as_deref(),
        Some("DISMISSED")
    );

    server.merge(REPO, pull, "ada").unwrap();
    let issue = get(&server, &format!("/repos/{REPO}/issues/{pull}")).await;
    let issue: serde_json::Value = serde_json::from_slice(&issue.body).unwrap();
    assert_eq!(issue["state"], "closed");
    assert!(issue["pull_request"]["merged_at"].is_string());
}

#[tokio::test]
async fn pages_are_linked_by_absolute_addresses_and_the_last_links_on_nowhere() {
    let server = server().await;
    for _ in 0..4 {
        server.open_issue(REPO, "ada", "title", "");
    }
    let first = get(
        &server,
        &format!("/repos/{REPO}/issues?per_page=2&state=all"),
    )
    .await;
    let next = first.next.unwrap();
    assert!(
        next.starts_with(&server.url()) && next.ends_with("state=all&page=2"),
        "{next}"
    );
    let second = get(&server, &next).await;
    let last = get(&server, &second.next.unwrap()).await;
    assert_eq!(last.next, None);
    assert_eq!(last.date, Some(server.now()));
    assert!(last.date.unwrap() > noon());
}

#[tokio::test]
async fn acts_on_what_is_not_there_say_so() {
    let server = server().await;
    let error = server.comment(REPO, 7, "ada", "x").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the local GitHub has no {REPO}#7")
    );
    assert!(server.push(REPO, 1, "sha").is_err());
    assert!(server.edit(REPO, 1, "ada", "x").is_err());
    assert!(server.label("no/where", 1, "ada", "x").is_err());
}

#[tokio::test]
async fn a_spent_budget_is_refused_and_a_dropped_server_is_gone() {
    let server = server().await;
    server.set_budget(10, 1);
    get(&server, "/user").await;
    assert!(client(&server).get("/user", None).await.is_err());

    let github = client(&server);
    drop(server);
    assert!(github.get("/user", None).await.is_err());
}
