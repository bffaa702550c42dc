//! Long lists: complete, in order, each once.

use super::rig::{LABEL, REPO, Rig};

#[tokio::test]
async fn three_hundred_and_fifty_labelled_issues_are_all_known() {
    let rig = Rig::new().await;
    for _ in 0..350 {
        rig.labelled_issue();
    }
    let report = rig.look().await;
    assert_eq!(report.first_sights, 350);
    assert_eq!(report.items, 350);
    rig.hear().await;
    rig.comment(1, "ada", "the oldest is heard too");
    rig.comment(350, "ada", "and the newest");
    rig.look().await;
    let mut heard = rig.hear_texts().await;
    heard.sort();
    assert_eq!(heard, ["and the newest", "the oldest is heard too"]);
}

async fn comments_arrive_in_order(count: usize) {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    rig.hear().await;
    let texts: Vec<String> = (1..=count)
        .map(|number| format!("comment {number}"))
        .collect();
    for (number, text) in texts.iter().enumerate() {
        rig.comment(issue, "ada", text);
        if number % 7 == 0 {
            rig.pass(1);
        }
    }
    rig.look().await;
    assert_eq!(rig.hear_texts().await, texts);
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_hundred_and_thirty_comments_arrive_complete_and_in_order() {
    comments_arrive_in_order(130).await;
}

#[tokio::test]
async fn three_hundred_comments_arrive_complete_and_in_order() {
    comments_arrive_in_order(300).await;
}

#[tokio::test]
async fn three_hundred_comments_of_one_second_arrive() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    rig.hear().await;
    for number in 0..300 {
        rig.comment(issue, "ada", &format!("comment {number}"));
    }
    rig.look().await;
    assert_eq!(rig.hear_texts().await.len(), 300);
    rig.look().await;
    assert_eq!(rig.hear_texts().await.len(), 0);
}

#[tokio::test]
async fn three_hundred_old_comments_are_baselined() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    for number in 0..300 {
        rig.comment(issue, "ada", &format!("comment {number}"));
    }
    rig.github.label(REPO, issue, "ada", LABEL).unwrap();
    rig.look().await;
    rig.look().await;
    assert_eq!(rig.hear_texts().await.len(), 0);
    assert_eq!(rig.said(&["inbox.baselined"])[0].number("count"), Some(300));
}

#[tokio::test]
async fn a_hundred_and_fifty_pull_requests_are_all_walked() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    for number in 0..150 {
        rig.pull(&format!("branch-{number}"), &format!("Fixes #{issue}"));
    }
    rig.look().await;
    rig.hear().await;
    rig.comment(2, "ada", "on the oldest");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["on the oldest"]);
}
