//! The first look at an item: what was said before is known, and never said.

use chrono::TimeDelta;
use the_loop::model::{Class, DeliveryState};

use super::rig::{REPO, Rig};

#[tokio::test]
async fn what_was_said_before_the_first_sight_is_never_told() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    for text in ["one", "two", "three"] {
        rig.comment(issue, "ada", text);
    }
    rig.look().await;
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
    let baselined = rig.said(&["inbox.baselined"]);
    assert_eq!(baselined.len(), 1);
    assert_eq!(baselined[0].number("count"), Some(3));
    rig.comment(issue, "ada", "four");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["four"]);
}

#[tokio::test]
async fn a_start_that_nobody_acted_on_counts_at_first_sight() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.comment(issue, "ada", "what do you think?");
    rig.comment(issue, "ada", "the-loop start");
    rig.comment(issue, "ada", "old news");
    rig.look().await;
    let heard = rig.hear().await;
    let commands: Vec<_> = heard
        .iter()
        .filter(|one| one.class == Class::Control)
        .collect();
    assert_eq!(commands.len(), 1, "{heard:?}");
    assert_eq!(commands[0].texts, ["the-loop start"]);
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn of_several_old_control_words_only_the_last_counts() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    for text in ["the-loop start", "the-loop stop", "the-loop start"] {
        rig.pass(1);
        rig.comment(issue, "ada", text);
    }
    rig.pass(1);
    rig.comment(issue, "mallory", "the-loop stop");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["the-loop start"]);
    let told = rig.queue(issue).await;
    let states: Vec<_> = told
        .iter()
        .filter(|row| row.kind == "issue_comment")
        .map(|row| row.state)
        .collect();
    let baselined = DeliveryState::Baselined;
    assert_eq!(
        states,
        [baselined, baselined, DeliveryState::Delivered, baselined]
    );
}

#[tokio::test]
async fn an_issue_about_which_nothing_was_said_costs_one_request_and_says_nothing() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
    assert_eq!(
        rig.github
            .count("GET", &format!("/issues/{issue}/comments")),
        1
    );
    assert_eq!(rig.said(&["inbox.baselined"]).len(), 0);
    rig.look().await;
    assert_eq!(
        rig.github
            .count("GET", &format!("/issues/{issue}/comments")),
        1
    );
}

#[tokio::test]
async fn a_comment_in_the_second_of_the_first_sight_is_told() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    rig.look().await;
    // The same second on GitHub's clock, after the thread was read.
    rig.comment(issue, "ada", "just in time");
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["just in time"]);
}

#[tokio::test]
async fn an_old_comment_that_is_edited_later_is_new() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    let id = rig.comment(issue, "ada", "old");
    rig.look().await;
    rig.github.edit(REPO, id, "ada", "old, but better").unwrap();
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["old, but better"]);
}

#[tokio::test]
async fn an_old_comment_that_only_its_time_moved_stays_untold() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    let id = rig.comment(issue, "ada", "old");
    rig.look().await;
    rig.github.touch_text(REPO, id).unwrap();
    rig.look().await;
    rig.look().await;
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_first_sight_asks_for_no_editors_of_what_it_will_not_tell() {
    let rig = Rig::new().await;
    let issue = rig.labelled_issue();
    for number in 0..20 {
        let id = rig.comment(issue, "ada", &format!("remark {number}"));
        rig.pass(1);
        rig.github
            .edit(REPO, id, "ada", &format!("better remark {number}"))
            .unwrap();
    }
    rig.look().await;
    assert_eq!(rig.github.count("POST", "/graphql"), 0);
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_issue_without_the_label_is_nobodys_business() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.comment(issue, "ada", "the-loop start");
    rig.look().await;
    rig.comment(issue, "ada", "hello?");
    rig.look().await;
    assert_eq!(rig.hear().await, []);
    assert!(rig.known(issue).await.is_none());
}

#[tokio::test]
async fn what_follows_the_command_that_introduced_an_item_is_told_whatever_our_clock_says() {
    for minutes in [-3, 0, 3] {
        let rig = Rig::new().await;
        rig.clock.advance(TimeDelta::minutes(minutes));
        let issue = rig.github.open_issue(REPO, "ada", "A title", "");
        rig.comment(issue, "ada", "old");
        rig.comment(issue, "ada", "the-loop pause");
        rig.look().await;
        rig.introduce(issue).await;
        rig.pass(60);
        rig.comment(issue, "ada", "the-loop stop");
        rig.comment(issue, "ada", "new");
        // The poller may come much later.
        rig.pass(600);
        rig.look().await;
        let heard = rig.hear_texts().await;
        let expected = ["the-loop stop", "new"];
        assert!(
            heard.iter().all(|text| text != "old"),
            "{minutes} min: {heard:?}"
        );
        assert!(
            expected
                .iter()
                .all(|text| heard.iter().any(|one| one == text)),
            "{minutes} min: {heard:?}"
        );
    }
}

#[tokio::test]
async fn an_item_that_a_command_introduced_waits_until_github_has_shown_it() {
    let rig = Rig::new().await;
    let issue = rig.github.open_issue(REPO, "ada", "A title", "");
    rig.look().await;
    rig.clock.advance(TimeDelta::minutes(3));
    rig.introduce(issue).await;
    rig.pass(60);
    rig.comment(issue, "ada", "new");
    // The list and the item itself.
    let down = the_loop::demo::github::Fault::Status(502);
    rig.github.fail("/issues?", 20, down.clone());
    rig.github.fail(&format!("/issues/{issue}"), 20, down);
    rig.pass(60);
    assert!(!rig.cycle().await.errors.is_empty());
    assert_eq!(rig.hear_texts().await, Vec::<String>::new());
    rig.github.heal();
    rig.pass(3600);
    rig.look().await;
    assert_eq!(rig.hear_texts().await, ["new"]);
}
